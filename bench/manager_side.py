"""What the manager itself does in a simulation, told apart from the API server and the world.

All of them share one loop. Tasks of the manager are told by their root (whatever a task starts is
of its side), and every step of theirs is metered; what a step does inside the transport, where the
server answers at once, is left out. So is the loop's own work, and what timers do that only wake.
"""

from __future__ import annotations

import asyncio
import cProfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import replace
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, Protocol, TypeVar, final

from mcm.client.transport import Request, Response, StreamResponse, Transport
from mcm.simulation.virtualtime import VirtualLoop

R = TypeVar("R")

_OURS: ContextVar[bool] = ContextVar("of the manager", default=False)
_ROOT = "Manager.run"
_HOUSE = Path(__file__).parent.parent


class Meter(Protocol):
    """Counts while it runs; both calls are cheap, and come in turns."""

    def resume(self) -> None: ...
    def pause(self) -> None: ...


@final
class CpuMeter:
    """Seconds of this thread."""

    def __init__(self) -> None:
        self._spent = 0
        self._since = 0

    def resume(self) -> None:
        self._since = time.thread_time_ns()

    def pause(self) -> None:
        self._spent += time.thread_time_ns() - self._since

    @property
    def seconds(self) -> float:
        return self._spent / 1e9


@final
class CallMeter:
    """Calls of functions, resumptions of generators and coroutines included: a number that no noise
    moves, in proportion to the work as long as the work is Python's."""

    def __init__(self) -> None:
        self._profile = cProfile.Profile(subcalls=False, builtins=True)

    def resume(self) -> None:
        self._profile.enable(subcalls=False, builtins=True)

    def pause(self) -> None:
        self._profile.disable()

    def calls(self) -> Mapping[str, int]:
        """Return how often each function was called so far."""
        found: Counter[str] = Counter()
        for entry in self._profile.getstats():
            found[_name_of(entry.code)] += entry.callcount
        return found


def _name_of(code: CodeType | str) -> str:
    if isinstance(code, str):
        return code
    path = Path(code.co_filename)
    where = path.relative_to(_HOUSE) if path.is_relative_to(_HOUSE) else Path(path.name)
    return f"{where}: {code.co_qualname}"


@final
class ManagerSide:
    """Meters the manager's tasks on a loop, once it is :meth:`installed`."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._running = False

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have every task of the manager that is started from now on metered."""
        loop.set_task_factory(self._task)

    def transport(self, inner: Transport) -> Transport:
        """Return ``inner`` as the manager is to have it: what happens in there is not its doing."""
        return _Unmetered(inner, self)

    def _task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, R] | Generator[Any, None, R],
        context: Context | None = None,
    ) -> asyncio.Task[R]:
        assert isinstance(coroutine, Coroutine)
        context = context or copy_context()
        if getattr(coroutine, "__qualname__", "") == _ROOT:
            context.run(_OURS.set, True)
        ours = context.get(_OURS, False)
        work = _Steps(coroutine, self.metered) if ours else coroutine
        return asyncio.Task(work, loop=loop, context=context)

    def metered(self, step: Callable[[], R]) -> R:
        """Take ``step``, metering what it does."""
        if self._running:
            return step()
        self._running = True
        self._meter.resume()
        try:
            return step()
        finally:
            self._meter.pause()
            self._running = False

    def unmetered(self, step: Callable[[], R]) -> R:
        """Take ``step``, metering nothing of it."""
        if not self._running:
            return step()
        self._meter.pause()
        self._running = False
        try:
            return step()
        finally:
            self._running = True
            self._meter.resume()


_Take = Callable[[Callable[[], Any]], Any]


@final
class _Steps(Coroutine[Any, Any, R]):
    """A coroutine each of whose steps is taken by ``take``."""

    def __init__(self, inner: Coroutine[Any, Any, R], take: _Take) -> None:
        self._inner = inner
        self._take = take

    def send(self, value: Any) -> Any:
        return self._take(lambda: self._inner.send(value))

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        traceback: TracebackType | None = None,
    ) -> Any:
        error = value if isinstance(value, BaseException) else kind
        assert isinstance(error, BaseException)
        return self._take(lambda: self._inner.throw(error))

    def close(self) -> None:
        self._take(self._inner.close)

    def __await__(self) -> Generator[Any, Any, R]:
        return self

    def __iter__(self) -> _Steps[R]:
        return self

    def __next__(self) -> Any:
        return self.send(None)


@final
class _Unmetered:
    """A transport whose every step is left out."""

    def __init__(self, inner: Transport, side: ManagerSide) -> None:
        self._inner = inner
        self._side = side

    async def request(self, request: Request) -> Response:
        return await left_out(self._inner.request(request), self._side)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        return self._stream(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        async with self._inner.stream(request) as response:
            yield replace(response, chunks=_Chunks(response.chunks, self._side))


@final
class _Chunks(AsyncIterator[bytes]):
    def __init__(self, inner: AsyncIterator[bytes], side: ManagerSide) -> None:
        self._inner = inner
        self._side = side

    async def __anext__(self) -> bytes:
        return await left_out(anext(self._inner), self._side)


async def left_out(work: Awaitable[R], side: ManagerSide) -> R:
    """Await ``work``, metering none of its steps."""

    async def awaited() -> R:
        return await work

    result: R = await _Steps(awaited(), side.unmetered)
    return result


def run_metered(main: Callable[[], Coroutine[Any, Any, R]], side: ManagerSide) -> R:
    """Run ``main()`` to its end on a fresh virtual loop whose tasks ``side`` meters."""

    def loop() -> VirtualLoop:
        made = VirtualLoop()
        side.install(made)
        return made

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main())
