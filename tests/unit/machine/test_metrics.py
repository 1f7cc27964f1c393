from __future__ import annotations

import msgspec
from prometheus_client import CollectorRegistry

from mcm.api.machine import MachineClassNodeTemplate
from mcm.controllers.machine.metrics import MachineMetrics
from tests.unit.machine.bench import bench, on_bench
from tests.unit.machine.objects import BORN, after, class_, machine


def test_durations_are_labelled_as_dashboards_know_them_and_machines_of_none_left_out() -> None:
    registry = CollectorRegistry()
    metrics = MachineMetrics.of(registry)
    template = MachineClassNodeTemplate(instance_type="small")
    of_class = msgspec.structs.replace(class_(), node_template=template)
    metrics.joined(machine(group="d"), of_class, after(seconds=90))
    metrics.joined(machine(), of_class, after(seconds=5))
    metrics.joined(machine(group="bare"), None, after(seconds=7))
    metrics.drained(machine(group="d", deleted=BORN), BORN, after(seconds=30))
    labels = {"namespace": "ns", "machine_deployment": "d", "instance_type": "small", "zone": ""}
    assert registry.get_sample_value("mcm_machine_join_duration_seconds", labels) == 90
    drained = {"namespace": "ns", "machine_deployment": "d"}
    assert registry.get_sample_value("mcm_machine_drain_duration_seconds", drained) == 30


@on_bench
async def test_a_life_leaves_its_durations() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running(group="d")
        await b.delete_machine()
        await b.until_gone()
        labels = {
            "namespace": "default",
            "machine_deployment": "d",
            "instance_type": "",
            "zone": "",
        }
        for what in ("create", "initialize", "join", "delete"):
            name = f"mcm_machine_{what}_duration_seconds"
            assert b.registry.get_sample_value(name, labels) is not None, what
