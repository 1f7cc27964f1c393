"""Two machines, one Node; labels that are wrong or gone; Nodes that machines left behind."""

from __future__ import annotations

from mcm.api.core import NODES, NodeCondition
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_NOT_MANAGED_BY_MCM, LABEL_NODE_MACHINE_NAME, NODE_FINALIZER
from mcm.client.requests import PatchType
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from mcm.events import CORE_EVENTS, EVENTS
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench

TEMPLATE: JSONObject = {"nodeTemplate": {"metadata": {"labels": {"pool": "x"}}}}


def unambiguous(machine: Machine) -> NodeCondition | None:
    return find_own(machine.status, OwnCondition.NODE_UNAMBIGUOUS)


async def label(b: Bench, name: str, node: str | None) -> None:
    patch: JSONObject = {"metadata": {"labels": {"node": node}}}
    await b.client.patch(MACHINES, name, patch, namespace=NAMESPACE)


async def register(b: Bench, node: str, provider_id: str = "", *, ready: str = "True") -> None:
    """Let a kubelet register whose provider writes provider IDs in a form of its own, or none."""
    spec: JSONObject = {"providerID": provider_id} if provider_id else {}
    await b.client.create(NODES, {"metadata": {"name": node}, "spec": spec})
    await report(b, node, ready)


