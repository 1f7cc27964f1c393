"""Which machine classes have made a VM as they are now: what is made of them will need a finalizer.

Of others nobody knows yet whether the provider makes sense of them. A machine without finalizer is
one for which no provider was ever asked, and goes at once, whatever its class is like; so those of
a class that never worked get theirs only when they are asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, final

import msgspec

from mcm.api.machine import Machine, MachineClass, MachineTemplate
from mcm.api.names import ANNOTATION_LAST_APPLIED_PROVIDER_SPEC, KIND_MACHINE_CLASS
from mcm.api.templates import class_of
from mcm.controllers.indexes import class_keys_of
from mcm.informers.store import Store

_PROVEN: Final = "what machines' VMs were made of, by class"


@final
class ProvenClasses:
    """Reads both stores; remembers nothing. Asked for each machine that a set makes, it looks at
    none of those that there are: the index has one value for all that were made alike."""

    def __init__(self, machines: Store[Machine], classes: Store[MachineClass]) -> None:
        machines.ensure_index(_PROVEN, _proofs_in)
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
        return _proof(class_.metadata.key, text) in self._machines.index_values(_PROVEN)


def _proofs_in(machine: Machine) -> Sequence[str]:
    made_of = machine.metadata.annotations.get(ANNOTATION_LAST_APPLIED_PROVIDER_SPEC)
    if not machine.spec.provider_id or made_of is None:
        return ()
    return tuple(_proof(class_key, made_of) for class_key in class_keys_of(machine))


def _proof(class_key: str, provider_spec: str) -> str:
    """Name a class and what it says, in few bytes, as each machine is filed under it."""
    return sys.intern(f"{class_key} {hash(provider_spec):x}")
