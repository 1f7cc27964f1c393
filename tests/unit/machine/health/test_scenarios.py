from __future__ import annotations

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.controllers.in_place_marks import Stage
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from mcm.simulation.faults import WatchEnd
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench, with_settings
from tests.unit.machine.in_place_update.actors import report, select, until_stage


async def phases(b: Bench) -> list[str]:
    return [(await b.machine(str(m["metadata"]["name"]))).phase for m in b.objects(MACHINES)]  # type: ignore[index]


@on_bench
async def test_a_machine_becomes_unknown_and_healthy_again_with_its_node() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.set_ready("m", "Unknown")
        assert await b.until_phase("Unknown") < 1.0
        await b.set_ready("m", "True")
        assert await b.until_phase("Running") < 1.0
        assert len(b.writes) == 2
        assert b.events()[-2:] == ["Unhealthy", "Rejoined"]


@on_bench
async def test_an_unhealthy_machine_fails_exactly_when_its_time_is_over() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.set_ready("m", "False")
        await b.until_phase("Unknown")
        started = (await b.machine()).status.current_status.last_update_time
        await b.until_phase("Failed", within=700)
        ended = (await b.machine()).status.current_status.last_update_time
        assert started is not None and ended is not None
        assert (ended - started).total_seconds() == 600


@on_bench
async def test_of_a_deployment_only_one_machine_at_a_time_is_given_up() -> None:
    async with bench(settings=with_settings(unhealthy_fleet_threshold=2.0)) as b:
        await b.make_class()
        names = [f"m{n}" for n in range(4)]
        for name in names:
            await b.running(name, group="d")
        for name in names:
            await b.set_ready(name, "False")
        await b.settle(700)
        assert sorted(await phases(b)) == ["Failed", "Unknown", "Unknown", "Unknown"]
        (failed,) = [n for n in names if (await b.machine(n)).phase == "Failed"]
        await b.delete_machine(failed)
        await b.until_gone(failed)
        await b.settle()
        assert sorted(await phases(b)) == ["Failed", "Unknown", "Unknown"]


@on_bench
async def test_while_one_is_given_up_the_nodes_of_those_that_wait_are_not_asked_for() -> None:
    async with bench(settings=with_settings(unhealthy_fleet_threshold=2.0)) as b:
        await b.make_class()
        names = [f"m{n}" for n in range(12)]
        for name in names:
            await b.running(name, group="d")
        for name in names:
            await b.set_ready(name, "False")
        await b.settle(595)
        before = b.server.requests.total(verb="get", resource=NODES.name, code=200)
        await b.settle(100)
        assert sorted(await phases(b)) == ["Failed", *["Unknown"] * 11]
        assert b.server.requests.total(verb="get", resource=NODES.name, code=200) - before == 1


@on_bench
async def test_machines_of_no_deployment_fail_without_waiting_for_each_other() -> None:
    async with bench() as b:
        await b.make_class()
        for name in ("a", "b"):
            await b.running(name)
            await b.set_ready(name, "False")
        await b.settle(700)
        assert await phases(b) == ["Failed", "Failed"]


@on_bench
async def test_a_machine_that_does_not_join_in_time_fails() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine(spec={"creationTimeout": "90s"})
        await b.until_phase("Pending")
        await b.until_phase("Failed", within=95)
        text = (await b.machine()).status.last_operation.description
        assert text == "Machine m failed to join the cluster in 1m30s."
        assert b.events()[-1] == "Failed"


@on_bench
async def test_what_the_mirror_did_not_see_is_asked_for_before_giving_up() -> None:
    """The node recovers while its watch is cut, seconds before the machine's time is over."""
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.set_ready("m", "False")
        await b.until_phase("Unknown")
        await b.settle(590)
        with b.unreachable("/nodes"):
            await b.set_ready("m", "True")
            await b.settle(20)
            assert (await b.machine()).phase == "Running"
        assert "Failed" not in b.events()


@on_bench
async def test_while_the_cluster_is_unreachable_nobody_fails_and_then_clocks_start_anew() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.set_ready("m", "False")
        await b.until_phase("Unknown")
        await b.settle(300)
        with b.unreachable():
            await b.settle(900)
        await b.settle(120)
        assert (await b.machine()).phase == "Unknown"
        await b.settle(1200)
        assert (await b.machine()).phase == "Failed"


@on_bench
async def test_a_node_of_nobody_is_marked_after_a_while_and_unmarked_when_claimed() -> None:
    async with bench() as b:
        await b.client.create(NODES, {"metadata": {"name": "static"}})
        await b.settle(1100)
        mark = "node.machine.sapcloud.io/not-managed-by-mcm"
        assert mark not in (await b.client.get(NODES, "static")).metadata.annotations
        await b.settle(200)
        assert (await b.client.get(NODES, "static")).metadata.annotations[mark] == "1"
        assert len(b.writes) == 1
        await b.make_class()
        b.driver.node_names["m"] = "static"
        b.driver.vms["m"] = "cloud:///m-1"
        await b.make_machine()
        await b.settle()
        assert mark not in (await b.client.get(NODES, "static")).metadata.annotations


@on_bench
async def test_orphan_vms_are_collected_after_a_grace_and_those_of_machines_are_not() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        b.driver.vms["lost"] = "cloud:///lost-1"
        await b.settle(1000)
        assert "lost" in b.driver.vms
        await b.settle(400)
        assert sorted(b.driver.vms) == ["m"]
        assert "OrphanVMDeleted" in b.events()


