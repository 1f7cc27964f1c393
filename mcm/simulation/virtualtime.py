"""An event loop whose time is a number: waiting costs nothing, and hours pass in milliseconds.

When nothing is ready to run, the loop jumps to its next timer instead of blocking. There are no
sockets under it; a loop with neither ready callbacks nor timers is a deadlock, and says so.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, final

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

R = TypeVar("R")


class Deadlock(RuntimeError):
    """Every task waits, and nothing will ever wake one."""


@final
class _InstantSelector(selectors.BaseSelector):
    """Returns at once, and tells how long it was asked to wait."""

    def __init__(self) -> None:
        self._inner = selectors.DefaultSelector()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._inner.select(0)
        if ready:
            return ready
        if timeout is None:
            raise Deadlock("all tasks wait and no timer is armed")
        self.now += max(0.0, timeout)
        return []

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        return self._inner.get_map() or {}

    def close(self) -> None:
        self._inner.close()


@final
class VirtualLoop(asyncio.SelectorEventLoop):
    """A standard loop on virtual time, starting at zero. Threads must not be waited for on it."""

    def __init__(self) -> None:
        self._virtual_selector = _InstantSelector()
        super().__init__(self._virtual_selector)

    def time(self) -> float:
        return self._virtual_selector.now


def run_virtual(main: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Run ``main()`` to its end on a fresh :class:`VirtualLoop`; raises :class:`Deadlock`."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())
