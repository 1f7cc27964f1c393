from __future__ import annotations

import msgspec
import pytest

from mcm.api.machine import Machine, MachineClass, MachineSpec
from mcm.api.names import ANNOTATION_LAST_APPLIED_PROVIDER_SPEC
from mcm.controllers.machine.hot_update.record import made_with
from mcm.controllers.machineset.machine_template import new_machine
from mcm.controllers.proven_classes import ProvenClasses
from mcm.informers.store import Store
from tests.unit.deployment.objects import owned_set, template
from tests.unit.machine import objects
from tests.unit.machineset.objects import machine

FINALIZER = "machine.sapcloud.io/machine-controller-manager"
SPEC = {"size": "s", "disk": {"b": 1, "a": [2, "x"]}}


def made(*, vm: str = "cloud:///1", of: str = "c", by: object = SPEC, kind: str = "") -> Machine:
    assert isinstance(by, dict)
    spec = MachineSpec(
        class_=msgspec.structs.replace(MachineSpec().class_, kind=kind or "MachineClass", name=of),
        provider_id=vm,
    )
    recorded = {k: v for k, v in made_with(machine(), by).items() if v is not None} if by else {}
    return machine(spec=spec, annotations=recorded)


def is_proven(*machines: Machine, class_: MachineClass | None = None) -> bool:
    store: Store[Machine] = Store()
    classes: Store[MachineClass] = Store()
    proven = ProvenClasses(store, classes)
    for one in machines:
        store.put(one)
    classes.put(class_ or msgspec.structs.replace(objects.class_("c"), provider_spec=SPEC))
    return proven.has_made_a_vm(template("c"), "ns")


@pytest.mark.parametrize(
    ("subject", "proven"),
    [
        (made(), True),
        (made(by={"disk": {"a": [2, "x"], "b": 1}, "size": "s"}), True),
        (made(vm=""), False),
        (made(by={"size": "m"}), False),
        (made(by={}), False),
        (made(of="other"), False),
        (made(kind="SomeOtherClass"), False),
    ],
)
def test_a_class_is_proven_by_a_vm_made_of_what_it_says_now(
    subject: Machine, *, proven: bool
) -> None:
    assert is_proven(subject) is proven


def test_a_class_without_machines_and_one_that_is_not_there_are_not_proven() -> None:
    assert not is_proven()
    assert not is_proven(made(), class_=objects.class_("other"))


def test_the_record_of_a_spec_too_long_to_be_kept_proves_nothing() -> None:
    long = {"text": "x" * 100_000}
    subject = made(by=long)
    assert subject.metadata.annotations[ANNOTATION_LAST_APPLIED_PROVIDER_SPEC].startswith("sha256:")
    class_ = msgspec.structs.replace(objects.class_("c"), provider_spec=long)
    assert not is_proven(subject, class_=class_)


def test_a_machine_is_made_with_our_finalizer_beside_its_templates() -> None:
    of = template(metadata={"finalizers": ["x/y"]})
    assert new_machine(owned_set(of=of), "m")["metadata"]["finalizers"] == ["x/y"]  # type: ignore[index]
    claimed = new_machine(owned_set(of=of), "m", claimed=True)
    assert claimed["metadata"]["finalizers"] == ["x/y", FINALIZER]  # type: ignore[index]
    twice = template(metadata={"finalizers": [FINALIZER]})
    claimed = new_machine(owned_set(of=twice), "m", claimed=True)
    assert claimed["metadata"]["finalizers"] == [FINALIZER]  # type: ignore[index]
    assert "finalizers" not in new_machine(owned_set(), "m")["metadata"]  # type: ignore[operator]
