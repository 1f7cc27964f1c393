from __future__ import annotations

import asyncio

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from mcm.api.machine import MachineClassNodeTemplate
from mcm.clock import LoopClock
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.provider import DriverMetrics, Provider, ProviderFailed
from mcm.driver import Code, CreateMachineRequest
from mcm.simulation.virtualtime import run_virtual
from tests.unit.machine.bench import EPOCH, ScriptedDriver, bench, on_bench
from tests.unit.machine.objects import BORN, after, class_, machine


def request() -> CreateMachineRequest:
    named = msgspec.structs.replace(class_(), provider="cloud")
    return CreateMachineRequest(machine(), named, {})


def test_calls_are_timed_and_failures_counted_by_code() -> None:
    async def main() -> None:
        clock, registry = LoopClock(EPOCH), CollectorRegistry()
        driver = ScriptedDriver(clock)
        provider = Provider(driver, clock=clock, metrics=DriverMetrics.of(registry))
        driver.latency = 3.0
        await provider.create(request())
        driver.fail("create", Code.RESOURCE_EXHAUSTED)
        with pytest.raises(ProviderFailed) as caught:
            await provider.create(request())
        assert caught.value.code is Code.RESOURCE_EXHAUSTED
        labels = {"provider": "cloud", "operation": "create_machine"}
        name = "mcm_cloud_api_driver_request_duration_seconds"
        assert registry.get_sample_value(f"{name}_count", labels) == 2
        assert registry.get_sample_value(f"{name}_sum", labels) == 6.0
        labels["error_code"] = "ResourceExhausted"
        failed = "mcm_cloud_api_driver_requests_failed_total"
        assert registry.get_sample_value(failed, labels) == 1

    run_virtual(main)


def test_a_call_that_hangs_ends_and_cancellation_is_no_failure() -> None:
    async def main() -> None:
        clock = LoopClock(EPOCH)
        driver = ScriptedDriver(clock)
        driver.latency = 1e6
        provider = Provider(driver, clock=clock, limit=60.0)
        with pytest.raises(ProviderFailed) as caught:
            await provider.create(request())
        assert caught.value.code is Code.DEADLINE_EXCEEDED
        assert clock.monotonic() == 60.0
        call = asyncio.create_task(provider.create(request()))
        await clock.sleep(1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    run_virtual(main)


def test_durations_are_labelled_as_dashboards_know_them_and_machines_of_none_left_out() -> None:
    registry = CollectorRegistry()
    metrics = MachineMetrics.of(registry)
    template = MachineClassNodeTemplate(instance_type="small")
    of_class = msgspec.structs.replace(class_(), node_template=template)
    metrics.joined(machine(group="d"), of_class, after(seconds=90))
    metrics.joined(machine(), of_class, after(seconds=5))
    metrics.joined(machine(group="bare"), None, after(seconds=7))
    metrics.drained(machine(group="d", deleted=BORN), after(seconds=30))
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
