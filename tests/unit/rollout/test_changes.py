"""What pause, resume, restart and undo write, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcm.api.machine import DeploymentStrategy, InPlaceUpdate, MachineDeployment, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_RESTARTED_AT,
    ANNOTATION_REVISION,
    ANNOTATION_REVISION_HISTORY,
)
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.templates import same_template
from mcm.rollout.changes import Refused, Undo, pause, restart, resume, undo
from mcm.rollout.supposition import Namespace, Supposition, supposed
from tests.unit.deployment.objects import NOW, deployment, owned_set, template

IN_PLACE = DeploymentStrategy(type="InPlaceUpdate", in_place_update=InPlaceUpdate())


def test_pausing_and_resuming_change_one_field() -> None:
    assert pause(deployment()) == {"spec": {"paused": True}}
    assert resume(deployment(paused=True)) == {"spec": {"paused": None}}


@pytest.mark.parametrize(
    ("act", "present", "why"),
    [
        (pause, deployment(paused=True), "is already paused"),
        (resume, deployment(), "is not paused"),
        (lambda d: restart(d, NOW), deployment(paused=True), "mcm rollout resume"),
        (lambda d: restart(d, NOW), deployment(strategy=IN_PLACE), "in place"),
    ],
)
def test_what_makes_no_sense_is_refused_and_says_why(
    act: Callable[[MachineDeployment], JSONObject], present: MachineDeployment, why: str
) -> None:
    with pytest.raises(Refused, match=why) as refusal:
        act(present)
    assert 'machinedeployments.machine.sapcloud.io "pool"' in str(refusal.value)


def test_a_restart_makes_another_template_of_the_same_class_at_most_once_a_second() -> None:
    change = restart(deployment(), NOW)
    moment = "2026-01-01T12:00:00Z"
    assert change == {
        "spec": {"template": {"metadata": {"annotations": {ANNOTATION_RESTARTED_AT: moment}}}}
    }
    annotated = template(metadata={"annotations": {ANNOTATION_RESTARTED_AT: moment}})
    assert not same_template(template(), annotated)
    with pytest.raises(Refused, match="within this second"):
        restart(deployment(of=annotated), NOW)


def revision(number: int, class_name: str, *, earlier: str = "") -> MachineSet:
    annotations = {ANNOTATION_REVISION: str(number)}
    if earlier:
        annotations[ANNOTATION_REVISION_HISTORY] = earlier
    return owned_set(f"set-{number}", of=template(class_name), annotations=annotations)


def seen(present: MachineDeployment, *sets: MachineSet) -> DeploymentSnapshot:
    machines = {s.metadata.uid: () for s in sets}
    return DeploymentSnapshot.of(present, sets, machines)


SETS = (revision(2, "class-b"), revision(3, "class-a", earlier="1"), revision(4, "class-c"))


@pytest.mark.parametrize(("asked", "reached", "class_"), [(0, 3, "class-a"), (2, 2, "class-b")])
def test_an_undo_writes_the_former_template_itself(asked: int, reached: int, class_: str) -> None:
    present = deployment(of=template("class-c"))
    undone = undo(seen(present, *SETS), asked)
    assert undone.revision == reached
    assert undone.change == {
        "spec": {"template": {"spec": {"class": {"name": class_}}}, "rollbackTo": None}
    }


def test_an_undo_to_the_present_template_changes_nothing() -> None:
    assert undo(seen(deployment(of=template("class-c")), *SETS), 4) == Undo(4, None)


@pytest.mark.parametrize(
    ("asked", "sets", "paused", "why"),
    [
        (7, SETS, False, r"has no revision 7 \(there are: 2, 3, 4\)"),
        (1, SETS, False, r"revision 1 has become revision 3"),
        (0, SETS[2:], False, r"has no earlier revision to go back to \(there are: 4\)"),
        (0, (), False, r"there are: none"),
        (2, SETS, True, "mcm rollout resume"),
    ],
)
def test_an_undo_that_cannot_be_says_what_there_is(
    asked: int, sets: tuple[MachineSet, ...], paused: bool, why: str
) -> None:
    with pytest.raises(Refused, match=why):
        undo(seen(deployment(of=template("class-c"), paused=paused), *sets), asked)


def test_supposing_an_undo_gives_what_the_undo_would_write() -> None:
    raw: JSONObject = {
        "metadata": {"name": "pool", "namespace": "ns", "uid": "pool-uid"},
        "spec": {
            "selector": {"matchLabels": {"name": "pool"}},
            "template": {
                "metadata": {"labels": {"name": "pool"}},
                "spec": {"class": {"kind": "MachineClass", "name": "class-c"}},
            },
        },
    }
    after = supposed(Namespace(raw, SETS), Supposition(revision=2), NOW)
    assert same_template(after.deployment.spec.template, template("class-b"))
    assert after.new is not None
    assert after.new.metadata.name == "set-2"
