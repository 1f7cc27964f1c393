"""What a reconcile is about, for its log lines: the change that woke it, from watch to write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_current: Final[ContextVar[str]] = ContextVar("correlation", default="")


def current() -> str:
    """Return the correlation of what runs now; empty if there is none, as without debug lines.

    The tasks and threads that a reconcile starts inherit it.
    """
    return _current.get()


@contextmanager
def correlated(correlation: str) -> Iterator[None]:
    """Have what runs inside belong to ``correlation``."""
    token = _current.set(correlation)
    try:
        yield
    finally:
        _current.reset(token)
