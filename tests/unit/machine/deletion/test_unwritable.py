"""A machine on which nothing can be written any more goes all the same, and leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.client.errors import Cause, Invalid
from mcm.client.transport import Request
from mcm.controllers.machine.deletion.release import with_repairs
from mcm.driver import Code
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench
from tests.unit.machine.objects import machine

FINALIZER = "machine.sapcloud.io/machine-controller-manager"


def refuse(b: Bench, *, path: str, when: str = "", unless: str = "") -> None:
    """Answer 422 to patches of the machine that speak of ``when`` and not of ``unless``."""

    def matches(request: Request) -> bool:
        body = (request.body or b"").decode()
        return when in body and not (unless and unless in body)

    b.faults.answer(422, message="it is invalid", method="PATCH", path=path, where=matches)


def change_raw(b: Bench, change: Callable[[Any], object]) -> None:
    """Change the stored machine as no API server of today would let anybody do."""
    storage = "machines.machine.sapcloud.io"
    live = b.server.store.collection(storage).get(f"{NAMESPACE}/m")
    assert live is not None
    body = orjson.loads(orjson.dumps(live.body))
    change(body)
    b.server.store.replace(storage, live, body)


@on_bench
async def test_a_status_that_cannot_be_written_keeps_no_machine() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        refuse(b, path="/machines/m/status$")
        b.driver.latency = 3.0
        await b.delete_machine()
        await b.until_gone(within=30)
        assert not b.driver.vms
        assert not await b.exists(NODES, "node-m")
        assert "StatusNotWritable" in b.events()


@on_bench
async def test_a_drain_goes_on_though_its_record_cannot_be_written() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p")
        refuse(b, path="/machines/m/status$")
        await b.delete_machine()
        await b.settle(5)
        assert b.driver.vms
        assert await b.finish_leaving_pods() == ["p"]
        await b.until_gone(within=30)
        assert not b.driver.vms


@on_bench
async def test_a_provider_is_left_alone_between_failures_though_they_cannot_be_recorded() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        refuse(b, path="/machines/m/status$")
        b.driver.fail("delete", Code.PERMISSION_DENIED, times=1000)
        await b.delete_machine()
        await b.settle(1500)
        assert 3 <= b.driver.count("delete") <= 8
        b.driver.failures.clear()
        await b.until_gone(within=700)
        assert not b.driver.vms


@on_bench
async def test_a_nodes_name_that_cannot_be_written_is_used_all_the_same() -> None:
    async with bench(started=False) as b:
        await b.make_class()
        b.driver.vms["m"] = "cloud:///m-1"
        await b.client.create(
            MACHINES,
            {
                "metadata": {"name": "m", "finalizers": [FINALIZER]},
                "spec": {"class": {"kind": "MachineClass", "name": "c"}},
            },
            namespace=NAMESPACE,
        )
        name = "node-" + "m" * 70
        b.driver.node_names["m"] = name
        await b.client.create(NODES, {"metadata": {"name": name}})
        await b.start()
        await b.delete_machine()
        await b.until_gone(within=30)
        assert not b.driver.vms
        assert not await b.exists(NODES, name)


@pytest.mark.parametrize(
    "labels", [{"owner": "née Ångström!"}, {"bad key!": "x"}, {"long": "x" * 64}]
)
def test_labels_that_no_server_would_take_go_with_the_finalizer(labels: dict[str, str]) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running()
            await b.crash()
            change_raw(b, lambda body: body["metadata"]["labels"].update(labels))
            await b.start()
            await b.delete_machine()
            await b.until_gone(within=30)
            assert not b.driver.vms
            assert not await b.exists(NODES, "node-m")

    main()


@on_bench
async def test_a_field_that_its_schema_refuses_by_now_keeps_no_machine() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.crash()
        change_raw(b, lambda body: body["spec"].update(drainTimeout=7, maxEvictRetries="x"))
        await b.start()
        await b.delete_machine()
        await b.until_gone(within=60)
        assert not b.driver.vms


def test_with_the_finalizer_goes_what_the_refusal_names_and_no_server_would_take() -> None:
    fields = ("spec.drainTimeout", "spec.nodeTemplate.spec.taints[0].key", "spec.class.name")
    causes = tuple(Cause("FieldValueTypeInvalid", "wrong", field) for field in fields)
    subject = machine(labels={"good": "x", "bad key": "x", "long": "x" * 64}, provider_id="p")
    change: JSONObject = {"metadata": {"finalizers": []}}
    assert with_repairs(subject, change, Invalid(422, "Invalid", "no", causes=causes)) == {
        "metadata": {"finalizers": [], "labels": {"bad key": None, "long": None}},
        "spec": {"drainTimeout": None, "nodeTemplate": None},
    }
    assert with_repairs(machine(), change, Invalid(422)) == {
        "metadata": {"finalizers": [], "labels": {}}
    }


@on_bench
async def test_a_finalizer_that_may_not_be_removed_is_told_of() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        refuse(b, path="/machines/m$", when="finalizers")
        await b.delete_machine()
        await b.settle(30)
        assert "FinalizerNotRemovable" in b.events()
        assert not b.driver.vms
