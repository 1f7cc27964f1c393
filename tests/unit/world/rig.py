"""A cluster under virtual time: API server, world, and a user who looks and meddles."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, cast, final

import orjson

from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.transport import Request, Response
from mcm.clock import LoopClock
from mcm.providers.simulated.cloud import SimulatedCloud
from mcm.providers.simulated.virtual_machine import GROUP, VIRTUAL_MACHINES, crd_manifest
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.loopback import LoopbackTransport
from mcm.sandbox.world.storage.classes import class_manifests
from mcm.sandbox.world.world import World
from mcm.simulation.virtualtime import run_virtual

GRACE = 40.0
HEARTBEAT = 10.0
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@final
class Rig:
    """``with_world=False`` leaves the server alone with its user."""

    def __init__(
        self, *, seed: int = 1, with_world: bool = True, grace: float, heartbeat: float
    ) -> None:
        self.clock = LoopClock(EPOCH)
        self.seed = seed
        self.server = ApiServer(clock=self.clock, random=random.Random(seed))
        self.server.settings.raise_bugs = True
        self.client = self.new_client("user")
        self._with_world = with_world
        self._grace, self._heartbeat = grace, heartbeat
        self._tasks: list[asyncio.Task[None]] = []

    def new_client(self, user_agent: str) -> Client:
        transport = LoopbackTransport(self.server)
        return Client(transport, clock=self.clock, user_agent=user_agent)

    def new_cloud(self) -> SimulatedCloud:
        return SimulatedCloud(
            self.new_client("simulated-cloud"),
            self.new_client("kubelet-simulated"),
            namespace="default",
            clock=self.clock,
            randomness=random.Random(self.seed),
            heartbeat_interval=self._heartbeat,
        )

    def new_world(self) -> World:
        return World(
            self.server,
            clock=self.clock,
            randomness=random.Random(self.seed),
            node_grace=self._grace,
            heartbeat_interval=self._heartbeat,
        )

    async def __aenter__(self) -> Rig:
        await self.create(crd_manifest(), *class_manifests())
        if self._with_world:
            _ = self.start(self.new_world().run())
            await self.clock.sleep(0.001)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            await self.stop(task)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._tasks.append(task)
        return task

    async def stop(self, task: asyncio.Task[None]) -> None:
        """Cancel it; what it died of before is raised."""
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    # ---- time -----------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        return self.clock.monotonic()

    async def pass_time(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def until(self, condition: Callable[[], bool], *, within: float = 30.0) -> float:
        """Return after how many seconds the condition held; looks every 10 ms."""
        started = self.now
        while not condition():
            assert self.now - started < within, f"not within {within} s"
            await self.clock.sleep(0.01)
        return self.now - started

    # ---- what a user does -----------------------------------------------------------------------

    async def send(self, method: str, path: str, body: object = None, *, kind: str = "json") -> int:
        request = Request(
            method,
            path,
            headers={"content-type": f"application/{kind}", "user-agent": "user"},
            body=b"" if body is None else orjson.dumps(body),
        )
        response = await self.server.handle(request)
        assert isinstance(response, Response)
        return response.status

    async def create(self, *manifests: JSONObject) -> None:
        for manifest in manifests:
            path = self.server.registry.collection_path(manifest)
            assert await self.send("POST", path, manifest) == 201, manifest

    async def patch(self, path: str, patch: JSONObject) -> None:
        assert await self.send("PATCH", path, patch, kind="merge-patch+json") == 200

    async def delete(self, path: str) -> None:
        assert await self.send("DELETE", path) in (200, 202)

    async def boot(self, *names: str, **spec: object) -> None:
        """Create VMs without latencies whose Nodes bear their names."""
        for name in names:
            await self.create(vm_manifest(name, **spec))

    async def patch_vm(self, name: str, **spec: object) -> None:
        await self.patch(VIRTUAL_MACHINES.path("default", name), {"spec": spec})

    async def cordon(self, name: str) -> None:
        await self.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})

    async def evict(self, name: str) -> int:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": "default"},
        }
        return await self.send("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", eviction)

    # ---- what a user sees -----------------------------------------------------------------------

    def all(self, plural: str, group: str = "") -> list[JSONObject]:
        return self.server.objects(group, plural)

    def find(self, plural: str, name: str, group: str = "") -> JSONObject | None:
        return next((o for o in self.all(plural, group) if name_of(o) == name), None)

    def get(self, plural: str, name: str, group: str = "") -> JSONObject:
        found = self.find(plural, name, group)
        assert found is not None, f"no {plural} {name}"
        return found

    def names(self, plural: str, group: str = "") -> list[str]:
        return [name_of(o) for o in self.all(plural, group)]

    def vm_phase(self, name: str) -> str:
        return str(at(self.get("virtualmachines", name, GROUP), "status", "phase") or "")

    def condition(self, node: str, kind: str = "Ready") -> str:
        """A condition's status; empty without condition or Node."""
        found = self.find("nodes", node)
        return str(conditions(found).get(kind, {}).get("status", "")) if found else ""

    def taints(self, node: str) -> set[str]:
        """``key:effect`` of each, the key without its usual prefix."""
        found = objects(self.get("nodes", node), "spec", "taints")
        return {f"{str(t['key']).removeprefix('node.kubernetes.io/')}:{t['effect']}" for t in found}

    def ready(self, *nodes: str) -> bool:
        return all(self.condition(node) == "True" for node in nodes)

    def placed(self) -> dict[str, str]:
        """Pod to Node."""
        return {name_of(p): str(at(p, "spec", "nodeName") or "") for p in self.all("pods")}

    def running(self) -> list[str]:
        ready = ((name_of(p), conditions(p).get("Ready", {})) for p in self.all("pods"))
        return [name for name, condition in ready if condition.get("status") == "True"]

    def steady_writes(self) -> dict[str, int]:
        """Requests that tried to change something since the last reset, by agent and resource."""
        counted: dict[str, int] = {}
        for kind, count in self.server.requests.snapshot().items():
            if kind.verb not in ("get", "list", "watch"):
                what = f"{kind.agent} {kind.verb} {kind.resource}"
                counted[what] = counted.get(what, 0) + count
        return counted


def vm_manifest(name: str, **spec: object) -> JSONObject:
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": name, "machineName": name, **spec},
    }


def name_of(obj: JSONObject) -> str:
    return str(at(obj, "metadata", "name"))


def at(obj: object, *path: str) -> object:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def objects(obj: JSONObject, *path: str) -> list[JSONObject]:
    return cast("list[JSONObject]", at(obj, *path) or [])


def conditions(obj: JSONObject) -> dict[str, JSONObject]:
    return {str(c["type"]): c for c in objects(obj, "status", "conditions")}


def on_rig(
    scenario: Callable[[Rig], Coroutine[Any, Any, None]],
    *,
    seed: int = 1,
    with_world: bool = True,
    grace: float = GRACE,
    heartbeat: float = HEARTBEAT,
) -> None:
    """Run a scenario to its end on a virtual loop."""

    async def main() -> None:
        rig = Rig(seed=seed, with_world=with_world, grace=grace, heartbeat=heartbeat)
        async with rig:
            await scenario(rig)

    run_virtual(main)
