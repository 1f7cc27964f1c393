"""What is traced by: spans that a context lasts, and the header that tells a server of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Final, Protocol, TypeAlias, final

Value: TypeAlias = str | int | float | bool


class Kind(Enum):
    """What a span is: work of our own, or a request to somebody."""

    INTERNAL = "internal"
    CLIENT = "client"


class Span(Protocol):
    """Something under way."""

    def set(self, name: str, value: Value) -> None:
        """Add what is known only now."""
        ...


class Tracer(Protocol):
    """Makes spans. Neither method waits, raises or does I/O."""

    def span(
        self, name: str, attributes: Mapping[str, Value], *, kind: Kind = Kind.INTERNAL
    ) -> AbstractContextManager[Span]:
        """Trace what the context lasts; tasks begun inside belong to it. What is raised from it
        marks the span as failed, by its class alone."""
        ...

    def headers(self) -> Mapping[str, str]:
        """Return what tells a server to which span a request belongs (W3C trace context)."""
        ...


@final
class _NoSpan:
    def set(self, name: str, value: Value) -> None:
        pass


@final
class _NoTraces:
    _nothing: Final = nullcontext[Span](_NoSpan())

    def span(
        self, name: str, attributes: Mapping[str, Value], *, kind: Kind = Kind.INTERNAL
    ) -> AbstractContextManager[Span]:
        return self._nothing

    def headers(self) -> Mapping[str, str]:
        return {}


NO_TRACES: Final[Tracer] = _NoTraces()
"""Traces nothing, at next to no price."""
