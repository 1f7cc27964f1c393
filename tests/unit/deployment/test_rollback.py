from __future__ import annotations

import pytest

from mcm.api.machine import MachineSet
from mcm.api.names import (
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_KUBECTL_LAST_APPLIED,
    ANNOTATION_REVISION,
    LABEL_MACHINE_TEMPLATE_HASH,
)
from mcm.api.templates import with_label
from mcm.controllers.deployment.rollback import plan
from tests.unit.deployment.objects import deployment, owned_set, template


def numbered(name: str, revision: int | str, class_name: str, **annotations: str) -> MachineSet:
    return owned_set(
        name,
        0,
        of=with_label(template(class_name), LABEL_MACHINE_TEMPLATE_HASH, name),
        annotations={ANNOTATION_REVISION: str(revision), **annotations},
    )


SETS = [
    numbered("one", 1, "class-a"),
    numbered("two", 2, "class-b"),
    numbered("three", 3, "class-c"),
]


def test_nothing_asked_nothing_done() -> None:
    assert plan(deployment(), SETS) is None


@pytest.mark.parametrize(
    ("revision", "class_name"), [(1, "class-a"), (2, "class-b"), (0, "class-b")]
)
def test_the_template_of_a_revision_comes_back(revision: int, class_name: str) -> None:
    asked = plan(deployment(of=template("class-c"), rollback_to=revision), SETS)
    assert asked is not None
    assert (asked.kind, asked.event) == ("Normal", "DeploymentRollback")
    assert asked.change == {
        "spec": {
            "rollbackTo": None,
            "template": {"spec": {"class": {"name": class_name}}},
        }
    }


def test_the_last_revision_is_that_of_the_former_template_even_if_the_present_has_no_set() -> None:
    asked = plan(deployment(of=template("class-d"), rollback_to=0), SETS)
    assert asked is not None
    assert asked.note == "Rolled back to revision 3"


def test_a_template_loses_what_the_earlier_one_did_not_have() -> None:
    now = template("class-c", spec={"drainTimeout": "5m"}, metadata={"annotations": {"x": "y"}})
    asked = plan(deployment(of=now, rollback_to=1), SETS)
    assert asked is not None
    assert asked.change["spec"] == {
        "rollbackTo": None,
        "template": {
            "metadata": {"annotations": None},
            "spec": {"class": {"name": "class-a"}, "drainTimeout": None},
        },
    }


def test_annotations_come_back_but_for_personal_ones() -> None:
    sets = [
        numbered("one", 1, "class-a", team="a", **{ANNOTATION_DESIRED_REPLICAS: "9"}),
    ]
    source = deployment(
        of=template("class-c"),
        rollback_to=1,
        annotations={
            "team": "b",
            "extra": "x",
            ANNOTATION_REVISION: "3",
            ANNOTATION_KUBECTL_LAST_APPLIED: "{}",
        },
    )
    asked = plan(source, sets)
    assert asked is not None
    assert asked.change["metadata"] == {"annotations": {"team": "a", "extra": None}}


@pytest.mark.parametrize(
    ("revision", "sets", "event"),
    [
        (9, SETS, "DeploymentRollbackRevisionNotFound"),
        (0, [], "DeploymentRollbackRevisionNotFound"),
        (0, [numbered("x", "first", "class-a")], "DeploymentRollbackRevisionNotFound"),
        (3, SETS, "DeploymentRollbackTemplateUnchanged"),
    ],
)
def test_what_cannot_be_done_is_told_and_the_wish_is_cleared(
    revision: int, sets: list[MachineSet], event: str
) -> None:
    asked = plan(deployment(of=template("class-c"), rollback_to=revision), sets)
    assert asked is not None
    assert (asked.kind, asked.event) == ("Warning", event)
    assert asked.change == {"spec": {"rollbackTo": None}}
