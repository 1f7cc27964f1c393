"""A deployment, the node agents of its machines, and what its user does and sees."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, final

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject
from mcm.controllers.settings import ControllerSettings
from mcm.options import Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of, phase_of
from tests.simulation.in_place import Agents
from tests.simulation.machine_ledger import MachineLedger, found, labels_of

NAMESPACE = "default"
OPTIONS = Options(
    settings=ControllerSettings(
        health_timeout=timedelta(seconds=20), inplace_update_timeout=timedelta(minutes=2)
    )
)


def rolling(surge: int, unavailable: int) -> JSONObject:
    block: JSONObject = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": block, "inPlaceUpdate": None}


def in_place(surge: int, unavailable: int) -> JSONObject:
    block: JSONObject = {
        "maxSurge": surge,
        "maxUnavailable": unavailable,
        "orchestrationType": "Auto",
    }
    return {"type": "InPlaceUpdate", "rollingUpdate": None, "inPlaceUpdate": block}


RECREATE: JSONObject = {"type": "Recreate", "rollingUpdate": None, "inPlaceUpdate": None}


@final
class Stage:
    """A deployment of ``replicas`` machines, ledger and node agents, and what its user does."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.ledger = MachineLedger(sim)
        self.agents = Agents(sim, takes=6)
        self.replicas = 0
        self.version = ""
        self.ended = False

    # ---- acts -----------------------------------------------------------------------------------

    async def begin(self, replicas: int, strategy: JSONObject) -> None:
        self.replicas = replicas
        objects = samples.load()
        for obj in objects:
            if obj["kind"] == "MachineDeployment":
                spec: Any = obj["spec"]
                spec |= {"replicas": replicas, "revisionHistoryLimit": 2}
                spec["strategy"] = {k: v for k, v in strategy.items() if v is not None}
        await self.sim.apply(objects)
        await self.until(self.is_whole)

    async def change(self, name: str = "sample", **spec: object) -> None:
        await self.patch({"spec": spec}, name)

    async def patch(self, body: JSONObject, name: str = "sample") -> None:
        await self.sim.client.patch(MACHINE_DEPLOYMENTS, name, body, namespace=NAMESPACE)

    async def update(self, version: str, name: str = "sample") -> None:
        """Ask for machines of another version: only a label of the template tells."""
        self.version = version
        labels: JSONObject = {"version": version}
        await self.change(name, template={"metadata": {"labels": labels}})

    async def declare(self, class_: str) -> None:
        await self.change(template={"spec": {"class": {"name": class_}}})

    async def until(self, condition: Callable[[], bool], within: float = 900) -> None:
        await self.sim.until(condition, within=within, what=self.describe(condition))

    def describe(self, condition: object) -> str:
        return f"{condition} {self.ledger.broken}"

    # ---- looking --------------------------------------------------------------------------------

    def versions(self) -> Counter[str]:
        return Counter(labels_of(m).get("version", "") for m in found(self.sim, MACHINES))

    def classes(self) -> list[str]:
        return sorted(m["spec"]["class"]["name"] for m in found(self.sim, MACHINES))

    def is_whole(self) -> bool:
        """All machines are of the declared version and run, and the status says so."""
        machines = found(self.sim, MACHINES)
        return (
            self.versions() == {self.version: self.replicas}
            and all(phase_of(m) == "Running" for m in machines)
            and {name_of(v) for v in self.sim.objects(VIRTUAL_MACHINES)}
            == {name_of(m) for m in machines}
            and all(self.progressing(name_of(d))[1] == "NewMachineSetAvailable" for d in self.all())
            and sum(d["status"]["updatedReplicas"] for d in self.all()) == self.replicas
        )

    def all(self) -> list[dict[str, Any]]:
        return found(self.sim, MACHINE_DEPLOYMENTS)

    def deployment(self, name: str = "sample") -> dict[str, Any]:
        return next(d for d in self.all() if name_of(d) == name)

    def progressing(self, name: str = "sample") -> tuple[str, str]:
        conditions = self.deployment(name).get("status", {}).get("conditions", ())
        return next(
            ((c["status"], c["reason"]) for c in conditions if c["type"] == "Progressing"), ("", "")
        )


def writes(sim: Simulation) -> int:
    """Those of the manager, without what it tells: a series of events is closed later."""
    requests = sim.server.requests
    told = sum(requests.writes(agent="mcm", resource=r) for r in ("events.events.k8s.io", "events"))
    return requests.writes(agent="mcm") - told


@asynccontextmanager
async def staged(seed: int) -> AsyncIterator[Stage]:
    """While the context lasts, manager and node agents are at work."""
    async with Simulation(seed=seed, options=OPTIONS, node_grace=25.0) as sim:
        stage = Stage(sim)
        working = asyncio.create_task(stage.agents.run())
        try:
            yield stage
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
