"""Random fleets straight into the decision: whatever it says keeps every promise, and goes on.

The promises are told here a second time, in the plainest words, from the sets' raw numbers: the
code that decides shares nothing with them. Each is then broken by one, to see that it is found.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from mcm.controllers.deployment import decision as decision_module
from mcm.controllers.deployment.decision import Decision, decide
from mcm.controllers.deployment.fleet import Fleet, SetState, Targets
from mcm.controllers.deployment.sizes import bounds as bounds_module
from mcm.controllers.deployment.sizes import recreate, rolling, scaling
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.sizes.recreate import RecreateStep
from tests.thoroughness import THOROUGH

CASES = 100_000 if THOROUGH else 6_000
SABOTAGED = 4_000
"""More than enough: most sabotage is found within a few hundred cases."""


@dataclass(frozen=True)
class Case:
    fleet: Fleet
    bounds: Bounds
    strategy: str
    paused: bool


# ---- random fleets -------------------------------------------------------------------------------


def cases(seed: int, count: int) -> Iterator[Case]:
    chance = random.Random(seed)
    for _ in range(count):
        yield random_case(chance)


def random_case(chance: random.Random) -> Case:
    desired = chance.choice((0, 1, 1, 2, 3, 3, 4, 5, 7, 9, 12))
    surge, unavailable = chance.randint(0, 4), chance.randint(0, 4)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    strategy = "Recreate" if chance.random() < 0.15 else "RollingUpdate"
    limits = Bounds(desired, surge=surge, unavailable=min(unavailable, desired))
    if strategy == "Recreate":
        limits = Bounds(desired)
    tidy = chance.random() < 0.3
    named = chance.random() < 0.7
    old = tuple(
        random_set(chance, f"old-{n}", limits, tidy=tidy, named=named)
        for n in range(chance.choice((0, 1, 1, 1, 2, 3)))
    )
    new = None
    if chance.random() < 0.85:
        new = random_set(chance, "new", limits, tidy=tidy, named=named)
    if chance.random() < 0.15:
        new, old = taken_back(chance, limits)
    deleted: tuple[SetState, ...] = ()
    if not tidy and chance.random() < 0.1:
        gone = random_set(chance, "gone", limits, tidy=False, named=named)
        deleted = (replace(gone, deleted=True),)
    fleet = Fleet(new=new, old=old, deleted=deleted)
    return Case(fleet, limits, strategy, paused=chance.random() < 0.1)


def taken_back(chance: random.Random, limits: Bounds) -> tuple[SetState, tuple[SetState, ...]]:
    """The former set has all its machines, some unwell; those of the other never came up."""
    machines = sorted(chance.choice("Ru") for _ in range(limits.desired))[::-1]
    former = SetState(
        "new",
        limits.desired,
        tuple(m == "R" for m in machines),
        reported=limits.desired,
        desired=limits.desired,
        most=limits.desired + limits.surge,
        completed=True,
    )
    count = chance.randint(1, 3)
    abandoned = replace(
        former,
        uid="old-0",
        replicas=count,
        serving=(False,) * count,
        reported=count,
        joining=count,
        joining_first=count,
        failing=chance.random() < 0.5,
        completed=False,
    )
    return former, (abandoned,)


def random_set(
    chance: random.Random, uid: str, limits: Bounds, *, tidy: bool, named: bool
) -> SetState:
    """``tidy``: all of its machines are there and serve. ``named``: it was scaled for now."""
    replicas = chance.choice((0, chance.randint(0, limits.desired + 2), chance.randint(0, 4)))
    desired = limits.desired if named else chance.choice((None, chance.randint(0, 12)))
    most = None if desired is None else desired + limits.surge
    if tidy:
        return SetState(
            uid, replicas, (True,) * replicas, reported=replicas, desired=desired, most=most
        )
    count = max(0, replicas + chance.choice((-2, -1, 0, 0, 0, 0, 1, 2)))
    machines = [chance.choice("RRRRRuj") for _ in range(count)]
    if chance.random() < 0.8:
        machines.sort(key="uj".find, reverse=chance.random() < 0.5)
        machines.sort(key=lambda m: m == "R")
    terminating = chance.choice((0, 0, 0, 1, 2))
    leading = next((n for n, m in enumerate(machines) if m != "j"), count)
    return SetState(
        uid=uid,
        replicas=replicas,
        serving=tuple(m == "R" for m in machines),
        terminating=terminating,
        reported=max(0, count + terminating + chance.choice((-1, 0, 0, 0, 1))),
        chosen=chance.choice((0, 0, 0, 1)) if count else 0,
        preserved=min(machines.count("u"), chance.choice((0, 0, 0, 1))),
        joining=machines.count("j"),
        joining_first=leading,
        desired=desired,
        most=most,
        failing="j" in machines and chance.random() < 0.4,
        completed=chance.random() < 0.5,
    )


# ---- the promises, from raw numbers --------------------------------------------------------------


def exist(state: SetState, size: int) -> int:
    """The most machines the set can come to have at once."""
    return max(size + state.terminating, len(state.serving) + state.terminating, state.reported)


def kept(state: SetState, size: int) -> Sequence[bool]:
    """Which of its machines are left: the first in line go first."""
    return state.serving[max(0, len(state.serving) - size) :]


def joined_lost(state: SetState, size: int) -> int:
    """How many replicas that have joined once would go, at best for the set."""
    worthless = max(0, state.replicas - len(state.serving)) + min(
        state.joining_first, max(0, state.joining_first - len(state.serving) + state.replicas)
    )
    return max(0, state.replicas - size - worthless)


def after(fleet: Fleet, targets: Targets) -> Mapping[str, int]:
    return {s.uid: targets.get(s.uid, s.replicas) for s in fleet.living}


def total_potential(fleet: Fleet, sizes: Mapping[str, int]) -> int:
    going = sum(len(s.serving) + s.terminating for s in fleet.deleted)
    return going + sum(exist(s, sizes[s.uid]) for s in fleet.living)


def serving(fleet: Fleet, sizes: Mapping[str, int]) -> int:
    return sum(sum(kept(s, sizes[s.uid])) for s in fleet.living)


def check(case: Case, decision: Decision) -> None:
    """Raise AssertionError if ``decision`` breaks a promise."""
    fleet, before = case.fleet, after(case.fleet, {})
    known = {s.uid for s in fleet.living}
    assert set(decision.targets) <= known, "a set that is none"
    assert all(size >= 0 for size in decision.targets.values()), "a negative size"
    assert not (decision.targets and decision.create is not None), "two things at once"
    if decision.create is not None:
        assert fleet.new is None, "a second set of one template"
        assert not case.paused, "an update while paused"
    sizes = after(fleet, decision.targets)
    if case.strategy == "Recreate" and not case.paused:
        check_recreate(case, decision, sizes)
    elif case.paused or is_scaling(case):
        check_scaling(case, before, sizes)
    else:
        check_rolling(case, decision, before, sizes)


def is_scaling(case: Case) -> bool:
    used = [s for s in case.fleet.living if s.replicas > 0]
    return case.fleet.new is not None and any(
        s.desired not in (None, case.bounds.desired) for s in used
    )


def check_rolling(
    case: Case, decision: Decision, before: Mapping[str, int], sizes: Mapping[str, int]
) -> None:
    fleet, limits = case.fleet, case.bounds
    most = limits.desired + limits.surge if limits.desired else 0
    least = max(0, limits.desired - limits.unavailable)
    failing = fleet.new is not None and fleet.new.failing
    floor = limits.desired if failing else least
    created = decision.create or 0
    assert created + total_potential(fleet, sizes) <= max(most, total_potential(fleet, before)), (
        "more machines than surge allows"
    )
    assert created <= limits.desired, "more than wanted"
    check_progress(case, decision)
    new = fleet.new
    if new is None:
        assert created == min(limits.desired, max(0, most - total_potential(fleet, before)))
        return
    if sizes[new.uid] < new.replicas:
        assert sizes[new.uid] == limits.desired, "the new set shrinks for no reason"
        return
    assert sizes[new.uid] <= max(limits.desired, new.replicas), "the new set outgrows"
    shrinking = [s for s in fleet.old if sizes[s.uid] < s.replicas]
    assert not any(sizes[s.uid] > s.replicas for s in fleet.old), "an old set grows"
    assert not (shrinking and sizes[new.uid] > new.replicas), "it grows and shrinks at once"
    preserved = sum(s.preserved for s in fleet.living)
    must = min(max(0, floor - preserved), serving(fleet, before))
    assert serving(fleet, sizes) >= must, "fewer serve than promised"
    assert sum(sizes.values()) >= min(least, sum(before.values())), "fewer wanted than promised"
    not_yet = max(0, new.replicas - sum(new.serving) - new.preserved)
    budget = max(0, sum(before.values()) - floor - not_yet)
    lost = sum(joined_lost(s, sizes[s.uid]) for s in shrinking)
    assert lost <= budget, "old machines go which nothing new replaces"
    check_useless(case, before, sizes)


def check_useless(case: Case, before: Mapping[str, int], sizes: Mapping[str, int]) -> None:
    """What joins of a set that works is given up only for machines that have joined."""
    fleet, new = case.fleet, case.fleet.new
    assert new is not None
    works = [s for s in fleet.old if not s.failing and (s.completed or any(s.serving))]
    lost = sum(s.replicas - sizes[s.uid] for s in works)
    joined = len(new.serving) - new.joining
    awaited = max(0, new.replicas - joined - new.preserved)
    least = max(0, case.bounds.desired - case.bounds.unavailable)
    floor = case.bounds.desired if new.failing else least
    assert lost <= max(0, sum(before.values()) - floor - awaited), "pending machines of a good set"


def check_progress(case: Case, decision: Decision) -> None:
    """Where nothing is awaited, something is done, until there is nothing left to do."""
    fleet, limits = case.fleet, case.bounds
    sets = (*fleet.living, *fleet.deleted)
    at_rest = not fleet.deleted and all(
        all(s.serving) and len(s.serving) == s.replicas and not s.terminating for s in sets
    )
    new = fleet.new
    if (
        new is not None
        and new.replicas == limits.desired
        and not any(s.replicas for s in fleet.old)
    ):
        assert not decision.targets, "it is done, and goes on"
        return
    settled = at_rest and all(s.reported <= len(s.serving) for s in sets)
    if settled and not (new is not None and new.failing):
        assert decision.targets or decision.create is not None, "it stands still"
    if new is not None and new.replicas == limits.desired and not new.joining:
        made = len(new.serving) >= new.replicas
        abandoned = any(s.replicas > len(s.serving) - s.joining_first for s in fleet.old)
        if made and abandoned:
            assert decision.targets, "useless machines of an abandoned set stay"


def check_scaling(case: Case, before: Mapping[str, int], sizes: Mapping[str, int]) -> None:
    fleet, limits = case.fleet, case.bounds
    most = limits.desired + limits.surge if limits.desired else 0
    used = [s for s in fleet.living if s.replicas > 0]
    if len(used) == 1:
        said = used[0].replicas if used[0].desired is None else used[0].desired
        asked = max(0, limits.desired - said)
    else:
        known = [s.most for s in used if s.most is not None]
        asked = max(0, most - max(known)) if known else 0
    now = total_potential(fleet, before)
    assert total_potential(fleet, sizes) <= max(most, now + asked), "more machines than surge"
    least = max(0, limits.desired - limits.unavailable)
    assert sum(sizes.values()) >= min(least, sum(before.values())), "fewer wanted than promised"
    if len(used) < 2 or not any(sizes[s.uid] < s.replicas for s in used):
        return
    if all(sizes[s.uid] == 0 for s in fleet.old):
        return  # the new one does it all
    assert not any(sizes[s.uid] > s.replicas for s in used), "it grows and shrinks at once"
    preserved = sum(s.preserved for s in fleet.living)
    floor = min(max(0, least - preserved), serving(fleet, before))
    left, size = serving(fleet, sizes), sum(sizes.values())
    assert left >= floor, "fewer serve than promised"
    assert size >= most, "more go than the user gave up"
    assert size == most or left == floor, "not as many go as the user gave up"
    in_line = all(list(s.serving) == sorted(s.serving) for s in used)  # those that serve go last
    if fleet.new is not None and fleet.new.failing and in_line:
        works = min(max(0, limits.desired - preserved), serving(fleet, before))
        idle = any(not all(kept(s, sizes[s.uid])) for s in used)
        assert left >= works or not idle, "idle ones are kept, and ones that work are not"


def check_recreate(case: Case, decision: Decision, sizes: Mapping[str, int]) -> None:
    fleet = case.fleet
    leaving = any(s.serving or s.terminating or s.reported for s in (*fleet.old, *fleet.deleted))
    if any(s.replicas for s in fleet.old):
        assert all(sizes[s.uid] == 0 for s in fleet.old), "an old set is left"
    if any(s.replicas for s in fleet.old) or leaving:
        assert decision.create is None, "new ones beside old ones"
        assert fleet.new is None or sizes[fleet.new.uid] <= fleet.new.replicas, "beside old ones"
    elif fleet.new is None:
        assert decision.create == case.bounds.desired


# ---- all promises, over all cases ----------------------------------------------------------------


def run(seed: int, count: int) -> None:
    for number, case in enumerate(cases(seed, count)):
        decision = decide(case.fleet, case.bounds, case.strategy, paused=case.paused)
        try:
            check(case, decision)
        except AssertionError as broken:
            where = f"case {number} of seed {seed}: {broken}\n{case}\n{decision}"
            raise AssertionError(where) from None


@pytest.mark.parametrize("seed", range(4))
def test_every_promise_holds_whatever_the_fleet(seed: int) -> None:
    run(seed, CASES // 4)


def test_the_cases_reach_all_that_matters() -> None:
    seen = {"grows": 0, "shrinks": 0, "creates": 0, "waits": 0, "scales": 0, "stops": 0}
    for case in cases(9, 3000):
        decision = decide(case.fleet, case.bounds, case.strategy, paused=case.paused)
        sizes, new = after(case.fleet, decision.targets), case.fleet.new
        seen["scales"] += is_scaling(case)
        seen["creates"] += decision.create is not None
        seen["grows"] += new is not None and sizes[new.uid] > new.replicas
        seen["shrinks"] += any(sizes[s.uid] < s.replicas for s in case.fleet.old)
        seen["waits"] += not decision.targets and decision.create is None
        seen["stops"] += new is not None and new.failing
    assert min(seen.values()) > 100, seen


# ---- sabotage ------------------------------------------------------------------------------------

Sabotage = Callable[[pytest.MonkeyPatch], None]


def _more_room(where: object) -> Sabotage:
    def sabotage(patch: pytest.MonkeyPatch) -> None:
        room = bounds_module.room
        patch.setattr(where, "room", lambda fleet, limits: room(fleet, limits) + 1)

    return sabotage


def _fewer_must_serve(where: object) -> Sabotage:
    def sabotage(patch: pytest.MonkeyPatch) -> None:
        must = bounds_module.must_serve
        patch.setattr(where, "must_serve", lambda fleet, limits: max(0, must(fleet, limits) - 1))

    return sabotage


def _no_stop(patch: pytest.MonkeyPatch) -> None:
    for module in (bounds_module, rolling):
        patch.setattr(module, "floor_of", lambda _, limits: limits.least)


def _greater_budget(patch: pytest.MonkeyPatch) -> None:
    budget = rolling._budget
    patch.setattr(rolling, "_budget", lambda *given: budget(*given) + 1)


def _outgrowing(patch: pytest.MonkeyPatch) -> None:
    step = rolling.rolling_step

    def more(new: SetState, fleet: Fleet, limits: Bounds) -> Targets:
        targets = step(new, fleet, limits)
        return {u: n + (u == new.uid and n == limits.desired) for u, n in targets.items()}

    patch.setattr(decision_module, "rolling_step", more)


def _first_size_off(patch: pytest.MonkeyPatch) -> None:
    size = rolling.initial_size
    patch.setattr(decision_module, "initial_size", lambda *given: size(*given) + 1)


def _pending_swept(patch: pytest.MonkeyPatch) -> None:
    """Machines that join of a set that works do not wait for new ones."""
    patch.setattr(SetState, "proven", property(lambda _: False))


def _useless_kept(patch: pytest.MonkeyPatch) -> None:
    def kept_back(_: SetState, fleet: Fleet, __: Bounds) -> dict[str, int]:
        return {s.uid: s.replicas for s in fleet.old}

    patch.setattr(rolling, "_without_useless", kept_back)


def _standing_still(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rolling, "_shrink", lambda *_: {})


def _share_off(patch: pytest.MonkeyPatch) -> None:
    shrink = scaling._shrink

    def one_more(fleet: Fleet, limits: Bounds, surplus: int) -> dict[str, int]:
        return shrink(fleet, limits, surplus + 1)

    patch.setattr(scaling, "_shrink", one_more)


def _asking_more(patch: pytest.MonkeyPatch) -> None:
    asked = scaling.asked_for
    patch.setattr(scaling, "asked_for", lambda *given: asked(*given) + 1)


def _impatient_recreation(patch: pytest.MonkeyPatch) -> None:
    def at_once(fleet: Fleet, limits: Bounds) -> RecreateStep:
        step = recreate.recreate_step(fleet, limits)
        waits = not step.targets and step.create is None and fleet.new is None
        return RecreateStep(create=limits.desired) if waits else step

    patch.setattr(decision_module, "recreate_step", at_once)


SABOTAGE: Mapping[str, Sabotage] = {
    "surge": _more_room(rolling),
    "surge of a scaling": _more_room(scaling),
    "unavailable": _fewer_must_serve(rolling),
    "unavailable of a scaling": _fewer_must_serve(scaling),
    "stop condition": _no_stop,
    "budget": _greater_budget,
    "growth": _outgrowing,
    "first size": _first_size_off,
    "what joins in a set that works": _pending_swept,
    "useless machines": _useless_kept,
    "progress": _standing_still,
    "shares of a scale-down": _share_off,
    "what was asked for": _asking_more,
    "recreate": _impatient_recreation,
}


@pytest.mark.parametrize("promise", SABOTAGE)
def test_a_promise_that_is_off_by_one_is_found(
    promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks of the planner itself are switched off, or they would find it first."""
    monkeypatch.setattr(decision_module, "check_rollout", lambda *_, **__: None)
    monkeypatch.setattr(decision_module, "check_scaling", lambda *_, **__: None)
    run(11, SABOTAGED // 4)
    SABOTAGE[promise](monkeypatch)
    with pytest.raises(AssertionError, match=r"^case \d+ of seed 11: "):
        run(11, SABOTAGED)


@pytest.mark.parametrize("promise", ["surge", "surge of a scaling", "unavailable"])
def test_the_planners_own_checks_refuse_a_harmful_step(
    promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    SABOTAGE[promise](monkeypatch)
    with pytest.raises(bounds_module.OutOfBounds):
        run(11, SABOTAGED)
