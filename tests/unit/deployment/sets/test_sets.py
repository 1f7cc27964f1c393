from __future__ import annotations

import msgspec
import pytest

from mcm.api.machine import MachineSet, MachineTemplate
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_PREFER_NO_SCHEDULE,
    ANNOTATION_REVISION,
    ANNOTATION_REVISION_HISTORY,
    ANNOTATION_TRIGGER_DELETION,
    LABEL_MACHINE_TEMPLATE_HASH,
)
from mcm.controllers.deployment.sets.wanted import new_set, updated_set
from mcm.controllers.deployment.sets.writes import set_change
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.templates import set_name, template_hash
from tests.unit.deployment.objects import LABELS, OWNER, deployment, owned_set, template


def revision(number: int, *history: int) -> dict[str, str]:
    numbers = {ANNOTATION_REVISION: str(number)}
    if history:
        numbers[ANNOTATION_REVISION_HISTORY] = ",".join(map(str, history))
    return numbers


# What it is made of -------------------------------------------------------------------------------


def test_a_new_set_is_made_from_its_deployment() -> None:
    raw = template(spec={"somethingNew": {"x": 1}}, metadata={"annotations": {"note": "hello"}})
    source = deployment(
        4, of=raw, annotations={"team": "a", ANNOTATION_TRIGGER_DELETION: "m~x", **revision(9)}
    )
    made = new_set(
        source,
        [owned_set("o", annotations=revision(2))],
        replicas=1,
        bounds=Bounds(4, surge=2),
    )
    mark = template_hash(raw)
    assert made.metadata.name == set_name("pool", raw)
    assert made.metadata.namespace == "ns"
    assert made.metadata.owner_references == (OWNER,)
    assert made.metadata.labels == {**LABELS, LABEL_MACHINE_TEMPLATE_HASH: mark}
    assert made.metadata.annotations == {
        "team": "a",
        ANNOTATION_REVISION: "3",
        ANNOTATION_DESIRED_REPLICAS: "4",
        ANNOTATION_MAX_REPLICAS: "6",
    }
    assert made.spec.replicas == 1
    assert made.spec.selector is not None
    assert made.spec.selector.match_labels == {**LABELS, LABEL_MACHINE_TEMPLATE_HASH: mark}
    assert made.spec.template.spec == raw.spec
    assert made.spec.template.metadata == {
        "labels": {**LABELS, LABEL_MACHINE_TEMPLATE_HASH: mark},
        "annotations": {"note": "hello"},
    }


# What follows the deployment without a new set ----------------------------------------------------


def change(present: MachineSet, of: MachineTemplate, *old: MachineSet, **more: str) -> JSONObject:
    wanted = updated_set(present, deployment(of=of, annotations=more), old)
    return set_change(present, wanted)


PRESENT = owned_set(annotations=revision(1))


@pytest.mark.parametrize(
    "same",
    [
        template(),
        template(spec={"nodeTemplate": {}, "drainTimeout": None}),
        template(metadata={"creationTimestamp": None}),
    ],
)
def test_a_set_that_is_up_to_date_is_not_written(same: MachineTemplate) -> None:
    assert change(PRESENT, same) == {}


def test_a_set_of_another_hand_is_not_rewritten_for_its_spelling() -> None:
    """As the Go original leaves sets behind: nulls, and durations its own way."""
    raw = MachineTemplate(
        metadata={"creationTimestamp": None, "labels": LABELS},
        spec={
            "class": {"kind": "MachineClass", "name": "class-a"},
            "drainTimeout": "10m0s",
            "nodeTemplate": {"metadata": {"creationTimestamp": None}, "spec": {}},
        },
    )
    assert (
        change(owned_set(of=raw, annotations=revision(1)), template(spec={"drainTimeout": "10m"}))
        == {}
    )


def test_what_a_template_changes_in_place_is_one_patch() -> None:
    present = owned_set(
        annotations=revision(1),
        of=template(spec={"healthTimeout": "9m", "former": 1, "nodeTemplate": {"spec": {"x": 1}}}),
    )
    wanted = template(
        spec={
            "class": {"kind": "OtherClass", "name": "class-a"},
            "drainTimeout": "5m",
            "somethingNew": [1],
            "nodeTemplate": {"metadata": {"labels": {"a": "b"}}},
        }
    )
    assert change(present, wanted, team="b") == {
        "metadata": {"annotations": {"team": "b"}},
        "spec": {
            "template": {
                "spec": {
                    "class": {"kind": "OtherClass"},
                    "drainTimeout": "5m",
                    "healthTimeout": None,
                    "former": None,
                    "somethingNew": [1],
                    "nodeTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": None},
                }
            }
        },
    }


def test_settings_beside_the_template_follow_too() -> None:
    source = deployment(annotations={})
    spec = msgspec.structs.replace(
        source.spec, min_ready_seconds=7, auto_preserve_failed_machine_max=2
    )
    wanted = updated_set(PRESENT, msgspec.structs.replace(source, spec=spec), [])
    assert set_change(PRESENT, wanted) == {
        "spec": {"minReadySeconds": 7, "autoPreserveFailedMachineMax": 2}
    }


def test_annotations_are_added_but_never_taken_away_nor_passed_on_if_they_are_personal() -> None:
    present = owned_set(annotations={**revision(1), "mine": "x"})
    personal = {ANNOTATION_PREFER_NO_SCHEDULE: "True", ANNOTATION_DESIRED_REPLICAS: "77"}
    patch = change(present, template(), **{"team": "a", **personal})
    assert patch == {"metadata": {"annotations": {"team": "a"}}}


def test_a_set_that_becomes_new_again_gets_the_next_revision() -> None:
    others = [owned_set("a", annotations=revision(4)), owned_set("b", annotations=revision(2))]
    assert change(PRESENT, template(), *others) == {
        "metadata": {"annotations": {ANNOTATION_REVISION: "5", ANNOTATION_REVISION_HISTORY: "1"}}
    }
