"""The narrow sides of clients, writers and recorders: what a controller needs of each, and no more.

Controllers are handed the real ones; whoever wants to see what a controller does hands it others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from mcm.api.meta import Resource, T
from mcm.client.client import PatchType
from mcm.events import EventType


class ObjectReader(Protocol):
    """Of :class:`mcm.client.client.Client`: reads past the mirror, for what must be certain."""

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T: ...


class ObjectWriter(Protocol):
    """Of :class:`mcm.informers.writer.Writer`: writes whose answers go into the stores."""

    async def create(
        self, resource: Resource[T], body: Mapping[str, object], *, namespace: str = ""
    ) -> T: ...

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        namespace: str = "",
        subresource: str = "",
        patch_type: PatchType = PatchType.MERGE,
    ) -> T: ...

    async def delete(
        self, resource: Resource[T], name: str, *, namespace: str = "", uid: str = ""
    ) -> T | None: ...


class EventSink(Protocol):
    """Of :class:`mcm.events.EventRecorder`."""

    def event(
        self, resource: Resource[T], obj: T, kind: EventType, reason: str, note: str
    ) -> None: ...
