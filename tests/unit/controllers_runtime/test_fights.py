"""Two that want different things of one object, under virtual time: few writes, and it is told."""

from __future__ import annotations

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import LABEL_NODE_MACHINE_NAME
from mcm.controllers.machine.own_conditions import OwnCondition
from mcm.events import CORE_EVENTS
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual


def test_a_label_that_names_another_machine_s_node_is_corrected_and_nothing_else_written() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            first, second = await _two_machines(sim)
            writes = sim.server.requests.writes
            nodes, machines = (writes(resource=r.name, agent="mcm") for r in (NODES, MACHINES))
            await _claim(sim, second, node=_node_label(first))
            await sim.pass_time(600)
            assert _labels(sim)[name_of(second)] == _node_label(second)
            assert writes(resource=NODES.name, agent="mcm") == nodes
            assert writes(resource=MACHINES.name, agent="mcm") == machines + 1
            assert not _told(sim)

    run_virtual(main)


def test_two_machines_that_claim_one_node_for_an_hour_write_once_and_say_so() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            first, second = await _two_machines(sim)
            for machine in (first, second):  # else these would tell whose Node it is
                patch: JSONObject = {"spec": {"providerID": None}}
                await sim.client.patch(NODES, _node_label(machine), patch)
            await sim.pass_time(30)
            writes = sim.server.requests.writes
            nodes, machines = (writes(resource=r.name, agent="mcm") for r in (NODES, MACHINES))
            await _claim(sim, second, node=_node_label(first))
            await sim.pass_time(3600)
            assert writes(resource=NODES.name, agent="mcm") == nodes
            assert writes(resource=MACHINES.name, agent="mcm") == machines + 2
            said = _contests(sim)
            assert set(said) == {name_of(first), name_of(second)}
            assert name_of(second) in said[name_of(first)]
            assert name_of(first) in said[name_of(second)]
            assert not _told(sim)

            # Whoever mends it finds the machines at work.
            await _claim(sim, second, node=_node_label(second))
            await sim.pass_time(310)
            claims = {name_of(node): _claimed_by(node) for node in sim.objects(NODES)}
            assert claims[_node_label(first)] == name_of(first)
            assert claims[_node_label(second)] == name_of(second)
            assert not _contests(sim)
            settled = writes(agent="mcm")
            await sim.pass_time(600)
            assert writes(agent="mcm") == settled

    run_virtual(main)


def test_another_program_that_takes_a_finalizer_away_is_not_answered_without_end() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            machine, _ = await _two_machines(sim)
            node = _node_label(machine)
            undone = 0
            before = sim.server.requests.writes(resource=NODES.name, agent="mcm")
            for _ in range(3000):
                [meta] = [n["metadata"] for n in sim.objects(NODES) if name_of(n) == node]
                assert isinstance(meta, dict)
                if meta.get("finalizers"):
                    undone += 1
                    await sim.client.patch(NODES, node, {"metadata": {"finalizers": None}})
                await sim.clock.sleep(0.1)
            assert 5 < undone < 50, "of 3000"
            assert sim.server.requests.writes(resource=NODES.name, agent="mcm") - before < 50
            assert "metadata.finalizers" in _told(sim)[name_of(machine)]

    run_virtual(main)


async def _two_machines(sim: Simulation) -> tuple[JSONObject, JSONObject]:
    await sim.apply(samples.load())
    await sim.until(lambda: sim.running() == 3, within=120)
    await sim.pass_time(30)
    first, second, _ = sim.objects(MACHINES)
    return first, second


async def _claim(sim: Simulation, machine: JSONObject, *, node: str) -> None:
    patch = {"metadata": {"labels": {"node": node}}}
    await sim.client.patch(MACHINES, name_of(machine), patch, namespace="default")


def _node_label(machine: JSONObject) -> str:
    return str(machine["metadata"]["labels"]["node"])  # type: ignore[index]


def _labels(sim: Simulation) -> dict[str, str]:
    return {name_of(machine): _node_label(machine) for machine in sim.objects(MACHINES)}


def _contests(sim: Simulation) -> dict[str, str]:
    """What machines say of a Node that others name as well."""
    return {
        name_of(machine): condition["message"]
        for machine in sim.objects(MACHINES)
        for condition in machine["status"]["conditions"]  # type: ignore[index]
        if condition["type"] == OwnCondition.NODE_UNAMBIGUOUS and condition["status"] == "False"
    }


def _claimed_by(node: JSONObject) -> str:
    return str(node["metadata"]["labels"][LABEL_NODE_MACHINE_NAME])  # type: ignore[index]


def _told(sim: Simulation) -> dict[str, str]:
    """Notes of the events about writes that get nowhere, by the object they are on."""
    return {
        str(event["involvedObject"]["name"]): str(event["message"])  # type: ignore[index]
        for event in sim.objects(CORE_EVENTS)
        if event["reason"] == "NotConverging"
    }
