from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from mcm.api.machine import Machine, MachineClass, MachineClassNodeTemplate, MachineSpec
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.driver.codes import Code
from mcm.driver.contract import (
    CreateMachineRequest,
    DeleteMachineRequest,
    GetMachineStatusRequest,
    GetVolumeIDsRequest,
    InitializeMachineRequest,
    ListMachinesRequest,
    UpdateMachineRequest,
)
from mcm.driver.discovery import ProviderContext, load_provider
from mcm.driver.errors import DriverError
from mcm.providers.simulated.driver import SimulatedDriver
from mcm.providers.simulated.virtual_machine import GROUP, VIRTUAL_MACHINES, crd_manifest
from mcm.simulation.virtualtime import run_virtual
from tests.unit.world.rig import Rig, at, on_rig

INSTANT: JSONObject = {"createLatency": "0s", "deleteLatency": "0s"}


def driver_on(rig: Rig, *, seed: int = 1) -> SimulatedDriver:
    return SimulatedDriver(
        rig.new_client("mcm"),
        namespace="default",
        clock=rig.clock,
        randomness=random.Random(seed),
    )


def class_with(provider_spec: JSONObject, name: str = "small") -> MachineClass:
    template = MachineClassNodeTemplate(
        capacity={"cpu": "4", "gpu": 1}, instance_type="m5.large", region="eu-1", zone="eu-1b"
    )
    return MachineClass(
        metadata=ObjectMeta(name=name, namespace="default"),
        node_template=template,
        provider_spec=provider_spec,
    )


def machine(name: str, provider_id: str = "") -> Machine:
    meta = ObjectMeta(name=name, namespace="default")
    return Machine(metadata=meta, spec=MachineSpec(provider_id=provider_id))


async def create(driver: SimulatedDriver, name: str, machine_class: MachineClass) -> str:
    request = CreateMachineRequest(machine(name), machine_class, {})
    return (await driver.create_machine(request)).provider_id


async def status(driver: SimulatedDriver, name: str, machine_class: MachineClass) -> str:
    request = GetMachineStatusRequest(machine(name), machine_class, {})
    return (await driver.get_machine_status(request)).provider_id


async def delete(
    driver: SimulatedDriver, name: str, machine_class: MachineClass, provider_id: str = ""
) -> None:
    request = DeleteMachineRequest(machine(name, provider_id), machine_class, {})
    await driver.delete_machine(request)


async def listed(driver: SimulatedDriver, machine_class: MachineClass) -> dict[str, str]:
    return dict((await driver.list_machines(ListMachinesRequest(machine_class, {}))).machines)


def test_a_created_vm_is_found_listed_and_deleted_by_what_create_answered() -> None:
    async def scenario(rig: Rig) -> None:
        driver, small, large = driver_on(rig), class_with(INSTANT), class_with(INSTANT, "large")
        request = CreateMachineRequest(machine("m"), small, {})
        answer = await driver.create_machine(request)
        assert answer.provider_id == "simulated:///default/m"
        assert answer.node_name == "m"
        assert [(a.type, a.address) for a in answer.addresses] == [("Hostname", "m")]
        assert await status(driver, "m", small) == answer.provider_id
        assert await listed(driver, small) == {answer.provider_id: "m"}
        assert await listed(driver, large) == {}
        await delete(driver, "", small, answer.provider_id)
        assert rig.names("virtualmachines", GROUP) == []
        await delete(driver, "m", small)  # again: nothing left to do
        with pytest.raises(DriverError) as caught:
            await status(driver, "m", small)
        assert caught.value.code is Code.NOT_FOUND

    on_rig(scenario, with_world=False)


def told_of_an_idle_cloud(caplog: pytest.LogCaptureFixture, *, with_world: bool) -> list[str]:
    """What the driver says of a VM, when it lists VMs right then and 61 s later."""

    async def scenario(rig: Rig) -> None:
        driver, small = driver_on(rig), class_with(INSTANT)
        await create(driver, "m", small)
        await listed(driver, small)
        assert caplog.messages == []
        await rig.clock.sleep(61)
        await listed(driver, small)

    with caplog.at_level("WARNING", "mcm.providers.simulated.driver"):
        on_rig(scenario, with_world=with_world)
    return [message for message in caplog.messages if "simulated cloud" in message]


