"""The sandbox's API server over HTTPS, in a thread with a loop of its own.

No world lives around it: like the real server here it is alone, without controllers.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Self, final

from mcm.api.meta import JSONObject
from mcm.client.connection import ConnectionSpec, StaticToken, TLSSpec
from mcm.clock import SystemClock
from mcm.sandbox.apiserver.authentication.users import User
from mcm.sandbox.apiserver.front.certificates import Certificates
from mcm.sandbox.apiserver.front.http import Front, serve_https
from mcm.sandbox.apiserver.server import ApiServer, ServerSettings
from mcm.sandbox.cluster import create_all
from tests.envtest.bench import Peer
from tests.envtest.control_plane import STRANGER, token_of

_PATIENCE = 10.0


@final
class SandboxThread:
    """Use as a context manager; ``peer`` works while it is entered."""

    def __init__(self, folder: Path, manifests: Iterable[JSONObject]) -> None:
        self._folder = folder
        self._manifests = tuple(manifests)
        self._front: Future[Front] = Future()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="sandbox")
        self._server: ApiServer | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._front.result(_PATIENCE)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_PATIENCE)
        assert not self._thread.is_alive(), "the sandbox does not stop"

    def peer(self) -> Peer:
        token = self._front.result(_PATIENCE).token
        return Peer("sandbox", self._spec(token), self.compact, lambda u: self._spec(token_of(u)))

    def _spec(self, token: str) -> ConnectionSpec:
        front = self._front.result(_PATIENCE)
        return ConnectionSpec(
            front.url, tls=TLSSpec(ca_data=front.ca), credentials=StaticToken(token)
        )

    async def compact(self) -> None:
        done = asyncio.run_coroutine_threadsafe(self._compact(), self._loop)
        await asyncio.wrap_future(done)

    async def _compact(self) -> None:
        assert self._server is not None
        self._server.store.compact()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        try:
            settings = ServerSettings(authorization="RBAC")
            self._server = ApiServer(clock=SystemClock(), random=random.Random(), settings=settings)
            self._server.authenticator.learn(token_of(STRANGER), User(STRANGER, ("people",)))
            await create_all(self._server, self._manifests)
            certificates = Certificates.load_or_create(self._folder)
            async with serve_https(self._server, certificates=certificates) as front:
                self._front.set_result(front)
                await self._stop.wait()
        except BaseException as error:
            if not self._front.done():
                self._front.set_exception(error)
            raise
