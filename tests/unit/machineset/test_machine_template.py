from __future__ import annotations

import random

import msgspec
import pytest

from mcm.api.machine import MachineTemplate
from mcm.api.names import ANNOTATION_EFFECTIVE_CREATION_TIMEOUT
from mcm.controllers.machineset.machine_template import new_machine
from mcm.controllers.owning.child_control import generated_name
from tests.unit.machineset.objects import LABELS, SPEC, machine_set

RICH = MachineTemplate(
    metadata={
        "labels": {**LABELS, "pool": "a"},
        "annotations": {"note": "hello"},
        "finalizers": ["example.org/keep"],
        "somethingNew": {"a": [1, 2]},
        "creationTimestamp": None,
        "name": "not-this",
        "uid": "nor-this",
    },
    spec={**SPEC, "drainTimeout": "10m", "futureField": {"x": None}},
)


def test_the_template_reaches_the_machine_as_it_was_sent() -> None:
    body = new_machine(machine_set(template=RICH), "set-abcde")
    assert body["spec"] == RICH.spec
    assert body["metadata"] == {
        "name": "set-abcde",
        "generateName": "set-",
        "namespace": "ns",
        "labels": {**LABELS, "pool": "a"},
        "annotations": {"note": "hello"},
        "finalizers": ["example.org/keep"],
        "somethingNew": {"a": [1, 2]},
        "ownerReferences": [
            {
                "apiVersion": "machine.sapcloud.io/v1alpha1",
                "kind": "MachineSet",
                "name": "set",
                "uid": "set-uid",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def test_making_a_machine_leaves_the_template_alone() -> None:
    owner = machine_set(template=RICH, annotations={ANNOTATION_EFFECTIVE_CREATION_TIMEOUT: "5m"})
    before = msgspec.json.encode(owner)
    new_machine(owner, "m")
    assert msgspec.json.encode(owner) == before


@pytest.mark.parametrize(
    ("override", "timeout"), [("45m", "45m"), ("1h30m", "1h30m"), ("soon", "20m")]
)
def test_the_creation_timeout_of_the_set_wins_if_it_can_be_read(
    override: str, timeout: str
) -> None:
    template = MachineTemplate(metadata={"labels": LABELS}, spec={**SPEC, "creationTimeout": "20m"})
    owner = machine_set(
        template=template, annotations={ANNOTATION_EFFECTIVE_CREATION_TIMEOUT: override}
    )
    body = new_machine(owner, "m")
    assert body["spec"] == {**SPEC, "creationTimeout": timeout}
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["annotations"] == {ANNOTATION_EFFECTIVE_CREATION_TIMEOUT: override}


@pytest.mark.parametrize("length", [1, 57, 58, 200])
def test_names_are_what_the_server_would_generate(length: int) -> None:
    name = generated_name(machine_set(name="s" * length), random.Random(1))
    prefix = ("s" * length + "-")[:58]
    assert name.startswith(prefix)
    assert len(name) == len(prefix) + 5 <= 63
    assert set(name[len(prefix) :]) <= set("bcdfghjklmnpqrstvwxz2456789")