def test_vms_that_nobody_boots_are_told_with_how_to_run_their_cloud(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (told,) = told_of_an_idle_cloud(caplog, with_world=False)
    assert told == (
        "nobody runs the simulated cloud, so that VMs are not booted (1, such as m); run a manager "
        "with --simulate-cloud"
    )


def test_nothing_is_told_of_a_cloud_that_runs(caplog: pytest.LogCaptureFixture) -> None:
    assert told_of_an_idle_cloud(caplog, with_world=True) == []


def test_a_vm_carries_what_its_class_says_of_it() -> None:
    async def scenario(rig: Rig) -> None:
        spec: JSONObject = {
            **INSTANT,
            "bootLatency": "9s",
            "joinLatency": "3s",
            "joins": False,
            "nodeLabels": {"pool": "blue"},
            "nodeConditions": {"DiskPressure": "True"},
        }
        await create(driver_on(rig), "m", class_with(spec))
        vm = rig.get("virtualmachines", "m", GROUP)
        assert at(vm, "metadata", "namespace") == "default"
        assert at(vm, "spec") == {
            "machineName": "m",
            "machineClass": "small",
            "nodeName": "m",
            "powerState": "On",
            "bootLatency": "9s",
            "joinLatency": "3s",
            "joins": False,
            "instanceType": "m5.large",
            "region": "eu-1",
            "zone": "eu-1b",
            "capacity": {"cpu": "4", "gpu": "1"},
            "nodeLabels": {"pool": "blue"},
            "nodeConditions": {"DiskPressure": "True"},
        }

    on_rig(scenario, with_world=False)


# ---- updates ------------------------------------------------------------------------------------


def tagged(vm: dict[str, str], network: dict[str, str] | None = None, **more: object) -> JSONObject:
    return {**INSTANT, "tags": {"vm": vm, "network": network or {}}, **more}


async def update(
    driver: SimulatedDriver,
    to: JSONObject,
    *,
    last: JSONObject | None = None,
    attempted: tuple[JSONObject, ...] = (),
    class_name: str = "small",
) -> None:
    request = UpdateMachineRequest(
        machine("m"),
        class_with(to, class_name),
        {},
        provider_id="simulated:///default/m",
        last_applied_provider_spec=last,
        attempted_provider_specs=attempted,
    )
    await driver.update_machine(request)


def tags_in(rig: Rig) -> object:
    return at(rig.get("virtualmachines", "m", GROUP), "spec", "tags")


def test_an_update_changes_what_the_class_says_and_leaves_what_others_said() -> None:
    async def scenario(rig: Rig) -> None:
        driver, before = driver_on(rig), tagged({"team": "a", "old": "1"}, {"net": "x"})
        await create(driver, "m", class_with(before))
        foreign = {"spec": {"tags": {"vm": {"bill": "42"}, "disk": {"backup": "daily"}}}}
        await rig.client.patch(VIRTUAL_MACHINES, "m", foreign, namespace="default")
        await update(driver, tagged({"team": "b", "new": "2"}, {"net": "x"}), last=before)
        assert tags_in(rig) == {
            "vm": {"team": "b", "new": "2", "bill": "42"},
            "network": {"net": "x"},
            "disk": {"backup": "daily"},
        }

    on_rig(scenario, with_world=False)


def test_what_a_failed_update_left_is_cleared_away_once_the_class_wants_it_no_more() -> None:
    async def scenario(rig: Rig) -> None:
        driver, before = driver_on(rig), tagged({"team": "a"})
        await create(driver, "m", class_with(before))
        broken = {"verb": "update", "code": "Unavailable", "times": 1, "at": "network"}
        wanted = tagged({"team": "a", "try": "1"}, {"try": "1"}, failures=[broken])
        with pytest.raises(DriverError) as caught:
            await update(driver, wanted, last=before)
        assert caught.value.code is Code.UNAVAILABLE
        assert tags_in(rig) == {"vm": {"team": "a", "try": "1"}}, "half of it is done"
        await update(driver, before, last=before, attempted=(wanted,))
        assert tags_in(rig) == {"vm": {"team": "a"}}

    on_rig(scenario, with_world=False)


def test_a_change_that_needs_a_new_vm_is_refused_before_anything_is_touched() -> None:
    async def scenario(rig: Rig) -> None:
        driver, before = driver_on(rig), tagged({"team": "a"})
        await create(driver, "m", class_with(before))
        after = tagged({"team": "b"}, bootLatency="1m")
        with pytest.raises(DriverError, match="bootLatency cannot be changed") as caught:
            await update(driver, after, last=before)
        assert caught.value.code is Code.INVALID_ARGUMENT
        assert tags_in(rig) == {"vm": {"team": "a"}}
        await update(driver, after, last=before, class_name="moved-to-another-class")
        assert tags_in(rig) == {"vm": {"team": "b"}}

    on_rig(scenario, with_world=False)


def test_there_is_nothing_to_update_where_there_is_no_vm() -> None:
    async def scenario(rig: Rig) -> None:
        with pytest.raises(DriverError) as caught:
            await update(driver_on(rig), tagged({}))
        assert caught.value.code is Code.NOT_FOUND

    on_rig(scenario, with_world=False)


def test_creating_and_deleting_take_the_time_asked_for() -> None:
    async def scenario(rig: Rig) -> None:
        driver = driver_on(rig)
        slow = class_with({"createLatency": "30s", "deleteLatency": "12s"})
        began = rig.now
        await create(driver, "m", slow)
        assert rig.now - began == pytest.approx(30)
        await status(driver, "m", slow)
        assert rig.now - began == pytest.approx(30)
        await delete(driver, "m", slow)
        assert rig.now - began == pytest.approx(42)

    on_rig(scenario, with_world=False)


def test_creating_what_is_there_answers_with_what_is_there() -> None:
    async def scenario(rig: Rig) -> None:
        driver, small = driver_on(rig), class_with({**INSTANT, "quota": 1})
        first = await create(driver, "m", small)
        # After a crash the same call comes again, at a quota that is used up by its own VM.
        assert await create(driver_on(rig), "m", small) == first
        assert rig.names("virtualmachines", GROUP) == ["m"]

    on_rig(scenario, with_world=False)


def test_a_quota_holds_against_creations_at_the_same_moment() -> None:
    async def scenario(rig: Rig) -> None:
        driver, small = driver_on(rig), class_with({"quota": 3})
        answers = await asyncio.gather(
            *(create(driver, f"m{i}", small) for i in range(10)), return_exceptions=True
        )
        refused = [a for a in answers if isinstance(a, DriverError)]
        assert len(rig.names("virtualmachines", GROUP)) == 3
        assert [e.code for e in refused] == [Code.RESOURCE_EXHAUSTED] * 7
        assert "quota of 3" in refused[0].message
        await create(driver, "other", class_with({"quota": 3}, "large"))
        await delete(driver, rig.names("virtualmachines", GROUP)[0], small)
        await create(driver, "late", small)

    on_rig(scenario, with_world=False)


def test_a_verb_fails_so_many_times_for_each_machine_and_leaves_nothing_behind() -> None:
    async def scenario(rig: Rig) -> None:
        driver = driver_on(rig)
        failure = {"verb": "create", "code": "ResourceExhausted", "message": "sold out", "times": 2}
        flaky = class_with({**INSTANT, "failures": [failure]})
        for name in ("a", "b"):
            for _ in range(2):
                with pytest.raises(DriverError) as caught:
                    await create(driver, name, flaky)
                assert caught.value.code is Code.RESOURCE_EXHAUSTED
                assert caught.value.message == "sold out"
                assert name not in rig.names("virtualmachines", GROUP)
            await create(driver, name, flaky)

    on_rig(scenario, with_world=False)


@pytest.mark.parametrize("verb", ["initialize", "status", "delete", "list"])
def test_every_verb_can_fail(verb: str) -> None:
    async def scenario(rig: Rig) -> None:
        driver = driver_on(rig)
        await create(driver, "m", class_with(INSTANT))
        failure = {"verb": verb, "code": "Unavailable", "times": 1}
        flaky = class_with({**INSTANT, "failures": [failure]})
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "initialize": lambda: driver.initialize_machine(
                InitializeMachineRequest(machine("m"), flaky, {})
            ),
            "status": lambda: status(driver, "m", flaky),
            "delete": lambda: delete(driver, "m", flaky),
            "list": lambda: listed(driver, flaky),
        }
        with pytest.raises(DriverError) as caught:
            await calls[verb]()
        assert caught.value.code is Code.UNAVAILABLE
        assert rig.names("virtualmachines", GROUP) == ["m"]
        await calls[verb]()

    on_rig(scenario, with_world=False)