@on_bench
async def test_a_vm_whose_machine_is_only_missing_in_the_mirror_is_kept() -> None:
    async with bench() as b:
        await b.make_class()
        await b.settle()
        finalizer = "machine.sapcloud.io/machine-controller-manager"
        hidden: JSONObject = {
            "metadata": {"name": "hidden", "finalizers": [finalizer]},
            "spec": {"class": {"kind": "MachineClass", "name": "c"}, "providerID": "cloud:///h"},
        }
        with b.unreachable("/machines"):
            await b.client.create(MACHINES, hidden, namespace=NAMESPACE)
            b.driver.vms["hidden"] = "cloud:///h"
            await b.settle(2000)
        assert "hidden" in b.driver.vms


@on_bench
async def test_who_was_refused_because_of_a_write_that_then_failed_gets_its_turn() -> None:
    async with bench() as b:
        await b.make_class()
        for name in ("a", "b"):
            await b.running(name, group="d")
        for name in ("a", "b"):
            await b.set_ready(name, "False")
        await b.until_phase("Unknown", "b")
        await b.settle(595)
        slow, broken = (
            b.faults.delay(5, method="PATCH", path="/machines/a/status$"),
            b.faults.answer(500, method="PATCH", path="/machines/a/status$"),
        )
        await b.settle(7)
        assert sorted(await phases(b)) == ["Unknown", "Unknown"]
        await b.set_ready("a", "True")
        await b.settle(2)
        slow.lift()
        broken.lift()
        await b.until_phase("Running", "a", within=30)
        await b.until_phase("Failed", "b", within=30)


@on_bench
async def test_a_lost_answer_to_giving_one_machine_up_does_not_cost_a_second_one() -> None:
    async with bench() as b:
        await b.make_class()
        for name in ("a", "b"):
            await b.running(name, group="d")
        for name in ("a", "b"):
            await b.set_ready(name, "False")
        await b.until_phase("Unknown", "b")
        await b.settle(595)
        b.faults.delay(5, method="PATCH", path="/machines/a/status$", times=1)
        b.faults.lose_answers(method="PATCH", path="/machines/a/status$", times=1)
        b.faults.cut_watches(WatchEnd.FROZEN)
        await b.settle(30)
        assert sorted(await phases(b)) == ["Failed", "Unknown"]


@on_bench
async def test_two_that_failed_their_update_in_place_do_not_wait_for_each_other() -> None:
    async with bench() as b:
        await b.make_class()
        for name in ("a", "b"):
            await b.running(name, group="d")
        for name in ("a", "b"):
            await select(b, name)
            await until_stage(b, Stage.READY, name)
            await report(b, "failed", name=name)
        await b.until_phase("InPlaceUpdateFailed", "b")
        await b.settle(700)
        assert sorted(await phases(b)) == ["Failed", "InPlaceUpdateFailed"]


@on_bench
async def test_who_waits_gets_its_turn_when_a_moving_machines_set_is_scaled_to_zero() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running("a", group="d")
        await b.make_machine("moving", group="d", spec={"creationTimeout": "24h"})
        owner = {"controller": True, "kind": "MachineSet", "apiVersion": "v", **await other_set(b)}
        patch: JSONObject = {"metadata": {"ownerReferences": [owner]}}
        await b.client.patch(MACHINES, "moving", patch, namespace=NAMESPACE)
        await b.set_ready("a", "False")
        await b.settle(1200)
        assert (await b.machine("a")).phase == "Unknown"
        none: JSONObject = {"spec": {"replicas": 0}}
        await b.client.patch(MACHINE_SETS, "old", none, namespace=NAMESPACE)
        assert await b.until_phase("Failed", "a", within=5) < 2


async def other_set(b: Bench) -> dict[str, str]:
    labels = {"name": "d"}
    made = await b.client.create(
        MACHINE_SETS,
        {
            "metadata": {"name": "old"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"class": {"kind": "MachineClass", "name": "c"}},
                },
            },
        },
        namespace=NAMESPACE,
    )
    return {"name": "old", "uid": made.metadata.uid}


@on_bench
async def test_while_the_target_alone_is_not_observed_the_machine_says_why_it_stays() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running("m", group="d")
        await b.set_ready("m", "False")
        await b.until_phase("Unknown")
        b.writes.clear()
        with b.unreachable("/nodes"):
            await b.settle(1500)
            shown = find_own((await b.machine()).status, OwnCondition.REPLACEABLE)
            assert shown is not None
            assert (shown.status, shown.reason) == ("False", "TargetClusterUnreachable")
            assert len(b.written("machines")) == 1
        await b.settle(120)
        shown = find_own((await b.machine()).status, OwnCondition.REPLACEABLE)
        assert shown is not None
        assert shown.status == "True"
        assert len(b.written("machines")) == 2
        await b.settle(400)
        assert (await b.machine()).phase == "Unknown"
        await b.until_phase("Failed", within=300)
        assert find_own((await b.machine()).status, OwnCondition.REPLACEABLE) is None
        assert b.events().count("ReplacementHeld") == 1


@on_bench
async def test_a_machine_deleted_during_an_outage_keeps_nobody_frozen() -> None:
    async with bench() as b:
        await b.make_class()
        for name in ("a", "b"):
            await b.running(name)
            await b.set_ready(name, "False")
        await b.until_phase("Unknown", "b")
        with b.unreachable():
            await b.settle(300)
            assert b.registry.get_sample_value("mcm_machine_controller_frozen") == 1
            await b.delete_machine("a")
            await b.settle(30)
        await b.until_gone("a", within=120)
        await b.settle(60)
        assert b.registry.get_sample_value("mcm_machine_controller_frozen") == 0
        assert (await b.machine("b")).phase == "Unknown"
        await b.until_phase("Failed", "b", within=700)
