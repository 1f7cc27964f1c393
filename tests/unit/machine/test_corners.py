"""Ways through the acts that few machines ever take."""

from __future__ import annotations

import base64

import pytest

from mcm.api.core import NODES, SECRETS, VOLUME_ATTACHMENTS
from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.controllers.machine.creation import bootstrap_token
from mcm.controllers.machine.creation.known_tokens import object_name
from mcm.driver import Code
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench

FINALIZER = "machine.sapcloud.io/machine-controller-manager"


def tokens(b: Bench) -> list[JSONObject]:
    return [s for s in b.objects(SECRETS) if s.get("type") == "bootstrap.kubernetes.io/token"]


async def terminating_at(b: Bench, text: str) -> None:
    """A machine that another process left at ``text``; nothing is started yet."""
    await b.client.create(
        MACHINES,
        {
            "metadata": {"name": "m", "finalizers": [FINALIZER]},
            "spec": {
                "class": {"kind": "MachineClass", "name": "c"},
                "providerID": "cloud:///m-1",
            },
        },
        namespace=NAMESPACE,
    )
    b.driver.vms["m"] = "cloud:///m-1"
    status: JSONObject = {
        "currentStatus": {"phase": "Terminating"},
        "lastOperation": {"description": text, "type": "Delete"},
    }
    await b.client.patch(
        MACHINES, "m", {"status": status}, namespace=NAMESPACE, subresource="status"
    )
    await b.delete_machine()


@on_bench
async def test_a_token_is_used_again_by_the_process_that_made_it_and_by_the_next() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.UNAVAILABLE, times=2)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        await b.crash()
        await b.start()
        await b.until_phase("Pending", within=30)
        assert len(tokens(b)) == 1
        assert len([w for w in b.written("secrets") if w.method == "POST" and w.status == 201]) == 1
        await b.crash()
        await b.start()
        await b.join()
        await b.until_phase("Running")
        await b.settle()
        assert not tokens(b)


@on_bench
async def test_a_token_that_expired_meanwhile_is_renewed() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.UNAVAILABLE, times=1)
        await b.make_machine(spec={"creationTimeout": "1h"})
        await b.until_phase("CrashLoopBackOff")
        before = tokens(b)[0]["data"]
        await b.crash()
        await b.settle(3590)
        await b.start()
        await b.until_phase("Pending", within=5)
        (token,) = tokens(b)
        assert token["data"] != before
        data = token["data"]
        assert isinstance(data, dict)
        assert base64.b64decode(data["token-secret"]) in b.driver.seen_user_data["m"]


@on_bench
async def test_a_token_id_that_another_machine_has_is_left_to_it() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.latency = 5.0
        await b.make_machine()
        machine = await b.machine()
        taken = object_name(bootstrap_token.token_id(machine, 0))
        foreign: JSONObject = {
            "metadata": {"name": taken},
            "type": "bootstrap.kubernetes.io/token",
            "data": {"description": base64.b64encode(b"another's").decode()},
        }
        await b.client.create(SECRETS, foreign, namespace="kube-system")
        await b.until_phase("Pending", within=30)
        b.driver.latency = 0.0
        await b.join()
        await b.until_phase("Running")
        await b.settle()
        assert [t["metadata"]["name"] for t in tokens(b)] == [taken]  # type: ignore[index]


@on_bench
async def test_virtual_capacity_reaches_the_nodes_status() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        template = {
            "capacity": {"cpu": "1", "gpu": "0", "memory": "1Gi"},
            "virtualCapacity": {"example.com/slots": "5"},
            "instanceType": "i",
            "region": "r",
            "zone": "z",
        }
        await b.client.patch(MACHINE_CLASSES, "c", {"nodeTemplate": template}, namespace=NAMESPACE)
        await b.settle()
        node = await b.node()
        assert node.status.capacity["example.com/slots"] == "5"
        assert len(b.written("nodes")) == 2
        await b.settle(100)
        assert len(b.written("nodes")) == 2


@on_bench
async def test_a_provider_that_names_no_node_is_at_fault() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.node_names["m"] = ""
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        last = (await b.machine()).status.last_operation
        assert last.error_code == "Internal"
        assert "no node name" in last.description
        b.driver.node_names["m"] = "node-m"
        await b.until_phase("Pending", within=40)
        assert b.driver.made == 1


