"""A fleet whose class changes its tags again and again, at a cloud that fails half-way."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.providers.simulated.virtual_machine import TAGGED, VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

FLEET = 40
FLAKY: list[JSONObject] = [
    {"verb": "update", "at": at, "code": code, "probability": 0.15}
    for at, code in (("vm", "Unavailable"), ("network", "Internal"), ("disk", "DeadlineExceeded"))
]


def test_forty_machines_follow_their_class_at_a_flaky_cloud() -> None:
    async def main() -> None:
        async with _simulation(21) as sim:
            chance = random.Random(21)
            await sim.apply(_fleet())
            await sim.until(lambda: sim.running() == FLEET, within=300)
            await sim.pass_time(30)
            born = {name_of(vm) for vm in sim.objects(VIRTUAL_MACHINES)}
            await _tag_by_hand(sim, sorted(born)[:10])
            for round_ in range(3):
                await _change(sim, {"round": str(round_), f"only-{round_}": "x"}, FLAKY)
                await sim.pass_time(chance.uniform(0, 20))
                if round_ % 2:
                    await sim.crash_manager()
                    await sim.pass_time(chance.uniform(0, 5))
                    sim.start_manager()
            # Back to what the VMs were made with: all that was tried must go again.
            await _change(sim, {"round": "0"}, FLAKY)
            await _until(sim, lambda: _all_are(sim, {"round": "0"}))
            await _change(sim, {"round": "0"}, [])
            await _until(sim, lambda: _all_are_quiet(sim))
            assert _all_are(sim, {"round": "0"})
            assert {name_of(vm) for vm in sim.objects(VIRTUAL_MACHINES)} == born, (
                "none was replaced"
            )
            assert sim.running() == FLEET
            await sim.pass_time(30)
            before = _machine_writes(sim)
            await sim.pass_time(300)
            assert _machine_writes(sim) == before, "steady, and free again"

    run_virtual(main)


def test_a_change_costs_four_writes_a_machine() -> None:
    async def main() -> None:
        async with _simulation(22) as sim:
            await sim.apply(_fleet())
            await sim.until(lambda: sim.running() == FLEET, within=300)
            await sim.pass_time(30)
            before = _machine_writes(sim)
            await _change(sim, {"round": "1"}, [])
            await sim.until(lambda: _all_are(sim, {"round": "1"}), within=60)
            await sim.pass_time(120)
            assert _machine_writes(sim) - before == 4 * FLEET

    run_virtual(main)


def _simulation(seed: int) -> Simulation:
    """Nodes that say seldom that they live: this is about their VMs."""
    return Simulation(seed=seed, node_grace=400.0, heartbeat_interval=100.0)


async def _until(sim: Simulation, condition: Callable[[], bool]) -> None:
    """Look every ten seconds, for an hour."""
    for _ in range(360):
        if condition():
            return
        await sim.pass_time(10)
    raise AssertionError(sim.describe())


def _fleet() -> list[JSONObject]:
    manifests: list[JSONObject] = []
    for found in samples.load():
        manifest = dict(found)
        spec = manifest.get("spec")
        if isinstance(spec, dict) and "replicas" in spec:
            manifest["spec"] = {**spec, "replicas": FLEET}
        if manifest["kind"] == "MachineClass":
            provider_spec = manifest["providerSpec"]
            assert isinstance(provider_spec, dict)
            tags = {resource: {"round": "0"} for resource in TAGGED}
            manifest["providerSpec"] = {**provider_spec, "tags": tags}
        manifests.append(manifest)
    return manifests


async def _change(sim: Simulation, tags: dict[str, str], failures: list[JSONObject]) -> None:
    """Let the class say just these tags, on everything."""
    old = await sim.client.get(MACHINE_CLASSES, "small", namespace="default")
    present = old.provider_spec["tags"]
    assert isinstance(present, dict)
    new = {r: {**dict.fromkeys(present[r]), **tags} for r in TAGGED}
    patch: JSONObject = {"providerSpec": {"tags": new, "failures": failures}}
    await sim.client.patch(MACHINE_CLASSES, "small", patch, namespace="default")


async def _tag_by_hand(sim: Simulation, names: list[str]) -> None:
    patch: JSONObject = {"spec": {"tags": {"disk": {"by-hand": "yes"}}}}
    for name in names:
        await sim.client.patch(VIRTUAL_MACHINES, name, patch, namespace="default")


def _all_are(sim: Simulation, tags: dict[str, str]) -> bool:
    """Whether each VM has these, and ten also what somebody else gave them."""
    by_hand = 0
    for vm in sim.objects(VIRTUAL_MACHINES):
        spec = vm["spec"]
        assert isinstance(spec, dict)
        found = {r: dict(spec["tags"].get(r, {})) for r in TAGGED}
        by_hand += found["disk"].pop("by-hand", "") == "yes"
        if any(there != tags for there in found.values()):
            return False
    return by_hand in (0, 10)


def _all_are_quiet(sim: Simulation) -> bool:
    """Whether each machine says that it has the last change, and no update before it."""
    return all(
        '\\"failures\\":[]' in (meta := json.dumps(m["metadata"]))
        and "inflight-providerspecs" not in meta
        and "ProviderSpecApplied" not in str(m["status"])
        for m in sim.objects(MACHINES)
    )


def _machine_writes(sim: Simulation) -> int:
    return sim.server.requests.writes(resource=MACHINES.name, agent="mcm")
