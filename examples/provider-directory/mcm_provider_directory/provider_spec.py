"""What stands in a MachineClass's ``providerSpec``, decoded and checked."""

from pathlib import Path

import msgspec

from mcm.api.machine import MachineClass
from mcm.driver import Code, DriverError
from mcm_provider_directory.cloud import SIZES


class ProviderSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``cluster`` tells our VMs from those of other clusters in the same directory."""

    directory: str
    cluster: str
    size: str = "small"


def spec_of(machine_class: MachineClass) -> ProviderSpec:
    """Decode it. Raises INVALID_ARGUMENT with the name of the field, for the user who mends it."""
    try:
        spec = msgspec.convert(machine_class.provider_spec, ProviderSpec)
    except msgspec.ValidationError as error:
        raise DriverError(Code.INVALID_ARGUMENT, f"providerSpec: {error}") from error
    if spec.size not in SIZES:
        raise DriverError(
            Code.INVALID_ARGUMENT, f"providerSpec.size: {spec.size!r} is none of {SIZES}"
        )
    if not Path(spec.directory).is_dir():
        raise DriverError(
            Code.INVALID_ARGUMENT, f"providerSpec.directory: {spec.directory} is no directory"
        )
    return spec
