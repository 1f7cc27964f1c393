"""Which machines of a deployment nobody owns nor will adopt, whom that wakes, and what is said."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from mcm.api.machine import Machine, MachineDeployment, MachineSet
from mcm.controllers.conditions import find
from mcm.controllers.deployment.sets.orphaned_machines import (
    concerned_by_orphan,
    orphaned_machines,
)
from mcm.controllers.deployment.status.orphaned_machines import with_orphans
from mcm.controllers.owning import index_by_owner
from mcm.informers import Change
from mcm.informers.store import Store
from tests.unit.deployment.objects import LABELS, NOW, ago, deployment, owned_set
from tests.unit.machineset.objects import machine

POOL = deployment()
HASH = "machine-template-hash"


def stray(name: str = "m", mark: str = "1", **more: object) -> Machine:
    return machine(name, labels={**LABELS, HASH: mark}, owner="", **more)  # type: ignore[arg-type]


def relabelled(present: Machine) -> Machine:
    meta = msgspec.structs.replace(present.metadata, labels={})
    return msgspec.structs.replace(present, metadata=meta)


def filled(objects: Sequence[object]) -> Store:  # type: ignore[type-arg]
    store: Store = Store()  # type: ignore[type-arg]
    index_by_owner(store)
    store.replace(objects, "1")
    return store


def of(mark: str, *, deleted: bool = False) -> MachineSet:
    return owned_set(f"set-{mark}", selector={**LABELS, HASH: mark}, deleted=deleted)


@pytest.mark.parametrize(
    ("machines", "sets", "names"),
    [
        ([stray()], [], ["m"]),
        ([stray()], [of("2")], ["m"]),
        ([stray()], [of("1")], []),  # it will adopt
        ([stray()], [of("1", deleted=True)], ["m"]),
        ([stray("a", "2"), stray("b", "1")], [of("1")], ["a"]),
        ([stray(deleted=True)], [], []),
        ([machine("m", labels=LABELS)], [], []),  # it has an owner
        ([relabelled(stray())], [], []),  # another's
    ],
)
def test_which_machines_are_nobody_s(
    machines: list[Machine], sets: list[MachineSet], names: list[str]
) -> None:
    found = orphaned_machines(POOL, filled(sets), filled(machines))
    assert [m.metadata.name for m in found] == names


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        (None, stray(), True),
        (stray(), None, True),
        (machine("m", labels=LABELS), stray(), True),
        (stray(), machine("m", labels=LABELS), True),
        (stray(), relabelled(stray()), True),
        (stray(), stray(deleted=True), True),
        (stray(), stray(phase="Failed"), False),
        (machine("m", labels=LABELS), None, False),
        (None, relabelled(stray()), False),
    ],
)
def test_whom_a_change_of_an_orphan_wakes(
    old: Machine | None, new: Machine | None, *, wakes: bool
) -> None:
    deployments: Store[MachineDeployment] = filled([POOL])
    keys = list(concerned_by_orphan(Change(old, new), deployments))
    assert keys == ([POOL.metadata.key] if wakes else [])


def test_it_is_said_once_with_the_first_names_and_taken_back() -> None:
    orphans = [stray(name) for name in ("d", "b", "a", "c")]
    said = with_orphans((), orphans, ago(60))
    condition = find(said, "OrphanedMachines")
    assert condition is not None
    assert condition.message == (
        "4 machines match spec.selector but no machine set owns or will adopt: a, b, c and 1 more. "
        "They run and cost money, count for nothing here, and are not replaced. This ends when "
        "they are deleted (kubectl delete machine NAME), or lose a label that spec.selector asks "
        "for"
    )
    assert with_orphans(said, orphans[::-1], NOW) == said
    assert with_orphans(said, None, NOW) == said  # while a set gives up its own
    fewer = find(with_orphans(said, orphans[:1], NOW), "OrphanedMachines")
    assert fewer is not None and fewer.message.startswith("1 machine matches spec.selector")
    assert fewer.last_transition_time == ago(60)
    assert with_orphans(said, (), NOW) == ()
