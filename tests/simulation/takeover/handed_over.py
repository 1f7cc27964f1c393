"""A fleet of the Go original's under our manager: what becomes of its machines and their marks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, cast, final

import orjson

from mcm.api.codec import decode_object
from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.store import Change, ChangeType
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from mcm.simulation.witness import FleetWitness
from tests.simulation.in_place import Agents, leftovers
from tests.simulation.takeover import going_back
from tests.simulation.takeover.as_left import NAME, Document, LeftFleet
from tests.unit.machine.takeover.go_original import misread, misread_node


@final
class HandedOver:
    """What is seen from the moment of the takeover on."""

    def __init__(self, sim: Simulation, left: LeftFleet, agents: Agents) -> None:
        self.sim = sim
        self.left = left
        self.agents = agents
        self.found = {m.uid for m in left.machines}
        self.seen = set(self.found)
        self.misread: set[str] = set()
        self._excused: set[str] = set()
        self.witness = FleetWitness(sim)
        self._excused = set(self._read_all())
        for storage in ("machines", "machinesets", "machinedeployments"):
            sim.server.store.subscribe(self._look, f"{storage}.machine.sapcloud.io")
        sim.server.store.subscribe(self._look, "nodes")

    # ---- machines --------------------------------------------------------------------------------

    @property
    def machines(self) -> list[Document]:
        found: list[Any] = self.sim.objects(MACHINES)
        return found

    @property
    def sets(self) -> list[Document]:
        found: list[Any] = self.sim.objects(MACHINE_SETS)
        return found

    @property
    def deployment(self) -> Document:
        found: list[Any] = self.sim.objects(MACHINE_DEPLOYMENTS)
        return cast("Document", found[0])

    @property
    def nodes(self) -> dict[str, Document]:
        found: list[Any] = self.sim.objects(NODES)
        return {name_of(n): n for n in found}

    @property
    def made(self) -> int:
        """How many machines were made since."""
        return len(self.seen - self.found)

    @property
    def lost(self) -> set[str]:
        """UIDs of those that were found, and are gone."""
        return self.found - {m["metadata"]["uid"] for m in self.machines}

    def sizes(self) -> dict[str, int]:
        return {name_of(s): s["spec"].get("replicas", 0) for s in self.sets}

    def _look(self, change: Change) -> None:
        found = cast("Document", change.stored.body)
        if change.type is ChangeType.ADDED and change.storage.startswith("machines."):
            self.seen.add(found["metadata"]["uid"])
        if change.type is not ChangeType.DELETED:
            self.misread |= set(self._read(change.storage.partition(".")[0], found))

    def _read_all(self) -> Iterator[str]:
        everything = (
            ("machinedeployments", [self.deployment]),
            ("machinesets", self.sets),
            ("machines", self.machines),
            ("nodes", self.nodes.values()),
        )
        for storage, found in everything:
            for obj in found:
                yield from self._read(storage, obj)

    def _read(self, storage: str, obj: Document) -> list[str]:
        """Return what on ``obj`` the original could not go on from, but for what it left itself."""
        if storage == "nodes":
            found = misread_node(decode_object(NODES, orjson.dumps(obj)))
        elif storage == "machines":
            sets = {s["metadata"]["uid"]: s for s in self.sets}
            found = going_back.misread_machine(obj, sets)
            found += misread(decode_object(MACHINES, orjson.dumps(obj)))
        elif storage == "machinesets":
            found = going_back.misread_set(obj, self.deployment)
        else:
            found = going_back.misread_deployment(obj)
        return [text for text in found if text not in self._excused]

    # ---- how it ends -----------------------------------------------------------------------------

    def is_whole(self, version: str) -> bool:
        """All that is wanted is there, of the template's set, and nothing else."""
        owner = going_back.new_set(self.deployment, self.sets)
        machines = self.machines
        return (
            len(machines) == self.sim.running() == self.deployment["spec"].get("replicas", 0)
            and all(_owner_of(m) == owner for m in machines)
            and self.deployment["spec"]["template"]["metadata"]["labels"]["version"] == version
            and self.progress() == "NewMachineSetAvailable"
        )

    async def ends(self, version: str = "b", *, within: float = 900) -> None:
        """Wait for the end, and see that nothing is left of the way, nor anything to do."""
        sim = self.sim
        await sim.until(lambda: self.is_whole(version), within=within, what=f"all is {version}")
        await sim.pass_time(60)
        assert self.is_whole(version), sim.describe()
        assert leftovers(self.sim) == []
        assert self.misread == set()
        assert going_back.next_acts(self.deployment, self.sets) == []
        await self.rests()

    async def rests(self) -> None:
        """Nobody writes to anything that is as it should be."""
        written = self.sim.server.requests.writes(agent="mcm")
        await self.sim.pass_time(120)
        assert self.sim.server.requests.writes(agent="mcm") == written

    def progress(self) -> str:
        for said in self.deployment.get("status", {}).get("conditions", ()):
            if said["type"] == "Progressing":
                return str(said["reason"])
        return ""

    def condition(self, obj: Document, kind: str) -> Document | None:
        status = obj.get("status", {})
        said = status.get("conditions") or status.get("machineSetCondition") or ()
        return next((c for c in said if c["type"] == kind), None)

    async def patch_deployment(self, change: JSONObject) -> None:
        await self.sim.client.patch(MACHINE_DEPLOYMENTS, NAME, change, namespace="default")


Scenario = Callable[[HandedOver], Awaitable[None]]


def take_over(left: LeftFleet, scenario: Scenario, *, seed: int = 1) -> None:
    """Let our manager find the fleet; the original ended a moment ago."""

    async def main() -> None:
        async with Simulation(seed=seed) as sim:
            await sim.stop_manager()
            left.put(sim.server)
            await sim.crash_manager()
            agents = Agents(sim)
            seen = HandedOver(sim, left, agents)
            sim.start_manager()
            working = asyncio.create_task(agents.run())
            try:
                await scenario(seen)
            finally:
                working.cancel()
                with suppress(asyncio.CancelledError):
                    await working

    run_virtual(main)


def _owner_of(machine: Document) -> str:
    owners = machine["metadata"].get("ownerReferences", [])
    return next((str(r["name"]) for r in owners if r.get("controller")), "")