def outcomes(seed: int) -> list[bool]:
    """Whether each of 200 creations, a third of which is to fail, succeeded."""
    found: list[bool] = []

    async def scenario(rig: Rig) -> None:
        driver = driver_on(rig, seed=seed)
        failure = {"verb": "create", "probability": 0.33}
        flaky = class_with({**INSTANT, "failures": [failure]})
        for index in range(200):
            try:
                await create(driver, f"m{index}", flaky)
            except DriverError:
                found.append(False)
            else:
                found.append(True)

    on_rig(scenario, with_world=False)
    return found


def test_failures_by_chance_come_as_often_as_asked_and_the_same_for_a_seed() -> None:
    found = outcomes(seed=1)
    assert found == outcomes(seed=1)
    assert found != outcomes(seed=2)
    assert 40 <= Counter(found)[False] <= 95


def test_a_vm_that_needs_initialization_says_so_until_it_has_had_it() -> None:
    async def scenario(rig: Rig) -> None:
        driver, fussy = driver_on(rig), class_with({**INSTANT, "needsInitialization": True})
        provider_id = await create(driver, "m", fussy)
        with pytest.raises(DriverError) as caught:
            await status(driver, "m", fussy)
        assert caught.value.code is Code.UNINITIALIZED
        assert (caught.value.provider_id, caught.value.node_name) == (provider_id, "m")
        request = InitializeMachineRequest(machine("m"), fussy, {})
        assert (await driver.initialize_machine(request)).provider_id == provider_id
        version = at(rig.get("virtualmachines", "m", GROUP), "metadata", "resourceVersion")
        await driver.initialize_machine(request)  # again: nothing is written
        assert at(rig.get("virtualmachines", "m", GROUP), "metadata", "resourceVersion") == version
        assert await status(driver, "m", fussy) == provider_id

    on_rig(scenario, with_world=False)


