"""A fleet with many troubles at a time, in real time, and what it shows over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from aiohttp import web

from mcm.api.core import LEASES, PODS
from mcm.api.machine import MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.api.timestamps import micro_time
from mcm.clock import SystemClock
from mcm.driver.contract import Driver, ListMachinesRequest, ListMachinesResponse
from mcm.driver.discovery import ProviderContext
from mcm.endpoints.routes import Route, app_of
from mcm.endpoints.server import serve
from mcm.manager import LEASE_NAMES
from mcm.profiling.stalls import Stalls
from mcm.providers import simulated
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.simulation.harness import Simulation, name_of
from tests.metrics.exposition import complete, shown

NAMESPACE: Final = "default"
API_VERSION: Final = "machine.sapcloud.io/v1alpha1"
HOLD: Final = "example.com/hold"
STUCK: Final = "stuck"
"""The class whose VMs are never listed: the provider does not answer."""

_SETTLED = 30.0


@asynccontextmanager
async def troubled_fleet() -> AsyncIterator[int]:
    """Yields the port at which the manager of a fleet shows its metrics that

    * has machines which never become Nodes, so that a rollout stops,
    * has machines which wait for quota,
    * drains a Node of pods, one of which no budget lets go,
    * has a set with far more machines than it wants,
    * has a VM that belongs to nobody,
    * has a provider that does not answer a call of the collection of such VMs,
    * has an API server that refuses every other event, and throttles changes of machines.
    """
    hanging = _Hanging()
    async with Simulation(seed=5, provider=hanging) as sim, hanging.until_left():
        complete(sim)
        with Stalls(clock=SystemClock(), registry=sim.registry).watched():
            async with _serving(sim) as port:
                sim.faults.answer(500, path="/events", probability=0.5)
                sim.faults.answer(
                    429, method="PATCH", path="/machines/", probability=0.2, retry_after=1
                )
                await sim.apply(_objects())
                await sim.until(lambda: sim.phases()["Running"] >= 4, within=_SETTLED)
                await sim.until(lambda: _running_pods(sim) == 3, within=_SETTLED)
                await _drain_what_cannot_be(sim)
                await _make_too_many(sim)
                yield port
                sim.faults.clear()


@asynccontextmanager
async def waiting_replica() -> AsyncIterator[int]:
    """Yields the port of a manager whose leases somebody else holds."""
    sim = Simulation(seed=6)
    for name in LEASE_NAMES:
        await sim.client.create(LEASES, _lease(name, sim), namespace=NAMESPACE)
    async with sim, _serving(sim) as port:
        yield port


@asynccontextmanager
async def _serving(sim: Simulation) -> AsyncIterator[int]:
    async def page(request: web.BaseRequest) -> web.Response:
        rendered = await shown(sim, accept=",".join(request.headers.getall("Accept", ())))
        headers = {"Content-Type": rendered.content_type}
        return web.Response(body=b"".join(rendered.pieces), headers=headers)

    app = app_of((Route(path="/metrics", page=page),), probes=())
    async with serve(app, address="127.0.0.1", port=0, clock=SystemClock()) as port:
        yield port


# ---- the troubles --------------------------------------------------------------------------------


class _Hanging:
    """The simulated provider, but that it does not answer what VMs there are of one class."""

    def __init__(self) -> None:
        self._answers = asyncio.Event()

    def __call__(self, context: ProviderContext) -> Driver:
        driver = simulated.provider(context)
        listing = driver.list_machines

        async def list_machines(request: ListMachinesRequest) -> ListMachinesResponse:
            if request.machine_class.metadata.name == STUCK:
                await self._answers.wait()
            return await listing(request)

        setattr(driver, "list_machines", list_machines)  # noqa: B010 # to mypy no variable
        return driver

    @asynccontextmanager
    async def until_left(self) -> AsyncIterator[None]:
        """Answer in the end, so that the manager can."""
        try:
            yield
        finally:
            self._answers.set()


async def _drain_what_cannot_be(sim: Simulation) -> None:
    """Delete the machines that pods run on: those of ``free`` move, that of ``held`` must not."""
    nodes = {_spec(pod)["nodeName"] for pod in sim.objects(PODS)}
    for node in nodes:
        await sim.client.delete(MACHINES, str(node), namespace=NAMESPACE)


async def _make_too_many(sim: Simulation) -> None:
    """Make machines for a set that it did not ask for, and that leave when somebody lets them."""
    machine_set = next(s for s in sim.objects(MACHINE_SETS) if name_of(s) == "alone")
    owner = {
        "apiVersion": API_VERSION,
        "kind": "MachineSet",
        "name": "alone",
        "uid": cast("Any", machine_set)["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    template = _spec(machine_set)["template"]
    for number in range(6):
        metadata = {
            "name": f"extra-{number}",
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner],
            "finalizers": [HOLD],
        }
        body: JSONObject = {"metadata": metadata, "spec": template["spec"]}
        await sim.client.create(MACHINES, body, namespace=NAMESPACE)


# ---- objects -------------------------------------------------------------------------------------


def _objects() -> list[JSONObject]:
    secret: JSONObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _meta("cloud"),
        "stringData": {"userData": "#!/bin/sh"},
    }
    orphan: JSONObject = {
        "apiVersion": VIRTUAL_MACHINES.api_version,
        "kind": VIRTUAL_MACHINES.kind,
        "metadata": _meta("nobodys", {"simulation.machine.sapcloud.io/machine-class": "good"}),
        "spec": {"machineName": "nobodys", "machineClass": "good", "nodeName": "nobodys"},
    }
    return [
        secret,
        orphan,
        _class("good"),
        _class("mute", joins=False),
        _class("scarce", quota=1),
        _machines("MachineDeployment", "plain", "good", 2),
        _machines("MachineDeployment", "mute", "mute", 1, creation_timeout="2s"),
        _machines("MachineDeployment", "scarce", "scarce", 3),
        _machines("MachineSet", "alone", "good", 1),
        _pods("free", 2),
        _pods("held", 1),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _meta("held"),
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}},
        },
        _class(STUCK),
    ]


def _class(name: str, **spec: object) -> JSONObject:
    return {
        "apiVersion": API_VERSION,
        "kind": "MachineClass",
        "metadata": _meta(name),
        "provider": "simulated",
        "secretRef": {"name": "cloud", "namespace": NAMESPACE},
        "nodeTemplate": {
            "capacity": {"cpu": "4", "gpu": "0", "memory": "8Gi"},
            "instanceType": "sim.small",
            "region": "sandbox",
            "zone": "sandbox-a",
        },
        "providerSpec": {
            **dict.fromkeys(("createLatency", "deleteLatency"), "100ms"),
            **dict.fromkeys(("bootLatency", "joinLatency"), "100ms"),
            **spec,
        },
    }


def _machines(
    kind: str, name: str, class_: str, replicas: int, *, creation_timeout: str = "20m"
) -> JSONObject:
    template: JSONObject = {
        "metadata": {"labels": {"name": name}},
        "spec": {
            "class": {"apiGroup": "machine.sapcloud.io", "kind": "MachineClass", "name": class_},
            "creationTimeout": creation_timeout,
        },
    }
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": _meta(name),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"name": name}},
            "template": template,
        },
    }


def _pods(name: str, replicas: int) -> JSONObject:
    requests = {"cpu": "100m", "memory": "100Mi"}
    container = {"name": name, "image": f"sample/{name}:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(name),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }


def _lease(name: str, sim: Simulation) -> JSONObject:
    now = micro_time(sim.clock.now())
    spec = {
        "holderIdentity": "somebody-else",
        "leaseDurationSeconds": 3600,
        "acquireTime": now,
        "renewTime": now,
    }
    return {"metadata": _meta(name), "spec": spec}


def _meta(name: str, labels: dict[str, str] | None = None) -> JSONObject:
    return {"name": name, "namespace": NAMESPACE, "labels": labels or {}}


def _spec(obj: JSONObject) -> Any:
    return cast("Any", obj)["spec"]


def _running_pods(sim: Simulation) -> int:
    return sum(cast("Any", pod)["status"].get("phase") == "Running" for pod in sim.objects(PODS))
