"""Children whose controller is gone or gives them up, told from those that have one."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from mcm.api.machine import Machine, MachineSet
from mcm.api.meta import LabelSelector, ObjectMeta, OwnerReference
from mcm.controllers.owning import abandoned_for, index_by_owner, index_by_uid, is_orphaning
from mcm.informers.store import Store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POOL = LabelSelector(match_labels={"name": "pool"})


def owner(name: str, *, deleted: bool = False, finalizers: tuple[str, ...] = ()) -> MachineSet:
    meta = ObjectMeta(
        name=name,
        namespace="ns",
        uid=f"{name}-uid",
        resource_version="1",
        deletion_timestamp=NOW if deleted else None,
        finalizers=finalizers,
    )
    return MachineSet(metadata=meta)


def child(name: str, of: str, *, kind: str = "MachineSet", controller: bool = True) -> Machine:
    ref = OwnerReference(
        api_version="machine.sapcloud.io/v1alpha1",
        kind=kind,
        name=of,
        uid=f"{of}-uid",
        controller=controller,
    )
    meta = ObjectMeta(
        name=name,
        namespace="ns",
        uid=f"{name}-uid",
        resource_version="1",
        labels={"name": "pool"},
        owner_references=(ref,),
    )
    return Machine(metadata=meta)


def with_meta(machine: Machine, **changes: object) -> Machine:
    return msgspec.structs.replace(
        machine, metadata=msgspec.structs.replace(machine.metadata, **changes)
    )


OWNERS = (
    owner("living"),
    owner("leaving", deleted=True, finalizers=("machine.sapcloud.io/x",)),
    owner("giving-up", deleted=True, finalizers=("machine.sapcloud.io/x", "orphan")),
    owner("marked-only", finalizers=("orphan",)),
)


def found(machine: Machine, selector: LabelSelector | None = POOL) -> bool:
    owners: Store[MachineSet] = Store()
    children: Store[Machine] = Store()
    index_by_uid(owners)
    index_by_owner(children)
    for each in OWNERS:
        owners.observe(each)
    children.observe(machine)
    abandoned = abandoned_for("MachineSet", selector, "ns", owners=owners, children=children)
    return abandoned == (machine,)


@pytest.mark.parametrize(
    ("machine", "abandoned"),
    [
        (child("m", "living"), False),
        (child("m", "leaving"), False),  # it takes its children along
        (child("m", "giving-up"), True),
        (child("m", "marked-only"), False),
        (child("m", "gone"), True),
        (child("m", "gone", kind="Rack"), False),  # whose owners nobody here knows
        (child("m", "gone", controller=False), False),  # it is an orphan already
        (with_meta(child("m", "gone"), deletion_timestamp=NOW), False),
        (with_meta(child("m", "gone"), namespace="other"), False),
        (with_meta(child("m", "gone"), labels={"name": "other"}), False),
    ],
)
def test_who_may_soon_be_an_orphan(machine: Machine, *, abandoned: bool) -> None:
    assert found(machine) is abandoned


@pytest.mark.parametrize("selector", [None, LabelSelector()])
def test_a_selector_that_selects_nothing_in_particular_awaits_nobody(
    selector: LabelSelector | None,
) -> None:
    assert not found(child("m", "gone"), selector)


def test_who_gives_up_what_it_owns() -> None:
    assert [o.metadata.name for o in OWNERS if is_orphaning(o)] == ["giving-up"]
