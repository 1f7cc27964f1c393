"""VMs that run follow their class: the cases of the hot-update proposal, and what may go wrong."""

from __future__ import annotations

import pytest

from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.driver import Code
from tests.unit.machine.bench import NAMESPACE, bench, on_bench
from tests.unit.machine.hot_update.cloud import TagBench, tag_bench, tagged

S1, S2, S3 = tagged(a="1"), tagged(a="1", b="2"), tagged(a="3", c="3")
LAST, FLYING = "last-applied-providerspec", "inflight-providerspecs"


@on_bench
async def test_a_changed_class_reaches_a_machine_that_runs_in_four_writes() -> None:
    async with tag_bench(S1) as t:
        await t.b.running()
        await t.change(S3)
        await t.until_at(S3)
        await t.b.settle()
        kinds = [w.path.endswith("/status") for w in t.b.written("machines", "m")]
        assert kinds == [False, True, False, True], "tried, Processing, applied, Successful"
        (request,) = t.cloud.requests
        assert request.provider_id == t.cloud.vms["m"]
        assert request.last_applied_provider_spec == S1
        assert request.attempted_provider_specs == ()
        assert request.secret["userData"]
        m = await t.b.machine()
        assert m.phase == "Running"
        assert (m.status.last_operation.type, m.status.last_operation.state) == (
            "Update",
            "Successful",
        )
        assert FLYING not in m.metadata.annotations
        assert [c.type for c in m.status.conditions] == ["Ready"]
        assert {"VMUpdated", "VMsUpdated"} <= set(t.b.events())
        t.b.writes.clear()
        await t.b.settle(7200.0)
        assert t.b.writes == [], "a steady fleet costs nothing"
        assert len(t.cloud.requests) == 1


@on_bench
async def test_another_spelling_of_the_same_is_no_change() -> None:
    async with tag_bench(S1) as t:
        await t.b.running()
        text = '{"vm":{"a":"1"},"network":{"a":"1"},"disk":{"a":"1"}}'
        turned: JSONObject = {
            "metadata": {"annotations": {LAST: f'{{ "tags": {text}, "size": "s"}}'}}
        }
        await t.b.client.patch(MACHINES, "m", turned, namespace=NAMESPACE)
        await t.b.settle()
        assert t.cloud.requests == []


@on_bench
async def test_a_machine_of_which_nothing_is_recorded_is_updated_once() -> None:
    """Case 1.1: an existing machine, as after a takeover."""
    async with tag_bench(S1) as t:
        await t.b.running()
        await t.b.crash()
        gone: JSONObject = {"metadata": {"annotations": {LAST: None}}}
        await t.b.client.patch(MACHINES, "m", gone, namespace=NAMESPACE)
        await t.b.start()
        await t.b.settle()
        (request,) = t.cloud.requests
        assert request.last_applied_provider_spec is None
        assert await t.annotation() is not None
        await t.b.crash()
        await t.b.start()
        await t.b.settle(600.0)
        assert len(t.cloud.requests) == 1


@on_bench
async def test_a_class_that_is_changed_back_after_half_an_update_is_applied_again() -> None:
    """Edge case 1; the partial update failed."""
    async with tag_bench(S1) as t:
        await t.b.running()
        t.cloud.fails_at = lambda _: "disk"
        await t.change(S2)
        await t.b.settle(3.0)
        m = await t.b.machine()
        last = m.status.last_operation
        assert m.phase == "Running", "a failure is harmless"
        assert (last.type, last.state, last.error_code) == ("Update", "Failed", "Unavailable")
        assert "disk of m is not to be had" in last.description
        (shown,) = [c for c in m.status.conditions if c.type == "ProviderSpecApplied"]
        assert (shown.status, shown.reason) == ("False", "Unavailable")
        assert t.cloud.tags["m"]["vm"]["b"] == "2", "half of it was done"
        t.cloud.fails_at = lambda _: ""
        await t.change(S1)
        await t.until_at(S1)
        await t.b.settle()
        m = await t.b.machine()
        assert m.status.last_operation.state == "Successful"
        assert [c.type for c in m.status.conditions] == ["Ready"]
        assert FLYING not in m.metadata.annotations


@pytest.mark.parametrize("hidden", [False, True])
def test_a_class_that_is_changed_back_while_the_process_is_gone_is_applied_again(
    *, hidden: bool
) -> None:
    """Edge case 2; also if another last operation hides that an update was under way."""

    @on_bench
    async def main() -> None:
        async with tag_bench(S1) as t:
            await t.b.running()
            t.cloud.fails_at = lambda _: "network"
            t.cloud.latency = 5.0
            await t.change(S2)
            await t.b.settle(5.5)
            await t.b.crash()
            assert t.cloud.tags["m"]["vm"]["b"] == "2"
            if hidden:
                await t.hide_last_operation()
            await t.change(S1)
            t.cloud.fails_at = lambda _: ""
            await t.b.start()
            await t.until_at(S1)
            await t.b.settle(6.0)
            assert await t.annotation(key=FLYING) is None

    main()


