"""The provider contract: what the machine controller asks of a cloud, and how it is answered.

:mod:`~mcm.driver.contract` has the eight verbs with their requests and responses,
:mod:`~mcm.driver.codes` and :mod:`~mcm.driver.errors` the answers short of success,
:mod:`~mcm.driver.services` what a provider may bring to run beside its driver,
:mod:`~mcm.driver.spec_check` what it may say of a ``providerSpec`` beforehand, and
:mod:`~mcm.driver.discovery` finds installed providers by name.

Calls for one machine object never overlap; calls for different ones do, without an order. A call
is cancelled when the leadership is lost, at whichever await it is; another process repeats it.
Drivers own their connections and keep them for the life of the process; nobody closes a driver.
"""

from __future__ import annotations

from mcm.driver.codes import Code
from mcm.driver.contract import (
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    Driver,
    GenerateMachineClassForMigrationRequest,
    GenerateMachineClassForMigrationResponse,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    GetVolumeIDsRequest,
    GetVolumeIDsResponse,
    InitializeMachineRequest,
    InitializeMachineResponse,
    ListMachinesRequest,
    ListMachinesResponse,
    UnsupportedDriver,
    UpdateMachineRequest,
    UpdateMachineResponse,
)
from mcm.driver.discovery import ProviderContext, ProviderFactory, load_provider, provider_names
from mcm.driver.errors import DriverError, as_driver_error, decode
from mcm.driver.services import BringsServices, Service, services_of
from mcm.driver.spec_check import ChecksProviderSpec, faults_of_provider_spec

__all__ = [
    "BringsServices",
    "ChecksProviderSpec",
    "Code",
    "CreateMachineRequest",
    "CreateMachineResponse",
    "DeleteMachineRequest",
    "DeleteMachineResponse",
    "Driver",
    "DriverError",
    "GenerateMachineClassForMigrationRequest",
    "GenerateMachineClassForMigrationResponse",
    "GetMachineStatusRequest",
    "GetMachineStatusResponse",
    "GetVolumeIDsRequest",
    "GetVolumeIDsResponse",
    "InitializeMachineRequest",
    "InitializeMachineResponse",
    "ListMachinesRequest",
    "ListMachinesResponse",
    "ProviderContext",
    "ProviderFactory",
    "Service",
    "UnsupportedDriver",
    "UpdateMachineRequest",
    "UpdateMachineResponse",
    "as_driver_error",
    "decode",
    "faults_of_provider_spec",
    "load_provider",
    "provider_names",
    "services_of",
]
