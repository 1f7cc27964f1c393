"""Who may read metrics: tokens and rights as an API server knows them, or does not answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TypeVar

import aiohttp
import msgspec
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from mcm.client.errors import Forbidden, RequestTimeout
from mcm.client.requests import Call
from mcm.client.transport import Response
from mcm.client.verbs import Carrier
from mcm.clock import Clock, SystemClock
from mcm.endpoints import authorization
from mcm.endpoints.authorization import AuthorizationMetrics, TokenAuthorization
from mcm.endpoints.probes import Probe
from mcm.endpoints.routes import Route, app_of
from mcm.endpoints.server import serve

R = TypeVar("R")


class Moments(Clock):
    """A clock that a test moves on."""

    passed = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here waits")

    def monotonic(self) -> float:
        return self.passed


class ApiServer(Carrier):
    """Knows tokens and rights, and counts how often it was asked."""

    def __init__(self) -> None:
        self.users: dict[str, str] = {"good": "prometheus", "weak": "somebody"}
        self.audiences: list[str] = []
        self.rights = {("prometheus", "get", "/metrics")}
        self.asked: list[dict[str, object]] = []
        self.trouble: Exception | None = None
        self.hangs = False

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        if self.trouble is not None:
            raise self.trouble
        if self.hangs:
            await asyncio.Event().wait()
        assert not call.mutating, "a standby must be able to ask, too"
        review = msgspec.json.decode(call.body)
        self.asked.append(review["spec"])
        return read(Response(201, {}, msgspec.json.encode({"status": self._status(review)})))

    def _status(self, review: dict[str, dict[str, object]]) -> dict[str, object]:
        spec = review["spec"]
        if str(review["kind"]) == "TokenReview":
            user = self.users.get(str(spec["token"]))
            if user is None:
                return {"error": f"the token {spec['token']} is bad"}
            known = {"username": user, "uid": "7", "groups": ["g"], "extra": {"a": ["b"]}}
            return {"authenticated": True, "user": known, "audiences": self.audiences}
        asked = spec["nonResourceAttributes"]
        assert isinstance(asked, dict)
        allowed = (spec["user"], asked["verb"], asked["path"]) in self.rights
        return {"allowed": allowed, "reason": "" if allowed else "no rule says so"}


class Field:
    def __init__(self, *, audiences: tuple[str, ...] = ()) -> None:
        self.server = ApiServer()
        self.clock = Moments()
        self.registry = CollectorRegistry()
        self.guard = TokenAuthorization(
            self.server,
            clock=self.clock,
            metrics=AuthorizationMetrics(self.registry),
            audiences=audiences,
        )
        self.session: aiohttp.ClientSession

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async def page(_: web.BaseRequest) -> web.Response:
            return web.Response(text="numbers")

        probes = (("/healthz", Probe(problems=dict, bad="bad")),)
        app = app_of((Route(path="/metrics", page=page),), probes=probes, guard=self.guard)
        async with (
            serve(app, address="127.0.0.1", port=0, clock=SystemClock()) as port,
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as self.session,
        ):
            yield

    async def get(
        self, token: str | None, path: str = "/metrics", method: str = "GET"
    ) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        async with self.session.request(method, path, headers=headers) as answer:
            return answer.status, await answer.text()

    def counted(self, result: str) -> float | None:
        return self.registry.get_sample_value(
            "mcm_endpoints_authorization_total", {"result": result}
        )


async def test_a_token_is_let_in_refused_or_unknown_and_probes_ask_for_none() -> None:
    field = Field()
    async with field.running():
        assert await field.get("good") == (200, "numbers")
        assert (await field.get("good", method="HEAD"))[0] == 200
        status, text = await field.get("weak")
        assert status == 403
        assert "somebody may not get the path /metrics: no rule says so" in text
        status, text = await field.get("stranger")
        assert status == 401 and "stranger" not in text
        status, text = await field.get(None)
        assert status == 401 and "Authorization: Bearer" in text
        assert (await field.get(None, "/healthz"))[0] == 200
        assert (await field.get(None, "/no/such/page"))[0] == 401, "strangers learn no paths"
        assert (await field.get("good", method="PUT"))[0] == 403, "a verb is a right of its own"
    assert field.server.asked[1]["groups"] == ["g"]
    assert field.server.asked[1]["extra"] == {"a": ["b"]}
    assert [field.counted(r) for r in ("allowed", "unauthenticated", "forbidden")] == [2, 3, 2]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "good",
        "Bearer",
        "Bearer ",
        "Basic good",
        "Bearer good good",
        "Bearer \u00f6",
        "Bearer a;b",
    ],
)
async def test_what_is_no_bearer_token_is_not_asked_about(header: str) -> None:
    field = Field()
    async with (
        field.running(),
        field.session.get("/metrics", headers={"Authorization": header}) as answer,
    ):
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert field.server.asked == []


async def test_a_revoked_token_is_good_for_seconds_and_no_longer() -> None:
    field = Field()
    async with field.running():
        assert (await field.get("good"))[0] == 200
        asked = len(field.server.asked)
        del field.server.users["good"]
        field.clock.passed = authorization.ALLOWED_FOR - 1
        assert (await field.get("good"))[0] == 200
        assert len(field.server.asked) == asked, "it is remembered"
        field.clock.passed = authorization.ALLOWED_FOR
        assert (await field.get("good"))[0] == 401
        field.server.users["good"] = "prometheus"
        assert (await field.get("good"))[0] == 401
        field.clock.passed += authorization.REFUSED_FOR
        assert (await field.get("good"))[0] == 200


async def test_many_tokens_are_not_kept_and_push_nobody_out() -> None:
    field = Field()
    async with field.running():
        assert (await field.get("good"))[0] == 200
        for number in range(300):
            assert (await field.get(f"guess{number}"))[0] == 401
        asked = len(field.server.asked)
        assert (await field.get("good"))[0] == 200
        assert len(field.server.asked) == asked
    assert "guess" not in repr(vars(field.guard)), "of tokens only hashes are kept"


async def test_an_api_server_that_hangs_lets_nobody_in_and_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(authorization, "REVIEW_LIMIT", 0.05)
    field = Field()
    field.server.hangs = True
    async with field.running():
        status, text = await field.get("good")
        assert status == 503 and "did not say within 0.05 s" in text
        monkeypatch.setattr(authorization, "REVIEW_LIMIT", 3.0)
        crowd = await asyncio.gather(*(field.get(f"t{n}") for n in range(60)))
        assert {status for status, _ in crowd} == {503}
        assert any("too many" in text for _, text in crowd)
        field.server.hangs = False
        assert (await field.get("good"))[0] == 200, "what nobody judged is not remembered"
    assert "good" not in caplog.text


async def test_trouble_with_the_api_server_is_told_without_the_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    field = Field()
    field.server.trouble = RequestTimeout("no answer from https://api within 30 s")
    with caplog.at_level(logging.DEBUG):
        async with field.running():
            assert (await field.get("s3cret"))[0] == 503
            field.server.trouble = Forbidden(403, "Forbidden", "you may not")
            status, text = await field.get("s3cret")
            assert status == 503 and "metrics-authorization" in text
    assert "nobody is let in" in caplog.text and "s3cret" not in caplog.text


async def test_a_token_must_be_meant_for_one_of_the_audiences() -> None:
    field = Field(audiences=("mcm", "metrics"))
    async with field.running():
        assert (await field.get("good"))[0] == 401, "the server names no audience"
        field.server.audiences = ["metrics"]
        field.clock.passed += authorization.REFUSED_FOR
        assert (await field.get("good"))[0] == 200
    assert field.server.asked[0]["audiences"] == ["mcm", "metrics"]
