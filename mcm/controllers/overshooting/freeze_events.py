"""One event for each time an object was frozen or unfrozen, whoever did it.

What an object's condition shows was told already; that is all a successor needs to know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, final

from mcm.api.meta import KubeObject, Resource
from mcm.events import EventSink, EventType

Object = TypeVar("Object", bound=KubeObject)


@final
@dataclass(frozen=True, slots=True)
class Reasons:
    froze: str
    unfroze: str


class Note(Protocol):
    """Makes the text of an event, for the state that is ``frozen`` or not."""

    def __call__(self, *, frozen: bool) -> str: ...


@final
@dataclass(slots=True)
class FreezeEvents(Generic[Object]):
    """Remembers by key what was last told."""

    resource: Resource[Object]
    reasons: Reasons
    sink: EventSink
    _told: dict[str, bool] = field(default_factory=dict)

    def observe(self, obj: Object, note: Note, *, frozen: bool, shown: bool) -> None:
        """Tell of a state that was found, if it is news. ``shown``: the object's condition says
        that it is frozen, which counts where nothing was told by this process yet."""
        if frozen != self._told.get(obj.metadata.key, shown):
            self.tell(obj, note, frozen=frozen)
        self._told[obj.metadata.key] = frozen

    def tell(self, obj: Object, note: Note, *, frozen: bool) -> None:
        """Tell of a state that was just brought about."""
        reason = self.reasons.froze if frozen else self.reasons.unfroze
        self.sink.event(self.resource, obj, EventType.NORMAL, reason, note(frozen=frozen))
        self._told[obj.metadata.key] = frozen

    def forget(self, key: str) -> None:
        self._told.pop(key, None)
