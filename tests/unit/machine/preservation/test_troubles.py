"""Preservation where something is wrong: refused writes, stale mirrors, clocks, rivals."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from mcm.api.core import NODES, PODS, NodeCondition
from mcm.api.machine import MACHINES
from mcm.api.names import (
    ANNOTATION_LAST_APPLIED_PRESERVE,
    ANNOTATION_PRESERVE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    LABEL_FORCE_DRAIN,
    LABEL_NODE,
    TAINT_PRESERVED,
)
from mcm.clock import LoopClock
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from mcm.controllers.machine.preservation.preservation import Preservation
from mcm.driver import Code
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench, with_settings
from tests.unit.machine.preservation.test_crashes_and_takeover import SETTINGS, fail
from tests.unit.machine.preservation.test_scenarios import (
    annotate_machine,
    annotate_node,
    condition,
    expiry,
    taints,
)


async def trouble(b: Bench) -> NodeCondition | None:
    return find_own((await b.machine()).status, OwnCondition.PRESERVATION_APPLIED)


@on_bench
async def test_a_node_that_cannot_be_marked_is_told_of_and_marked_as_soon_as_it_can() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        fault = b.faults.answer(403, message="no nodes for you", path="/nodes/node-m$")
        await annotate_node(b, "now")
        await b.settle(5)
        wrong = await trouble(b)
        assert wrong is not None
        assert (wrong.status, wrong.reason) == ("False", "NodeNotMarked")
        assert "no nodes for you" in wrong.message
        assert await expiry(b) is not None
        written = len(b.written("machines"))
        await b.settle(60)
        assert len(b.written("machines")) == written
        fault.lift()
        await b.settle(120)
        assert await trouble(b) is None
        assert (await b.machine()).metadata.annotations[ANNOTATION_LAST_APPLIED_PRESERVE] == "now"
        held = await condition(b)
        assert held is not None
        assert held[0] == "True"


@on_bench
async def test_marks_that_cannot_be_taken_away_do_not_keep_a_machine() -> None:
    async with bench(settings=SETTINGS) as b:
        await b.make_class()
        await b.running()
        await annotate_machine(b, "now")
        await fail(b)
        await b.settle(10)
        fault = b.faults.answer(403, message="no nodes for you", path="/nodes/node-m$")
        await annotate_machine(b, None)
        await b.settle(5)
        assert await expiry(b) is None
        wrong = await trouble(b)
        assert wrong is not None
        assert wrong.reason == "NodeNotMarked"
        assert "cannot be removed" in wrong.message
        fault.lift()
        await b.settle(300)
        assert await taints(b) == []
        assert await condition(b) == ("False", "Preservation stopped.", "")
        assert await trouble(b) is None


@on_bench
async def test_a_drain_that_people_must_mend_is_told_on_machine_and_node() -> None:
    async with bench(settings=with_settings(health_timeout=timedelta(seconds=10))) as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p", labels={"app": "a"})
        for name in ("b1", "b2"):
            await b.make_budget(name, labels={"app": "a"}, allowed=1)
        await annotate_machine(b, "when-failed")
        await b.set_ready("m", "False")
        await b.until_phase("Failed")
        await b.settle(30)
        wrong = await trouble(b)
        assert wrong is not None
        assert wrong.reason == "DrainBlocked"
        assert "default/p" in wrong.message
        held = await condition(b)
        assert held is not None
        assert held[0] == "False"
        assert held[2].startswith("Preserved node could not be drained. Machine preserved until")
        assert await b.exists(PODS, "p")
        await b.label_machine("m", LABEL_FORCE_DRAIN, "True")
        await b.settle(5)
        await b.finish_leaving_pods()
        assert not await b.exists(PODS, "p")
        held = await condition(b)
        assert held is not None
        assert held[2].startswith("Preserved node drained successfully.")
        assert await trouble(b) is None


@on_bench
async def test_a_node_that_two_machines_name_is_neither_heard_nor_marked() -> None:
    async with bench() as b:
        await b.make_class()
        for name in ("m", "other"):
            b.driver.node_names[name] = "node-m"
            await b.make_machine(name)
            await b.until_phase("Pending", name)
        await b.client.create(NODES, {"metadata": {"name": "node-m"}})
        await b.set_ready("m", "True")
        await b.settle(10)
        b.writes.clear()
        await annotate_node(b, "now")
        await annotate_machine(b, "now")
        await b.settle(60)
        assert not b.writes
        # Once it is settled, what was asked for is done.
        await b.label_machine("other", LABEL_NODE, "elsewhere")
        await b.settle(5)
        assert await expiry(b) is not None
        held = await condition(b)
        assert held is not None
        assert held[0] == "True"


@on_bench
async def test_a_clock_set_forward_is_noticed_within_ten_minutes() -> None:
    async with bench(settings=with_settings(preserve_timeout=timedelta(hours=2))) as b:
        await b.make_class()
        await b.running()
        await annotate_machine(b, "now")
        await b.settle()
        set_forward(b.clock, timedelta(hours=200))
        await b.settle(601)
        assert await expiry(b) is None


@on_bench
async def test_a_clock_set_back_ends_nothing_early() -> None:
    async with bench(settings=with_settings(preserve_timeout=timedelta(hours=2))) as b:
        await b.make_class()
        await b.running()
        await annotate_machine(b, "now")
        await b.settle()
        until = await expiry(b)
        assert until is not None
        set_forward(b.clock, timedelta(hours=-1))
        await b.clock.sleep((until - b.clock.now()).total_seconds() - 1)
        assert await expiry(b) == until
        await b.settle(2)
        assert await expiry(b) is None


def set_forward(clock: LoopClock, span: timedelta) -> None:
    clock._epoch += span


def test_a_node_that_the_mirror_lacks_is_asked_for_before_a_machine_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @on_bench
    async def main() -> None:
        async with bench(settings=with_settings(health_timeout=timedelta(seconds=10))) as b:
            await b.make_class()
            await b.running()
            await annotate_node(b, "now")
            await fail(b)
            await b.settle(10)
            until = await expiry(b)
            assert until is not None
            monkeypatch.setattr(Preservation, "_node_of", lambda *_: None)
            await b.label_machine("m", "wake", "up")
            await b.settle(10)
            assert await expiry(b) == until

    main()


@on_bench
async def test_without_target_cluster_the_machine_itself_is_kept() -> None:
    async with bench(has_target=False, settings=SETTINGS) as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Available")
        await annotate_machine(b, "now")
        await b.settle()
        until = await expiry(b)
        assert until is not None
        b.writes.clear()
        await b.settle((until - b.clock.now()).total_seconds() - 1)
        assert not b.writes
        await b.settle(2)
        assert await expiry(b) is None
        assert ANNOTATION_PRESERVE not in (await b.machine()).metadata.annotations


@on_bench
async def test_a_machine_kept_before_it_exists_is_still_kept_when_it_runs() -> None:
    """No status write on the way from nothing to Running loses the end."""
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL)
        await b.make_machine()
        await annotate_machine(b, "now")
        await b.until_phase("CrashLoopBackOff")
        until = await expiry(b)
        assert until is not None
        await b.until_phase("Pending", within=600)
        assert await expiry(b) == until
        await b.join()
        await b.until_phase("Running")
        await b.set_ready("m", "Unknown")
        await b.until_phase("Unknown")
        assert await expiry(b) == until
        assert b.driver.made == 1


@on_bench
async def test_a_complaint_goes_with_what_it_is_about_though_there_is_no_node() -> None:
    async with bench(has_target=False) as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Available")
        await annotate_machine(b, "soon")
        await b.settle()
        wrong = await trouble(b)
        assert wrong is not None
        assert "'soon' on the machine" in wrong.message
        await annotate_machine(b, None)
        await b.settle()
        assert await trouble(b) is None


@on_bench
async def test_keeping_an_unknown_machine_does_not_set_back_its_health_clock() -> None:
    async with bench(settings=with_settings(health_timeout=timedelta(minutes=5))) as b:
        await b.make_class()
        await b.running()
        await b.set_ready("m", "False")
        await b.until_phase("Unknown")
        since = (await b.machine()).status.current_status.last_update_time
        await b.settle(240)
        await annotate_machine(b, "now")
        await b.settle()
        assert (await b.machine()).status.current_status.last_update_time == since
        assert await b.until_phase("Failed", within=70) < 70


@on_bench
async def test_a_timeout_of_nothing_keeps_nothing() -> None:
    async with bench(settings=with_settings(preserve_timeout=timedelta())) as b:
        await b.make_class()
        await b.running()
        await annotate_machine(b, "now")
        await b.settle(5)
        assert await expiry(b) is None
        assert ANNOTATION_PRESERVE not in (await b.machine()).metadata.annotations
        b.writes.clear()
        await b.settle(600)
        assert not b.writes
        node = await b.node()
        assert ANNOTATION_SCALE_DOWN_DISABLED not in node.metadata.annotations
        assert TAINT_PRESERVED not in await taints(b)


@on_bench
async def test_what_somebody_takes_off_the_node_is_not_put_back() -> None:
    async with bench(settings=SETTINGS) as b:
        await b.make_class()
        await b.running()
        await annotate_machine(b, "now")
        await fail(b)
        await b.settle(10)
        await annotate_node(b, None, ANNOTATION_SCALE_DOWN_DISABLED)
        await b.client.patch(NODES, "node-m", {"spec": {"taints": None}})
        b.writes.clear()
        await b.settle(60)
        assert not b.written("nodes")
        assert await taints(b) == []


@pytest.mark.parametrize("after_writes", range(1, 6))
def test_a_kubelet_that_writes_in_between_costs_a_retry_and_no_more(after_writes: int) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running()
            seen = 0

            def interfere(_: object) -> None:
                nonlocal seen
                seen += 1
                if seen == after_writes:
                    task = asyncio.ensure_future(annotate_node(b, "x", f"kubelet/{seen}"))
                    waiting.append(task)

            waiting: list[asyncio.Future[None]] = []
            b.transport.before_write = interfere
            await annotate_node(b, "now")
            await b.settle(30)
            await asyncio.gather(*waiting)
            held = await condition(b)
            assert held is not None
            assert held[0] == "True"
            assert await expiry(b) is not None

    main()


@on_bench
async def test_a_machine_deleted_while_it_drains_for_preservation_goes() -> None:
    async with bench(settings=with_settings(health_timeout=timedelta(seconds=10))) as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p", labels={"app": "a"})
        await b.make_budget("b", labels={"app": "a"}, allowed=0)
        await annotate_machine(b, "when-failed")
        await b.set_ready("m", "False")
        await b.until_phase("Failed")
        await b.settle(5)
        assert await b.exists(PODS, "p")
        await b.client.delete(MACHINES, "m", namespace=NAMESPACE)
        await b.allow("b", 1)
        await b.settle(30)
        await b.finish_leaving_pods()
        await b.until_gone()
        assert not b.driver.vms
