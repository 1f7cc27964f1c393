"""A bench for the machine-side controllers: a real API server in memory, a cloud that does as told.

Control and target are one cluster. The test itself plays user, kubelet and scheduler, through
``client``; what the controllers write is recorded. Time is virtual: run tests by :func:`on_bench`.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial, wraps
from typing import ParamSpec, TypeVar, cast

import orjson
from prometheus_client import CollectorRegistry

from mcm.api.core import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SECRETS,
    VOLUME_ATTACHMENTS,
    Node,
    NodeAddress,
    Pod,
)
from mcm.api.crds import crd_manifests
from mcm.api.machine import MACHINE_CLASSES, MACHINE_SETS, MACHINES, Machine
from mcm.api.meta import JSONObject, Resource, T
from mcm.client.client import Client
from mcm.client.errors import NotFound
from mcm.client.requests import PatchType
from mcm.client.transport import Request, Response, StreamResponse, Transport
from mcm.clock import LoopClock
from mcm.controllers import machine, machineclass, node, safety, secret
from mcm.controllers.context import ControllerContext
from mcm.controllers.provider import DriverMetrics, Provider
from mcm.controllers.runtime import Controller
from mcm.controllers.runtime_metrics import Result
from mcm.controllers.settings import ControllerSettings
from mcm.controllers.write_guard import WriteGuard, author
from mcm.driver import (
    Code,
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    DriverError,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    GetVolumeIDsRequest,
    GetVolumeIDsResponse,
    InitializeMachineRequest,
    InitializeMachineResponse,
    ListMachinesRequest,
    ListMachinesResponse,
    UnsupportedDriver,
)
from mcm.events import CORE_EVENTS, EVENTS, EventRecorder
from mcm.fence import Fence, Unfenced
from mcm.informers import InformerFactory
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.cluster import create_all
from mcm.sandbox.loopback import LoopbackTransport
from mcm.simulation.faults import FaultPlan
from mcm.simulation.transport import FaultyTransport
from mcm.simulation.virtualtime import run_virtual

P = ParamSpec("P")
R = TypeVar("R")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "default"
USER_DATA = "join with <<BOOTSTRAP_TOKEN>> as <<MACHINE_NAME>>"


@dataclass(frozen=True)
class Write:
    """One write of the controllers, as it reached the server."""

    method: str
    path: str
    body: JSONObject
    status: int

    def on(self, plural: str, name: str = "") -> bool:
        tail = f"/{plural}/{name}" if name else f"/{plural}"
        return self.path.endswith((tail, f"{tail}/status")) or (f"{tail}/" in self.path)


class Recorder(Transport):
    """A transport that remembers what was written through it, and can break at a chosen write."""

    def __init__(self, inner: Transport, writes: list[Write]) -> None:
        self._inner = inner
        self._writes = writes
        self.before_write: Callable[[Request], None] = lambda _: None

    async def request(self, request: Request) -> Response:
        writing = request.method not in ("GET", "HEAD") and "/events" not in request.path
        if writing:
            self.before_write(request)
        response = await self._inner.request(request)
        if writing:
            body = orjson.loads(request.body) if request.body else {}
            self._writes.append(Write(request.method, request.path, body, response.status))
        return response

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        return self._inner.stream(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class ScriptedDriver(UnsupportedDriver):
    """A cloud in a dictionary. ``failures`` are raised once each, in order, by verb."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self.vms: dict[str, str] = {}
        self.made = 0
        self.calls: list[tuple[str, str]] = []
        self.failures: dict[str, deque[Exception]] = defaultdict(deque)
        self.latency = 0.0
        self.node_names: dict[str, str] = {}
        self.knows_status = True
        self.uninitialized: set[str] = set()
        self.needs_initialization = False
        self.addresses: tuple[NodeAddress, ...] = ()
        self.seen_user_data: dict[str, bytes] = {}
        self.most_at_once = 0
        self.volume_ids: dict[str, str] = {}
        """What volumes are called, by what stands in their ``oldDisk``."""
        self._at_once = 0

    def fail(self, verb: str, code: Code, message: str = "because", times: int = 1) -> None:
        for _ in range(times):
            self.failures[verb].append(DriverError(code, message))

    def count(self, verb: str) -> int:
        return sum(called == verb for called, _ in self.calls)

    def node_name(self, name: str) -> str:
        return self.node_names.get(name, f"node-{name}")

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        name = request.machine.metadata.name
        await self._call("create", name)
        self.seen_user_data[name] = request.secret.get("userData", b"")
        if name not in self.vms:
            self.made += 1
            self.vms[name] = f"cloud:///{name}-{self.made}"
            if self.needs_initialization:
                self.uninitialized.add(name)
        return CreateMachineResponse(self.vms[name], self.node_name(name))

    async def initialize_machine(
        self, request: InitializeMachineRequest
    ) -> InitializeMachineResponse:
        name = request.machine.metadata.name
        await self._call("initialize", name)
        self.uninitialized.discard(name)
        return InitializeMachineResponse(self.vms[name], self.node_name(name), self.addresses)

    async def get_volume_ids(self, request: GetVolumeIDsRequest) -> GetVolumeIDsResponse:
        disks = (cast("dict[str, str]", spec.get("oldDisk", {})) for spec in request.pv_specs)
        known = (self.volume_ids.get(disk.get("name", ""), "") for disk in disks)
        return GetVolumeIDsResponse(tuple(filter(None, known)))

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        name = request.machine.metadata.name
        await self._call("delete", name)
        self.vms.pop(name, None)
        return DeleteMachineResponse()

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        name = request.machine.metadata.name
        await self._call("status", name)
        if not self.knows_status:
            raise DriverError(Code.UNIMPLEMENTED, "no status here")
        if name not in self.vms:
            raise DriverError(Code.NOT_FOUND, "no such VM")
        if name in self.uninitialized:
            raise DriverError(
                Code.UNINITIALIZED,
                "half made",
                provider_id=self.vms[name],
                node_name=self.node_name(name),
            )
        return GetMachineStatusResponse(self.vms[name], self.node_name(name))

    async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
        await self._call("list", request.machine_class.metadata.name)
        return ListMachinesResponse({id_: name for name, id_ in self.vms.items()})

    async def _call(self, verb: str, name: str) -> None:
        self.calls.append((verb, name))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if self.latency:
                await self._clock.sleep(self.latency)
        finally:
            self._at_once -= 1
        if self.failures[verb]:
            raise self.failures[verb].popleft()


