"""What a contestant reports to, and the plainest mirror for those that bring none of their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

from mcm.workqueue.queue import WorkQueue

O = TypeVar("O")  # noqa: E741 - an object of whatever class a client makes


@final
class Race:
    """The state of one measurement: when the list was in, how many events were handled.

    ``count`` objects are listed; ``last`` is the version after which the race is over. Times are
    seconds, of the CPU if not said otherwise.
    """

    def __init__(self, *, queue: WorkQueue[str], count: int, last: str) -> None:
        self.queue = queue
        self.count = count
        self.events = 0
        self.size: Callable[[], int] = lambda: 0
        self.list_done = asyncio.Event()
        self.finished = asyncio.Event()
        self.list_seconds = 0.0
        self.list_wall_seconds = 0.0
        self.watch_seconds = 0.0
        self._last = last
        self._wall = time.perf_counter()
        self._mark = time.process_time()

    def listed(self) -> None:
        """The whole list is in store and indexes, and its keys in the queue."""
        now = time.process_time()
        self.list_seconds = now - self._mark
        self.list_wall_seconds = time.perf_counter() - self._wall
        self._mark = now
        self.list_done.set()

    def changed(self, key: str, version: str) -> None:
        """An object changed: what any controller's handler does, and the count."""
        self.queue.add(key)
        self.kept(version)

    def kept(self, version: str) -> None:
        """An event is in the mirror; whoever enqueues calls :meth:`changed` instead."""
        self.events += 1
        if version == self._last:
            self.watch_seconds = time.process_time() - self._mark
            self.finished.set()


@dataclass(frozen=True, slots=True)
class View(Generic[O]):
    """How to read key, version and labels of the objects a client makes."""

    key: Callable[[O], str]
    version: Callable[[O], str]
    labels: Callable[[O], Mapping[str, str]]


@final
class PlainMirror(Generic[O]):
    """A dict and an index a label: no relists, no comparison, no protection from older events.

    It does less than a store must, in favour of the clients that come without one.
    """

    def __init__(self, view: View[O], indexed: Sequence[str], race: Race) -> None:
        self._view = view
        self._race = race
        self._objects: dict[str, O] = {}
        self._indexes: dict[str, dict[str, set[str]]] = {label: {} for label in indexed}
        race.size = self._objects.__len__

    def listed(self, obj: O) -> None:
        """Take an object of the first list."""
        self._race.queue.add(self._put(obj))

    def event(self, kind: str, obj: O) -> None:
        """Take a watch event."""
        key = self._put(obj) if kind != "DELETED" else self._remove(obj)
        self._race.changed(key, self._view.version(obj))

    def _put(self, obj: O) -> str:
        key = self._view.key(obj)
        old = self._objects.get(key)
        before = self._view.labels(old) if old is not None else {}
        labels = self._view.labels(obj)
        for label, index in self._indexes.items():
            if (value := labels.get(label)) != (previous := before.get(label)):
                if previous is not None:
                    index[previous].discard(key)
                if value is not None:
                    index.setdefault(value, set()).add(key)
        self._objects[key] = obj
        return key

    def _remove(self, obj: O) -> str:
        key = self._view.key(obj)
        for index in self._indexes.values():
            for keys in index.values():
                keys.discard(key)
        self._objects.pop(key, None)
        return key


def _dict_key(obj: Mapping[str, Any]) -> str:
    meta = obj["metadata"]
    namespace = meta.get("namespace")
    return f"{namespace}/{meta['name']}" if namespace else str(meta["name"])


def _attribute_key(obj: Any) -> str:
    meta = obj.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else str(meta.name)


DICTS: View[Mapping[str, Any]] = View(
    key=_dict_key,
    version=lambda obj: str(obj["metadata"]["resourceVersion"]),
    labels=lambda obj: obj["metadata"].get("labels") or {},
)
SNAKE_CASE: View[Any] = View(
    key=_attribute_key,
    version=lambda obj: str(obj.metadata.resource_version),
    labels=lambda obj: obj.metadata.labels or {},
)
CAMEL_CASE: View[Any] = View(
    key=_attribute_key,
    version=lambda obj: str(obj.metadata.resourceVersion),
    labels=lambda obj: obj.metadata.labels or {},
)
