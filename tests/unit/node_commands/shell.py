"""``mcm drain`` and ``mcm uncordon`` typed at an API server in this process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcm.api.core import NODES, POD_DISRUPTION_BUDGETS, PODS, VOLUME_ATTACHMENTS, Node
from mcm.api.crds import crd_manifests
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.cli import main
from mcm.client.client import Client
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import SystemClock
from mcm.cluster_commands.connecting import Connected
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.cluster import create_all
from mcm.sandbox.loopback import LoopbackTransport


class Recorded:
    """A transport that notes what is asked; requests for which there is a refusal get that."""

    def __init__(self, server: ApiServer) -> None:
        self._inner = LoopbackTransport(server)
        self.asked: list[tuple[str, str]] = []
        self.refusals: dict[str, Response | Exception] = {}

    async def request(self, request: Request) -> Response:
        self.asked.append((request.method, request.path))
        for ending, refusal in self.refusals.items():
            if request.path.endswith(ending):
                if isinstance(refusal, Exception):
                    raise refusal
                return refusal
        return await self._inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        self.asked.append((request.method, request.path))
        return self._inner.stream(request)

    async def aclose(self) -> None:
        """Each command has its own connection; here all share one server."""


class Shell:
    """Types commands as ``alice@laptop``; ``transport`` notes what they ask the server."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = ApiServer(clock=SystemClock(), random=random.Random(1))
        self.transport = Recorded(self.server)
        self._monkeypatch = monkeypatch
        monkeypatch.setattr("mcm.node_commands.session.connect", self._connect)
        self.types_as("alice@laptop")
        self.apply([*crd_manifests(), namespace("ns")])

    def types_as(self, who: str) -> None:
        self._monkeypatch.setattr("mcm.node_commands.command.whoami", lambda: who)

    def _connect(self, kubeconfig: Path | None, **options: object) -> Connected:
        return Connected(Client(self.transport, clock=SystemClock(), budget=0.5), "ns")

    @property
    def client(self) -> Client:
        return Client(LoopbackTransport(self.server), clock=SystemClock())

    def apply(self, manifests: Iterable[JSONObject]) -> None:
        asyncio.run(self._apply([*manifests]))

    async def _apply(self, manifests: Sequence[JSONObject]) -> None:
        await create_with_status(self.server, manifests)

    def patch_node(self, change: JSONObject, *, subresource: str = "") -> None:
        async def work() -> None:
            await self.client.patch(NODES, "node-1", change, subresource=subresource)

        asyncio.run(work())

    def delete_machine(self, name: str = "m-1") -> None:
        """Ask for it; the machine stays as long as it has finalizers."""

        async def work() -> None:
            await self.client.delete(MACHINES, name, namespace="ns")

        asyncio.run(work())

    def node(self) -> Node:
        async def work() -> Node:
            return await self.client.get(NODES, "node-1")

        return asyncio.run(work())

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, arguments)

    def succeeds(self, *arguments: str) -> str:
        result = self(*arguments)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    def fails(self, *arguments: str, code: int = 1) -> str:
        """Run what must fail, in one line on standard error; return that."""
        result = self(*arguments)
        assert result.exit_code == code, (result.output, result.exception)
        if code == 1:
            assert result.stderr.startswith("mcm: ") and result.stderr.count("\n") == 1
        return result.stderr


async def create_with_status(server: ApiServer, manifests: Sequence[JSONObject]) -> None:
    """Create objects, and report the status that pods, budgets and attachments are to have."""
    await create_all(server, manifests)
    client = Client(LoopbackTransport(server), clock=SystemClock())
    for made in manifests:
        resource = _REPORTED.get(str(made["kind"]))
        if resource is not None and "status" in made:
            metadata = made["metadata"]
            assert isinstance(metadata, dict)
            await client.patch(
                resource,
                metadata["name"],
                {"status": made["status"]},
                namespace=metadata.get("namespace", ""),
                subresource="status",
            )


_REPORTED: Mapping[str, Resource[KubeObject]] = {
    resource.kind: resource for resource in (PODS, POD_DISRUPTION_BUDGETS, VOLUME_ATTACHMENTS)
}


def namespace(name: str) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def node(name: str = "node-1", **spec: object) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}


def machine(name: str = "m-1", on: str = "node-1", **metadata: object) -> JSONObject:
    labels = {"node": on} if on else {}
    return {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "ns", "labels": labels, **metadata},
        "spec": {"class": {"kind": "MachineClass", "name": "c"}},
    }
