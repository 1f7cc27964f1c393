"""Machines that go because of their Node: it is deleted, or somebody asks for that on it."""

from __future__ import annotations

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from tests.unit.machine.bench import Bench, bench, on_bench

KEY = "node.machine.sapcloud.io/trigger-deletion-by-mcm"
NOT_MANAGED = "node.machine.sapcloud.io/not-managed-by-mcm"


async def annotate(b: Bench, name: str, **annotations: str | None) -> None:
    keys = {"trigger": KEY, "unmanaged": NOT_MANAGED}
    patch: JSONObject = {
        "metadata": {"annotations": {keys[key]: value for key, value in annotations.items()}}
    }
    await b.client.patch(NODES, name, patch)


@on_bench
async def test_a_node_that_asks_for_it_has_its_machine_deleted_once() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p")
        await annotate(b, "node-m", trigger="true")
        await b.settle(2)
        assert (await b.machine()).metadata.deletion_timestamp is not None
        deletes = [w for w in b.written("machines", "m") if w.method == "DELETE"]
        assert len(deletes) == 1
        assert deletes[0].body["preconditions"] == {"uid": (await b.machine()).metadata.uid}
        await annotate(b, "node-m", trigger=None)
        await annotate(b, "node-m", trigger="true")
        await b.settle(2)
        assert len([w for w in b.written("machines", "m") if w.method == "DELETE"]) == 1
        assert "DeletionTriggered" in b.events()
        await b.finish_leaving_pods()
        await b.until_gone(within=30)
        assert not await b.exists(NODES, "node-m")


@pytest.mark.parametrize("value", ["false", "True", "", "yes", "m~2026-01-01T00:00:00Z"])
def test_no_other_value_means_anything(value: str) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running()
            await annotate(b, "node-m", trigger=value)
            await b.settle(5)
            assert (await b.machine()).metadata.deletion_timestamp is None

    main()


@on_bench
async def test_what_was_asked_while_nobody_worked_is_done_afterwards() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.crash()
        await annotate(b, "node-m", trigger="true")
        await b.start()
        await b.until_gone(within=30)


@on_bench
async def test_who_changes_their_mind_in_time_keeps_the_machine() -> None:
    """The mirror still says that the machine is to go; the server does not."""
    async with bench() as b:
        await b.make_class()
        await b.running()
        with b.unreachable("/nodes"):
            await annotate(b, "node-m", trigger="true")
            await annotate(b, "node-m", trigger=None)
        await b.settle(60)
        assert (await b.machine()).metadata.deletion_timestamp is None


@on_bench
async def test_a_node_that_is_not_managed_asks_in_vain() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await annotate(b, "node-m", unmanaged="1", trigger="true")
        assert (await b.machine()).metadata.deletion_timestamp is None


@on_bench
async def test_a_read_of_the_node_that_is_refused_is_shown() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        b.faults.answer(403, message="not yours", method="GET", path="/nodes/node-m$", times=3)
        await b.delete_machine()
        await b.settle(2)
        last = (await b.machine()).status.last_operation
        assert last.description == (
            'Retrieval of Node Object "node-m" failed due to error: not yours, Retrying. '
            "Initiate node object deletion"
        )
        assert last.state == "Failed"
        await b.until_gone(within=60)
        assert not await b.exists(MACHINES, "m")
