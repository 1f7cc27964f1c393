"""A sandbox API server over HTTPS in a thread, for programs that are not asyncio's."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Request, Response
from mcm.clock import SystemClock
from mcm.sandbox.apiserver.front.http import Certificates, Front, serve_https
from mcm.sandbox.apiserver.front.kubeconfig import write_kubeconfig
from mcm.sandbox.apiserver.garbage.collector import GarbageCollector
from mcm.sandbox.apiserver.server import ApiServer

T = TypeVar("T")


class BackgroundServer:
    """Use as a context manager; ``kubeconfig`` is there once it is entered."""

    def __init__(self, folder: Path, manifests: Iterable[JSONObject] = ()) -> None:
        self.kubeconfig = folder / "kubeconfig.yaml"
        self._folder = folder
        self._manifests = tuple(manifests)
        self._front: Future[Front] = Future()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="sandbox")
        self.server: ApiServer

    def __enter__(self) -> Self:
        self._thread.start()
        write_kubeconfig(self.kubeconfig, self.front)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive(), "the server does not stop"

    @property
    def front(self) -> Front:
        return self._front.result(10)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def wait_for_watches(self, number: int) -> None:
        """Return once exactly so many watches are under way."""
        self.do(self._watches(number))

    async def _watches(self, number: int) -> None:
        clock = SystemClock()
        async with asyncio.timeout(10):
            while self.server.watch_count != number:
                await clock.sleep(0.01)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        try:
            self.server = ApiServer(clock=SystemClock(), random=random.Random())
            await self._create()
            certificates = Certificates.load_or_create(self._folder / "state")
            collector = asyncio.create_task(GarbageCollector(self.server).run())
            async with serve_https(self.server, certificates=certificates) as front:
                self._front.set_result(front)
                await self._stop.wait()
            collector.cancel()
            await asyncio.wait({collector})
        except BaseException as error:
            if not self._front.done():
                self._front.set_exception(error)
            raise

    async def _create(self) -> None:
        for manifest in self._manifests:
            request = Request(
                "POST",
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                headers={"content-type": "application/json", "user-agent": "setup"},
                body=orjson.dumps(manifest),
            )
            answer = await self.server.handle(request)
            assert isinstance(answer, Response) and answer.status == 201, answer
