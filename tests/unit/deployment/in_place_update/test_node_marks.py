"""What a Node gets and loses, a row a situation; those of the Go original among them."""

from __future__ import annotations

import msgspec
import pytest

from mcm.api.core import Node, NodeCondition, NodeSpec, NodeStatus
from mcm.api.machine import (
    CurrentStatus,
    DeploymentStrategy,
    InPlaceUpdate,
    Machine,
    MachineSet,
    MachineStatus,
)
from mcm.api.meta import ObjectMeta
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_UPDATE_TO_SET,
    CONDITION_IN_PLACE_UPDATE,
    CORDONED_FOR_UPDATE,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SCALE_UP_DISABLED,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
)
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.in_place_update.node_marks import Wish, node_update, wish_for
from mcm.controllers.deployment.in_place_update.remarks import remark_on, with_remark
from mcm.controllers.deployment.in_place_update.standing import Standing, UpdateView
from mcm.controllers.deployment.in_place_update.transfer import moves, transfer_change
from tests.unit.deployment.objects import deployment, owned_set, progressing, template

BLOCK = InPlaceUpdate(max_surge=0, max_unavailable=1, orchestration_type="Auto")
IN_PLACE = DeploymentStrategy(type="InPlaceUpdate", in_place_update=BLOCK)
ROLLING = DeploymentStrategy(type="RollingUpdate")
CANDIDATE = {LABEL_CANDIDATE_FOR_UPDATE: "true"}
SELECTED = {**CANDIDATE, LABEL_SELECTED_FOR_UPDATE: "true"}
DONE = {**SELECTED, LABEL_UPDATE_RESULT: "successful"}
BROKEN = {**SELECTED, LABEL_UPDATE_RESULT: "failed"}
TO_NEW = {ANNOTATION_UPDATE_TO_SET: "new"}
TO_OLD = {ANNOTATION_UPDATE_TO_SET: "old"}
TO_GONE = {ANNOTATION_UPDATE_TO_SET: "gone"}


def view_of(
    owner: str,
    labels: dict[str, str],
    annotations: dict[str, str],
    stage: str,
    *,
    phase: str = "Running",
    strategy: DeploymentStrategy = IN_PLACE,
    cordoned: bool = False,
    locked: bool = True,
    paused: bool = False,
    pinned: bool = False,
) -> UpdateView:
    """One machine, in the set ``old`` or ``new``; the old one is locked."""
    old = owned_set("old", 1, of=template("class-a"), age=100, selector={"hash": "old"})
    if locked:
        old = _with_labels(old, {LABEL_SCALE_UP_DISABLED: "true"})
    new = owned_set("new", 0, of=template("class-b"), selector={"hash": "new"})
    conditions = (
        (NodeCondition(type=CONDITION_IN_PLACE_UPDATE, status="True", reason=stage),)
        if stage
        else ()
    )
    machine = Machine(
        metadata=ObjectMeta(
            name="m",
            namespace="ns",
            uid="m-uid",
            labels={"hash": owner, **({LABEL_UPDATE_RESULT: "successful"} if pinned else {})},
        ),
        status=MachineStatus(current_status=CurrentStatus(phase=phase), conditions=conditions),
    )
    node = Node(
        metadata=ObjectMeta(name="n", labels=labels, annotations=annotations),
        spec=NodeSpec(unschedulable=cordoned),
        status=NodeStatus(conditions=conditions),
    )
    source = deployment(1, of=template("class-b"), strategy=strategy, paused=paused)
    machines = {"old-uid": (), "new-uid": (), f"{owner}-uid": (machine,)}
    return UpdateView.of(DeploymentSnapshot.of(source, [old, new], machines), lambda _: node)


def _with_labels(machine_set: MachineSet, labels: dict[str, str]) -> MachineSet:
    meta = msgspec.structs.replace(machine_set.metadata, labels=labels)
    return msgspec.structs.replace(machine_set, metadata=meta)


UPDATING, WELL, ILL = "InPlaceUpdating", "InPlaceUpdateSuccessful", "InPlaceUpdateFailed"


@pytest.mark.parametrize(
    ("owner", "labels", "annotations", "stage", "phase", "wanted"),
    [
        ("old", {}, {}, "", "Running", Wish.CANDIDATE),
        ("old", {}, {}, "UpdateSuccessful", "Running", Wish.CANDIDATE),
        ("old", SELECTED, TO_NEW, "SelectedForUpdate", "Running", Wish.CANDIDATE),
        ("old", SELECTED, TO_NEW, "ReadyForUpdate", UPDATING, Wish.LEAVE),
        ("old", SELECTED, TO_GONE, "ReadyForUpdate", UPDATING, Wish.LEAVE),
        ("old", DONE, TO_NEW, "UpdateSuccessful", WELL, Wish.LEAVE),
        ("old", DONE, TO_GONE, "UpdateSuccessful", WELL, Wish.RESTART),
        ("old", DONE, TO_OLD, "UpdateSuccessful", WELL, Wish.RETURN),
        ("old", BROKEN, TO_NEW, "UpdateFailed", ILL, Wish.LEAVE),
        ("old", BROKEN, TO_GONE, "UpdateFailed", ILL, Wish.RESTART),
        # of the Go original, which records nothing
        ("old", SELECTED, {}, "SelectedForUpdate", "Running", Wish.RECORD),
        ("old", SELECTED, {}, "ReadyForUpdate", UPDATING, Wish.RECORD),
        ("old", DONE, {}, "UpdateSuccessful", WELL, Wish.RECORD),
        ("old", DONE, {}, "UpdateSuccessful", UPDATING, Wish.LEAVE),
        ("new", DONE, {}, "UpdateSuccessful", WELL, Wish.RETURN),
        # the machine has not read its result yet
        ("new", DONE, TO_NEW, "UpdateSuccessful", UPDATING, Wish.LEAVE),
        ("new", DONE, TO_NEW, "UpdateSuccessful", WELL, Wish.RETURN),
        # the template was taken back
        ("new", CANDIDATE, TO_OLD, "CandidateForUpdate", "Running", Wish.CLEAR),
        ("new", SELECTED, TO_OLD, "SelectedForUpdate", "Running", Wish.CLEAR),
        ("new", SELECTED, TO_OLD, "ReadyForUpdate", UPDATING, Wish.LEAVE),
        ("new", DONE, TO_OLD, "UpdateSuccessful", WELL, Wish.LEAVE),
        ("new", SELECTED, TO_OLD, "ReadyForUpdate", ILL, Wish.CLEAR),
        # a person's
        ("new", SELECTED, {}, "ReadyForUpdate", UPDATING, Wish.LEAVE),
    ],
)
def test_what_is_wanted_of_a_node(
    owner: str,
    labels: dict[str, str],
    annotations: dict[str, str],
    stage: str,
    phase: str,
    wanted: Wish,
) -> None:
    view = view_of(owner, labels, annotations, stage, phase=phase)
    assert wish_for(view, view.members["m"]) is wanted