@on_bench
async def test_a_vm_on_an_old_node_that_cannot_be_deleted_goes_with_its_machine() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.node_names["m"] = "old"
        await b.client.create(
            NODES, {"metadata": {"name": "old"}, "spec": {"providerID": "cloud:///other"}}
        )
        await b.settle()
        b.driver.fail("delete", Code.UNAVAILABLE)
        await b.make_machine()
        await b.until_phase("Failed")
        await b.delete_machine()
        await b.until_gone(within=10)
        assert not b.driver.vms


@on_bench
async def test_an_identity_that_cannot_be_written_keeps_no_vm_from_being_initialised() -> None:
    async with bench() as b:
        await b.make_class()
        await b.settle()
        writes = 0

        def second(_: object) -> bool:
            nonlocal writes
            writes += 1
            return writes == 2

        b.faults.answer(500, method="PATCH", path="/machines/m$", where=second)
        await b.make_machine()
        await b.until_phase("Pending", within=20)
        calls = [verb for verb, name in b.driver.calls if name == "m"]
        assert calls[:3] == ["status", "create", "initialize"]
        assert b.driver.made == 1


@pytest.mark.parametrize(
    "text",
    [
        "Set machine status to termination. Now, getting VM Status",
        "Initiate node drain",
        "Force Drain successful. Delete Volume Attachments",
        "VM deletion was successful. Initiate node object deletion",
    ],
)
def test_without_target_cluster_a_deletion_goes_on_from_any_marker(text: str) -> None:
    @on_bench
    async def main() -> None:
        async with bench(has_target=False, started=False) as b:
            await b.make_class()
            await terminating_at(b, text)
            await b.start()
            await b.until_gone(within=2)
            assert ("m" in b.driver.vms) is ("node object" in text)

    main()


@on_bench
async def test_a_node_that_claims_the_machine_tells_its_name() -> None:
    async with bench(started=False) as b:
        await b.make_class()
        await terminating_at(b, "Set machine status to termination. Now, getting VM Status")
        labels = {"node.gardener.cloud/machine-name": "m"}
        await b.client.create(NODES, {"metadata": {"name": "odd-name", "labels": labels}})
        await b.start()
        await b.until_gone(within=2)
        assert not await b.exists(NODES, "odd-name")
        assert b.driver.count("status") == 0


@on_bench
async def test_a_deletion_without_class_and_node_name_waits_at_the_vm() -> None:
    async with bench(started=False) as b:
        await terminating_at(b, "Set machine status to termination. Now, getting VM Status")
        await b.start()
        await b.settle(5)
        text = (await b.machine()).status.last_operation.description
        assert "machine class default/c not found" in text
        assert text.endswith("Initiate VM deletion")


async def attach(b: Bench) -> None:
    attachment: JSONObject = {
        "metadata": {"name": "va"},
        "spec": {
            "attacher": "csi",
            "nodeName": "node-m",
            "source": {"persistentVolumeName": "pv"},
        },
    }
    await b.client.create(VOLUME_ATTACHMENTS, attachment)


@on_bench
async def test_attachments_that_cannot_be_deleted_delay_the_vm_but_not_for_ever() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await attach(b)
        await b.label_machine("m", "force-deletion", "true")
        b.faults.answer(403, message="not yours", method="DELETE", path="/volumeattachments/")
        await b.delete_machine()
        await b.settle(2)
        text = (await b.machine()).status.last_operation.description
        assert "not yours" in text
        assert text.endswith("Delete Volume Attachments")
        assert b.driver.vms
        await b.until_gone(within=120)
        assert "VolumesLeftAttached" in b.events()


@on_bench
async def test_a_forced_deletion_without_attachments_says_so() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.label_machine("m", "force-deletion", "true")
        await b.delete_machine()
        await b.until_gone(within=2)
        assert "Node Volumes for node: node-m are already detached" in str(
            [w.body for w in b.writes]
        )


@on_bench
async def test_a_node_object_that_cannot_be_deleted_is_shown_and_tried_again() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        b.faults.answer(403, message="not yours", method="DELETE", path="/nodes/", times=2)
        await b.delete_machine()
        await b.settle(1)
        text = (await b.machine()).status.last_operation.description
        assert text == (
            'Deletion of Node Object "node-m" failed due to error: not yours. '
            "Initiate node object deletion"
        )
        await b.until_gone(within=30)
        assert not await b.exists(NODES, "node-m")
