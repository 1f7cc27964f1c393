"""Whatever a user does to a class and a cloud to its calls: the VM ends as the class says."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.client.errors import RequestTimeout
from mcm.client.transport import Request
from mcm.simulation.virtualtime import run_virtual
from tests.unit.machine.bench import on_bench
from tests.unit.machine.hot_update.cloud import RESOURCES, TagBench, tag_bench, tagged

S1, S2, S3 = tagged(a="1"), tagged(a="2", b="2"), tagged(c="3")


@pytest.mark.parametrize("number", range(1, 5))
@pytest.mark.parametrize("arrived", [False, True])
@pytest.mark.parametrize("then", [S1, S2, S3], ids=["back", "same", "other"])
def test_an_update_survives_the_end_of_the_process_at_any_write(
    number: int, then: JSONObject, *, arrived: bool
) -> None:
    """The process ends at its write ``number``, which gets through only if ``arrived``, and the
    class says ``then`` when the next one begins."""

    @on_bench
    async def main() -> None:
        async with tag_bench(S1) as t:
            await t.b.running()
            ended, seen = asyncio.Event(), 0

            def count(request: Request) -> None:
                nonlocal seen
                if "/machines/m" not in request.path:
                    return
                seen += 1
                if seen == number:
                    ended.set()
                    if not arrived:
                        raise RequestTimeout("lost on its way")

            t.b.transport.before_write = count
            t.b.faults.lose_answers(
                where=lambda r: arrived and seen == number and r.method != "GET", times=1
            )
            await t.change(S2)
            await asyncio.wait_for(ended.wait(), 60)
            await t.b.crash()
            await t.change(then)
            await t.b.start()
            await t.until_at(then)
            await t.b.settle(5.0)
            m = await t.b.machine()
            assert "inflight-providerspecs" not in m.metadata.annotations
            assert [c.type for c in m.status.conditions] == ["Ready"]
            assert m.phase == "Running"
            t.b.writes.clear()
            await t.b.settle(900.0)
            assert t.b.writes == []

    main()


specs = st.sampled_from([S1, S2, S3, tagged(), tagged(a="1", b="4")])
steps = st.one_of(
    st.tuples(st.just("change"), specs),
    st.tuples(st.just("fail at"), st.sampled_from(["", *RESOURCES])),
    st.tuples(st.just("take"), st.sampled_from([0.0, 2.0])),
    st.tuples(st.just("pass"), st.sampled_from([0.0, 0.05, 1.0, 7.0, 300.0])),
    st.tuples(st.just("crash"), st.none()),
    st.tuples(st.just("hide"), st.none()),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, max_size=12))
def test_whatever_happens_the_vm_ends_as_the_class_says(plan: list[tuple[str, object]]) -> None:
    async def main() -> None:
        async with tag_bench(S1) as t:
            await t.b.running()
            wanted = S1
            for what, argument in plan:
                wanted = await _do(t, what, argument, wanted)
            t.cloud.fails_at, t.cloud.latency = (lambda _: ""), 0.0
            await t.until_at(wanted, within=700.0)
            await t.b.settle(700.0)
            assert t.cloud.is_at("m", wanted), "and stays so"
            m = await t.b.machine()
            assert m.phase == "Running"
            assert "inflight-providerspecs" not in m.metadata.annotations

    run_virtual(main)


async def _do(t: TagBench, what: str, argument: object, wanted: JSONObject) -> JSONObject:
    match what, argument:
        case "change", dict() as spec:
            await t.change(spec)
            return spec
        case "fail at", str() as resource:
            t.cloud.fails_at = lambda _: resource
        case "take", float() as seconds:
            t.cloud.latency = seconds
        case "pass", float() as seconds:
            await t.b.settle(seconds)
        case "crash", _:
            await t.b.crash()
            await t.b.start()
        case _:
            await t.hide_last_operation()
    return wanted
