"""Finding the provider by its name: out-of-tree drivers are entry points of installed packages.

A provider's package declares, in the group :data:`ENTRY_POINT_GROUP`, a factory that takes a
:class:`ProviderContext` and returns a driver::

    [project.entry-points."mcm.providers"]
    example = "mcm_provider_example:create"
"""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, cast

from mcm.client.errors import ConfigurationError
from mcm.clock import Clock
from mcm.driver.cloud_api import CloudApi
from mcm.driver.contract import Driver

if TYPE_CHECKING:
    from mcm.client.client import Client

ENTRY_POINT_GROUP = "mcm.providers"


@dataclass(frozen=True, slots=True)
class ProviderContext:
    """What a provider may build on. ``target`` is None where machines join no cluster.

    A provider waits only by ``clock`` and draws only from ``random``, so that a simulation can own
    both. The clients belong to the manager; a provider never closes them. ``simulate_cloud`` asks a
    provider whose cloud is made up to run it in this process, too, as one of its
    :mod:`services <mcm.driver.services>`; all others leave it alone, and are refused.
    """

    control: Client
    target: Client | None
    namespace: str
    clock: Clock
    random: random_module.Random
    simulate_cloud: bool = False
    cloud_api: CloudApi = field(default_factory=CloudApi)
    """Where a provider tells of its requests to the cloud."""


ProviderFactory = Callable[[ProviderContext], Driver]


def provider_names(installed: Iterable[EntryPoint] | None = None) -> tuple[str, ...]:
    """Return the names of all installed providers, sorted."""
    return tuple(sorted({entry.name for entry in _entries(installed)}))


def load_provider(name: str, installed: Iterable[EntryPoint] | None = None) -> ProviderFactory:
    """Import the provider ``name`` and return its factory.

    Raises :class:`ConfigurationError`, which names the remedy, if there is none of that name, or
    several, or it cannot be imported.
    """
    entries = _entries(installed)
    found = [entry for entry in entries if entry.name == name]
    if not found:
        names = ", ".join(provider_names(entries)) or "none"
        raise ConfigurationError(
            f"no machine provider named {name!r}; installed: {names}. "
            f"Install the package that declares it in the entry point group {ENTRY_POINT_GROUP!r}."
        )
    if len({entry.value for entry in found}) > 1:
        values = ", ".join(sorted(entry.value for entry in found))
        raise ConfigurationError(
            f"several packages declare the machine provider {name!r}: {values}"
        )
    return _import(found[0])


def _entries(installed: Iterable[EntryPoint] | None) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=ENTRY_POINT_GROUP) if installed is None else installed)


def _import(entry: EntryPoint) -> ProviderFactory:
    try:
        factory = entry.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"the machine provider {entry.name!r} ({entry.value}) cannot be loaded: {error}"
        ) from error
    if not callable(factory):
        raise ConfigurationError(
            f"the machine provider {entry.name!r} ({entry.value}) is not a factory"
        )
    return cast("ProviderFactory", factory)
