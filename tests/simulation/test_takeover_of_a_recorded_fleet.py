"""The Go original's two processes end in the middle of a recorded life, and the manager goes on.

The objects are as recorded but for what only a provider reads: the VMs are those of the simulated
cloud, and so are provider IDs and provider specs.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_SETS, MACHINES
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox.apiserver.store import Change, ChangeType
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.thoroughness import part_of
from tests.unit.machine.takeover import recorded

MOMENTS = {
    "the classes": 222,
    "machines without a VM": 238,
    "one VM made, not recorded": 242,
    "machines of all ages": 264,
    "all run": 290,
    "scaled up": 302,
    "the new set": 342,
    "the first is deleted": 361,
    "one drains, one is new": 393,
    "a VM is gone": 411,
    "a Node is gone": 421,
    "all old ones go": 523,
    "the last old one goes": 567,
    "updated": 590,
    "one Node is silent": 602,
    "deleted": 646,
    "all drain": 685,
    "all VMs are gone": 712,
    "one machine is left": 734,
}


@pytest.mark.parametrize(
    "version",
    [pytest.param(version, id=name) for name, version in part_of(tuple(MOMENTS.items()), one_in=4)],
)
def test_the_fleet_comes_to_be_as_declared(version: int) -> None:
    moment = _as_simulated(recorded.at(version))
    deployment = moment.objects["machinedeployments"].get("demo", {"metadata": {}, "spec": {}})
    gone = not deployment["spec"] or "deletionTimestamp" in deployment["metadata"]
    wanted = 0 if gone else deployment["spec"]["replicas"]
    class_ = "" if gone else deployment["spec"]["template"]["spec"]["class"]["name"]
    staying = {
        name: machine["spec"]["class"]["name"]
        for name, machine in moment.machines.items()
        if "deletionTimestamp" not in machine["metadata"]
    }
    settled = len(staying) == wanted and set(staying.values()) <= {class_}

    async def main() -> None:
        async with Simulation(seed=version, epoch=recorded.soon_after(moment)) as sim:
            made: Counter[str] = Counter()

            def count(change: Change) -> None:
                if change.type is ChangeType.ADDED:
                    made[change.stored.name] += 1

            await sim.stop_manager()
            recorded.put(sim.server, moment)
            await sim.apply(_vm(moment, name) for name in sorted(moment.vms))
            sim.server.store.subscribe(count, f"virtualmachines.{VIRTUAL_MACHINES.group}")
            await sim.crash_manager()
            sim.start_manager()
            await sim.until(lambda: _is_whole(sim, wanted), within=600)
            await sim.pass_time(60)
            assert _is_whole(sim, wanted)
            assert {m["spec"]["class"]["name"] for m in _found(sim)} <= {class_}
            assert len(sim.objects(MACHINE_SETS)) <= 2
            assert set(made.values()) <= {1}
            assert not made.keys() & moment.vms
            if settled:
                assert {name_of(m) for m in _found(sim)} == staying.keys(), "none is replaced"
            written = sim.server.requests.writes(agent="mcm")
            await sim.pass_time(120)
            assert sim.server.requests.writes(agent="mcm") == written

    run_virtual(main)


def _is_whole(sim: Simulation, wanted: int) -> bool:
    names = {name_of(m) for m in _found(sim)}
    return (
        len(names) == sim.running() == wanted
        and {name_of(vm) for vm in sim.objects(VIRTUAL_MACHINES)} == names
        and {name_of(node) for node in sim.objects(NODES)} == names
    )


def _found(sim: Simulation) -> list[dict[str, Any]]:
    return sim.objects(MACHINES)


def _as_simulated(moment: recorded.Moment) -> recorded.Moment:
    moment = deepcopy(moment)
    for class_ in moment.objects["machineclasses"].values():
        class_["providerSpec"] = {}
    for resource in ("machines", "nodes"):
        for name, obj in moment.objects[resource].items():
            if "providerID" in obj["spec"]:
                obj["spec"]["providerID"] = f"simulated:///default/{name}"
    return moment


def _vm(moment: recorded.Moment, name: str) -> dict[str, Any]:
    class_ = moment.machines[name]["spec"]["class"]["name"]
    return {
        "apiVersion": VIRTUAL_MACHINES.api_version,
        "kind": VIRTUAL_MACHINES.kind,
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"simulation.machine.sapcloud.io/machine-class": class_},
        },
        "spec": {
            "machineName": name,
            "machineClass": class_,
            "nodeName": name,
            "powerState": "On",
            "bootLatency": "0s",
            "joinLatency": "0s",
        },
    }
