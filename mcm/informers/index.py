"""A secondary index: which objects have a value (an owner, a node, a label …)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, final

from mcm.api.meta import T

logger = logging.getLogger(__name__)

IndexFunction: TypeAlias = Callable[[T], Iterable[str]]
"""Pure; any number of values for one object. What it raises is contained by the index."""


@final
class Index(Generic[T]):
    """Buckets by value. An object whose function raises is under no value, and ``errors`` grows."""

    __slots__ = ("_buckets", "_function", "_name", "_values", "errors")

    def __init__(self, name: str, function: IndexFunction[T]) -> None:
        self._name = name
        self._function = function
        self._buckets: dict[str, dict[str, T]] = {}
        self._values: dict[str, tuple[str, ...]] = {}
        self.errors = 0

    def find(self, value: str) -> Sequence[T]:
        bucket = self._buckets.get(value)
        return tuple(bucket.values()) if bucket else ()

    def values(self) -> Sequence[str]:
        """Return every value that at least one object has."""
        return tuple(self._buckets)

    def put(self, key: str, obj: T) -> None:
        """File ``obj`` under its values, and under no other."""
        try:
            values = tuple(self._function(obj))
        except Exception:
            # A faulty function must cost one entry, not the mirror: all else stays searchable.
            self.errors += 1
            logger.exception("index function failed", extra={"index": self._name, "key": key})
            values = ()
        if values != self._values.get(key, ()):
            values = self._refile(key, values)
        buckets = self._buckets
        for value in values:
            buckets[value][key] = obj

    def _refile(self, key: str, values: tuple[str, ...]) -> tuple[str, ...]:
        """Leave the buckets of the values that are gone, make those of new ones; return the
        values, each once."""
        values = tuple(dict.fromkeys(values))
        self._leave(key, set(self._values.pop(key, ())).difference(values))
        if values:
            self._values[key] = values
        for value in values:
            self._buckets.setdefault(value, {})
        return values

    def discard(self, key: str) -> None:
        self._leave(key, self._values.pop(key, ()))

    def _leave(self, key: str, values: Iterable[str]) -> None:
        for value in values:
            bucket = self._buckets[value]
            del bucket[key]
            if not bucket:
                del self._buckets[value]
