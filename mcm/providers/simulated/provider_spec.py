"""What a MachineClass may ask of the simulated cloud: its ``providerSpec``, decoded and checked."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import msgspec

from mcm.api.durations import parse_duration
from mcm.api.meta import JSONObject
from mcm.driver.codes import Code
from mcm.driver.errors import DriverError

VERBS = ("create", "initialize", "status", "delete", "list")


class InjectedFailure(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A verb that fails: its first ``times`` calls for each machine, then with ``probability``."""

    verb: str
    code: str = "Internal"
    message: str = "simulated failure"
    times: Annotated[int, msgspec.Meta(ge=0)] = 0
    probability: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0


class ProviderSpec(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Latencies are Go durations. ``quota`` limits the VMs of the class (0: none). ``joins: false``
    makes VMs that boot but never register a Node; ``needs_initialization`` makes the driver answer
    Uninitialized until InitializeMachine was called."""

    create_latency: str = "1s"
    delete_latency: str = "1s"
    boot_latency: str = "2s"
    join_latency: str = "1s"
    quota: Annotated[int, msgspec.Meta(ge=0)] = 0
    joins: bool = True
    needs_initialization: bool = False
    node_labels: dict[str, str] = {}
    node_conditions: dict[str, str] = {}
    failures: tuple[InjectedFailure, ...] = ()

    def delay(self, verb: str) -> timedelta:
        latency = {"create": self.create_latency, "delete": self.delete_latency}.get(verb, "0s")
        return parse_duration(latency)


def decode(provider_spec: JSONObject) -> ProviderSpec:
    """Check and decode. Raises DriverError(InvalidArgument) naming the field."""
    try:
        spec = msgspec.convert(provider_spec, ProviderSpec)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from error
    for field in ("createLatency", "deleteLatency", "bootLatency", "joinLatency"):
        _check_latency(field, getattr(spec, _snake(field)))
    for index, failure in enumerate(spec.failures):
        if failure.verb not in VERBS:
            raise _invalid(
                f"failures[{index}].verb: {failure.verb!r} is none of {', '.join(VERBS)}"
            )
        if Code.from_text(failure.code) is Code.UNKNOWN and failure.code != "Unknown":
            raise _invalid(f"failures[{index}].code: {failure.code!r} is no machine error code")
    return spec


def _check_latency(field: str, text: str) -> None:
    try:
        latency = parse_duration(text)
    except ValueError as error:
        raise _invalid(f"{field}: {error}") from error
    if latency < timedelta(0):
        raise _invalid(f"{field}: {text!r} is negative")


def _snake(camel: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in camel)


def _invalid(detail: str) -> DriverError:
    return DriverError(Code.INVALID_ARGUMENT, f"providerSpec: {detail}")
