"""Which machines a new set shall adopt, and which sets it waits for."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from mcm.api.machine import ClassSpec, Machine, MachineSet, MachineSpec
from mcm.controllers.deployment.sets.returning_machines import mark_of, undecided
from tests.unit.deployment.objects import NOW, ago, deployment, owned_set, template
from tests.unit.machineset.objects import machine

HASH = "machine-template-hash"


def stray(
    name: str = "m",
    mark: str | None = "2424324503",
    *,
    of: str = "class-a",
    annotations: Mapping[str, str] | None = None,
) -> Machine:
    labels = {HASH: mark} if mark else {}
    spec = MachineSpec(class_=ClassSpec(kind="MachineClass", name=of))
    return machine(name, labels=labels, owner="", spec=spec, annotations=dict(annotations or {}))


@pytest.mark.parametrize(
    ("machines", "taken", "mark"),
    [
        ([], (), None),
        ([stray()], (), "2424324503"),  # whoever made them, and however that hash came about
        ([stray()], ("2424324503",), None),
        ([stray(mark=None)], (), None),
        ([stray(of="class-b")], (), None),
        ([stray("a", "1"), stray("b", "2"), stray("c", "2")], (), "2"),
        ([stray("a", "2"), stray("b", "1")], (), "1"),
        ([stray("a", "1", of="class-b"), stray("b", "2")], (), "2"),
    ],
)
def test_the_label_of_machines_made_from_the_template(
    machines: list[Machine], taken: tuple[str, ...], mark: str | None
) -> None:
    assert mark_of(template(), machines, taken=taken) == mark


def test_what_a_template_says_of_annotations_is_part_of_it() -> None:
    wanted = template(metadata={"annotations": {"a": "1"}})
    assert mark_of(wanted, [stray()], taken=()) is None
    assert mark_of(wanted, [stray(annotations={"a": "1", "b": "2"})], taken=()) == "2424324503"


def ending(*, seconds: float, orphan: bool = False, of: str = "class-a") -> MachineSet:
    one = owned_set(of=template(of), deleted=True)
    finalizers = ("machine.sapcloud.io/x", *(("orphan",) if orphan else ()))
    meta = msgspec.structs.replace(
        one.metadata, finalizers=finalizers, deletion_timestamp=ago(seconds)
    )
    return msgspec.structs.replace(one, metadata=meta)


STAYS, GOES = machine("a"), machine("b", deleted=True)


@pytest.mark.parametrize(
    ("one", "machines", "waits"),
    [
        (owned_set(), [STAYS], False),
        (ending(seconds=1, orphan=True), [STAYS], True),
        (ending(seconds=900, orphan=True), [], True),
        (ending(seconds=1, orphan=True, of="class-b"), [STAYS], False),
        # The garbage collector may have been there already.
        (ending(seconds=1), [STAYS], True),
        (ending(seconds=1), [STAYS, GOES], True),
        (ending(seconds=1), [], True),
        # It takes its machines along, or nobody knows what keeps it.
        (ending(seconds=1), [GOES], False),
        (ending(seconds=61), [STAYS], False),
    ],
)
def test_which_sets_are_waited_for(
    one: MachineSet, machines: list[Machine], *, waits: bool
) -> None:
    found = undecided(deployment(), [one], lambda _: machines, NOW)
    assert found == ([one] if waits else [])