class Bench:
    """See the module's docstring. ``settings`` as an operator would set them."""

    def __init__(
        self,
        *,
        settings: ControllerSettings | None = None,
        has_target: bool = True,
        epoch: datetime = EPOCH,
    ) -> None:
        self.settings = settings or ControllerSettings()
        self.has_target = has_target
        self.clock = LoopClock(epoch)
        self.server = ApiServer(clock=self.clock, random=random.Random(1))
        self.client = Client(LoopbackTransport(self.server), clock=self.clock, user_agent="user")
        self.driver = ScriptedDriver(self.clock)
        self.fence: Fence = Unfenced()
        self.faults = FaultPlan(random=random.Random(2))
        self.writes: list[Write] = []
        self.registry = CollectorRegistry()
        self._tasks: list[asyncio.Task[None]] = []
        self.controllers: list[Controller] = []
        self.transport = Recorder(FaultyTransport(self.server, self.faults), self.writes)

    # ---- the controllers' process --------------------------------------------------------------

    async def start(self) -> None:
        """Begin a process: empty mirrors, no memory."""
        self.registry = CollectorRegistry()
        client = Client(
            self.transport, clock=self.clock, user_agent="mcm", fence=lambda: self.fence.check()
        )
        guarded = partial(WriteGuard, clock=self.clock)
        informers = InformerFactory(
            client,
            clock=self.clock,
            namespace=NAMESPACE,
            name="control",
            guarded=guarded,
            author=author,
        )
        self.machines = informers.store(MACHINES)
        target = (
            InformerFactory(client, clock=self.clock, name="target", guarded=guarded, author=author)
            if self.has_target
            else None
        )
        recorder = EventRecorder(
            client, clock=self.clock, component="mcm", host="bench", randomness=random.Random(3)
        )
        context = ControllerContext(
            control=client,
            target=client if self.has_target else None,
            control_informers=informers,
            target_informers=target,
            namespace=NAMESPACE,
            clock=self.clock,
            events=recorder,
            provider=Provider(
                self.driver,
                clock=self.clock,
                fence=self.fence,
                metrics=DriverMetrics.of(self.registry),
            ),
            options=self.settings,
            registry=self.registry,
            random=random.Random(4),
        )
        rooms = (machine, machineclass, secret, node, safety)
        self.controllers = [c for room in rooms for c in room.build(context)]
        factories = [informers] if target is None else [informers, target]
        self._tasks = [asyncio.create_task(f.run()) for f in factories]
        for factory in factories:
            await factory.wait_synced()
        self._tasks += [asyncio.create_task(c.run()) for c in self.controllers]
        self._tasks.append(asyncio.create_task(recorder.run()))

    async def crash(self) -> None:
        """End the process without a goodbye."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    # ---- the user ------------------------------------------------------------------------------

    async def make_class(self, name: str = "c", *, with_secret: bool = True) -> None:
        if with_secret:
            await self.make_secret()
        body: JSONObject = {"metadata": {"name": name}, "providerSpec": {"size": "s"}}
        if with_secret:
            body["secretRef"] = {"name": "s", "namespace": NAMESPACE}
        await self.client.create(MACHINE_CLASSES, body, namespace=NAMESPACE)

    async def make_secret(self, name: str = "s") -> None:
        encoded = base64.b64encode(USER_DATA.encode()).decode()
        body: JSONObject = {"metadata": {"name": name}, "data": {"userData": encoded}}
        await self.client.create(SECRETS, body, namespace=NAMESPACE)

    async def make_machine(
        self,
        name: str = "m",
        *,
        class_: str = "c",
        group: str = "",
        spec: JSONObject | None = None,
    ) -> None:
        metadata: JSONObject = {"name": name}
        if group:
            metadata |= {"labels": {"name": group}, "ownerReferences": [await self._set(group)]}
        body: JSONObject = {
            "metadata": metadata,
            "spec": {"class": {"kind": "MachineClass", "name": class_}, **(spec or {})},
        }
        await self.client.create(MACHINES, body, namespace=NAMESPACE)

    async def _set(self, name: str) -> JSONObject:
        """Return a reference to the set of that name, made if need be; nothing here scales it."""
        labels = {"name": name}
        try:
            found = await self.client.get(MACHINE_SETS, name, namespace=NAMESPACE)
        except NotFound:
            body: JSONObject = {
                "metadata": {"name": name},
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"class": {"kind": "MachineClass", "name": "c"}},
                    },
                },
            }
            found = await self.client.create(MACHINE_SETS, body, namespace=NAMESPACE)
        return {
            "apiVersion": MACHINE_SETS.api_version,
            "kind": MACHINE_SETS.kind,
            "name": name,
            "uid": found.metadata.uid,
            "controller": True,
        }

    async def delete_machine(self, name: str = "m") -> None:
        await self.client.delete(MACHINES, name, namespace=NAMESPACE)

    async def label_machine(self, name: str, key: str, value: str) -> None:
        patch: JSONObject = {"metadata": {"labels": {key: value}}}
        await self.client.patch(MACHINES, name, patch, namespace=NAMESPACE)

    # ---- kubelets and the scheduler ------------------------------------------------------------

    async def join(self, name: str = "m", *, ready: str = "True") -> None:
        """Register the Node of the machine's VM, and set its readiness."""
        node_name = self.driver.node_name(name)
        body: JSONObject = {
            "metadata": {"name": node_name},
            "spec": {"providerID": self.driver.vms[name]},
        }
        await self.client.create(NODES, body)
        await self.set_ready(name, ready)

    async def set_ready(self, name: str, status: str) -> None:
        condition = {
            "type": "Ready",
            "status": status,
            "reason": "Kubelet",
            "lastTransitionTime": self._now_text(),
            "lastHeartbeatTime": self._now_text(),
        }
        await self.client.patch(
            NODES,
            self.driver.node_name(name),
            {"status": {"conditions": [condition]}},
            subresource="status",
            patch_type=PatchType.STRATEGIC,
        )

    async def run_pod(
        self,
        pod_name: str,
        on: str = "m",
        *,
        claims: tuple[str, ...] = (),
        priority: int = 0,
        owner: str = "ReplicaSet",
        labels: dict[str, str] | None = None,
    ) -> None:
        reference = {
            "apiVersion": "apps/v1",
            "kind": owner,
            "name": "o",
            "uid": "o-uid",
            "controller": True,
        }
        body: JSONObject = {
            "metadata": {
                "name": pod_name,
                "labels": labels or {},
                "ownerReferences": [reference],
            },
            "spec": {
                "nodeName": self.driver.node_name(on),
                "priority": priority,
                "terminationGracePeriodSeconds": 30,
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims],
            },
        }
        await self.client.create(PODS, body, namespace=NAMESPACE)
        ready = {"type": "Ready", "status": "True"}
        await self.client.patch(
            PODS,
            pod_name,
            {"status": {"phase": "Running", "conditions": [ready]}},
            namespace=NAMESPACE,
            subresource="status",
        )

    async def attach(
        self, claim: str, on: str = "m", *, modes: tuple[str, ...] = ("ReadWriteOnce",)
    ) -> None:
        """Bind the claim to a volume that is attached to the machine's Node."""
        handle = {"driver": "csi.example.com", "volumeHandle": f"vol-{claim}"}
        await self.client.create(
            PERSISTENT_VOLUMES,
            {
                "metadata": {"name": f"pv-{claim}"},
                "spec": {"accessModes": list(modes), "csi": handle},
            },
        )
        await self.client.create(
            PERSISTENT_VOLUME_CLAIMS,
            {
                "metadata": {"name": claim},
                "spec": {"accessModes": list(modes), "volumeName": f"pv-{claim}"},
            },
            namespace=NAMESPACE,
        )
        await self.attached_to(claim, self.driver.node_name(on))

    async def attached_to(self, claim: str, node_name: str) -> None:
        """Attach the claim's volume to a Node."""
        attachment: JSONObject = {
            "metadata": {"name": f"{claim}-{node_name}"},
            "spec": {
                "attacher": "csi.example.com",
                "nodeName": node_name,
                "source": {"persistentVolumeName": f"pv-{claim}"},
            },
        }
        await self.client.create(VOLUME_ATTACHMENTS, attachment)
        await self.client.patch(
            VOLUME_ATTACHMENTS,
            f"{claim}-{node_name}",
            {"status": {"attached": True}},
            subresource="status",
        )

    async def detach(self, claim: str, on: str = "m") -> None:
        """Take the claim's volume off the machine's Node."""
        await self.client.delete(VOLUME_ATTACHMENTS, f"{claim}-{self.driver.node_name(on)}")

    async def make_budget(self, name: str, *, labels: dict[str, str], allowed: int) -> None:
        body: JSONObject = {
            "metadata": {"name": name},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        }
        made = await self.client.create(POD_DISRUPTION_BUDGETS, body, namespace=NAMESPACE)
        await self.allow(name, allowed, generation=made.metadata.generation)

    async def allow(self, name: str, allowed: int, *, generation: int = 1) -> None:
        status = {
            "observedGeneration": generation,
            "disruptionsAllowed": allowed,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
        }
        await self.client.patch(
            POD_DISRUPTION_BUDGETS,
            name,
            {"status": status},
            namespace=NAMESPACE,
            subresource="status",
        )

    async def finish_leaving_pods(self) -> list[str]:
        """Let the kubelets end every pod that is asked to; return their names."""
        ended = [
            str(p["metadata"]["name"])
            for p in cast("list[dict[str, dict[str, object]]]", self.objects(PODS))
            if "deletionTimestamp" in p["metadata"]
        ]
        for name in ended:
            await self.client.delete(PODS, name, namespace=NAMESPACE, grace_period_seconds=0)
        return ended

    # ---- the network ---------------------------------------------------------------------------

    @contextmanager
    def unreachable(self, path: str = "") -> Iterator[None]:
        """Let the controllers reach nothing, or no list and watch whose path ends in ``path``."""
        fault = self.faults.refuse(path=f"{path}$" if path else "")
        self.faults.cut_watches()
        try:
            yield
        finally:
            fault.lift()

    # ---- looking -------------------------------------------------------------------------------

    async def machine(self, name: str = "m") -> Machine:
        return await self.client.get(MACHINES, name, namespace=NAMESPACE)

    async def node(self, name: str = "m") -> Node:
        return await self.client.get(NODES, self.driver.node_name(name))

    async def pod(self, name: str) -> Pod:
        return await self.client.get(PODS, name, namespace=NAMESPACE)

    async def exists(self, resource: Resource[T], name: str) -> bool:
        try:
            namespace = NAMESPACE if resource.namespaced else ""
            await self.client.get(resource, name, namespace=namespace)
        except NotFound:
            return False
        return True

    def objects(self, resource: Resource[T]) -> list[JSONObject]:
        return self.server.objects(resource.group, resource.plural)

    def events(self) -> list[str]:
        """The reasons of all events written so far, in order."""
        found = (*self.objects(EVENTS), *self.objects(CORE_EVENTS))
        return list(dict.fromkeys(str(event["reason"]) for event in found))

    def reconciles(self, controller: str = "machine") -> int:
        """How many passes the controller's workers have ended since the process began."""
        name = "mcm_controller_reconcile_total"
        values = (
            self.registry.get_sample_value(name, {"controller": controller, "result": result.value})
            for result in Result
        )
        return int(sum(value or 0 for value in values))

    def written(self, plural: str, name: str = "") -> list[Write]:
        return [w for w in self.writes if w.on(plural, name)]

    async def until(
        self,
        condition: Callable[[], Coroutine[object, object, bool]],
        *,
        within: float = 60.0,
    ) -> float:
        """Let time pass until ``condition`` holds; return the seconds it took."""
        started = self.clock.monotonic()
        while not await condition():
            passed = self.clock.monotonic() - started
            assert passed < within, f"not within {within} s: {self.objects(MACHINES)}"
            for task in self._tasks:
                if task.done() and not task.cancelled():
                    task.result()
            await self.clock.sleep(0.05)
        return self.clock.monotonic() - started

    async def until_phase(self, phase: str, name: str = "m", *, within: float = 60.0) -> float:
        async def reached() -> bool:
            return (await self.machine(name)).phase == phase

        return await self.until(reached, within=within)

    async def until_gone(self, name: str = "m", *, within: float = 60.0) -> float:
        async def gone() -> bool:
            return not await self.exists(MACHINES, name)

        return await self.until(gone, within=within)

    async def running(
        self, name: str = "m", *, group: str = "", spec: JSONObject | None = None
    ) -> None:
        """Make a machine and bring it to Running, and forget what that cost."""
        await self.make_machine(name, group=group, spec=spec)
        await self.until_phase("Pending", name)
        await self.join(name)
        await self.until_phase("Running", name)
        await self.settle()
        self.writes.clear()
        self.driver.calls.clear()

    async def settle(self, seconds: float = 1.0) -> None:
        await self.clock.sleep(seconds)

    def _now_text(self) -> str:
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


