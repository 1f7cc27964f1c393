"""helm has a server queue the manager's requests apart, and its leases apart from the rest.

The server itself says, with each answer, by which schema and on which level it was queued.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final, final

import pytest

from mcm.client.connection import StaticToken
from mcm.clock import SystemClock
from tests.charts.conftest import find_helm
from tests.charts.helm_binary import CHART, Helm
from tests.envtest.bench import Answer, Bench, Document, Peer
from tests.envtest.contract.objects import machine
from tests.envtest.installation.sites import helm_at, kubeconfig
from tests.envtest.installation.volumes import token_of

FLOW: Final = "/apis/flowcontrol.apiserver.k8s.io/v1"
HOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
LEASES: Final = "coordination.k8s.io/v1"
OF_OTHERS: Final = ("service-accounts", "workload-low")
"""Where the server puts the service accounts that nobody told it more of."""
_WITHIN: Final = 20.0
_MANY: Final = 60
"""More requests than a level of one share has seats and room for."""

_numbers = count(1)


@final
@dataclass(frozen=True)
class Release:
    """helm beside a server, in a namespace of its own; nobody runs the pods."""

    admin: Bench
    helm: Helm

    async def run(self, *arguments: str, **flow_control: Any) -> None:
        place = f"--namespace={self.admin.namespace}"
        values = {"flowControl": flow_control} if flow_control else None
        await asyncio.to_thread(self.helm, *arguments, place, values=values)

    @asynccontextmanager
    async def account(self, name: str = "mcm") -> AsyncIterator[Bench]:
        """Ask as a service account of the namespace."""
        token = await token_of(self.admin, self.admin.path("serviceaccounts", name))
        spec = replace(self.admin.peer.spec, credentials=StaticToken(token))
        bench = Bench(replace(self.admin.peer, spec=spec), self.admin.namespace)
        try:
            yield bench
        finally:
            await bench.aclose()


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return find_helm(tmp_path_factory)


@pytest.fixture
async def release(peer: Peer, helm: Helm, tmp_path: Path) -> AsyncIterator[Release]:
    admin = Bench(peer, f"flows-{next(_numbers)}")
    assert isinstance(peer.spec.credentials, StaticToken)
    ca, token = peer.spec.tls.ca_data, peer.spec.credentials.token
    found = Release(admin, helm_at(helm, tmp_path, kubeconfig(peer.spec.server, ca, token)))
    try:
        await admin.create("/api/v1/namespaces", {"metadata": {"name": admin.namespace}})
        yield found
        await found.run("uninstall", "mcm", "--ignore-not-found")
    finally:
        await admin.aclose()


async def _queued(admin: Bench, answer: Answer) -> tuple[str, str]:
    """Return the names of the schema and the level by which a request was queued."""
    found = []
    for header, kind in (
        ("flowschema", "flowschemas"),
        ("prioritylevel", "prioritylevelconfigurations"),
    ):
        uid = answer.headers[f"x-kubernetes-pf-{header}-uid"]
        items = (await admin.get(f"{FLOW}/{kind}"))["items"]
        found += [i["metadata"]["name"] for i in items if i["metadata"]["uid"] == uid]
    schema, level = found
    return schema, level


async def _until_queued(asking: Bench, admin: Bench, path: str, wanted: tuple[str, str]) -> None:
    """Ask until it is as wanted: the server follows a change within a moment."""
    clock = SystemClock()
    deadline = clock.monotonic() + _WITHIN
    while (found := await _queued(admin, await asking.send("GET", path))) != wanted:
        assert clock.monotonic() < deadline, (path, found, wanted)
        await clock.sleep(0.1)


def _lease(bench: Bench) -> str:
    return bench.path("leases", "machine-controller", group=LEASES)


@pytest.mark.parametrize("peer", [pytest.param("real", marks=pytest.mark.envtest)], indirect=True)
async def test_the_server_tells_the_managers_requests_from_others(release: Release) -> None:
    admin = release.admin
    own = f"{admin.namespace}.mcm"
    requests, leases = (f"{own}-requests", own), (f"{own}-leases", "leader-election")
    await release.run("install", "mcm", str(CHART), enabled=True)
    await admin.create(admin.path("serviceaccounts"), {"metadata": {"name": "other"}})
    async with release.account() as manager, release.account("other") as other:
        for path in (manager.machines(), "/api/v1/nodes", "/version"):
            await _until_queued(manager, admin, path, requests)
            assert (await manager.send("GET", path)).status == 200
        await _until_queued(manager, admin, _lease(manager), leases)
        assert (await manager.send("GET", _lease(manager))).status == 404
        # Those of kubelets are no leases of the manager.
        kubelet = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"
        await _until_queued(manager, admin, kubelet, requests)
        await _until_queued(other, admin, "/version", OF_OTHERS)

        named = {"enabled": True, "priorityLevel": {"name": "workload-high"}}
        await release.run("upgrade", "mcm", str(CHART), **named)
        await _until_queued(manager, admin, "/version", (requests[0], "workload-high"))
        await _until_queued(manager, admin, _lease(manager), leases)
        assert await admin.gone(f"{FLOW}/prioritylevelconfigurations/{own}")

        await release.run("upgrade", "mcm", str(CHART), enabled=False)
        for path in ("/version", _lease(manager)):
            await _until_queued(manager, admin, path, OF_OTHERS)


@pytest.mark.parametrize("peer", [pytest.param("real", marks=pytest.mark.envtest)], indirect=True)
async def test_a_fleet_that_fills_its_level_leaves_room_for_leases(release: Release) -> None:
    """Creations of machines wait for a webhook that never answers, until the level is full."""
    admin = release.admin
    tiny = {"nominalConcurrencyShares": 1, "queues": 1, "handSize": 1, "queueLengthLimit": 1}
    await release.run("install", "mcm", str(CHART), enabled=True, priorityLevel=tiny)
    async with (
        release.account() as manager,
        release.account() as elector,
        _hanging(admin),
    ):
        own = f"{admin.namespace}.mcm"
        await _until_queued(manager, admin, "/version", (f"{own}-requests", own))
        lease = (f"{own}-leases", "leader-election")
        await _until_queued(elector, admin, _lease(elector), lease)

        async def create(number: int) -> Answer:
            body = machine(f"m-{number}")
            return await manager.send("POST", manager.machines(), body, dryRun="All")

        crowd = [asyncio.create_task(create(number)) for number in range(_MANY)]
        try:
            done, _ = await asyncio.wait(
                crowd, timeout=_WITHIN, return_when=asyncio.FIRST_COMPLETED
            )
            first = done.pop().result()
            assert first.status == 429, first.text
            meta = {"name": "machine-controller"}
            made = await elector.send(
                "POST", elector.path("leases", group=LEASES), {"metadata": meta}
            )
            assert made.status == 201, made.text
            renewed = await elector.send("PUT", _lease(elector), made.body)
            assert renewed.status == 200, renewed.text
        finally:
            for each in crowd:
                each.cancel()
            await asyncio.gather(*crowd, return_exceptions=True)


@asynccontextmanager
async def _hanging(admin: Bench) -> AsyncIterator[None]:
    """Have new machines of the namespace wait for somebody who accepts and says nothing."""
    connections: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(
        lambda _, writer: connections.append(writer), "127.0.0.1", 0
    )
    port = silent.sockets[0].getsockname()[1]
    hook: Document = {
        "name": "hanging.example.org",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
        "rules": [
            {
                "apiGroups": ["machine.sapcloud.io"],
                "apiVersions": ["*"],
                "operations": ["CREATE"],
                "resources": ["machines"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": admin.namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 30,
    }
    name = f"hanging-{admin.namespace}"
    await admin.create(HOOKS, {"metadata": {"name": name}, "webhooks": [hook]})
    try:
        yield
    finally:
        await admin.send("DELETE", f"{HOOKS}/{name}")
        silent.close()
        for each in connections:
            each.close()
            with suppress(OSError):
                await each.wait_closed()


@pytest.mark.parametrize("peer", ["sandbox"], indirect=True)
async def test_a_server_that_queues_nobody_apart_is_named(release: Release) -> None:
    values = {"flowControl": {"enabled": True}}
    place = f"--namespace={release.admin.namespace}"
    said = await asyncio.to_thread(
        release.helm.fails, "install", "mcm", str(CHART), place, values=values
    )
    assert "flowControl.enabled: this cluster (v1." in said
    assert "does not serve flowcontrol.apiserver.k8s.io/v1" in said
    assert "mcm" not in await release.admin.names(release.admin.path("serviceaccounts"))
