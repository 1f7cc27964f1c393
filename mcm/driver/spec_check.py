"""What a provider may say of a ``providerSpec`` before a machine is made with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from mcm.api.machine import MachineClass
from mcm.driver.contract import Driver


@runtime_checkable
class ChecksProviderSpec(Protocol):
    """A driver that can judge a class by itself, for ``mcm validate --provider``::

        class ExampleDriver(UnsupportedDriver):
            def check_provider_spec(self, machine_class: MachineClass) -> Iterable[str]:
                if "flavor" not in machine_class.provider_spec:
                    yield "flavor: is required"

    One text for each fault, which begins with the field. Pure: neither the cloud nor a cluster is
    asked, and no text repeats what may be a secret.
    """

    def check_provider_spec(self, machine_class: MachineClass) -> Iterable[str]: ...


def faults_of_provider_spec(driver: Driver, machine_class: MachineClass) -> tuple[str, ...] | None:
    """Return what ``driver`` finds wrong; None if it does not offer to look."""
    if not isinstance(driver, ChecksProviderSpec):
        return None
    return tuple(driver.check_provider_spec(machine_class))