@asynccontextmanager
async def bench(
    *,
    settings: ControllerSettings | None = None,
    has_target: bool = True,
    started: bool = True,
    lenient: bool = False,
    epoch: datetime = EPOCH,
) -> AsyncIterator[Bench]:
    """A bench with the CRDs and, if ``started``, running controllers. ``lenient``: the CRDs are of
    a kind that takes whatever it is given. ``epoch``: when its life begins."""
    made = Bench(settings=settings, has_target=has_target, epoch=epoch)
    manifests = crd_manifests()
    await create_all(made.server, [_lenient(m) for m in manifests] if lenient else manifests)
    if started:
        await made.start()
    try:
        yield made
    finally:
        await made.crash()


def _lenient(manifest: JSONObject) -> JSONObject:
    """Take the schemas out of a CRD."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = cast("dict[str, list[JSONObject]]", manifest["spec"])
    versions = [{**v, "schema": {"openAPIV3Schema": anything}} for v in spec["versions"]]
    return {**manifest, "spec": {**spec, "versions": versions}}


def on_bench(test: Callable[P, Coroutine[object, object, R]]) -> Callable[P, R]:
    """Turn an async test into one that runs on virtual time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return run_virtual(lambda: test(*args, **kwargs))

    return run


def with_settings(**changes: object) -> ControllerSettings:
    return replace(ControllerSettings(), **changes)  # type: ignore[arg-type]
