"""VMs beside those of machines: who bears the marks of a class is collected, who does not stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mcm.api.core import NODES
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_NOT_MANAGED_BY_MCM
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

_MARK = "simulation.machine.sapcloud.io/machine-class"


def _vm(name: str, **labels: str) -> JSONObject:
    return {
        "apiVersion": VIRTUAL_MACHINES.api_version,
        "kind": VIRTUAL_MACHINES.kind,
        "metadata": {"name": name, "namespace": "default", "labels": dict(labels)},
        "spec": {"machineName": name, "nodeName": name, "machineClass": "small"},
    }


def test_vms_without_the_marks_of_a_class_are_left_alone_with_their_nodes() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await sim.apply(o for o in samples.load() if o["kind"] != "MachineDeployment")
            await sim.apply([_vm("mine"), _vm("forgotten", **{_MARK: "small"})])
            await sim.until(lambda: _names(sim) == {"mine"}, within=3600)
            await sim.until(
                lambda: ANNOTATION_NOT_MANAGED_BY_MCM in _annotations(sim, "mine"), within=3600
            )
            assert _names(sim) == {"mine"}

    run_virtual(main)


def _annotations(sim: Simulation, node: str) -> Mapping[str, str]:
    (metadata,) = (n["metadata"] for n in sim.objects(NODES) if name_of(n) == node)
    assert isinstance(metadata, dict)
    return cast("Mapping[str, str]", metadata.get("annotations", {}))


def _names(sim: Simulation) -> set[str]:
    return {name_of(vm) for vm in sim.objects(VIRTUAL_MACHINES)}
