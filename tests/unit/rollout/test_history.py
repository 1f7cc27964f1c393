"""The revisions of a deployment, as rows and as differences."""

from __future__ import annotations

import pytest

from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_CHANGE_CAUSE,
    ANNOTATION_REVISION,
    ANNOTATION_REVISION_HISTORY,
    LABEL_MACHINE_TEMPLATE_HASH,
)
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.rollout.history import as_json, difference, human_age, revisions, template_text
from tests.unit.deployment.objects import NOW, deployment, owned_set, template

SETS = (
    owned_set(
        "back",
        of=template("class-a"),
        age=7200,
        annotations={ANNOTATION_REVISION: "3", ANNOTATION_REVISION_HISTORY: "1"},
    ),
    owned_set(
        "forth",
        of=template("class-b"),
        age=90,
        annotations={ANNOTATION_REVISION: "2", ANNOTATION_CHANGE_CAUSE: "bigger"},
    ),
    owned_set("odd", of=template("class-c"), annotations={ANNOTATION_REVISION: "two"}),
)


def test_revisions_stand_in_their_order_and_say_what_they_were() -> None:
    machines = {s.metadata.uid: () for s in SETS}
    snapshot = DeploymentSnapshot.of(deployment(), SETS, machines)
    second, third = revisions(snapshot, NOW)
    assert (second.number, second.present, second.cause, second.age) == (2, False, "bigger", 90)
    assert (third.number, third.present, third.earlier) == (3, True, ("1",))
    assert as_json(third, template=True) == {
        "revision": 3,
        "earlierRevisions": [1],
        "machineSet": "back",
        "machineClass": "class-a",
        "machines": 0,
        "present": True,
        "creationTimestamp": "2026-01-01T10:00:00Z",
        "changeCause": None,
        "template": {
            "metadata": {"labels": {"name": "pool"}},
            "spec": {"class": {"kind": "MachineClass", "name": "class-a"}},
        },
    }


def test_a_difference_shows_what_changes_and_not_what_tells_sets_apart() -> None:
    labels = {"name": "pool", LABEL_MACHINE_TEMPLATE_HASH: "1"}
    marked: JSONObject = {"labels": labels, "annotations": {}}
    one, other = template("class-a", metadata=marked), template("class-b")
    lines = difference(one, other, names=("present", "revision 2"))
    assert lines[:2] == ["--- present", "+++ revision 2"]
    assert [line for line in lines[2:] if line[0] in "+-"] == [
        "-    name: class-a",
        "+    name: class-b",
    ]
    assert difference(one, template("class-a"), names=("a", "b")) == []
    assert LABEL_MACHINE_TEMPLATE_HASH not in template_text(one)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "<unknown>"),
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (301, "5m1s"),
        (3600, "60m"),
        (3 * 3600 + 1200, "3h20m"),
        (9 * 3600, "9h"),
        (3 * 86400, "3d"),
        (3 * 86400 + 3600, "3d1h"),
        (90 * 86400, "90d"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(seconds: float | None, text: str) -> None:
    assert human_age(seconds) == text
