from __future__ import annotations

import msgspec

from mcm.api.machine import MACHINE_SETS, Machine
from mcm.api.meta import OwnerReference
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


def of_a_set(subject: Machine) -> Machine:
    owner = OwnerReference(
        api_version=MACHINE_SETS.api_version, kind="MachineSet", name="s", uid="u", controller=True
    )
    meta = msgspec.structs.replace(subject.metadata, owner_references=(owner,))
    return msgspec.structs.replace(subject, metadata=meta)


def test_who_set_which_field_is_forgotten_of_machines_of_sets_alone_and_once() -> None:
    """A user who applied a machine may apply it again, and what is left out then must go."""
    patch = identified(of_a_set(machine()))
    assert isinstance(patch, dict)
    assert patch["metadata"]["managedFields"] == [{}]
    assert patch["metadata"]["labels"] == {"node": "n"}
    owned = identified(machine())
    assert isinstance(owned, dict)
    assert "managedFields" not in owned["metadata"]
    priority = {"machinepriority.machine.sapcloud.io": "1"}
    recorded = machine(provider_id="mine", node="mine", annotations=priority)
    assert identified(of_a_set(recorded)) is None


def test_an_operator_may_have_it_noted_who_set_which_field() -> None:
    patch = identity_patch(
        of_a_set(machine()),
        node_name="n",
        provider_id="p",
        has_target=True,
        keep_managed_fields=True,
    )
    assert patch == identified(machine())


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
