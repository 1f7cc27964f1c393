"""What a provider may bring to run beside its driver, as long as this process leads."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, runtime_checkable

from mcm.driver.contract import Driver

Service = Callable[[], Coroutine[Any, Any, None]]
"""Called once, when both leases are held and the mirrors are synced, and cancelled at the end.

It must run until it is cancelled: one that returns or raises ends the whole process, since nobody
could tell what then is no longer done. When cancelled it has a few seconds to end. What it writes
through the clients of its :class:`~mcm.driver.discovery.ProviderContext` is fenced like all else.
"""


@runtime_checkable
class BringsServices(Protocol):
    """A driver that has something to run, e.g. a poller of the cloud's own notifications::

        class ExampleDriver(UnsupportedDriver):
            def services(self) -> Mapping[str, Service]:
                return {"notifications": self._poll}

    The names show in logs and in ``/healthz``, after the provider's. Called once.
    """

    def services(self) -> Mapping[str, Service]: ...


def services_of(driver: Driver) -> Mapping[str, Service]:
    """Return what ``driver`` wants to have run; nothing for one that brings no services."""
    return driver.services() if isinstance(driver, BringsServices) else {}
