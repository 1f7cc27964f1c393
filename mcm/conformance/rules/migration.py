"""Rules on GenerateMachineClassForMigration, for providers that had a class kind of their own."""

from __future__ import annotations

from mcm.api.machine import ClassSpec, MachineClass
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.validation import describe, validate_machine_class
from mcm.conformance.lab import Lab, unimplemented
from mcm.conformance.rule import NotApplicable, Violation, rule
from mcm.driver import Code, DriverError

_NEW = ObjectMeta(name="migrated", namespace="default", labels={"kept": "as-it-was"})


@rule
async def a_class_of_an_older_kind_becomes_a_machine_class(lab: Lab) -> None:
    """GenerateMachineClassForMigration fills in the MachineClass that it is given, valid and with
    the metadata as it was, and makes the same of the same class when called again."""
    if not lab.subject.older_classes:
        raise NotApplicable("the subject names no classes of an older kind (older_classes)")
    for kind, older in lab.subject.older_classes.items():
        made = await _migrated(lab, kind, older)
        if made.metadata != _NEW:
            raise Violation(f"{kind}: the new class's metadata were changed: {made.metadata}")
        if errors := validate_machine_class(made):
            raise Violation(f"{kind}: the new class is invalid: {describe(errors)}")
        if not made.provider_spec:
            raise Violation(f"{kind}: the new class has no providerSpec")
        if made != await _migrated(lab, kind, older):
            raise Violation(f"{kind}: the second call made another class")


async def _migrated(lab: Lab, kind: str, older: JSONObject) -> MachineClass:
    try:
        return await lab.migrate(
            older, MachineClass(metadata=_NEW), ClassSpec(kind=kind, name=_NEW.name)
        )
    except DriverError as error:
        if error.code is Code.UNIMPLEMENTED:
            raise unimplemented("GenerateMachineClassForMigration") from error
        raise
