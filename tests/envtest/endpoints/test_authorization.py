"""Real tokens, reviewed by a real API server under the chart's rule: who may read metrics."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from mcm.client.client import Client
from mcm.client.connection import StaticToken
from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock
from mcm.endpoints.authorization import AuthorizationMetrics, TokenAuthorization
from mcm.endpoints.probes import Probe
from mcm.endpoints.routes import Route, app_of
from mcm.endpoints.server import serve
from tests.envtest.bench import Bench, Document, Peer
from tests.envtest.control_plane import ControlPlane
from tests.envtest.lifecycle.access import rules

pytestmark = pytest.mark.envtest

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLOCK = SystemClock()


class Field:
    """A namespace with service accounts, and what they may do in the whole cluster."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        peer = Peer("real", plane.spec(), plane.compact, plane.spec)
        self.admin = Bench(peer, "metrics")
        self.session: aiohttp.ClientSession

    async def account(self, name: str, granted: Sequence[Document]) -> None:
        """Make a service account that may do what is ``granted``."""
        meta = {"name": f"metrics-{name}"}
        await self.admin.create(self.admin.path("serviceaccounts"), {"metadata": {"name": name}})
        await self.admin.create(f"{RBAC}/clusterroles", {"metadata": meta, "rules": list(granted)})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self.admin.namespace}
        role = {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": meta["name"],
        }
        binding = {"metadata": meta, "roleRef": role, "subjects": [subject]}
        await self.admin.create(f"{RBAC}/clusterrolebindings", binding)

    async def token(self, name: str, *audiences: str) -> str:
        path = self.admin.path("serviceaccounts", f"{name}/token")
        spec: Document = {"expirationSeconds": 600}
        if audiences:
            spec["audiences"] = list(audiences)
        made = await self.admin.create(path, {"spec": spec})
        return str(made["status"]["token"])

    @asynccontextmanager
    async def endpoints(self, reviewer: str, *audiences: str) -> AsyncIterator[None]:
        """Serve, and have tokens reviewed by the account ``reviewer``."""
        login = StaticToken(await self.token(reviewer))
        spec = dataclasses.replace(self.plane.spec(), credentials=login)
        transport = HTTPTransport(spec, clock=CLOCK)
        guard = TokenAuthorization(
            Client(transport, clock=CLOCK),
            clock=CLOCK,
            metrics=AuthorizationMetrics(CollectorRegistry()),
            audiences=audiences,
        )

        async def page(_: web.BaseRequest) -> web.Response:
            return web.Response(text="numbers")

        probes = (("/healthz", Probe(problems=dict, bad="bad")),)
        app = app_of((Route(path="/metrics", page=page),), probes=probes, guard=guard)
        try:
            async with (
                serve(app, address="127.0.0.1", port=0, clock=CLOCK) as port,
                aiohttp.ClientSession(f"http://127.0.0.1:{port}") as self.session,
            ):
                yield
        finally:
            await transport.aclose()

    async def get(self, token: str = "", path: str = "/metrics") -> tuple[int, str]:
        headers: Mapping[str, str] = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.session.get(path, headers=headers) as answer:
            return answer.status, await answer.text()


async def test_who_reads_metrics_is_judged_by_the_api_server(
    control_plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mcm")
    field = Field(control_plane)
    try:
        meta = {"name": field.admin.namespace}
        await field.admin.create("/api/v1/namespaces", {"metadata": meta})
        await field.account("mcm", rules("metrics-authorization"))
        await field.account("prometheus", [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])
        await field.account("curious", [])
        prometheus, curious = await field.token("prometheus"), await field.token("curious")
        async with field.endpoints("mcm"):
            assert await field.get(prometheus) == (200, "numbers")
            assert (await field.get(prometheus, "/configz"))[0] == 403, "another path"
            status, text = await field.get(curious)
            assert status == 403
            assert "system:serviceaccount:metrics:curious may not get the path /metrics" in text
            assert (await field.get())[0] == 401
            assert (await field.get("a.b.c"))[0] == 401
            assert (await field.get(await field.token("prometheus", "vault")))[0] == 401
            assert (await field.get(path="/healthz"))[0] == 200
        async with field.endpoints("mcm", "mcm-metrics"):
            assert (await field.get(prometheus))[0] == 401, "it is meant for the API server"
            meant = await field.token("prometheus", "mcm-metrics")
            assert (await field.get(meant))[0] == 200
        async with field.endpoints("curious"):
            status, text = await field.get(curious)
            assert status == 503 and "tokenreviews" in text
        assert prometheus not in caplog.text and curious not in caplog.text
    finally:
        await field.admin.aclose()
