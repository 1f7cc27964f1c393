"""``/debug/…``: profiles and dumps of this process, one at a time and each of bounded length."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Mapping
from typing import Final, Protocol, final

from aiohttp import web

from mcm.clock import Clock
from mcm.http_server import Handler
from mcm.profiling import collapsed, cpu, heap, pprof, threads
from mcm.profiling.profile import Profile
from mcm.profiling.stalls import Stalls
from mcm.profiling.tasks import Tasks

LONGEST: Final = 60.0
"""Seconds that a profile may take."""

_USUAL: Final = 30.0
_INDEX: Final = """\
/debug/pprof/profile?seconds=30      what is on the CPU, sampled
/debug/pprof/heap?seconds=30         what is allocated meanwhile and not given back
/debug/pprof/goroutine               how many asyncio tasks wait at each place
/debug/pprof/block                   in what the event loop stood still (--contention-profiling)
/debug/tasks                         every asyncio task, what it waits for, since when
/debug/threads                       every thread, and where it is

Profiles are in pprof's format; with format=collapsed a line for each stack, for flame graphs.
"""


class Taking(Protocol):
    """Takes a profile in a thread: of so many seconds, or until it is cancelled."""

    def __call__(self, seconds: float, *, clock: Clock, cancelled: threading.Event) -> Profile: ...


@final
class ProfilingPages:
    """``stalls`` is None unless contention is profiled."""

    def __init__(self, *, clock: Clock, stalls: Stalls | None) -> None:
        self._clock = clock
        self._stalls = stalls
        self._tasks = Tasks(clock)
        self._taking = False

    def pages(self) -> Mapping[str, Handler]:
        """Return the pages by their path. They are read by GET alone: a HEAD would cost as much."""
        found: dict[str, Handler] = {
            "/debug/pprof/": _text(lambda: _INDEX),
            "/debug/pprof/profile": self._timed(cpu.sample),
            "/debug/pprof/heap": self._timed(heap.trace),
            "/debug/pprof/goroutine": self._at_once(self._tasks.profile),
            "/debug/tasks": _text(self._tasks.describe),
            "/debug/threads": _text(threads.describe),
        }
        if self._stalls is not None:
            found["/debug/pprof/block"] = self._at_once(self._stalls.profile)
        return found

    def _timed(self, take: Taking) -> Handler:
        async def answer(request: web.BaseRequest) -> web.Response:
            seconds = _seconds(request)
            if seconds is None:
                return _refused(400, f"seconds must be a number, more than 0, at most {LONGEST:g}")
            if self._taking:
                return _refused(429, "another profile is being taken; ask again when it is done")
            self._taking = True
            cancelled = threading.Event()

            def taken() -> bytes:
                return _encoded(request, take(seconds, clock=self._clock, cancelled=cancelled))

            try:
                work = asyncio.create_task(asyncio.to_thread(taken), name="profile")
                try:
                    return _file(request, await asyncio.shield(work))
                finally:  # whoever asked may have gone: then it ends at once
                    cancelled.set()
                    await asyncio.wait({work})
            finally:
                self._taking = False

        return answer

    def _at_once(self, take: Callable[[], Profile]) -> Handler:
        async def answer(request: web.BaseRequest) -> web.Response:
            profile = take()
            return _file(request, await asyncio.to_thread(_encoded, request, profile))

        return answer


def _text(describe: Callable[[], str]) -> Handler:
    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(text=describe())

    return answer


def _seconds(request: web.BaseRequest) -> float | None:
    """Return how long a profile is asked for; None for what cannot be meant."""
    try:
        seconds = float(request.query.get("seconds", _USUAL))
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 < seconds <= LONGEST else None


def _encoded(request: web.BaseRequest, profile: Profile) -> bytes:
    if request.query.get("format") == "collapsed":
        return collapsed.encode(profile)
    return pprof.encode(profile)


def _file(request: web.BaseRequest, body: bytes) -> web.Response:
    if request.query.get("format") == "collapsed":
        return web.Response(body=body, content_type="text/plain")
    name = request.path.rpartition("/")[2]
    shown = {"Content-Disposition": f'attachment; filename="{name}.pb.gz"'}
    return web.Response(body=body, content_type="application/octet-stream", headers=shown)


def _refused(status: int, why: str) -> web.Response:
    return web.Response(status=status, text=f"{why}\n")
