"""A secondary index: which objects have a value (an owner, a node, a label …)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeAlias, final

from mcm.api.meta import T

logger = logging.getLogger(__name__)

IndexFunction: TypeAlias = Callable[[T], Iterable[str]]
"""Pure; any number of values for one object. What it raises is contained by the index."""


@final
class Index(Generic[T]):
    """Keys by value; the objects themselves stay in ``objects``, which holds every filed key.

    So an update that moves nothing costs a comparison. An object whose function raises is under no
    value, and ``errors`` grows.
    """

    __slots__ = ("_buckets", "_function", "_name", "_objects", "_values", "errors")

    def __init__(self, name: str, function: IndexFunction[T], objects: Mapping[str, T]) -> None:
        self._name = name
        self._function = function
        self._objects = objects
        self._buckets: dict[str, dict[str, None]] = {}
        self._values: dict[str, tuple[str, ...]] = {}
        self.errors = 0
        for key, obj in objects.items():
            self.put(key, obj)

    def find(self, value: str) -> Sequence[T]:
        return tuple(map(self._objects.__getitem__, self._buckets.get(value, ())))

    def count(self, value: str) -> int:
        return len(self._buckets.get(value, ()))

    def values(self) -> Sequence[str]:
        """Return every value that at least one object has."""
        return tuple(self._buckets)

    def has(self, key: str, obj: T) -> bool:
        """Tell whether ``key`` is filed under the values of ``obj`` already."""
        try:
            return tuple(self._function(obj)) == self._values.get(key, ())
        except Exception:
            return False  # what is wrong with it is told when it is filed

    def put(self, key: str, obj: T) -> None:
        """File ``key`` under the values of ``obj``, and under no other."""
        try:
            values = tuple(self._function(obj))
        except Exception:
            # A faulty function must cost one entry, not the mirror: all else stays searchable.
            self.errors += 1
            logger.exception("index function failed", extra={"index": self._name, "key": key})
            values = ()
        if values != self._values.get(key, ()):
            self._refile(key, tuple(dict.fromkeys(values)))

    def discard(self, key: str) -> None:
        self._leave(key, self._values.pop(key, ()))

    def _refile(self, key: str, values: tuple[str, ...]) -> None:
        """Leave the buckets of the values that are gone, enter those of new ones."""
        known = self._values.pop(key, ())
        self._leave(key, set(known).difference(values))
        if values:
            self._values[key] = values
        for value in values:
            self._buckets.setdefault(value, {})[key] = None

    def _leave(self, key: str, values: Iterable[str]) -> None:
        for value in values:
            bucket = self._buckets[value]
            del bucket[key]
            if not bucket:
                del self._buckets[value]
