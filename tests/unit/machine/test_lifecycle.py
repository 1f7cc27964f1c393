from __future__ import annotations

import base64

from mcm.api.core import NODES, SECRETS
from mcm.api.machine import MACHINE_CLASSES, MACHINES
from tests.unit.machine.bench import NAMESPACE, bench, on_bench


@on_bench
async def test_a_machine_comes_to_running_in_five_writes_and_one_on_its_node() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending", within=2)
        await b.join(ready="False")
        await b.settle()
        await b.set_ready("m", "True")
        await b.until_phase("Running", within=2)
        await b.settle()
        writes = b.written("machines", "m")
        assert [(w.method, w.path.endswith("/status"), w.status) for w in writes] == [
            ("PATCH", False, 200),
            ("PATCH", False, 200),
            ("PATCH", True, 200),
            ("PATCH", True, 200),
            ("PATCH", False, 200),
        ]
        assert len(b.written("nodes")) == 1
        tokens = [w.method for w in b.writes if "/kube-system/secrets" in w.path]
        assert tokens == ["POST", "DELETE"]
        count = b.server.requests.total
        assert count(verb="patch", resource=MACHINES.name, agent="mcm", code=200) == 5
        assert count(verb="get", resource=MACHINES.name, agent="mcm", code=200) == 0
        made = await b.machine()
        assert made.node_name == "node-m"
        assert made.spec.provider_id == b.driver.vms["m"]
        assert made.metadata.annotations["machinepriority.machine.sapcloud.io"] == "3"
        duration = made.metadata.annotations["node.machine.sapcloud.io/machine-join-duration"]
        assert made.status.last_operation.description.endswith(f" {duration}")
        assert made.status.last_operation.description.startswith(
            "Machine m successfully joined the cluster in "
        )
        assert [c.type for c in made.status.conditions] == ["Ready"]
        node = await b.node()
        assert node.metadata.labels["node.gardener.cloud/machine-name"] == "m"
        assert node.metadata.finalizers == ("node.machine.sapcloud.io/machine-controller",)
        assert b.events() == ["VMCreated", "Joined"]


@on_bench
async def test_the_finalizer_is_on_the_machine_before_its_vm_exists() -> None:
    async with bench() as b:
        b.driver.latency = 10.0
        await b.make_class()
        await b.make_machine()
        await b.settle(15)
        assert b.driver.made == 0
        assert (await b.machine()).metadata.finalizers


@on_bench
async def test_a_vm_joins_with_a_token_that_is_gone_once_it_has() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        tokens = [s for s in b.objects(SECRETS) if s.get("type") == "bootstrap.kubernetes.io/token"]
        data = tokens[0]["data"]
        assert isinstance(data, dict)
        id_, key = (base64.b64decode(data[k]).decode() for k in ("token-id", "token-secret"))
        assert b.driver.seen_user_data["m"] == f"join with {id_}.{key} as m".encode()
        await b.join()
        await b.until_phase("Running")
        await b.settle()
        assert not [s for s in b.objects(SECRETS) if "token" in str(s.get("type"))]


@on_bench
async def test_a_class_is_protected_while_machines_use_it_and_its_secret_while_it_exists() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.client.delete(MACHINE_CLASSES, "c", namespace=NAMESPACE)
        await b.client.delete(SECRETS, "s", namespace=NAMESPACE)
        await b.settle()
        assert await b.exists(MACHINE_CLASSES, "c")
        assert await b.exists(SECRETS, "s")
        await b.delete_machine()
        await b.until_gone()
        await b.settle()
        assert not b.driver.vms
        assert not await b.exists(MACHINE_CLASSES, "c")
        assert not await b.exists(SECRETS, "s")


@on_bench
async def test_a_machine_is_deleted_in_one_write_without_waiting_for_anything() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.delete_machine()
        took = await b.until_gone()
        assert took < 1.0
        assert len(b.written("machines", "m")) == 1
        assert not b.driver.vms
        assert not await b.exists(NODES, "node-m")
        await b.settle()
        assert b.events()[-2:] == ["VMDeleted", "Deleted"]


@on_bench
async def test_a_steady_machine_costs_nothing() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.settle(7200)
        assert b.writes == []
        assert {verb for verb, _ in b.driver.calls} <= {"list"}


@on_bench
async def test_a_machine_that_never_joined_leaves_without_a_drain() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        await b.delete_machine()
        assert await b.until_gone() < 1.0
        assert not b.driver.vms


@on_bench
async def test_without_target_cluster_a_machine_is_available_once_created() -> None:
    async with bench(has_target=False) as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Available")
        made = await b.machine()
        assert made.node_name == ""
        assert made.status.last_operation.description == "Created machine on cloud provider"
        assert [(a.type, a.address) for a in made.status.addresses] == [("Hostname", "node-m")]
        assert b.driver.seen_user_data["m"] == b"join with <<BOOTSTRAP_TOKEN>> as m"
        b.writes.clear()
        b.driver.latency = 2.0
        await b.delete_machine()
        await b.until_gone()
        first = b.written("machines", "m")[0].body["status"]
        assert first["lastOperation"]["description"].startswith("Running without target cluster")  # type: ignore[index]
        assert not b.driver.vms


@on_bench
async def test_a_node_deleted_by_somebody_takes_its_machine_along() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.client.delete(NODES, "node-m")
        await b.until_gone()
        assert not b.driver.vms
        assert not await b.exists(NODES, "node-m")
        assert "NodeDeleted" in b.events()


@on_bench
async def test_a_node_whose_finalizer_somebody_took_off_takes_its_machine_along_too() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.client.patch(NODES, "node-m", {"metadata": {"finalizers": []}})
        await b.client.delete(NODES, "node-m")
        await b.until_gone()
        assert not b.driver.vms


@on_bench
async def test_a_changed_template_reaches_the_node_in_one_write() -> None:
    async with bench() as b:
        await b.make_class()
        template = {"metadata": {"labels": {"pool": "a"}}, "spec": {"taints": []}}
        await b.running(spec={"nodeTemplate": template})
        assert (await b.node()).metadata.labels["pool"] == "a"
        changed = {
            "metadata": {"labels": {"pool": None, "tier": "b"}},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        }
        await b.client.patch(
            MACHINES, "m", {"spec": {"nodeTemplate": changed}}, namespace=NAMESPACE
        )
        await b.settle()
        node = await b.node()
        assert "pool" not in node.metadata.labels
        assert node.metadata.labels["tier"] == "b"
        assert [t.key for t in node.spec.taints] == ["k"]
        assert len(b.writes) == 1
