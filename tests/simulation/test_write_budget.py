"""What a machine costs the API server, counted by the server itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bench.drain_load import bound_pod
from mcm.api.core import NODES, SECRETS
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_SCALE_DOWN_DISABLED, ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM
from mcm.controllers.settings import ControllerSettings
from mcm.options import Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of, phase_of
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
            await sim.apply(_fleet(fleet))
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
            assert costs.of_sets_and_deployments <= 30 / fleet + 0.3
            assert costs.reads == 0
            for node in sim.objects(NODES):
                assert not _marks_of(node)
                assert "taints" not in node["spec"]  # type: ignore[operator]

    run_virtual(main)


@pytest.mark.parametrize(
    ("fleet", "instant", "created", "deleted"),
    part_of([(50, True, 5.7, 5.4), (50, False, 6.5, 7.4), (500, True, 5.2, 5.2)], one_in=3),
)
def test_a_fleet_that_needs_no_tokens_is_made_and_deleted_within_its_budgets(
    fleet: int, created: float, deleted: float, *, instant: bool
) -> None:
    """All objects included, but for events. Where VMs take time, none has proven the class when the
    machines are made, so each gets its finalizer by itself; and what takes time is told."""

    async def main() -> None:
        async with Simulation(seed=3) as sim:
            if not instant:
                sim.faults.delay(0.005, watch=False)
            await sim.apply(_fleet(fleet, instant=instant, tokens=False))
            await sim.until(lambda: sim.running() == fleet, within=600)
            await sim.pass_time(60)
            costs = _Costs(sim, fleet)
            assert costs.total <= created, costs
            assert costs.of("machines") <= (4.3 if instant else 5.0), costs
            assert costs.of("nodes") == 1.0, costs
            assert costs.of("secrets") <= 1 / fleet  # the class's is protected
            assert costs.reads == 0

            await _delete(sim)
            costs = _Costs(sim, fleet).since(costs)
            assert costs.total <= deleted, costs
            assert costs.of("machines") <= (2.0 if instant else 3.0), costs
            assert costs.of("nodes") <= (3.0 if instant else 4.0), costs
            assert costs.reads == 0

    run_virtual(main)


def test_a_token_costs_two_writes_and_no_read() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await sim.apply(_fleet(FLEET))
            await sim.until(lambda: sim.running() == FLEET, within=600)
            await sim.pass_time(60)
            costs = _Costs(sim, FLEET)
            assert costs.of("secrets") == 2.0 + 1 / FLEET
            await _delete(sim)
            costs = _Costs(sim, FLEET).since(costs)
            assert costs.of("secrets") <= 1 / FLEET
            assert costs.reads == 0

    run_virtual(main)


@pytest.mark.parametrize(("pods", "rolled", "deleted"), [(0, 16.5, 7.4), (3, 18.4, 8.4)])
def test_what_takes_time_is_told_on_machine_and_node_and_costs_no_more_than_that(
    pods: int, rolled: float, deleted: float
) -> None:
    """VMs that take seconds, requests that take 5 ms, ``pods`` to be evicted from each Node: these
    requests are not counted."""
    fleet = 50

    async def main() -> None:
        async with Simulation(seed=3) as sim:
            sim.faults.delay(0.005, watch=False)
            await sim.apply(_fleet(fleet, instant=False, tokens=False))
            await sim.until(lambda: sim.running() == fleet, within=600)
            await sim.apply(_pods(sim, pods))
            await sim.pass_time(60)
            before, old = _Costs(sim, fleet), _uids(sim)
            await _roll(sim, "large")
            await sim.until(lambda: not old & _uids(sim), within=600)
            await sim.until(lambda: sim.running() == fleet, within=600)
            await sim.apply(_pods(sim, pods))
            await sim.pass_time(60)
            costs = _Costs(sim, fleet)
            of_roll = _Costs(sim, fleet).since(before)
            assert of_roll.total <= rolled, of_roll
            assert of_roll.reads == 0

            await _delete(sim)
            of_end = _Costs(sim, fleet).since(costs)
            assert of_end.total <= deleted, of_end
            assert of_end.reads == 0

    run_virtual(main)


@pytest.mark.parametrize("fleet", part_of([100, 500], one_in=2))
def test_statuses_of_sets_and_deployments_are_shared_by_machines_that_change_together(
    fleet: int,
) -> None:
    """Requests take 3 ms, so that there is time for a status after each machine, were it not for
    those that came meanwhile."""

    async def main() -> None:
        async with Simulation(seed=3) as sim:
            sim.faults.delay(0.003, watch=False)
            await sim.apply(_fleet(fleet, tokens=False))
            await sim.until(lambda: sim.running() == fleet, within=600)
            await sim.pass_time(60)
            costs = _Costs(sim, fleet)
            assert costs.of_sets_and_deployments <= 0.3 + 5 / fleet, costs
            old = _uids(sim)
            await _roll(sim, "large")
            await sim.until(lambda: not old & _uids(sim), within=600)
            await sim.until(lambda: sim.running() == fleet, within=600)
            await sim.pass_time(60)
            costs = _Costs(sim, fleet).since(costs)
            assert costs.of_sets_and_deployments <= 0.6 + 80 / fleet, costs

    run_virtual(main)


def test_machines_that_wait_to_be_given_up_do_not_ask_for_their_nodes() -> None:
    """Of those killed together one after the other is given up: each asks once, when it is its
    turn, and is woken a few times, however many wait."""
    fleet, killed = 60, 24

    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await sim.apply(_fleet(fleet, tokens=False))
            await sim.until(lambda: sim.running() == fleet, within=600)
            await sim.pass_time(60)
            before, old = _Costs(sim, killed), _uids(sim)
            for vm in sim.objects(VIRTUAL_MACHINES)[:killed]:
                name = str(vm["metadata"]["name"])  # type: ignore[index]
                await sim.client.delete(VIRTUAL_MACHINES, name, namespace="default")
            await sim.until(lambda: len(old - _uids(sim)) == killed, within=3600)
            await sim.until(lambda: sim.running() == fleet, within=600)
            costs = _Costs(sim, killed).since(before)
            assert costs.reads <= killed, costs
            assert costs.of("machines") <= 8.2, costs
            assert costs.of("nodes") <= 4.0, costs
            assert costs.of_sets_and_deployments <= 8.0, costs
            assert _refused_permits(sim) <= 4 * killed

    run_virtual(main)


@pytest.mark.parametrize(("vm_seconds", "told"), [(0, 0.0), (20, 0.5)])
def test_who_waits_for_its_turn_to_be_deleted_says_so_once_that_takes_long(
    vm_seconds: int, told: float
) -> None:
    """Two calls to the provider at a time: with instant VMs the last one's turn comes after several
    seconds, with slow ones after minutes."""
    fleet = 50 if not vm_seconds else 12

    async def main() -> None:
        settings = replace(ControllerSettings(), machine_concurrent_syncs=2)
        options = replace(Options(), settings=settings)
        async with Simulation(seed=3, options=options) as sim:
            await sim.apply(_fleet(fleet, tokens=False, deletion=vm_seconds))
            await sim.until(lambda: sim.running() == fleet, within=600)
            await sim.pass_time(60)
            sim.faults.delay(0.2, watch=False)
            costs = _Costs(sim, fleet)
            await sim.client.delete(MACHINE_DEPLOYMENTS, "sample", namespace="default")
            await sim.pass_time(40 if vm_seconds else 4)
            waiting = sim.objects(MACHINES)
            assert waiting
            assert sum(phase_of(m) == "Terminating" for m in waiting) >= told * len(waiting)
            await sim.until(lambda: not sim.objects(MACHINES), within=600)
            await sim.until(lambda: not sim.objects(NODES), within=600)
            costs = _Costs(sim, fleet).since(costs)
            assert costs.of("machines") <= (3.0 if vm_seconds else 2.0), costs
            assert costs.of("nodes") <= (4.0 if vm_seconds else 3.0), costs

    run_virtual(main)


_KINDS = (MACHINES, MACHINE_SETS, MACHINE_DEPLOYMENTS, NODES, SECRETS)


class _Costs:
    """What the manager asked of the API servers for its own objects, by kind."""

    def __init__(self, sim: Simulation, machines: int) -> None:
        counts = sim.server.requests
        self._machines = machines
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
        return self.writes[kind] / self._machines

    @property
    def of_sets_and_deployments(self) -> float:
        return self.of("machinesets") + self.of("machinedeployments")

    @property
    def total(self) -> float:
        return sum(self.writes.values()) / self._machines

    def __repr__(self) -> str:
        return f"{self.total} a machine: {self.writes}, {self.reads} reads"


def _fleet(
    replicas: int, *, instant: bool = True, tokens: bool = True, deletion: int = 0
) -> Sequence[dict[str, Any]]:
    """The sample, so large, twenty percent of it replaced at a time. Its VMs take no time if
    ``instant``, but for ``deletion`` seconds; with ``tokens``, each joins by one of its own."""
    manifests: list[dict[str, Any]] = list(samples.load())
    for manifest in manifests:
        if manifest["kind"] == "Secret" and not tokens:
            manifest["stringData"]["userData"] = "#!/bin/sh\n"
        if manifest["kind"] == "MachineClass" and instant:
            steps = ("create", "delete", "boot", "join")
            manifest["providerSpec"] = {f"{step}Latency": "0s" for step in steps}
            manifest["providerSpec"]["deleteLatency"] = f"{deletion}s"
        if manifest["kind"] == "MachineDeployment":
            manifest["spec"]["replicas"] = replicas
            twenty = {"maxSurge": "20%", "maxUnavailable": "20%"}
            manifest["spec"]["strategy"]["rollingUpdate"] = twenty
    return manifests


def _refused_permits(sim: Simulation) -> float:
    labels = {"answer": "refused"}
    return sim.registry.get_sample_value("mcm_machine_failure_permits_total", labels) or 0.0


def _pods(sim: Simulation, of_each: int) -> Sequence[JSONObject]:
    return [
        bound_pod(f"{name}-{number}", name, termination=5.0)
        for name in map(name_of, sim.objects(NODES))
        for number in range(of_each)
    ]


async def _delete(sim: Simulation) -> None:
    await sim.client.delete(MACHINE_DEPLOYMENTS, "sample", namespace="default")
    await sim.until(lambda: not sim.objects(MACHINES), within=600)
    await sim.until(lambda: not sim.objects(NODES), within=600)
    await sim.pass_time(60)


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
