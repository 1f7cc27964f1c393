"""Steps that have work on one machine at the same time: neither undoes what the other says."""

from __future__ import annotations

import logging

import pytest

from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.driver import Code
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench
from tests.unit.machine.hot_update.cloud import tag_bench, tagged
from tests.unit.machine.in_place_update.actors import select

S1, S2 = tagged(a="1"), tagged(a="2")
BROKEN: JSONObject = {"spec": {"healthTimeout": "soon"}}
MENDED: JSONObject = {"spec": {"healthTimeout": None}}


async def change(b: Bench, patch: JSONObject) -> None:
    await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)


def unexpected(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


@on_bench
async def _an_updated_machine_becomes_invalid() -> None:
    async with tag_bench(S1) as t:
        await t.b.running()
        await t.change(S2)
        await t.until_at(S2)
        await t.b.settle()
        asked = len(t.cloud.requests)
        await change(t.b, BROKEN)
        await t.b.settle(600.0)
        said = (await t.b.machine()).status.last_operation
        assert said.description.startswith("The machine is invalid: spec.healthTimeout")
        assert said.type != "Update", "no update has failed"
        assert len(t.cloud.requests) == asked, "nothing is left to update"
        await change(t.b, MENDED)
        await t.b.settle(600.0)
        assert (await t.b.machine()).status.last_operation.state == "Successful"


def test_a_machine_that_becomes_invalid_after_its_update_is_not_updated_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _an_updated_machine_becomes_invalid()
    assert not unexpected(caplog)


@on_bench
async def _the_update_of_an_invalid_machine_fails() -> None:
    async with tag_bench(S1) as t:
        await t.b.running()
        await change(t.b, BROKEN)
        await t.b.settle()
        t.cloud.fail("update", Code.INTERNAL, "no room", times=1000)
        await t.change(S2)
        await t.b.settle(600.0)
        written = len(t.b.written("machines", "m"))
        assert written < 30
        last = (await t.b.machine()).status.last_operation
        assert (last.type, last.state) == ("Update", "Failed")
        t.cloud.failures.clear()
        await t.until_at(S2, within=1800)
        await t.b.settle()
        assert (await t.b.machine()).status.last_operation.description.startswith(
            "The machine is invalid"
        )
        await t.b.settle(60.0)
        t.b.writes.clear()
        await t.b.settle(600.0)
        assert t.b.writes == []


def test_an_invalid_machine_whose_update_fails_says_so_as_long_as_it_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _the_update_of_an_invalid_machine_fails()
    assert not unexpected(caplog)


@on_bench
async def _an_invalid_machine_is_drained() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.make_budget("strict", labels={"app": "a"}, allowed=0)
        await b.make_budget("stricter", labels={"app": "a"}, allowed=0)
        await b.run_pod("p", labels={"app": "a"})
        await b.settle()
        await change(b, BROKEN)
        await b.settle()
        await select(b)
        await b.settle(600.0)
        assert (await b.machine()).status.last_operation.type == "DrainNode"
        assert len(b.written("machines", "m")) < 10


def test_the_drain_of_an_invalid_machine_says_what_holds_it_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _an_invalid_machine_is_drained()
    assert not unexpected(caplog)
