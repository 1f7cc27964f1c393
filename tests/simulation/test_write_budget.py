"""What a machine costs the API server, counted by the server itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mcm.api.core import NODES, SECRETS
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.names import ANNOTATION_SCALE_DOWN_DISABLED, ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.thoroughness import part_of

FLEET = 20


def test_creation_costs_five_writes_deletion_seven_and_a_steady_fleet_none() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await sim.apply(samples.load())
            await _scale(sim, FLEET)
            await sim.until(lambda: sim.running() == FLEET, within=120)
            await sim.pass_time(30)
            created = _machine_writes(sim)
            assert created <= 5 * FLEET
            assert sim.server.requests.writes(resource="nodes", agent="mcm") <= 2 * FLEET

            before = sim.server.requests.writes(agent="mcm")
            await sim.pass_time(60)
            assert sim.server.requests.writes(agent="mcm") == before

            await _scale(sim, 0)
            await sim.until(lambda: not sim.objects(MACHINES), within=120)
            assert _machine_writes(sim) - created <= 7 * FLEET
            assert not sim.objects(NODES)

    run_virtual(main)


def test_a_replaced_machine_costs_thirteen_writes() -> None:
    async def main() -> None:
        async with Simulation(seed=4) as sim:
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=120)
            await sim.pass_time(30)
            before = _machine_writes(sim)
            victim = str(sim.objects(VIRTUAL_MACHINES)[0]["metadata"]["name"])  # type: ignore[index]
            await sim.client.delete(VIRTUAL_MACHINES, victim, namespace="default")
            await sim.until(lambda: sim.running() == 2, within=120)
            await sim.until(lambda: sim.running() == 3, within=120)
            await sim.pass_time(30)
            assert _machine_writes(sim) - before <= 13

    run_virtual(main)


@pytest.mark.parametrize(("fleet", "most"), part_of([(50, 15.2), (500, 14.8)], one_in=2))
def test_a_rolling_update_is_within_its_budget_and_reads_nothing(fleet: int, most: float) -> None:
    """All objects included, but for events; twenty percent at a time, VMs that take no time. What
    sets and deployments cost is shared by fewer in a smaller fleet."""

    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await sim.apply(_instant(fleet))
            await sim.until(lambda: sim.running() == fleet, within=600)
            await sim.pass_time(60)
            before = _Costs(sim, fleet)
            old = _uids(sim)
            await _roll(sim, "large")
            await sim.until(lambda: not old & _uids(sim), within=600)
            await sim.until(lambda: sim.running() == fleet, within=600)
            await sim.pass_time(60)
            costs = _Costs(sim, fleet).since(before)

            assert costs.total <= most, costs
            assert costs.of("machines") <= 6.3, costs
            assert costs.of("nodes") <= 5.9, costs
            assert costs.of("secrets") <= 2.0, costs
            assert costs.of("machinesets") + costs.of("machinedeployments") <= 30 / fleet + 0.3
            assert costs.reads == 0
            for node in sim.objects(NODES):
                assert not _marks_of(node)
                assert "taints" not in node["spec"]  # type: ignore[operator]

    run_virtual(main)


_KINDS = (MACHINES, MACHINE_SETS, MACHINE_DEPLOYMENTS, NODES, SECRETS)


class _Costs:
    """What the manager asked of the API servers for its own objects, by kind."""

    def __init__(self, sim: Simulation, fleet: int) -> None:
        counts = sim.server.requests
        self._fleet = fleet
        self.writes = {k.plural: counts.writes(resource=k.name, agent="mcm") for k in _KINDS}
        # What is looked for only to hear from a server is never there.
        self.reads = counts.total(verb="get", resource=SECRETS.name, agent="mcm") + sum(
            counts.total(verb="get", resource=k.name, agent="mcm", code=200) for k in _KINDS
        )

    def since(self, before: _Costs) -> _Costs:
        self.reads -= before.reads
        self.writes = {kind: n - before.writes[kind] for kind, n in self.writes.items()}
        return self

    def of(self, kind: str) -> float:
        return self.writes[kind] / self._fleet

    @property
    def total(self) -> float:
        return sum(self.writes.values()) / self._fleet

    def __repr__(self) -> str:
        return f"{self.total} a machine: {self.writes}"


def _instant(fleet: int) -> Sequence[dict[str, Any]]:
    manifests: list[dict[str, Any]] = list(samples.load())
    for manifest in manifests:
        if manifest["kind"] == "MachineClass":
            steps = ("create", "delete", "boot", "join")
            manifest["providerSpec"] = {f"{step}Latency": "0s" for step in steps}
        if manifest["kind"] == "MachineDeployment":
            manifest["spec"]["replicas"] = fleet
            twenty = {"maxSurge": "20%", "maxUnavailable": "20%"}
            manifest["spec"]["strategy"]["rollingUpdate"] = twenty
    return manifests


async def _roll(sim: Simulation, class_: str) -> None:
    template = {"template": {"spec": {"class": {"name": class_}}}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", {"spec": template}, namespace="default")


def _uids(sim: Simulation) -> set[str]:
    return {str(machine["metadata"]["uid"]) for machine in sim.objects(MACHINES)}  # type: ignore[index]


def _marks_of(node: dict[str, Any]) -> set[str]:
    marks = {ANNOTATION_SCALE_DOWN_DISABLED, ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM}
    return marks & (node["metadata"].get("annotations") or {}).keys()


async def _scale(sim: Simulation, replicas: int) -> None:
    await sim.client.patch(
        MACHINE_DEPLOYMENTS, "sample", {"spec": {"replicas": replicas}}, namespace="default"
    )


def _machine_writes(sim: Simulation) -> int:
    return sim.server.requests.writes(resource=MACHINES.name, agent="mcm")
