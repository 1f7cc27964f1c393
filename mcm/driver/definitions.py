"""Kinds that a provider keeps in the control cluster, which must be defined there first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from mcm.api.meta import JSONObject
from mcm.driver.contract import Driver


@runtime_checkable
class BringsDefinitions(Protocol):
    """A driver that keeps objects of its own kinds, e.g. reservations that it shares out::

        class ExampleDriver(UnsupportedDriver):
            def definitions(self) -> Sequence[JSONObject]:
                return [reservation_definition()]

    Each is a CustomResourceDefinition. The manager does not start without them, ``mcm crds`` prints
    them, and ``mcm start --install`` applies them. Called at any time; asks nobody.
    """

    def definitions(self) -> Sequence[JSONObject]: ...


def definitions_of(driver: Driver) -> Sequence[JSONObject]:
    """Return what ``driver`` needs defined; nothing for one that keeps no kinds of its own."""
    return driver.definitions() if isinstance(driver, BringsDefinitions) else ()
