"""Steps that have work on one machine at the same time: neither undoes what the other says."""

from __future__ import annotations

import logging

import pytest

from mcm.api.codec import to_json_object
from mcm.api.core import NODES, SECRETS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.controllers.in_place_marks import Stage
from mcm.controllers.machine.own_conditions import OwnCondition, with_own
from mcm.driver import Code
from mcm.simulation.harness import name_of
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench
from tests.unit.machine.hot_update.cloud import tag_bench, tagged
from tests.unit.machine.in_place_update.actors import NEITHER, label, select, until_stage

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


@on_bench
async def _the_token_of_an_invalid_machine_is_lost() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        await b.crash()
        (token,) = (
            name_of(secret)
            for secret in b.objects(SECRETS)
            if secret.get("type") == "bootstrap.kubernetes.io/token"
        )
        await b.client.delete(SECRETS, token, namespace="kube-system")
        await change(b, BROKEN)
        await b.start()
        await b.settle(120.0)
        said = (await b.machine()).status.last_operation.description
        assert said.startswith("The machine is invalid")
        assert len(b.written("machines", "m")) < 10
        await change(b, MENDED)
        await b.settle(120.0)
        said = (await b.machine()).status.last_operation.description
        assert "its bootstrap token is gone" in said
        assert b.events().count("BootstrapTokenLost") == 1


def test_an_invalid_machine_whose_token_is_lost_says_one_after_the_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _the_token_of_an_invalid_machine_is_lost()
    assert not unexpected(caplog)


@on_bench
async def test_a_machine_held_before_its_update_runs_without_that_mark_when_it_is_called_off() -> (
    None
):
    async with bench() as b:
        await b.make_class()
        await b.running()
        await select(b)
        await until_stage(b, Stage.READY)
        await b.settle()
        m, now = await b.machine(), b.clock.now()
        held = with_own(m.status, OwnCondition.REPLACEABLE, "False", "ManyUnhealthy", "wait", now)
        patch: JSONObject = {"status": {"conditions": to_json_object(held)["conditions"]}}
        await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE, subresource="status")
        await b.settle()
        assert "Replaceable" in {c.type for c in (await b.machine()).status.conditions}
        await label(b, NEITHER)
        await b.until_phase("Running")
        await b.settle()
        assert "Replaceable" not in {c.type for c in (await b.machine()).status.conditions}


@pytest.mark.parametrize("value", [None, "nowhere"])
def test_a_label_that_is_edited_while_the_machine_goes_leaves_no_node_behind(
    value: str | None,
) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running()
            b.driver.fail("delete", Code.UNAVAILABLE, times=2)
            await b.delete_machine()
            await b.until_phase("Terminating")
            await b.settle()
            await change(b, {"metadata": {"labels": {"node": value}}})
            await b.until_gone(within=600)
            assert not b.objects(NODES)

    main()