@on_bench
async def test_whoever_changes_their_mind_midway_gets_the_last_word() -> None:
    async with tag_bench(S1) as t:
        await t.b.running()
        t.cloud.latency = 10.0
        await t.change(S2)
        await t.b.settle(5.0)
        await t.change(S3)
        await t.until_at(S3)
        assert [r.last_applied_provider_spec for r in t.cloud.requests] == [S1, S2]


@on_bench
async def test_what_the_cloud_refuses_is_tried_less_and_less_often_and_costs_no_writes() -> None:
    async with tag_bench(S1) as t:
        await t.b.running()
        t.cloud.code, t.cloud.fails_at = Code.INVALID_ARGUMENT, lambda _: "vm"
        await t.change(S2)
        await t.b.settle(3600.0)
        assert 5 <= len(t.cloud.requests) <= 14
        # Once, and again whenever it was long ago that it was said.
        assert len(t.b.written("machines", "m")) <= 5
        assert (await t.b.machine()).phase == "Running"
        t.cloud.fails_at = lambda _: ""
        await t.change(S3)
        assert await t.until_at(S3) < 1.0, "a changed class is tried at once"


@on_bench
async def test_a_provider_that_turns_out_to_have_no_such_verb_is_asked_once() -> None:
    async with tag_bench(S1) as t:
        for name in ("m", "n", "o"):
            await t.b.running(name)
        t.cloud.code, t.cloud.fails_at = Code.UNIMPLEMENTED, lambda _: "vm"
        await t.change(S2)
        await t.b.settle(7200.0)
        assert len(t.cloud.requests) == 1
        assert len(t.b.written("machines")) == 4
        assert "VMUpdateUnsupported" in t.b.events()
        await t.b.settle(7200.0)
        assert len(t.cloud.requests) == 1
        asked = t.cloud.requests[0].machine.metadata.name
        assert (await t.b.machine(asked)).status.last_operation.error_code == "Unimplemented"
        assert await t.annotation(asked, FLYING) is None
        t.cloud.fails_at = lambda _: ""
        await t.change(S3)
        await t.until_at(S3, "m", "n", "o")


@on_bench
async def test_a_joining_machine_joins_as_it_would_have() -> None:
    async with tag_bench(S1) as t:
        await t.b.make_machine()
        await t.b.until_phase("Pending")
        await t.change(S2)
        await t.until_at(S2)
        await t.b.join()
        await t.b.until_phase("Running")
        await t.b.settle()
        text = (await t.b.machine()).status.last_operation.description
        assert "successfully joined the cluster" in text
        assert "Joined" in t.b.events()


@on_bench
async def test_a_machine_on_its_way_out_is_left_in_peace() -> None:
    async with tag_bench(S1) as t:
        await t.b.running()
        await t.b.run_pod("p")
        await t.b.delete_machine()
        await t.b.settle()
        await t.change(S2)
        await t.b.settle(30.0)
        assert t.cloud.requests == []


async def fleet(t: TagBench, size: int) -> tuple[str, ...]:
    names = tuple(f"m{n:03}" for n in range(size))
    for name in names:
        await t.b.make_machine(name)
    for name in names:
        await t.b.until_phase("Pending", name)
        await t.b.join(name)
    for name in names:
        await t.b.until_phase("Running", name)
    await t.b.settle(5.0)
    return names


@on_bench
async def test_one_machine_is_tried_first_and_then_so_many_a_second() -> None:
    async with tag_bench(S1) as t:
        names = await fleet(t, 60)
        t.cloud.latency = 1.0
        started = t.b.clock.monotonic()
        await t.change(S2)
        await t.b.settle(0.5)
        assert len(t.cloud.requests) == 1, "nobody follows before it is known to work"
        await t.until_at(S2, *names, within=120)
        assert t.cloud.most_updates <= 10
        for number, moment in enumerate(t.cloud.began):
            assert number <= 10 + 5 * (moment - started), "ten saved up, then five a second"
        assert len(t.cloud.requests) == len(names)
        assert t.b.clock.monotonic() - started < 30


@on_bench
async def test_what_is_refused_is_not_tried_on_a_whole_fleet() -> None:
    async with tag_bench(S1) as t:
        names = await fleet(t, 30)
        t.cloud.code, t.cloud.fails_at = Code.INVALID_ARGUMENT, lambda _: "vm"
        await t.change(S2)
        await t.b.settle(600.0)
        assert 3 <= len(t.cloud.requests) <= 8
        t.cloud.fails_at = lambda _: ""
        await t.change(S1)
        await t.until_at(S1, *names)
        tried = {r.machine.metadata.name for r in t.cloud.requests}
        assert len(tried) <= 8, "of the others nothing has to be undone"