@pytest.mark.parametrize(
    ("annotations", "locked", "wanted"),
    [(TO_NEW, False, Wish.CLEAR), ({}, True, Wish.CLEAR), ({}, False, Wish.LEAVE)],
)
def test_another_strategy_clears_what_a_deployment_began_and_leaves_what_people_did(
    annotations: dict[str, str], locked: bool, wanted: Wish
) -> None:
    view = view_of("old", SELECTED, annotations, "ReadyForUpdate", strategy=ROLLING, locked=locked)
    assert wish_for(view, view.members["m"]) is wanted


def test_while_paused_nobody_becomes_a_candidate() -> None:
    view = view_of("old", {}, {}, "", paused=True)
    assert wish_for(view, view.members["m"]) is Wish.LEAVE


def test_a_return_takes_everything_off_at_once() -> None:
    annotations = {**TO_NEW, ANNOTATION_CORDONED_BY_MCM: CORDONED_FOR_UPDATE}
    view = view_of("new", DONE, annotations, "UpdateSuccessful", phase=WELL, cordoned=True)
    update = node_update(view, view.members["m"], select=False)
    assert update.labels == dict.fromkeys(DONE)
    assert update.annotations == dict.fromkeys(annotations)
    assert update.uncordons and update.returns


@pytest.mark.parametrize(("annotations", "uncordons"), [(TO_NEW, False), ({}, True)])
def test_a_cordon_without_word_is_a_persons_unless_the_go_original_began(
    annotations: dict[str, str], uncordons: bool
) -> None:
    view = view_of("new", DONE, annotations, "UpdateSuccessful", phase=WELL, cordoned=True)
    assert node_update(view, view.members["m"], select=False).uncordons is uncordons


def test_what_the_go_original_began_is_recorded_with_its_cordon() -> None:
    view = view_of("old", SELECTED, {}, "ReadyForUpdate", phase=UPDATING, cordoned=True)
    update = node_update(view, view.members["m"], select=False)
    assert update.annotations == {**TO_NEW, ANNOTATION_CORDONED_BY_MCM: CORDONED_FOR_UPDATE}
    assert not update.labels


def test_selection_and_candidacy_are_one_write_and_then_none() -> None:
    view = view_of("old", {}, {}, "")
    update = node_update(view, view.members["m"], select=True)
    assert (update.labels, update.annotations) == (SELECTED, TO_NEW)
    again = view_of("old", SELECTED, TO_NEW, "CandidateForUpdate")
    update = node_update(again, again.members["m"], select=True)
    assert not (update.labels or update.annotations or update.uncordons)


@pytest.mark.parametrize(
    ("annotations", "locked", "target"),
    [(TO_NEW, True, "new"), (TO_NEW, False, None), ({}, True, None), (TO_OLD, True, None)],
)
def test_a_machine_moves_by_its_record_from_a_set_that_makes_no_other(
    annotations: dict[str, str], locked: bool, target: str | None
) -> None:
    view = view_of("old", DONE, annotations, "UpdateSuccessful", phase=WELL, locked=locked)
    assert [m.target.metadata.name for m in moves(view)] == ([target] if target else [])


def test_a_move_is_one_change_of_owner_labels_and_the_mark() -> None:
    view = view_of("old", DONE, TO_NEW, "UpdateSuccessful", phase=WELL)
    (move,) = moves(view)
    change = transfer_change(move.member.machine, move.member.owner, move.target)
    metadata = change["metadata"]
    assert isinstance(metadata, dict)
    (owner,) = metadata["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == ("new-uid", True)
    assert metadata["labels"] == {"hash": "new", "name": "pool", LABEL_UPDATE_RESULT: "successful"}


def test_a_failure_is_remarked_once_and_not_for_ever() -> None:
    view = view_of("old", BROKEN, TO_NEW, "UpdateFailed", phase=ILL)
    assert view.members["m"].standing is Standing.FAILED
    said = remark_on(view)
    assert said.startswith("1 update failed (machine m: ") and LABEL_UPDATE_RESULT in said
    before = (progressing("MachineSetUpdated"),)
    (after,) = with_remark(before, said)
    assert after.message == f"said before (In place: {said})"
    assert (after.last_update_time, after.reason) == (before[0].last_update_time, before[0].reason)
    assert with_remark((after,), said) == (after,)
    assert with_remark((after,), "") == before