async def report(b: Bench, node: str, ready: str) -> None:
    body: JSONObject = {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
    await b.client.patch(NODES, node, body, subresource="status", patch_type=PatchType.STRATEGIC)


def contests_told(b: Bench) -> list[JSONObject]:
    every = (*b.objects(EVENTS), *b.objects(CORE_EVENTS))
    return [event for event in every if event["reason"] == "NodeNamedTwice"]


async def contested(b: Bench) -> None:
    await b.make_class()
    for name in ("a", "b"):
        b.driver.node_names[name] = "shared"
        await b.make_machine(name, spec=TEMPLATE)
        await b.until_phase("Pending", name)
    await register(b, "shared")
    await b.settle(10.0)


@on_bench
async def test_two_machines_that_name_one_node_write_once_each_and_say_why_for_an_hour() -> None:
    async with bench() as b:
        await b.make_class()
        for name in ("a", "b"):
            b.driver.node_names[name] = "shared"
            await b.make_machine(name, spec=TEMPLATE)
            await b.until_phase("Pending", name)
        await b.settle()
        b.writes.clear()
        b.driver.calls.clear()
        await register(b, "shared")
        await b.run_pod("p", on="a")
        await b.settle(10.0)
        written = sorted(w.path.rsplit("/", 2)[-2:] for w in b.writes)
        assert written == [["a", "status"], ["b", "status"]]
        told = contests_told(b)
        assert len(told) == 2
        shown = {n: unambiguous(await b.machine(n)) for n in ("a", "b")}
        for minute in range(60):
            await report(b, "shared", "False" if minute % 2 else "True")
            await b.settle(60.0)
        assert len(b.writes) == 2
        assert {verb for verb, _ in b.driver.calls} <= {"list"}
        for name, other in (("a", "b"), ("b", "a")):
            found = await b.machine(name)
            assert found.phase == "Pending"
            condition = unambiguous(found)
            assert condition == shown[name]
            assert condition is not None
            assert (condition.status, condition.reason) == ("False", "NodeNamedTwice")
            assert f"node shared is also named by machine {other}" in condition.message
        assert contests_told(b) in ([], told)


@on_bench
async def test_running_machines_go_on_running_while_a_slip_has_both_name_one_node() -> None:
    async with bench() as b:
        await b.make_class()
        for name in ("a", "b"):
            await b.make_machine(name, spec=TEMPLATE)
            await b.until_phase("Pending", name)
            await register(b, f"node-{name}", f"other-form:///{name}")
            await b.until_phase("Running", name)
        await b.settle()
        b.writes.clear()
        await label(b, "b", "node-a")
        for minute in range(60):
            await report(b, "node-a", "False" if minute % 2 else "True")
            await b.settle(60.0)
        written = sorted(w.path.rsplit("/", 2)[-2:] for w in b.writes)
        assert written == [["a", "status"], ["b", "status"]]
        assert {(await b.machine(n)).phase for n in ("a", "b")} == {"Running"}
        await label(b, "b", "node-typo")
        await b.settle(5.0)
        assert (await b.machine("b")).node_name == "node-b"
        for name in ("a", "b"):
            assert unambiguous(await b.machine(name)) is None
        await report(b, "node-a", "False")
        await b.until_phase("Unknown", "a")


@on_bench
async def test_a_restart_adds_no_write_to_a_contest() -> None:
    async with bench() as b:
        await contested(b)
        b.writes.clear()
        await b.crash()
        await b.start()
        await b.settle(600.0)
        assert b.writes == []


@on_bench
async def test_the_contest_ends_when_a_label_is_corrected() -> None:
    async with bench() as b:
        await contested(b)
        await label(b, "b", "another")
        await b.until_phase("Running", "a")
        await b.settle()
        assert unambiguous(await b.machine("a")) is None
        assert unambiguous(await b.machine("b")) is None
        node = await b.client.get(NODES, "shared")
        assert node.metadata.labels["pool"] == "x"
        assert node.metadata.labels[LABEL_NODE_MACHINE_NAME] == "a"


@on_bench
async def test_the_contest_ends_when_the_node_says_whose_vm_it_is() -> None:
    async with bench() as b:
        await contested(b)
        await b.client.patch(NODES, "shared", {"spec": {"providerID": b.driver.vms["b"]}})
        await b.until_phase("Running", "b")
        await b.settle()
        assert unambiguous(await b.machine("b")) is None
        told = unambiguous(await b.machine("a"))
        assert told is not None
        assert told.reason == "NodeOfAnotherMachine"
        assert "node shared is machine b's" in told.message
        # What has no Node is late one day, like every machine that does not join.
        await b.until_phase("Failed", "a", within=1300.0)
        assert (await b.client.get(NODES, "shared")).metadata.deletion_timestamp is None


@on_bench
async def test_a_machine_that_goes_leaves_the_contested_node_and_its_pods_to_the_other() -> None:
    async with bench() as b:
        await contested(b)
        await b.run_pod("p", on="a")
        b.writes.clear()
        await b.delete_machine("a")
        await b.until_gone("a")
        assert "a" not in b.driver.vms
        assert await b.finish_leaving_pods() == []
        await b.until_phase("Running", "b")
        await b.settle()
        node = await b.client.get(NODES, "shared")
        assert node.metadata.deletion_timestamp is None
        assert not node.spec.unschedulable
        assert node.metadata.labels[LABEL_NODE_MACHINE_NAME] == "b"
        assert unambiguous(await b.machine("b")) is None


@on_bench
async def test_when_both_go_the_last_one_takes_the_node_along() -> None:
    async with bench() as b:
        await contested(b)
        await b.delete_machine("a")
        await b.delete_machine("b")
        await b.until_gone("a")
        await b.until_gone("b")
        assert not await b.exists(NODES, "shared")
        assert b.driver.vms == {}


@on_bench
async def test_a_contested_node_that_somebody_deletes_takes_no_machine_along() -> None:
    async with bench() as b:
        await contested(b)
        await b.client.delete(NODES, "shared")
        await b.settle(120.0)
        assert {(await b.machine(n)).phase for n in ("a", "b")} == {"Pending"}
        assert b.driver.count("delete") == 0


@on_bench
async def test_a_label_edited_by_a_user_is_corrected_and_disturbs_nobody() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running("a", spec=TEMPLATE)
        await b.running("b", spec=TEMPLATE)
        await label(b, "b", "node-a")
        await b.settle(5.0)
        assert (await b.machine("b")).node_name == "node-b"
        assert "NodeLabelCorrected" in b.events()
        assert [w.path.rpartition("/")[2] for w in b.writes] == ["b"]
        assert {(await b.machine(n)).phase for n in ("a", "b")} == {"Running"}
        await label(b, "b", None)
        await b.settle(5.0)
        assert (await b.machine("b")).node_name == "node-b"


@on_bench
async def test_a_machine_that_goes_with_a_wrong_label_drains_its_own_node_and_no_other() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running("a")
        await b.running("b")
        await b.run_pod("pa", on="a")
        await b.run_pod("pb", on="b")
        await b.crash()
        await label(b, "b", "node-a")
        await b.delete_machine("b")
        await b.start()
        await b.settle(5.0)
        assert await b.finish_leaving_pods() == ["pb"]
        await b.until_gone("b")
        assert not await b.exists(NODES, "node-b")
        assert not (await b.node("a")).spec.unschedulable
        assert (await b.machine("a")).phase == "Running"


@on_bench
async def test_a_label_that_is_spoilt_in_the_middle_of_a_drain_leads_to_no_other_node() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running("a")
        await b.running("b")
        await b.run_pod("pa", on="a")
        await b.run_pod("pb", on="b")
        await b.delete_machine("b")
        await b.settle(5.0)
        await label(b, "b", "node-a")
        await b.settle(5.0)
        assert await b.finish_leaving_pods() == ["pb"]
        await b.until_gone("b")
        assert not await b.exists(NODES, "node-b")
        assert not (await b.node("a")).spec.unschedulable
        assert (await b.machine("a")).phase == "Running"


@on_bench
async def test_a_new_vm_under_the_name_of_a_running_machines_node_is_taken_back() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.node_names["a"] = b.driver.node_names["b"] = "shared"
        await b.make_machine("a")
        await b.until_phase("Pending", "a")
        await b.make_machine("b", spec={"creationTimeout": "30m"})
        await b.until_phase("Pending", "b")
        await label(b, "b", "x")
        await register(b, "shared")
        await b.until_phase("Running", "a")
        b.driver.node_names["c"] = "shared"
        await b.make_machine("c")
        await b.until_phase("Failed", "c")
        assert "c" not in b.driver.vms
        assert (await b.machine("c")).status.last_operation.description == "VM using old node obj"
        assert (await b.machine("a")).phase == "Running"


@on_bench
async def test_a_node_that_names_a_machine_with_another_node_is_nobodys() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running("a")
        left = {
            "name": "old",
            "labels": {LABEL_NODE_MACHINE_NAME: "a"},
            "finalizers": [NODE_FINALIZER],
        }
        await b.client.create(NODES, {"metadata": left})
        await b.settle(25 * 60)
        old = await b.client.get(NODES, "old")
        assert ANNOTATION_NOT_MANAGED_BY_MCM in old.metadata.annotations
        assert NODE_FINALIZER not in old.metadata.finalizers
        assert ANNOTATION_NOT_MANAGED_BY_MCM not in (await b.node("a")).metadata.annotations


@on_bench
async def test_a_node_that_came_back_under_its_name_is_its_machines_again() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running("a", spec=TEMPLATE)
        await b.client.patch(NODES, "node-a", {"metadata": {"finalizers": None}})
        with b.unreachable():
            await b.client.delete(NODES, "node-a")
            await b.join("a")
        await b.settle(120.0)
        assert (await b.machine("a")).phase == "Running"
        assert (await b.node("a")).metadata.labels["pool"] == "x"
