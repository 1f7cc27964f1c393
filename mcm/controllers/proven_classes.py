"""Which machine classes have made a VM as they are now: what is made of them will need a finalizer.

Of others nobody knows yet whether the provider makes sense of them. A machine without finalizer is
one for which no provider was ever asked, and goes at once, whatever its class is like; so those of
a class that never worked get theirs only when they are asked for.
"""

from __future__ import annotations

from typing import final

import msgspec

from mcm.api.machine import Machine, MachineClass, MachineTemplate
from mcm.api.names import ANNOTATION_LAST_APPLIED_PROVIDER_SPEC, KIND_MACHINE_CLASS
from mcm.api.templates import class_of
from mcm.controllers.indexes import index_machines, machines_of_class
from mcm.informers.store import Store


@final
class ProvenClasses:
    """Reads both stores; remembers nothing."""

    def __init__(self, machines: Store[Machine], classes: Store[MachineClass]) -> None:
        index_machines(machines)
        self._machines = machines
        self._classes = classes

    def has_made_a_vm(self, template: MachineTemplate, namespace: str) -> bool:
        """Tell whether a machine of the template's class has a VM, made of what the class says now.

        What is recorded in another way than ours, by the Go original for example, proves nothing.
        """
        named = class_of(template)
        class_ = self._classes.get(f"{namespace}/{named.name}")
        if class_ is None or named.kind != KIND_MACHINE_CLASS:
            return False
        text = msgspec.json.encode(class_.provider_spec, order="sorted").decode()
        return any(
            machine.spec.provider_id
            and machine.metadata.annotations.get(ANNOTATION_LAST_APPLIED_PROVIDER_SPEC) == text
            for machine in machines_of_class(self._machines, class_.metadata.key)
        )
