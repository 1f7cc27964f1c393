"""mcm's path without a network: chunks of a watch stream, lines, typed objects, the store with the
indexes that controllers use, and one handler that enqueues a key.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from bench.recorded_objects import KINDS
from bench.replay import chunks_of
from mcm.api import codec
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import KubeObject, Resource
from mcm.client.answers import ListPage
from mcm.client.requests import Call
from mcm.client.transport import Response, StreamResponse
from mcm.client.verbs import ObjectReader
from mcm.clock import SystemClock
from mcm.informers import Change, Informer, ReflectorOptions
from mcm.workqueue.queue import WorkQueue

S = TypeVar("S", bound=KubeObject)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Throughput:
    objects: int
    events: int
    queued: int
    events_per_cpu_second: int
    list_objects_per_cpu_second: int


class Recording(ObjectReader):
    """A source that lists some machines, then plays a recorded stream and falls silent."""

    def __init__(self, body: bytes, chunks: Sequence[bytes]) -> None:
        self._body = body
        self._chunks = chunks
        self.play = asyncio.Event()
        self.played = asyncio.Event()

    async def list_page(
        self,
        resource: Resource[S],
        *,
        namespace: str = "",
        limit: int | None = None,
        continue_token: str = "",
        resource_version: str = "",
        **_: object,
    ) -> ListPage[S]:
        page = codec.decode_list(resource, self._body)
        return ListPage(page.items, page.metadata.resource_version)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[S],
        *,
        namespace: str = "",
        resource_version: str = "",
        timeout_seconds: int,
        allow_bookmarks: bool = True,
        send_initial_events: bool = False,
        read_timeout: float | None,
        **_: object,
    ) -> AsyncIterator[StreamResponse]:
        yield StreamResponse(200, {}, self._play())

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        raise AssertionError("a reflector lists and watches, no more")

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("watches are answered above")

    async def _play(self) -> AsyncIterator[bytes]:
        await self.play.wait()
        for chunk in self._chunks:
            yield chunk
        self.played.set()
        await asyncio.Event().wait()


async def throughput(machines: int, rounds: int) -> Throughput:
    """Mirror ``machines`` objects, then let each change ``rounds`` times."""
    kind = KINDS["machines"]
    stream = b"".join(kind.events(machines, rounds))
    source = Recording(kind.listed(machines), chunks_of(stream))
    del stream
    informer, queue = _informer(source)
    started = time.process_time()
    running = asyncio.create_task(informer.run())
    await informer.wait_synced()
    synced = time.process_time()
    source.play.set()
    await source.played.wait()
    played = time.process_time()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    events = informer.stats.events["MODIFIED"]
    return Throughput(
        objects=len(informer.store),
        events=events,
        queued=len(queue),
        events_per_cpu_second=round(events / (played - synced)),
        list_objects_per_cpu_second=round(machines / (synced - started)),
    )


def _informer(source: Recording) -> tuple[Informer[Machine], WorkQueue[str]]:
    clock = SystemClock()
    options = ReflectorOptions(streamed_lists=False)
    informer = Informer(source, MACHINES, clock=clock, options=options, randomness=random.Random(0))
    queue: WorkQueue[str] = WorkQueue("machines", clock=clock)

    def enqueue(change: Change[Machine]) -> None:
        queue.add(change.object.metadata.key)

    informer.store.add_index("owner", _owners)
    informer.store.add_index("node", _nodes)
    informer.add_handler(enqueue)
    return informer, queue


def _owners(obj: Machine) -> Iterable[str]:
    owner = obj.metadata.controller_ref()
    return (owner.uid,) if owner else ()


def _nodes(obj: Machine) -> Iterable[str]:
    return (obj.node_name,) if obj.node_name else ()
