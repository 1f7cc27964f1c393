from __future__ import annotations

import msgspec
import pytest

from mcm.api.machine import LastOperation, Machine, MachineSet, MachineSetStatus
from mcm.api.meta import LabelSelector
from mcm.controllers.machineset.ownership import OWNERSHIP
from mcm.controllers.owning.triggers import keys_of_own_change, owners_of_child_change
from mcm.informers import Change, Store
from tests.unit.machineset.objects import ago, machine, machine_set


def sets(*present: MachineSet) -> Store[MachineSet]:
    store: Store[MachineSet] = Store()
    for one in present:
        store.put(one)
    return store


def empty_selector() -> MachineSet:
    everything = machine_set(name="everything")
    spec = msgspec.structs.replace(everything.spec, selector=LabelSelector())
    return msgspec.structs.replace(everything, spec=spec)


STORE = sets(machine_set(), machine_set(name="other"), empty_selector())


def keys(old: Machine | None, new: Machine | None, *, resync: bool = False) -> list[str]:
    return list(owners_of_child_change(OWNERSHIP, Change(old, new, resync=resync), STORE))


def test_a_machine_that_comes_or_goes_concerns_its_owner() -> None:
    assert keys(None, machine()) == ["ns/set"]
    assert keys(machine(), None) == ["ns/set"]


def test_a_machine_that_changes_hands_concerns_both() -> None:
    moved = machine(owner="other-uid")
    ref = msgspec.structs.replace(moved.metadata.owner_references[0], name="other")
    meta = msgspec.structs.replace(moved.metadata, owner_references=(ref,))
    assert keys(machine(), msgspec.structs.replace(moved, metadata=meta)) == ["ns/set", "ns/other"]


def test_an_orphan_concerns_every_set_that_could_adopt_it() -> None:
    assert keys(None, machine(owner="")) == ["ns/set", "ns/other"]
    assert keys(machine(), machine(owner="")) == ["ns/set", "ns/other"]
    assert keys(None, machine(owner="", labels={"name": "else"})) == []


@pytest.mark.parametrize(
    "new",
    [
        machine(phase="Failed"),
        machine(deleted=True),
        machine(labels={"a": "b"}),
        machine(annotations={"a": "b"}),
        machine(preserved_until=ago(0)),
        machine(operation=LastOperation(state="Failed", description="no quota")),
    ],
)
def test_what_a_set_counts_by_concerns_it(new: Machine) -> None:
    assert keys(machine(), new) == ["ns/set"]


def test_the_steps_of_a_machine_concern_no_set() -> None:
    before = machine(operation=LastOperation(state="Processing", description="draining 1 of 9"))
    after = machine(operation=LastOperation(state="Processing", description="draining 2 of 9"))
    assert keys(before, after) == []


def test_a_repetition_concerns_nobody() -> None:
    assert keys(machine(), machine(), resync=True) == []


def test_an_owner_of_the_same_name_but_another_uid_is_none() -> None:
    assert keys(None, machine(owner="former-uid")) == []


def test_a_set_is_woken_by_its_spec_and_metadata_but_not_by_its_status() -> None:
    old = machine_set()
    reported = msgspec.structs.replace(old, status=MachineSetStatus(replicas=3))
    assert keys_of_own_change(Change(old, reported)) == ()
    assert keys_of_own_change(Change(None, old)) == ("ns/set",)
    assert keys_of_own_change(Change(old, None)) == ("ns/set",)
    assert keys_of_own_change(Change(old, machine_set(5))) == ("ns/set",)
    assert keys_of_own_change(Change(old, machine_set(labels={"freeze": "True"}))) == ("ns/set",)
    assert keys_of_own_change(Change(old, old, resync=True)) == ("ns/set",)
