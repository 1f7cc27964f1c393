"""Which kinds a server must serve, and which of them it does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.client.client import Client
from mcm.client.discovery import served_plurals


class ServedKind(NamedTuple):
    """A kind as discovery names it."""

    group: str
    version: str
    plural: str

    @property
    def name(self) -> str:
        """Of its definition."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def of_resource(resource: Resource[KubeObject]) -> ServedKind:
    """Return the kind of a resource that we know."""
    return ServedKind(resource.group, resource.version, resource.plural)


MACHINE_KINDS: Final = (
    of_resource(MACHINES),
    of_resource(MACHINE_SETS),
    of_resource(MACHINE_DEPLOYMENTS),
    of_resource(MACHINE_CLASSES),
)


class _Version(msgspec.Struct, frozen=True):
    name: str
    served: bool


class _Names(msgspec.Struct, frozen=True):
    plural: str


class _Spec(msgspec.Struct, frozen=True):
    group: str
    names: _Names
    versions: tuple[_Version, ...]


class _Definition(msgspec.Struct, frozen=True):
    """What counts here of a CustomResourceDefinition."""

    spec: _Spec


def of_definitions(definitions: Iterable[JSONObject]) -> tuple[ServedKind, ...]:
    """Return the kinds that CustomResourceDefinitions define, in each version that is served."""
    return tuple(
        ServedKind(spec.group, version.name, spec.names.plural)
        for spec in (msgspec.convert(each, _Definition).spec for each in definitions)
        for version in spec.versions
        if version.served
    )


async def not_served(client: Client, wanted: Iterable[ServedKind]) -> tuple[ServedKind, ...]:
    """Return which of them the server does not serve, asking once for each group and version."""
    known: dict[tuple[str, str], frozenset[str]] = {}
    lacking = []
    for kind in wanted:
        place = (kind.group, kind.version)
        if place not in known:
            known[place] = await served_plurals(client, *place)
        if kind.plural not in known[place]:
            lacking.append(kind)
    return tuple(lacking)


def in_words(kinds: Iterable[ServedKind]) -> str:
    """Name kinds by their groups: ``machines, machinesets (machine.sapcloud.io/v1alpha1)``."""
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        place = f"{kind.group}/{kind.version}" if kind.group else kind.version
        groups.setdefault(place, []).append(kind.plural)
    return " and ".join(f"{', '.join(names)} ({place})" for place, names in groups.items())
