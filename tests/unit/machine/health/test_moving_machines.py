from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import Machine, MachinePhase, MachineSet, MachineSetSpec
from mcm.api.meta import ObjectMeta, OwnerReference
from mcm.api.names import (
    ANNOTATION_FAILING_SINCE,
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRIORITY,
    PRIORITY_DELETE_FIRST,
)
from mcm.controllers.machine.health.failure_permit import group_of, is_moving
from mcm.controllers.machine.health.moving_machines import MovingMachines, counts, is_wanted
from mcm.informers import Change, Store
from tests.unit.machine.objects import BORN, after, machine

MARKED = {
    ANNOTATION_PRIORITY: PRIORITY_DELETE_FIRST,
    ANNOTATION_MARKED_FOR_DELETION: "2026-01-01T00:00:00Z",
}


def machine_set(name: str = "s", *, replicas: int = 3, deleted: bool = False) -> MachineSet:
    meta = ObjectMeta(
        name=name,
        namespace="ns",
        uid=f"uid-{name}",
        resource_version="1",
        deletion_timestamp=BORN if deleted else None,
    )
    return MachineSet(metadata=meta, spec=MachineSetSpec(replicas=replicas))


def sets(*objects: MachineSet) -> Store[MachineSet]:
    store: Store[MachineSet] = Store()
    for obj in objects:
        store.put(obj)
    return store


def owned(subject: Machine, by: str = "s", uid: str = "") -> Machine:
    owner = OwnerReference(
        api_version="v", kind="MachineSet", name=by, uid=uid or f"uid-{by}", controller=True
    )
    meta = msgspec.structs.replace(subject.metadata, owner_references=(owner,))
    return msgspec.structs.replace(subject, metadata=meta)


PENDING = machine(phase="Pending", group="d")


@pytest.mark.parametrize(
    ("subject", "found", "wanted"),
    [
        (owned(PENDING), sets(machine_set()), True),
        (PENDING, sets(machine_set()), False),
        (owned(PENDING), sets(), False),
        (owned(PENDING, uid="another"), sets(machine_set()), False),
        (owned(PENDING), sets(machine_set(replicas=0)), False),
        (owned(PENDING), sets(machine_set(deleted=True)), False),
        (owned(machine(annotations=MARKED)), sets(machine_set()), False),
    ],
    ids=["wanted", "no owner", "owner gone", "another", "to zero", "being deleted", "marked"],
)
def test_whom_a_set_wants(subject: Machine, found: Store[MachineSet], *, wanted: bool) -> None:
    assert is_wanted(subject, found) is wanted


def test_a_set_that_cannot_be_read_is_there_and_may_want_its_machines() -> None:
    store = sets()
    store.mark_unreadable("ns/s", "replicas: a number was expected")
    assert is_wanted(owned(PENDING), store)


def test_only_those_that_a_set_wants_stand_in_the_way() -> None:
    store = sets(machine_set("s"), machine_set("old", replicas=0))
    moving = MovingMachines(store)
    asking = owned(machine("asking", phase="Unknown", group="d"))
    for subject in (
        owned(machine("a", phase="Pending", group="d")),
        owned(machine("b", phase="Terminating", group="d")),
        owned(machine("c", phase="Terminating", group="d"), by="old"),
        machine("d", phase="Pending", group="d"),
        owned(machine("e", phase="Pending", group="d", annotations=MARKED)),
        owned(machine("f", phase="Failed", group="d", preserved=after(hours=1))),
        owned(machine("g", phase="InPlaceUpdateFailed", group="d")),
        owned(machine("h", phase="Pending", group="other")),
        asking,
    ):
        moving.note(Change(None, subject))
    assert set(moving.in_group_of(asking)) == {"uid-a", "uid-b"}
    assert moving.groups_of(machine_set("old")) == ("ns/d",)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from(["Pending", "Running", "Failed", "Unknown", "gone"]),
            st.sampled_from(["s", "t", "none"]),
        ),
        max_size=40,
    )
)
def test_following_changes_gives_what_looking_at_all_would(
    history: list[tuple[int, str, str]],
) -> None:
    store = sets(machine_set("s"), machine_set("t", replicas=0))
    moving, there = MovingMachines(store), dict[str, Machine]()
    for number, phase, by in history:
        name = f"m{number}"
        old = there.pop(name, None)
        if phase != "gone":
            new = machine(name, phase=MachinePhase(phase), group=f"d{number % 2}")
            there[name] = owned(new, by=by) if by != "none" else new
        if old is not None or name in there:
            moving.note(Change(old, there.get(name)))
        for group in ("d0", "d1"):
            expected = {
                m.metadata.uid
                for m in there.values()
                if group_of(m) == f"ns/{group}" and is_moving(m) and is_wanted(m, store)
            }
            assert set(moving.in_group_of(machine("x", group=group))) == expected
            assert all(counts(m) for m in there.values() if m.metadata.uid in expected)
    for subject in there.values():
        moving.note(Change(subject, None))
    assert moving.groups_of(machine_set("s")) == moving.groups_of(machine_set("t")) == ()


@pytest.mark.parametrize(
    ("asking_by", "failing", "counted"),
    [
        ("s", True, {"uid-joined", "uid-own"}),
        ("s", False, {"uid-never", "uid-joined", "uid-own"}),
        ("new", True, {"uid-never", "uid-joined", "uid-own"}),
    ],
)
def test_what_another_set_makes_in_vain_stands_in_nobodys_way(
    asking_by: str, counted: set[str], *, failing: bool
) -> None:
    """But what it lost does, and what the machine's own set makes."""
    new = machine_set("new")
    annotations = {ANNOTATION_FAILING_SINCE: "2026-01-01T00:00:00Z"} if failing else {}
    metadata = msgspec.structs.replace(new.metadata, annotations=annotations)
    moving = MovingMachines(sets(machine_set("s"), msgspec.structs.replace(new, metadata=metadata)))
    lost = machine("joined", phase="Failed", group="d")
    for subject in (
        owned(machine("never", phase="CrashLoopBackOff", group="d"), by="new"),
        owned(lost, by="new"),
        owned(machine("own", phase="Pending", group="d")),
    ):
        moving.note(Change(None, subject))
    asking = owned(machine("asking", phase="Unknown", group="d"), by=asking_by)
    assert set(moving.in_group_of(asking)) == counted