def test_initializing_a_vm_that_is_gone_says_not_found() -> None:
    async def scenario(rig: Rig) -> None:
        request = InitializeMachineRequest(machine("m"), class_with(INSTANT), {})
        with pytest.raises(DriverError) as caught:
            await driver_on(rig).initialize_machine(request)
        assert caught.value.code is Code.NOT_FOUND

    on_rig(scenario, with_world=False)


def test_a_class_spoilt_afterwards_keeps_nothing_from_being_deleted() -> None:
    async def scenario(rig: Rig) -> None:
        driver, spoilt = driver_on(rig), class_with({"bootLatency": "soon"})
        await create(driver, "m", class_with(INSTANT))
        with pytest.raises(DriverError) as caught:
            await create(driver, "n", spoilt)
        assert caught.value.code is Code.INVALID_ARGUMENT
        assert "bootLatency" in caught.value.message
        await delete(driver, "m", spoilt)
        assert rig.names("virtualmachines", GROUP) == []

    on_rig(scenario, with_world=False)


def test_volumes_are_known_by_their_csi_handle() -> None:
    async def scenario(rig: Rig) -> None:
        specs: tuple[JSONObject, ...] = (
            {"csi": {"driver": "d", "volumeHandle": "vol-1"}},
            {"hostPath": {"path": "/x"}},
            {"csi": {"driver": "d"}},
        )
        answer = await driver_on(rig).get_volume_ids(GetVolumeIDsRequest(specs))
        assert answer.volume_ids == ("vol-1",)

    on_rig(scenario, with_world=False)


def test_a_cluster_without_the_kind_gets_told_how_to_install_it() -> None:
    async def main() -> None:
        rig = Rig(with_world=False, grace=1, heartbeat=1)  # not entered: no CRD
        with pytest.raises(DriverError) as caught:
            await create(driver_on(rig), "m", class_with(INSTANT))
        assert caught.value.code is Code.FAILED_PRECONDITION
        assert "mcm crds" in caught.value.message

    run_virtual(main)


def test_a_cloud_api_that_is_away_is_unavailable() -> None:
    async def scenario(rig: Rig) -> None:
        client = rig.new_client("mcm")
        driver = SimulatedDriver(
            client, namespace="default", clock=rig.clock, randomness=random.Random(1)
        )
        await client.aclose()
        with pytest.raises(DriverError) as caught:
            await create(driver, "m", class_with(INSTANT))
        assert caught.value.code is Code.UNAVAILABLE

    on_rig(scenario, with_world=False)


def test_the_provider_is_found_by_its_name() -> None:
    async def scenario(rig: Rig) -> None:
        context = ProviderContext(rig.client, rig.client, "default", rig.clock, random.Random(1))
        assert isinstance(load_provider("simulated")(context), SimulatedDriver)

    on_rig(scenario, with_world=False)


def test_the_definition_names_every_field_of_the_spec() -> None:
    document = crd_manifest()
    versions = at(document, "spec", "versions")
    assert isinstance(versions, list)
    schema = at(versions[0], "schema", "openAPIV3Schema", "properties", "spec", "properties")
    assert isinstance(schema, dict)
    assert {"nodeName", "powerState", "bootLatency", "nodeConditions", "joins"} <= schema.keys()
    assert at(schema, "powerState", "enum") == ["On", "Off"]
