from __future__ import annotations

from mcm.api.machine import Machine
from mcm.controllers.machine.creation.identity import identity_patch
from tests.unit.machine.objects import machine


def identified(subject: Machine, *, has_target: bool = True) -> object:
    return identity_patch(subject, node_name="n", provider_id="p", has_target=has_target)


def test_identity_is_one_patch_for_this_object_and_no_version() -> None:
    assert identified(machine()) == {
        "metadata": {
            "uid": "uid-m",
            "labels": {"node": "n"},
            "annotations": {"machinepriority.machine.sapcloud.io": "3"},
        },
        "spec": {"providerID": "p"},
    }


def test_what_is_recorded_stays() -> None:
    priority = {"machinepriority.machine.sapcloud.io": "1"}
    subject = machine(provider_id="mine", node="mine", annotations=priority)
    assert identified(subject) is None
    assert identified(machine(provider_id="mine", node="mine")) == {
        "metadata": {
            "uid": "uid-m",
            "annotations": {"machinepriority.machine.sapcloud.io": "3"},
        }
    }


def test_without_target_cluster_there_is_no_node_to_name() -> None:
    patch = identified(machine(), has_target=False)
    assert isinstance(patch, dict)
    assert "labels" not in patch["metadata"]


def test_what_a_new_vm_was_made_with_is_recorded_in_the_same_patch() -> None:
    patch = identity_patch(
        machine(), node_name="n", provider_id="p", has_target=True, provider_spec={"b": 1, "a": {}}
    )
    assert patch == {
        "metadata": {
            "uid": "uid-m",
            "labels": {"node": "n"},
            "annotations": {
                "machinepriority.machine.sapcloud.io": "3",
                "last-applied-providerspec": '{"a":{},"b":1}',
            },
        },
        "spec": {"providerID": "p"},
    }
