"""The provider's own word on ``providerSpec``, if it has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcm.api.machine import MachineClass
from mcm.api.validation import FieldError
from mcm.clock import SystemClock
from mcm.driver import Driver, load_provider
from mcm.driver.spec_check import faults_of_provider_spec
from mcm.vm.offline import NoCluster, context_of

SpecCheck = Callable[[MachineClass], Iterator[FieldError]]


def unchecked(_: MachineClass) -> Iterator[FieldError]:
    """For those who name no provider."""
    return iter(())


def check_of_provider(name: str, *, namespace: str) -> SpecCheck:
    """Return the check of the provider ``name``, which is given no cluster.

    Raises ConfigurationError if there is no such provider.
    """
    context = context_of(NoCluster(), namespace=namespace, clock=SystemClock())
    driver = load_provider(name)(context)
    return lambda machine_class: _findings(driver, name, machine_class)


def _findings(driver: Driver, name: str, machine_class: MachineClass) -> Iterator[FieldError]:
    faults = faults_of_provider_spec(driver, machine_class)
    if faults is None:
        detail = f"is not looked at: the provider {name} offers no check"
        yield FieldError("providerSpec", detail, is_warning=True)
        return
    for fault in faults:
        yield FieldError("providerSpec", fault)
