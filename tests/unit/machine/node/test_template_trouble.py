"""Templates that are invalid, Nodes that refuse to be written, and who still gets to run."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from mcm.api.core import NODES, NodeCondition
from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import NODE_FINALIZER
from mcm.client.errors import RequestTimeout
from mcm.client.transport import Request
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from mcm.driver import Code
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench

GATE: JSONObject = {"key": "node.machine.sapcloud.io/instance-not-ready", "effect": "NoSchedule"}
CRITICAL: JSONObject = {
    "key": "node.gardener.cloud/critical-components-not-ready",
    "effect": "NoSchedule",
}


def template(
    labels: JSONObject | None = None,
    annotations: JSONObject | None = None,
    taints: list[JSONObject] | None = None,
) -> JSONObject:
    metadata = {"labels": labels or {}, "annotations": annotations or {}}
    return {"nodeTemplate": {"metadata": metadata, "spec": {"taints": taints or []}}}


WANTED = template({"pool": "x"}, {"note": "y"}, [{"key": "t", "effect": "NoSchedule"}])


async def applied(b: Bench, name: str = "m") -> NodeCondition | None:
    return find_own((await b.machine(name)).status, OwnCondition.NODE_TEMPLATE_APPLIED)


async def set_template(b: Bench, spec: JSONObject) -> None:
    await b.client.patch(MACHINES, "m", {"spec": spec}, namespace=NAMESPACE)


async def taint_node(b: Bench, *taints: JSONObject) -> None:
    await b.client.patch(NODES, "node-m", {"spec": {"taints": list(taints)}})


async def joined(b: Bench, *taints: JSONObject, spec: JSONObject | None = None) -> None:
    """A machine that is Pending, and its Node registered with ``taints``, not ready yet."""
    await b.make_class()
    await b.make_machine(spec=spec or {})
    await b.until_phase("Pending")
    await b.settle()
    body: JSONObject = {
        "metadata": {"name": "node-m"},
        "spec": {"providerID": b.driver.vms["m"], "taints": list(taints)},
    }
    await b.client.create(NODES, body)
    await b.settle()


def keys(node: JSONObject) -> list[str]:
    spec = node["spec"]
    assert isinstance(spec, dict)
    return [taint["key"] for taint in spec.get("taints", [])]


@on_bench
async def test_an_invalid_template_is_shown_once_and_the_valid_rest_is_applied() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine(
            spec=template(
                {"pool": "x", "not a key": "v", "long": "v" * 64},
                {"note": "y", "": "z"},
                [{"key": "t", "effect": "NoSchedule"}, {"key": "u", "effect": "Sometimes"}],
            )
        )
        await b.until_phase("Pending")
        await b.join()
        await b.until_phase("Running")
        await b.settle()
        node = await b.node()
        assert node.metadata.labels["pool"] == "x"
        assert node.metadata.annotations["note"] == "y"
        assert [t.key for t in node.spec.taints] == ["t"]
        shown = await applied(b)
        assert shown is not None
        assert (shown.status, shown.reason) == ("False", "InvalidNodeTemplate")
        for field in ("labels[not a key]", "labels[long]", "annotations[]", "taints[1]"):
            assert field in shown.message
        assert b.events().count("InvalidNodeTemplate") == 1
        b.writes.clear()
        for ready in ("False", "True"):
            await b.set_ready("m", ready)
            await b.until_phase("Running" if ready == "True" else "Unknown")
        await b.settle(3600)
        assert b.written("nodes") == []
        assert len(b.written("machines")) == 2
        assert await applied(b) == shown
        await set_template(b, template({"pool": "x", "not a key": None, "long": "v"}))
        await b.settle()
        assert (await b.node()).metadata.labels["long"] == "v"


@on_bench
async def test_a_name_that_fits_no_label_is_said_and_stops_nothing() -> None:
    async with bench() as b:
        name = "m" * 64
        b.driver.node_names[name] = "n"
        await b.make_class()
        await b.running(name, spec=WANTED)
        node = await b.node(name)
        assert node.metadata.labels["pool"] == "x"
        assert NODE_FINALIZER in node.metadata.finalizers
        shown = await applied(b, name)
        assert shown is not None
        assert "the machine's name is over 63 characters long" in shown.message
        await b.delete_machine(name)
        await b.until_gone(name)
        assert not await b.exists(NODES, "n")


@on_bench
async def test_the_condition_goes_when_the_template_is_mended() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await set_template(b, template({"pool": "two words"}))
        await b.settle()
        assert await applied(b) is not None
        await set_template(b, template({"pool": "x"}))
        await b.settle()
        assert await applied(b) is None
        assert (await b.node()).metadata.labels["pool"] == "x"


@pytest.mark.parametrize("code", [400, 403, 422])
def test_a_node_that_cannot_be_patched_stops_nothing(code: int) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            b.faults.answer(code, method="PATCH", path=r"/nodes/node-m$", agent="mcm")
            await joined(b, GATE, spec=WANTED)
            await b.set_ready("m", "True")
            assert await b.until_phase("Running") < 1
            await b.settle(10)
            shown = await applied(b)
            assert shown is not None
            assert (shown.status, shown.reason) == ("False", "NodeWriteRefused")
            for part in ("taints: ", "labels: ", "annotations: ", "finalizer and machine name: "):
                assert part in shown.message
            assert b.events().count("NodeWriteRefused") == 1
            assert len(b.written("nodes")) < 12
            for _ in range(10):
                await b.set_ready("m", "False")
                assert await b.until_phase("Unknown") < 1
                await b.set_ready("m", "True")
                assert await b.until_phase("Running") < 1
            assert len(b.written("nodes")) < 16
            b.faults.clear()
            await b.settle(700)
            assert await applied(b) is None
            node = await b.node()
            assert node.metadata.labels["pool"] == "x"
            assert NODE_FINALIZER in node.metadata.finalizers
            assert [t.key for t in node.spec.taints] == ["t"]

    main()


@on_bench
async def test_one_part_that_is_refused_keeps_no_other_from_the_node() -> None:
    async with bench() as b:
        b.faults.answer(
            403,
            message="labels are not yours (request 4711)",
            method="PATCH",
            path=r"/nodes/node-m$",
            agent="mcm",
            where=lambda r: b'"pool"' in (r.body or b"") and b'"labels"' in (r.body or b""),
        )
        await joined(b, spec=WANTED)
        await b.set_ready("m", "True")
        await b.until_phase("Running")
        await b.settle()
        node = await b.node()
        assert "pool" not in node.metadata.labels
        assert node.metadata.labels["node.gardener.cloud/machine-name"] == "m"
        assert node.metadata.annotations["note"] == "y"
        assert [t.key for t in node.spec.taints] == ["t"]
        shown = await applied(b)
        assert shown is not None
        assert "labels: " in shown.message
        assert "are not yours" in shown.message
        assert "taints: " not in shown.message


@on_bench
async def test_an_answer_that_never_reads_the_same_is_written_once() -> None:
    async with bench() as b:
        number = 0

        def deny(request: Request) -> None:
            nonlocal number
            if request.method == "PATCH" and request.path.endswith("/nodes/node-m"):
                number += 1
                b.faults.clear()
                b.faults.answer(403, message=f"denied, trace {number:08d}", path=r"/nodes/node-m$")

        b.transport.before_write = deny
        await joined(b, spec=template({"pool": "x"}))
        await b.set_ready("m", "True")
        await b.until_phase("Running")
        b.writes.clear()
        await b.settle(3600)
        assert number > 6
        assert b.written("machines") == []


@on_bench
async def test_a_refused_capacity_keeps_no_taint_away_and_is_not_recorded() -> None:
    async with bench() as b:
        b.faults.answer(422, method="PATCH", path=r"/nodes/node-m/status$", agent="mcm")
        await b.make_class()
        patch = {
            "nodeTemplate": {
                "capacity": {"cpu": "1", "gpu": "0", "memory": "1Gi"},
                "instanceType": "s",
                "region": "r",
                "zone": "z",
                "virtualCapacity": {"sub/x": "10"},
            }
        }
        await b.client.patch(MACHINE_CLASSES, "c", patch, namespace=NAMESPACE)
        await b.make_machine(spec=WANTED)
        await b.until_phase("Pending")
        await b.join()
        await b.until_phase("Running")
        await b.settle()
        node = await b.node()
        assert [t.key for t in node.spec.taints] == ["t"]
        record = "node.machine.sapcloud.io/last-applied-virtual-capacity"
        assert record not in node.metadata.annotations
        shown = await applied(b)
        assert shown is not None
        assert "virtual capacity: " in shown.message
        b.faults.clear()
        await b.settle(700)
        node = await b.node()
        assert node.status.capacity["sub/x"] == "10"
        assert node.metadata.annotations[record] == '{"sub/x":"10"}'
        assert await applied(b) is None


@on_bench
async def test_capacity_and_taints_that_change_together_both_land() -> None:
    async with bench() as b:
        await b.make_class()
        patch = {
            "nodeTemplate": {
                "capacity": {"cpu": "1", "gpu": "0", "memory": "1Gi"},
                "instanceType": "s",
                "region": "r",
                "zone": "z",
                "virtualCapacity": {"sub/x": "10"},
            }
        }
        await b.client.patch(MACHINE_CLASSES, "c", patch, namespace=NAMESPACE)
        await b.running(spec=WANTED)
        await b.crash()
        patch = {"nodeTemplate": {"virtualCapacity": {"sub/x": "20"}}}
        await b.client.patch(MACHINE_CLASSES, "c", patch, namespace=NAMESPACE)
        await set_template(b, template(taints=[{"key": "u", "effect": "NoSchedule"}]))
        await b.start()
        await b.settle()
        node = await b.node()
        assert node.status.capacity["sub/x"] == "20"
        assert [t.key for t in node.spec.taints] == ["u"]
        assert len(b.written("nodes")) == 2


@on_bench
async def test_a_record_nobody_can_read_blocks_nothing() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running(spec=WANTED)
        record = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
        patch = {"metadata": {"annotations": {record: "{not json"}}}
        await b.client.patch(NODES, "node-m", patch)
        await b.settle()
        assert orjson.loads((await b.node()).metadata.annotations[record])["spec"]
        assert await applied(b) is None


# ---- before a machine runs -----------------------------------------------------------------------


@on_bench
async def test_labels_and_taints_are_on_the_node_before_its_machine_runs() -> None:
    async with bench() as b:
        fault = b.faults.answer(503, method="PATCH", path=r"/nodes/node-m$", agent="mcm")
        await joined(b, GATE, spec=WANTED)
        await b.set_ready("m", "True")
        await b.settle(30)
        assert (await b.machine()).phase == "Pending"
        fault.lift()
        seen: list[tuple[str, ...]] = []

        def watch(request: Request) -> None:
            if request.path.endswith("/machines/m/status"):
                node = next(n for n in b.objects(NODES))
                seen.append(tuple(keys(node)))

        b.transport.before_write = watch
        await b.until_phase("Running")
        assert seen[0] == ("t",)


@on_bench
async def test_a_node_that_cannot_be_written_for_long_does_not_cost_a_machine_its_life() -> None:
    async with bench() as b:
        b.faults.answer(503, method="PATCH", path=r"/nodes/node-m$", agent="mcm")
        await joined(b, spec=WANTED)
        await b.set_ready("m", "True")
        assert await b.until_phase("Running", within=300) > 50
        assert "NodeNotPrepared" in b.events()


@on_bench
async def test_the_taint_of_an_instance_that_is_not_ready_goes_with_one_write() -> None:
    async with bench() as b:
        await joined(b, GATE, CRITICAL, spec=WANTED)
        assert keys(b.objects(NODES)[0]) == [GATE["key"], CRITICAL["key"], "t"]
        b.writes.clear()
        await b.set_ready("m", "True")
        await b.settle(60)
        # What others wait for keeps it Pending, and pods away.
        assert (await b.machine()).phase == "Pending"
        assert keys(b.objects(NODES)[0])[0] == GATE["key"]
        await taint_node(b, GATE, {"key": "t", "effect": "NoSchedule"})
        await b.until_phase("Running")
        await b.settle()
        assert keys(b.objects(NODES)[0]) == ["t"]
        assert len(b.written("nodes")) == 1


@on_bench
async def test_a_machine_that_is_not_initialized_keeps_pods_away() -> None:
    async with bench() as b:
        b.driver.fail("initialize", Code.INTERNAL, "not yet", times=3)
        await b.make_class()
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        body: JSONObject = {
            "metadata": {"name": "node-m"},
            "spec": {"providerID": b.driver.vms["m"], "taints": [GATE]},
        }
        await b.client.create(NODES, body)
        await b.set_ready("m", "True")
        await b.settle(2)
        assert (await b.machine()).phase == "CrashLoopBackOff"
        assert keys(b.objects(NODES)[0]) == [GATE["key"]]
        await b.until_phase("Running", within=600)
        await b.settle()
        assert keys(b.objects(NODES)[0]) == []


@pytest.mark.parametrize("arrived", [False, True])
def test_the_taint_goes_though_the_process_ends_between_the_two_writes(*, arrived: bool) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await joined(b, GATE, spec=template(taints=[GATE]))
            ended = asyncio.Event()

            def end(request: Request) -> None:
                if request.path.endswith("/machines/m/status") and not ended.is_set():
                    ended.set()
                    if not arrived:
                        raise RequestTimeout("lost on its way")

            b.transport.before_write = end
            await b.set_ready("m", "True")
            await ended.wait()
            await b.crash()
            await b.start()
            await b.until_phase("Running")
            await b.settle()
            assert keys(b.objects(NODES)[0]) == []
            b.writes.clear()
            await b.settle(3600)
            assert b.writes == []

    main()


@on_bench
async def test_a_taint_that_a_running_machines_node_comes_back_with_is_removed() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await taint_node(b, GATE)
        await b.settle()
        assert keys(b.objects(NODES)[0]) == []


# ---- texts that no longer hold -------------------------------------------------------------------


@pytest.mark.parametrize("ready", ["True", "False"])
def test_that_a_machine_is_invalid_is_said_no_longer_than_it_is(ready: str) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await joined(b)
            if ready == "True":
                await b.set_ready("m", "True")
                await b.until_phase("Running")
            spec = {"spec": {"healthTimeout": "soon"}}
            await b.client.patch(MACHINES, "m", spec, namespace=NAMESPACE)
            await b.settle()
            last = (await b.machine()).status.last_operation
            assert last.description.startswith("The machine is invalid: spec.healthTimeout")
            assert last.state == "Failed"
            b.writes.clear()
            spec = {"spec": {"healthTimeout": "10m"}}
            await b.client.patch(MACHINES, "m", spec, namespace=NAMESPACE)
            await b.settle()
            last = (await b.machine()).status.last_operation
            assert "invalid" not in last.description
            assert last.state == ("Successful" if ready == "True" else "Processing")
            assert len(b.writes) == 1
            if ready == "False":
                await b.set_ready("m", "True")
                await b.until_phase("Running")
                text = (await b.machine()).status.last_operation.description
                assert "successfully joined the cluster" in text

    main()


async def awaited(b: Bench) -> NodeCondition | None:
    return find_own((await b.machine()).status, OwnCondition.CRITICAL_COMPONENTS_READY)


@on_bench
async def test_a_machine_that_waits_for_critical_components_says_so_after_a_minute_once() -> None:
    async with bench() as b:
        await joined(b, CRITICAL)
        await b.set_ready("m", "True")
        await b.settle(55)
        assert await awaited(b) is None
        await b.settle(10)
        told = await awaited(b)
        assert told is not None and (told.status, told.reason) == ("False", "NodeTainted")
        assert "node node-m has the taint node.gardener.cloud/critical" in told.message
        shown = (await b.machine()).status.conditions
        assert [c.status for c in shown if c.type == "Ready"] == ["True"]  # in the same write
        assert b.events().count("CriticalComponentsAwaited") == 1
        writes = len(b.written("machines"))
        await b.settle(600)
        await b.set_ready("m", "False")
        await b.set_ready("m", "True")
        await b.settle()
        assert len(b.written("machines")) <= writes + 2  # not of this, but of the readiness
        assert (await b.machine()).phase == "Pending"
        await taint_node(b)
        assert await b.until_phase("Running") < 1.0
        assert await awaited(b) is None


@on_bench
async def test_critical_components_that_are_ready_soon_cost_no_write() -> None:
    async with bench() as b:
        await joined(b, CRITICAL)
        await b.set_ready("m", "True")
        await b.settle(30)
        before = len(b.written("machines"))
        await taint_node(b)
        await b.until_phase("Running")
        await b.settle(120)
        assert len(b.written("machines")) == before + 2  # Running, and how long it took


@on_bench
async def test_a_machine_that_fails_as_components_never_came_still_says_that() -> None:
    async with bench() as b:
        await joined(b, CRITICAL)
        await b.set_ready("m", "True")
        await b.until_phase("Failed", within=1300)
        assert await awaited(b) is not None


@on_bench
async def test_a_taint_that_goes_while_the_node_is_not_ready_is_no_longer_complained_of() -> None:
    async with bench() as b:
        await joined(b, CRITICAL)
        await b.set_ready("m", "True")
        await b.settle(65)
        assert await awaited(b) is not None
        await b.set_ready("m", "False")
        await taint_node(b)
        await b.settle()
        assert await awaited(b) is None
        assert (await b.machine()).phase == "Pending"


@on_bench
async def test_what_could_not_be_applied_is_forgotten_with_the_node() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine(spec=template({"not a key": "v"}))
        await b.until_phase("Pending")
        await b.join()
        await b.until_phase("Running")
        assert await applied(b) is not None
        await b.crash()  # who sees a Node go deletes its machine
        body: JSONObject = {"metadata": {"finalizers": None}}
        await b.client.patch(NODES, "node-m", body)
        await b.client.delete(NODES, "node-m")
        await b.start()
        await b.until_phase("Unknown")
        await b.settle()
        assert await applied(b) is None
        writes = len(b.written("machines"))
        await b.settle(300)
        assert len(b.written("machines")) == writes
        await b.join()
        await b.until_phase("Running")
        assert await applied(b) is not None
