"""Two that want different things of one object, under virtual time: few writes, and it is told."""

from __future__ import annotations

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import LABEL_NODE_MACHINE_NAME
from mcm.events import CORE_EVENTS
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual


def test_two_machines_that_claim_one_node_write_little_and_say_so() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            first, second = await _two_machines(sim)
            before = sim.server.requests.writes(resource=NODES.name, agent="mcm")
            await _claim(sim, second, node=_node_label(first))
            await sim.pass_time(600)
            writes = sim.server.requests.writes(resource=NODES.name, agent="mcm") - before
            assert 2 < writes < 100
            told = _told(sim)
            assert set(told) == {name_of(first), name_of(second)}
            note = next(iter(told.values()))
            assert LABEL_NODE_MACHINE_NAME in note
            assert f"of Node {_node_label(first)}" in note
            assert _repeated(sim, "machine") > 0

            # Whoever mends it finds the machine at work.
            await _claim(sim, second, node=_node_label(second))
            await sim.pass_time(310)
            claims = {name_of(node): _claimed_by(node) for node in sim.objects(NODES)}
            assert claims[_node_label(first)] == name_of(first)
            assert claims[_node_label(second)] == name_of(second)
            settled = sim.server.requests.writes(resource=NODES.name, agent="mcm")
            await sim.pass_time(600)
            assert sim.server.requests.writes(resource=NODES.name, agent="mcm") == settled

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


def _claimed_by(node: JSONObject) -> str:
    return str(node["metadata"]["labels"][LABEL_NODE_MACHINE_NAME])  # type: ignore[index]


def _told(sim: Simulation) -> dict[str, str]:
    """Notes of the events about writes that get nowhere, by the object they are on."""
    return {
        str(event["involvedObject"]["name"]): str(event["message"])  # type: ignore[index]
        for event in sim.objects(CORE_EVENTS)
        if event["reason"] == "NotConverging"
    }


def _repeated(sim: Simulation, controller: str) -> float:
    name = "mcm_controller_repeated_writes_total"
    return sim.registry.get_sample_value(name, {"controller": controller}) or 0.0
