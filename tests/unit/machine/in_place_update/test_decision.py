"""Every state that machine and Node can be found in, whoever left it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import msgspec
import pytest

from mcm.api.machine import LastOperation, Machine, MachinePhase
from mcm.controllers.in_place_marks import InPlaceMarks, Result, Stage, marks_of
from mcm.controllers.machine import status
from mcm.controllers.machine.in_place_update.decision import (
    Drain,
    DropResult,
    Enter,
    Move,
    Rest,
    Say,
    Situation,
    Turn,
    Uncordon,
    decide,
)
from mcm.controllers.machine.in_place_update.node_condition import stage_patch, without_result
from mcm.controllers.reachability import Reachability
from tests.unit.machine.objects import BORN, after, condition, machine, node

NOW = after(minutes=10)
TIMEOUT = timedelta(minutes=20)
HELD = ("InPlaceUpdating", "InPlaceUpdateFailed")
INELIGIBLE = ("Failed", "Terminating")
MOST = 2 * len(Stage)


@dataclass(frozen=True)
class World:
    """A machine and its Node, to which moves are applied as the API server would."""

    machine: Machine
    marks: InPlaceMarks
    healthy: bool = True
    drained: bool = False

    def next(self) -> Move:
        return decide(
            Situation(
                machine=self.machine,
                marks=self.marks,
                healthy=lambda: self.healthy,
                timeout=TIMEOUT,
                now=NOW,
                servers=Reachability(),
                drained=self.drained,
            )
        )

    def after(self, move: Move) -> World:
        match move:
            case Turn(stage):
                return self.marked(stage=stage, since=None if stage is None else NOW)
            case DropResult():
                return self.marked(result=None)
            case Uncordon():
                return self.marked(cordon_is_ours=False)
            case Drain():
                return replace(self, drained=True)
            case Enter(phase, operation):
                said = status.with_operation(self.machine.status, operation, NOW)
                return self.shown(status.with_phase(said, phase, NOW))
            case Say(operation):
                return self.shown(status.with_operation(self.machine.status, operation, NOW))
            case Rest():
                return self

    def marked(self, **changes: object) -> World:
        return replace(self, marks=replace(self.marks, **changes))  # type: ignore[arg-type]

    def shown(self, wanted: object) -> World:
        return replace(self, machine=msgspec.structs.replace(self.machine, status=wanted))

    def restarted(self) -> World:
        return replace(self, drained=False)

    def outcome(self) -> tuple[object, ...]:
        marks = self.marks
        return self.machine.phase, marks.stage, marks.result, marks.cordon_is_ours


def course(world: World) -> list[tuple[Move, World]]:
    """The moves up to a rest, each with what it led to."""
    found: list[tuple[Move, World]] = []
    for _ in range(MOST):
        move = world.next()
        if isinstance(move, Rest):
            return found
        world = world.after(move)
        found.append((move, world))
    raise AssertionError(f"no end of {[move for move, _ in found]}")


def every_world() -> Iterator[World]:
    flags = (False, True)
    operations = (LastOperation(), LastOperation(type="DrainNode", state="Processing"))
    phases = [p for p in MachinePhase if p not in ("Pending", "CrashLoopBackOff", "Available")]
    for stage, phase, candidate, selected, result, cordon, healthy, operation in itertools.product(
        (None, *Stage), phases, flags, flags, (None, *Result), flags, flags, operations
    ):
        yield World(
            machine("m", phase=phase, node="n", since=BORN, operation=operation),
            InPlaceMarks(
                stage=stage,
                since=BORN if stage else None,
                candidate=candidate,
                selected=selected,
                result=result,
                cordon_is_ours=cordon,
            ),
            healthy=healthy,
        )


EVERY = list(every_world())


def test_every_state_comes_to_rest() -> None:
    assert len(EVERY) > 4000
    for world in EVERY:
        course(world)


def test_a_process_that_ends_anywhere_changes_nothing_about_the_outcome() -> None:
    for world in EVERY:
        steps = course(world)
        expected = steps[-1][1].outcome() if steps else world.outcome()
        for _, halfway in steps:
            again = course(halfway.restarted())
            final = again[-1][1] if again else halfway
            assert final.outcome() == expected, (world, steps)


def test_success_is_concluded_from_the_agents_word_alone_and_only_once_it_was_asked() -> None:
    for world in EVERY:
        before = world
        for move, then in course(world):
            if isinstance(move, Turn) and move.stage is Stage.SUCCESSFUL:
                assert before.marks.result is Result.SUCCESSFUL
                assert before.marks.stage in (Stage.DRAINED, Stage.READY, Stage.FAILED)
            if isinstance(move, Enter) and move.phase == "InPlaceUpdateSuccessful":
                assert before.marks.stage is Stage.SUCCESSFUL
            before = then


def test_a_result_is_taken_away_only_if_it_was_there_before_the_agent_was_asked() -> None:
    for world in EVERY:
        before = world
        for move, then in course(world):
            if isinstance(move, DropResult):
                assert before.marks.stage is Stage.SELECTED
            before = then


def test_an_updated_machine_is_left_alone_until_its_result_was_read() -> None:
    for world in EVERY:
        if world.machine.phase == "InPlaceUpdateSuccessful" and world.marks.awaits_hand_over:
            assert world.next() == Rest()


def test_nothing_is_drained_unless_it_is_selected_now() -> None:
    for world in EVERY:
        if any(isinstance(move, Drain) for move, _ in course(world)):
            assert world.marks.wanted
            assert world.machine.phase not in INELIGIBLE


def test_a_machine_that_is_given_up_or_goes_keeps_its_phase() -> None:
    for world in EVERY:
        if world.machine.phase in INELIGIBLE:
            assert not any(isinstance(move, Enter | Drain) for move, _ in course(world))


def test_what_nobody_wants_any_more_leaves_no_phase_and_no_cordon_behind() -> None:
    for world in EVERY:
        if world.marks.candidate or world.marks.result is not None:
            continue
        steps = course(world)
        final = steps[-1][1] if steps else world
        assert final.machine.phase not in HELD
        assert not final.marks.cordon_is_ours
        assert final.marks.stage in (None, Stage.SUCCESSFUL)


def test_a_machine_goes_back_to_unknown_if_its_node_is_not_healthy() -> None:
    for healthy, phase in ((True, "Running"), (False, "Unknown")):
        world = World(machine(phase="InPlaceUpdating", node="n"), InPlaceMarks(), healthy=healthy)
        move = world.next()
        assert isinstance(move, Enter)
        assert move.phase == phase
        assert move.operation.description == (
            "Machine m is no longer selected for an in-place update"
        )


def test_a_phase_from_an_earlier_attempt_is_entered_anew_so_that_its_time_begins_anew() -> None:
    selected = InPlaceMarks(
        stage=Stage.SELECTED, since=after(hours=1), candidate=True, selected=True
    )
    for entered, expected in ((after(minutes=59), Enter), (after(hours=1), Turn)):
        updating = machine(phase="InPlaceUpdating", node="n", since=entered)
        assert isinstance(World(updating, selected, drained=True).next(), expected)


# ---- the clock ---------------------------------------------------------------------------------

READY = InPlaceMarks(stage=Stage.READY, since=BORN, candidate=True, selected=True)


def at(
    seconds: float, marks: InPlaceMarks | None = READY, servers: Reachability | None = None
) -> Move:
    return decide(
        Situation(
            machine=machine(phase="InPlaceUpdating", node="n", since=BORN),
            marks=marks,
            healthy=lambda: True,
            timeout=TIMEOUT,
            now=after(seconds=seconds),
            servers=servers or Reachability(),
        )
    )


@pytest.mark.parametrize("marks", [READY, None])
def test_the_time_counts_from_when_the_phase_was_entered(marks: InPlaceMarks | None) -> None:
    assert at(1199, marks) == Rest(1)
    late = at(1200, marks)
    assert isinstance(late, Enter)
    assert late.phase == "InPlaceUpdateFailed"
    done = late.operation
    assert done.description == "Machine m failed to in-place update in 20m0s."
    assert (done.state, done.type) == ("Failed", "InPlaceUpdate")


def test_nobody_is_late_while_the_servers_do_not_answer_nor_for_that_time() -> None:
    assert at(9999, READY, Reachability(reachable=False)) == Rest()
    back = Reachability(restored_at=after(seconds=9000))
    assert at(9999, READY, back) == Rest(201)


@pytest.mark.parametrize("phase", ["InPlaceUpdateFailed", "InPlaceUpdateSuccessful", "Running"])
def test_without_node_only_an_update_under_way_has_a_clock(phase: str) -> None:
    situation = Situation(
        machine=machine(phase=phase, node="n", since=BORN),
        marks=None,
        healthy=lambda: False,
        timeout=TIMEOUT,
        now=after(days=1),
        servers=Reachability(),
    )
    assert decide(situation) == Rest()


# ---- the Node ----------------------------------------------------------------------------------

PREFIX = "node.machine.sapcloud.io"


def test_marks_are_read_from_labels_condition_and_annotations() -> None:
    subject = node(
        labels={
            f"{PREFIX}/candidate-for-update": "",
            f"{PREFIX}/selected-for-update": "whatever",
            f"{PREFIX}/update-result": "failed",
        },
        annotations={
            f"{PREFIX}/update-failed-reason": "no disk",
            f"{PREFIX}/cordoned-by-mcm": "in-place-update",
        },
        conditions=(condition("InPlaceUpdate", "True", reason="ReadyForUpdate"),),
    )
    assert marks_of(subject) == InPlaceMarks(
        stage=Stage.READY,
        since=BORN,
        candidate=True,
        selected=True,
        result=Result.FAILED,
        failed_reason="no disk",
        cordon_is_ours=True,
    )
    assert marks_of(node(labels={"x": "y"})) == InPlaceMarks()


def test_words_that_nobody_knows_mean_nothing() -> None:
    subject = node(
        labels={f"{PREFIX}/update-result": "perhaps"},
        annotations={f"{PREFIX}/cordoned-by-mcm": "somebody"},
        conditions=(condition("InPlaceUpdate", "True", reason="Thinking"),),
    )
    marks = marks_of(subject)
    assert (marks.stage, marks.result, marks.cordon_is_ours) == (None, None, False)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (Stage.CANDIDATE, "Node is a candidate for in-place update"),
        (Stage.SELECTED, "Node is selected for in-place update"),
        (Stage.DRAINED, "Node draining successful"),
        (Stage.READY, "Node is ready for in-place update"),
        (Stage.SUCCESSFUL, "Node in-place update successful"),
        (Stage.FAILED, "Node in-place update failed: no disk"),
    ],
)
def test_the_condition_is_written_in_the_words_of_the_original(stage: Stage, message: str) -> None:
    patch = stage_patch(node(), InPlaceMarks(failed_reason="no disk"), stage, NOW)
    assert patch == {
        "metadata": {"uid": "uid-n", "resourceVersion": "9"},
        "status": {
            "conditions": [
                {
                    "type": "InPlaceUpdate",
                    "status": "True",
                    "reason": stage.value,
                    "message": message,
                    "lastTransitionTime": "2026-01-01T00:10:00Z",
                    "lastHeartbeatTime": "2026-01-01T00:10:00Z",
                }
            ]
        },
    }


def test_a_failure_without_reason_or_with_far_too_many_words_is_written_all_the_same() -> None:
    def message(reason: str) -> str:
        patch = stage_patch(node(), InPlaceMarks(failed_reason=reason), Stage.FAILED, NOW)
        return str(patch["status"]["conditions"][0]["message"])  # type: ignore[index]

    assert message("  ") == "Node in-place update failed: the node agent gave no reason"
    assert 1000 < len(message("x" * 100_000)) < 1100


def test_the_condition_and_an_old_result_are_taken_away_by_their_names_alone() -> None:
    patch = stage_patch(node(), InPlaceMarks(), None, NOW)
    assert patch["status"] == {"conditions": [{"type": "InPlaceUpdate", "$patch": "delete"}]}
    subject = node(annotations={f"{PREFIX}/update-failed-reason": "x"})
    assert without_result(subject)["metadata"] == {
        "labels": {f"{PREFIX}/update-result": None},
        "annotations": {f"{PREFIX}/update-failed-reason": None},
        "uid": "uid-n",
        "resourceVersion": "9",
    }
