"""What people read on frozen objects: numbers, since when, why, and what ends it."""

from __future__ import annotations

from mcm.controllers.overshooting.explanation import (
    Situation,
    froze,
    froze_with,
    stands_still,
    unfroze,
    unfroze_deployment,
    why_frozen,
    why_sets_frozen,
)
from mcm.controllers.overshooting.limits import Limits
from tests.unit.machineset.objects import NOW, machine, machine_set

LIMITS = Limits(freeze_at=8, unfreeze_at=7)


def situation(there: int, leaving: int, limits: Limits | None = LIMITS) -> Situation:
    machines = [machine(f"m{n}") for n in range(there)]
    machines += [machine(f"gone{n}", deleted=True) for n in range(leaving)]
    return Situation.of(machine_set(3), machines, limits)


def test_a_set_is_counted_with_what_leaves() -> None:
    seen = situation(1, 7)
    assert (seen.wanted, seen.there, seen.leaving, seen.machines, seen.lacks) == (3, 1, 7, 8, 2)
    assert situation(5, 0).lacks == 0


def test_the_condition_names_numbers_cause_and_end() -> None:
    assert why_frozen(situation(1, 7), NOW) == (
        "3 machines wanted, 1 there, 7 leaving; none is made. Frozen since 2026-01-01T12:00:00Z: "
        "8 or more machines freeze it, those leaving included. Ends when 7 or fewer are left, "
        "when the annotation safety.machine.sapcloud.io/unfreeze is set here or on the "
        "deployment, or when the label freeze is taken off"
    )


def test_without_a_limit_it_says_what_must_be_mended() -> None:
    text = why_frozen(situation(1, 7, None), NOW)
    assert "no limit is known while the spec that it follows from is invalid" in text
    assert "Ends by the numbers once that is mended" in text


def test_a_deployment_names_its_frozen_sets() -> None:
    text = why_sets_frozen([situation(1, 7), situation(9, 0)])
    assert text.count("MachineSet set: 3 machines wanted") == 2
    assert "9 there, 0 leaving; frozen" in text
    assert stands_still(situation(1, 7)) == (
        "it lacks 2 machines and is frozen (see the condition Frozen)"
    )


def test_events_say_what_happened_and_whether_it_lasts() -> None:
    assert froze(situation(3, 5)).endswith("from 8 on none is made until 7 or fewer are left")
    assert unfroze(situation(3, 4)).endswith("7 or fewer end a freeze, whoever set it")
    assert unfroze(situation(3, 5)).endswith("frozen again soon if there are 8 or more")
    assert unfroze(situation(3, 5, None)) == "Unfrozen with 8 machines, those leaving included"
    assert froze(situation(3, 5, None)).startswith("Frozen with 8 machines: no limit is known")
    assert "machine sets a, b:" in froze_with(["b", "a"])
    assert unfroze(situation(1, 0)).startswith("Unfrozen with 1 machine, those")
    assert "none of its machine sets is frozen now" in unfroze_deployment()
    assert "spec.paused does" in unfroze_deployment()