@on_bench
async def test_one_vm_that_cannot_be_updated_holds_nobody_else_up() -> None:
    async with tag_bench(S1) as t:
        names = await fleet(t, 10)
        t.cloud.code = Code.INTERNAL
        t.cloud.fails_at = lambda name: "vm" if name == broken else ""
        broken = names[0]
        await t.change(S2)
        await t.until_at(S2, *names[1:], within=400)
        assert not t.cloud.is_at(broken, S2)
        assert (await t.b.machine(broken)).phase == "Running"
        gauge = "mcm_machine_class_outdated_machines"
        labels = {"namespace": "default", "machine_class": "c"}
        assert t.b.registry.get_sample_value(gauge, labels) == 1
        t.cloud.fails_at = lambda _: ""
        await t.until_at(S2, *names, within=700)
        await t.b.settle()
        assert t.b.registry.get_sample_value(gauge, labels) == 0


@pytest.mark.parametrize(
    "code", [c for c in Code if c], ids=lambda c: f"UpdateMachine-{c.value}-{c.name}"
)
def test_whatever_code_an_update_fails_with_the_machine_goes_on_running(code: Code) -> None:
    """Soon is after 5 s, slowly after 30 s, up to a quarter sooner; after Unimplemented never."""

    @on_bench
    async def main() -> None:
        async with tag_bench(S1) as t:
            await t.b.running()
            t.cloud.code, t.cloud.fails_at = code, lambda _: "vm"
            await t.change(S2)
            await t.b.settle()
            m = await t.b.machine()
            last = m.status.last_operation
            assert m.phase == "Running"
            assert (last.type, last.state, last.error_code) == ("Update", "Failed", code.text)
            t.cloud.fails_at = lambda _: ""
            await t.b.settle(40.0)
            if code is Code.UNIMPLEMENTED:
                assert len(t.cloud.began) == 1
                return
            if code is Code.RESOURCE_EXHAUSTED:
                await t.b.settle(1.26 * t.b.settings.resource_exhausted_retry.total_seconds())
                assert len(t.cloud.began) == 2
                return
            again = t.cloud.began[1] - t.cloud.began[0]
            assert 3.7 <= again <= 5.1 if code.transient else 22.0 <= again <= 30.1
            assert t.cloud.is_at("m", S2)

    main()


@on_bench
async def test_a_class_that_changes_while_its_vm_is_made_reaches_it_once_it_is() -> None:
    async with tag_bench(S1) as t:
        t.cloud.latency = 10.0
        await t.b.make_machine()
        await t.b.settle(15.0)
        assert t.cloud.count("create") == 1
        await t.change(S3)
        await t.until_at(S3)
        (request,) = t.cloud.requests
        assert request.last_applied_provider_spec == S1


@on_bench
async def test_machines_that_join_no_cluster_are_updated_too() -> None:
    async with tag_bench(S1, has_target=False) as t:
        await t.b.make_machine()
        await t.b.until_phase("Available")
        await t.change(S3)
        await t.until_at(S3)
        assert (await t.b.machine()).phase == "Available"


@on_bench
async def test_a_secret_that_is_missing_is_said_and_its_return_is_enough() -> None:
    async with tag_bench(S1) as t:
        await t.b.running()
        patch: JSONObject = {"secretRef": {"name": "other", "namespace": NAMESPACE}}
        await t.b.client.patch(MACHINE_CLASSES, "c", patch, namespace=NAMESPACE)
        await t.change(S2)
        await t.b.settle()
        text = (await t.b.machine()).status.last_operation.description
        assert "secret default/other not found: create it" in text
        assert t.cloud.requests == []
        await t.b.make_secret("other")
        assert await t.until_at(S2) < 1.0


@on_bench
async def test_a_provider_without_the_verb_is_said_to_have_none_and_costs_nothing() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        patch: JSONObject = {"providerSpec": {"size": "l"}}
        await b.client.patch(MACHINE_CLASSES, "c", patch, namespace=NAMESPACE)
        await b.settle(600.0)
        assert "VMUpdateUnsupported" in b.events()
        assert b.writes == []


@on_bench
async def test_a_call_that_does_not_end_is_given_up_after_two_minutes() -> None:
    async with tag_bench(S1) as t:
        await t.b.running()
        t.cloud.latency = 3600.0
        await t.change(S2)
        await t.b.settle(121.0)
        assert (await t.b.machine()).status.last_operation.error_code == "DeadlineExceeded"
        t.cloud.latency = 0.0
        await t.until_at(S2, within=150.0)
