from __future__ import annotations

import pytest

from mcm.api.machine import MachineSet, MachineSetStatus
from mcm.api.names import (
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_KUBECTL_LAST_APPLIED,
    ANNOTATION_REVISION,
    ANNOTATION_REVISION_HISTORY,
    LABEL_MACHINE_TEMPLATE_HASH,
)
from mcm.api.templates import with_label
from mcm.controllers.deployment.revisions.numbers import (
    HISTORY_LENGTH,
    beyond_history,
    next_revision,
    with_revision,
)
from mcm.controllers.deployment.revisions.rollback import rollback
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
    assert rollback(deployment(), SETS) is None


@pytest.mark.parametrize(
    ("revision", "class_name"), [(1, "class-a"), (2, "class-b"), (0, "class-b")]
)
def test_the_template_of_a_revision_comes_back(revision: int, class_name: str) -> None:
    asked = rollback(deployment(of=template("class-c"), rollback_to=revision), SETS)
    assert asked is not None
    assert (asked.kind, asked.event) == ("Normal", "DeploymentRollback")
    assert asked.change == {
        "spec": {
            "rollbackTo": None,
            "template": {"spec": {"class": {"name": class_name}}},
        }
    }


def test_the_last_revision_is_that_of_the_former_template_even_if_the_present_has_no_set() -> None:
    asked = rollback(deployment(of=template("class-d"), rollback_to=0), SETS)
    assert asked is not None
    assert asked.note == "Rolled back to revision 3"


def test_a_template_loses_what_the_earlier_one_did_not_have() -> None:
    now = template("class-c", spec={"drainTimeout": "5m"}, metadata={"annotations": {"x": "y"}})
    asked = rollback(deployment(of=now, rollback_to=1), SETS)
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
    asked = rollback(source, sets)
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
    asked = rollback(deployment(of=template("class-c"), rollback_to=revision), sets)
    assert asked is not None
    assert (asked.kind, asked.event) == ("Warning", event)
    assert asked.change == {"spec": {"rollbackTo": None}}


def test_who_asks_for_a_revision_that_is_not_there_is_told_which_are() -> None:
    asked = rollback(deployment(of=template("class-c"), rollback_to=9), SETS)
    assert asked is not None
    assert asked.note == "Cannot roll back: no machine set has revision 9; there are 1, 2, 3"


SEEN = MachineSetStatus(observed_generation=1)
OLD_SETS = [owned_set(f"s{n}", 0, age=100 - n, status=SEEN) for n in range(4)]


@pytest.mark.parametrize(
    ("limit", "gone"),
    [
        (None, []),
        (4, []),
        (9, []),
        (3, ["s0"]),
        (1, ["s0", "s1", "s2"]),
        (0, ["s0", "s1", "s2", "s3"]),
    ],
)
def test_the_oldest_beyond_the_limit_go(limit: int | None, gone: list[str]) -> None:
    shuffled = [OLD_SETS[2], OLD_SETS[0], OLD_SETS[3], OLD_SETS[1]]
    assert [s.metadata.name for s in beyond_history(shuffled, limit)] == gone


@pytest.mark.parametrize(
    "busy",
    [
        owned_set("s0", 1, age=100, status=SEEN),
        owned_set("s0", 0, age=100, status=MachineSetStatus(replicas=1, observed_generation=1)),
        owned_set("s0", 0, age=100, status=SEEN, generation=2),
    ],
    ids=["wants machines", "has machines", "has not seen its spec"],
)
def test_one_that_is_not_empty_is_skipped_and_none_goes_instead(busy: object) -> None:
    assert beyond_history([busy, *OLD_SETS[1:]], 3) == ()  # type: ignore[list-item]


def test_one_that_is_being_deleted_does_not_count() -> None:
    assert beyond_history([owned_set("s0", 0, deleted=True), *OLD_SETS[1:]], 3) == ()


def revision(number: int, *history: int) -> dict[str, str]:
    numbers = {ANNOTATION_REVISION: str(number)}
    if history:
        numbers[ANNOTATION_REVISION_HISTORY] = ",".join(map(str, history))
    return numbers


@pytest.mark.parametrize(
    ("present", "wanted", "result"),
    [
        ({}, 1, revision(1)),
        (revision(3), 2, revision(3)),
        (revision(3), 3, revision(3)),
        (revision(1), 4, revision(4, 1)),
        (revision(4, 1), 6, revision(6, 1, 4)),
        ({ANNOTATION_REVISION: "first"}, 2, revision(2)),
    ],
)
def test_a_revision_rises_and_remembers_where_it_was(
    present: dict[str, str], wanted: int, result: dict[str, str]
) -> None:
    assert with_revision(present, wanted) == result


def test_the_history_of_revisions_does_not_grow_for_ever() -> None:
    annotations: dict[str, str] = {}
    for number in range(1, 200):
        annotations = with_revision(annotations, number)
        annotations = with_revision(annotations, number)  # nothing new, nothing remembered
    history = annotations[ANNOTATION_REVISION_HISTORY].split(",")
    assert history == [str(n) for n in range(199 - HISTORY_LENGTH, 199)]


@pytest.mark.parametrize(
    ("revisions", "following"), [([], 1), (["3", "7", "x"], 8), (["", "-4"], 1)]
)
def test_the_next_revision_is_greater_than_all(revisions: list[str], following: int) -> None:
    sets = [
        owned_set(str(n), annotations={ANNOTATION_REVISION: r}) for n, r in enumerate(revisions)
    ]
    assert next_revision(sets) == following
