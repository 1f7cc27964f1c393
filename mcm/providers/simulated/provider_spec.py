"""What a MachineClass may ask of the simulated cloud: its ``providerSpec``, decoded and checked."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import msgspec

from mcm.api.durations import parse_duration
from mcm.api.meta import JSONObject
from mcm.driver.codes import Code
from mcm.driver.errors import DriverError
from mcm.providers.simulated.virtual_machine import TAGGED

VERBS = ("create", "initialize", "status", "update", "delete", "list")
_FIXED = (
    "boot_latency",
    "join_latency",
    "joins",
    "needs_initialization",
    "node_labels",
    "node_conditions",
)
"""Fields that a VM is made with. All others but the tags hold for the next call."""


class InjectedFailure(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A verb that fails: its first ``times`` calls for each machine, then with ``probability``.

    ``at``: only for updates: fail when it comes to this resource, those before it being done.
    """

    verb: str
    code: str = "Internal"
    message: str = "simulated failure"
    times: Annotated[int, msgspec.Meta(ge=0)] = 0
    probability: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    at: str = ""


class Tags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tags of a VM, of its network interface, and of its disk."""

    vm: dict[str, str] = {}
    network: dict[str, str] = {}
    disk: dict[str, str] = {}

    def of(self, resource: str) -> dict[str, str]:
        return {"vm": self.vm, "network": self.network, "disk": self.disk}[resource]


class ProviderSpec(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Latencies are Go durations. ``quota`` limits the VMs of the class (0: none). ``joins: false``
    makes VMs that boot but never register a Node; ``needs_initialization`` makes the driver answer
    Uninitialized until InitializeMachine was called. ``tags`` can be changed on VMs that exist."""

    create_latency: str = "1s"
    update_latency: str = "0s"
    delete_latency: str = "1s"
    boot_latency: str = "2s"
    join_latency: str = "1s"
    quota: Annotated[int, msgspec.Meta(ge=0)] = 0
    joins: bool = True
    needs_initialization: bool = False
    node_labels: dict[str, str] = {}
    node_conditions: dict[str, str] = {}
    tags: Tags = Tags()
    failures: tuple[InjectedFailure, ...] = ()

    def delay(self, verb: str) -> timedelta:
        latencies = {
            "create": self.create_latency,
            "update": self.update_latency,
            "delete": self.delete_latency,
        }
        return parse_duration(latencies.get(verb, "0s"))

    def needs_new_vm(self, before: ProviderSpec) -> tuple[str, ...]:
        """Return the fields, as users write them, which differ and cannot on a VM that exists."""
        differing = (name for name in _FIXED if getattr(self, name) != getattr(before, name))
        return tuple(_camel(name) for name in differing)


def decode(provider_spec: JSONObject) -> ProviderSpec:
    """Check and decode. Raises DriverError(InvalidArgument) naming the field."""
    try:
        spec = msgspec.convert(provider_spec, ProviderSpec)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from error
    for field in ("createLatency", "updateLatency", "deleteLatency", "bootLatency", "joinLatency"):
        _check_latency(field, getattr(spec, _snake(field)))
    for index, failure in enumerate(spec.failures):
        if failure.verb not in VERBS:
            raise _invalid(
                f"failures[{index}].verb: {failure.verb!r} is none of {', '.join(VERBS)}"
            )
        if failure.at and (failure.verb != "update" or failure.at not in TAGGED):
            places = ", ".join(TAGGED)
            raise _invalid(f"failures[{index}].at: {failure.at!r}: an update fails at {places}")
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


def _camel(snake: str) -> str:
    first, *rest = snake.split("_")
    return first + "".join(map(str.capitalize, rest))


def _invalid(detail: str) -> DriverError:
    return DriverError(Code.INVALID_ARGUMENT, f"providerSpec: {detail}")
