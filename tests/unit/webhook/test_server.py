"""The webhook over TLS on a real loopback socket, and certificates that change meanwhile."""

from __future__ import annotations

import asyncio
import io
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import aiohttp
import pytest
import trustme
from prometheus_client import CollectorRegistry

from mcm.client.errors import ConfigurationError
from mcm.clock import Clock, SystemClock
from mcm.serving_certificate import ServingCertificate
from mcm.webhook.metrics import WebhookMetrics
from mcm.webhook.server import build_app, serve
from tests.unit.webhook.test_review import INVALID, POOL, review


class Ticks(Clock):
    """A clock whose every sleep ends when the test says so."""

    def __init__(self) -> None:
        self._system = SystemClock()
        self._ticks = asyncio.Queue[None]()
        self._asleep = asyncio.Event()

    def now(self) -> datetime:
        return self._system.now()

    def monotonic(self) -> float:
        return self._system.monotonic()

    async def sleep(self, seconds: float) -> None:
        self._asleep.set()
        await self._ticks.get()

    async def tick(self) -> None:
        """Let the time pass for whoever sleeps; return once it sleeps again."""
        self._asleep.clear()
        self._ticks.put_nowait(None)
        async with asyncio.timeout(10):
            await self._asleep.wait()


class Field:
    """A webhook in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registry = CollectorRegistry()
        self.metrics = WebhookMetrics(self.registry)
        self.clock = Ticks()
        self.port = 0

    def issue(self, authority: trustme.CA) -> None:
        pair = authority.issue_cert("127.0.0.1")
        (self.folder / "tls.crt").write_bytes(b"".join(b.bytes() for b in pair.cert_chain_pems))
        (self.folder / "tls.key").write_bytes(pair.private_key_pem.bytes())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        certificate = ServingCertificate(
            self.folder, server="the webhook", clock=self.clock, rotations=self.metrics.rotations
        )
        app = build_app(max_replicas=100, metrics=self.metrics)
        async with serve(
            app, certificate, address="127.0.0.1", port=0, clock=SystemClock()
        ) as self.port:
            yield

    async def post(
        self,
        authority: trustme.CA,
        body: bytes | io.BytesIO,
        path: str = "/validate",
        method: str = "POST",
    ) -> tuple[int, str]:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                method, f"https://127.0.0.1:{self.port}{path}", data=body, ssl=context
            ) as answer,
        ):
            return answer.status, await answer.text()

    def rotations(self, result: str) -> float:
        name = "mcm_webhook_certificate_rotations_total"
        return self.registry.get_sample_value(name, {"result": result}) or 0.0

    def reviews(self, result: str) -> float:
        name = "mcm_webhook_reviews_total"
        return self.registry.get_sample_value(name, {"result": result}) or 0.0


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)


async def test_reviews_are_answered_and_all_else_is_refused(field: Field) -> None:
    authority = trustme.CA()
    field.issue(authority)
    async with field.running():
        status, text = await field.post(authority, review(POOL))
        assert (status, '"allowed":true' in text) == (200, True)
        status, text = await field.post(authority, review(INVALID))
        assert (status, '"allowed":false' in text) == (200, True)
        assert (await field.post(authority, review(INVALID, INVALID)))[0] == 200
        assert await field.post(authority, b"what?") == (
            400,
            "not an AdmissionReview with a request\n",
        )
        assert (await field.post(authority, b"", path="/"))[0] == 404
        assert (await field.post(authority, b"", method="GET"))[0] == 405
        huge = b" " * (8 * 1024**2 + 1)
        assert (await field.post(authority, io.BytesIO(huge)))[0] == 413
        assert (await field.post(authority, review(POOL)))[0] == 200
    counted = {r: field.reviews(r) for r in ("allowed", "warned", "refused", "bad")}
    assert counted == {"allowed": 2, "warned": 1, "refused": 1, "bad": 2}


async def test_a_new_certificate_is_shown_and_a_bad_one_changes_nothing(
    field: Field, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = trustme.CA(), trustme.CA()
    field.issue(first)
    async with field.running():
        assert (await field.post(first, review(POOL)))[0] == 200
        key = (field.folder / "tls.key").read_bytes()
        for content in (b"", b"no PEM", second.issue_cert("127.0.0.1").private_key_pem.bytes()):
            (field.folder / "tls.key").write_bytes(content)
            await field.clock.tick()
            await field.clock.tick()
            assert (await field.post(first, review(POOL)))[0] == 200
        (field.folder / "tls.key").unlink()
        await field.clock.tick()
        assert (await field.post(first, review(POOL)))[0] == 200
        assert (field.rotations("refused"), field.rotations("taken")) == (7, 0)
        said = [r.getMessage() for r in caplog.records if "keeps the certificate" in r.getMessage()]
        assert len(said) == 4, "once for each kind of trouble, not for each look"
        assert all(str(field.folder) in line for line in said)
        assert not any(key.decode() in line for line in said)

        field.issue(second)
        await field.clock.tick()
        assert (await field.post(second, review(POOL)))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await field.post(first, review(POOL))
        assert field.rotations("taken") == 1


async def test_without_a_pair_to_begin_with_the_file_is_named(field: Field) -> None:
    def made() -> ServingCertificate:
        return ServingCertificate(
            field.folder, server="the webhook", clock=field.clock, rotations=field.metrics.rotations
        )

    with pytest.raises(ConfigurationError, match=r"cannot read .*tls\.crt: No such file"):
        made()
    field.issue(trustme.CA())
    (field.folder / "tls.key").write_bytes(b"x")
    with pytest.raises(ConfigurationError, match=r"tls\.crt and key do not load"):
        made()


async def test_a_port_in_use_is_named_with_its_flag(field: Field) -> None:
    field.issue(trustme.CA())
    certificate = ServingCertificate(
        field.folder, server="the webhook", clock=field.clock, rotations=field.metrics.rotations
    )
    app = build_app(max_replicas=0, metrics=field.metrics)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"--webhook-port: 127.0.0.1:{port} is in"):
            async with serve(app, certificate, address="127.0.0.1", port=port, clock=SystemClock()):
                raise AssertionError("it cannot have been had")
