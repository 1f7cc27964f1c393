"""The time to be created ends wherever a machine is stuck, and the machine says at what."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import NODES, SECRETS
from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_EFFECTIVE_CREATION_TIMEOUT
from mcm.clock import LoopClock
from mcm.controllers.machine.creation.deadline import (
    AT_LEAST_TRIED_FOR,
    FirstSight,
    first_sight,
    seconds_left,
)
from mcm.driver import Code, CreateMachineRequest, CreateMachineResponse
from tests.unit.machine.bench import EPOCH, NAMESPACE, Bench, bench, on_bench, with_settings
from tests.unit.machine.objects import after, machine

OWNER: JSONObject = {
    "apiVersion": "machine.sapcloud.io/v1alpha1",
    "kind": "MachineSet",
    "name": "s",
    "uid": "set-uid",
    "controller": True,
}
MINUTE = timedelta(minutes=1)


async def make_owned(b: Bench, name: str = "m", *, timeout: str = "") -> None:
    metadata: JSONObject = {"name": name, "ownerReferences": [OWNER]}
    if timeout:
        metadata["annotations"] = {ANNOTATION_EFFECTIVE_CREATION_TIMEOUT: timeout}
    body: JSONObject = {
        "metadata": metadata,
        "spec": {"class": {"kind": "MachineClass", "name": "c"}},
    }
    await b.client.create(MACHINES, body, namespace=NAMESPACE)


async def fails_at(b: Bench, seconds: float, *words: str, name: str = "m") -> None:
    """The machine, made just now, fails then and no sooner, and says each of ``words``."""
    await b.settle(seconds - 2.0)
    assert (await b.machine(name)).phase != "Failed"
    await b.settle(4.0)
    failed = await b.machine(name)
    assert failed.phase == "Failed", failed.status
    last = failed.status.last_operation
    assert (last.state, last.type) == ("Failed", "Create")
    for word in words:
        assert word in last.description
    assert b.events().count("Failed") <= 1
    writes = len(b.writes)
    await b.settle(1800)
    assert len(b.written("machines", name)) <= writes


@on_bench
async def test_a_class_that_nobody_protects_is_named() -> None:
    async with bench() as b:
        await b.make_class()
        await b.settle(120)
        patch: JSONObject = {"metadata": {"finalizers": None}}
        refusal = b.faults.answer(500, method="PATCH", path="/machineclasses/c$")
        await b.client.patch(MACHINE_CLASSES, "c", patch, namespace=NAMESPACE)
        await make_owned(b)
        await b.settle(65)
        waiting = (await b.machine()).status.last_operation
        assert "machine class default/c has no finalizer" in waiting.description
        assert (await b.machine()).phase == ""
        await fails_at(b, 1200 - 65, "was not created within 20m0s; since ", "has no finalizer")
        assert len([w for w in b.written("machines", "m") if w.path.endswith("/status")]) == 2
        refusal.lift()


@on_bench
async def test_a_place_that_never_comes_is_named_and_shown_once_before() -> None:
    async with bench(settings=with_settings(machine_concurrent_syncs=1)) as b:
        await b.make_class()
        b.driver.latency = 1e6
        for name in ("a", "b"):
            await b.make_machine(name)
        await b.settle(1)
        await make_owned(b, timeout="5m")
        await b.settle(62)
        assert "places for creations" in (await b.machine()).status.last_operation.description
        await fails_at(b, 300 - 62, "within 5m0s; since ", "places for creations", "MachineSet")
        assert len([w for w in b.written("machines", "m") if w.path.endswith("/status")]) == 2


@on_bench
async def test_a_provider_that_never_answers_is_waited_for_no_longer_than_the_machine_has() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.latency = 1e6
        await make_owned(b, timeout="3m")
        await fails_at(b, 180, "did not answer within")


@on_bench
async def test_a_provider_that_answers_without_names_is_no_reason_to_wait_for_ever() -> None:
    async with bench() as b:
        await b.make_class()

        async def nothing(request: CreateMachineRequest) -> CreateMachineResponse:
            return CreateMachineResponse("", "")

        b.driver.create_machine = nothing  # type: ignore[method-assign]
        await make_owned(b)
        await fails_at(b, 1200, "the provider named no provider ID or no node name")


@on_bench
async def test_a_node_name_that_no_label_can_hold_is_named_and_its_vm_recorded() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.node_names["m"] = "n" * 64
        await make_owned(b)
        await b.settle(60)
        shown = await b.machine()
        assert "at most 63 characters" in shown.status.last_operation.description
        assert shown.spec.provider_id == b.driver.vms["m"]
        assert b.driver.made == 1
        await fails_at(b, 1140, "at most 63 characters")
        assert b.driver.made == 1


@pytest.mark.parametrize("joined", [False, True])
def test_a_machine_whose_node_name_is_too_long_can_be_deleted_and_leaves_nothing(
    *, joined: bool
) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            b.driver.node_names["m"] = "n" * 64
            await make_owned(b)
            await b.settle(60)
            if joined:
                await b.join()
                await b.settle(5)
            assert (await b.machine()).phase == "CrashLoopBackOff"
            await b.delete_machine()
            await b.until_gone()
            assert not b.driver.vms
            assert not b.objects(NODES)
            assert all("token" not in str(s.get("type")) for s in b.objects(SECRETS))

    main()


@on_bench
async def test_a_refused_token_is_named() -> None:
    async with bench() as b:
        await b.make_class()
        b.faults.answer(403, method="POST", path=r"/kube-system/secrets$")
        await make_owned(b)
        await fails_at(b, 1200, "refuses the bootstrap token")


@on_bench
async def test_a_request_that_always_fails_is_named_though_nothing_was_shown_before() -> None:
    async with bench() as b:
        await b.make_class()
        b.faults.answer(500, method="POST", path=r"/kube-system/secrets$")
        await make_owned(b)
        await b.settle(50)
        assert not (await b.machine()).status.last_operation.description
        await b.settle(50)
        shown = (await b.machine()).status.last_operation
        assert shown.description.startswith("Waiting since 2026-01-01T00:00:0")
        assert "a request to an API server fails" in shown.description
        assert (shown.state, shown.type) == ("Processing", "Create")
        await b.settle(900)
        assert (await b.machine()).phase == ""
        assert len([w for w in b.written("machines", "m") if w.path.endswith("/status")]) == 1
        await fails_at(b, 200, "a request to an API server fails", "since 2026-01-01T00:00:0")


@on_bench
async def test_requests_that_fail_after_the_provider_had_are_shown_in_its_place() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL, "out of order")
        await make_owned(b)
        await b.until_phase("CrashLoopBackOff")
        refusal = b.faults.answer(500, path=r"/kube-system/secrets")
        await b.crash()  # what is known of the token is lost
        await b.start()
        await b.settle(150)
        shown = await b.machine()
        assert "a request to an API server fails" in shown.status.last_operation.description
        assert shown.phase == "CrashLoopBackOff"
        refusal.lift()
        await b.until_phase("Pending", within=120)


@on_bench
async def test_a_machine_pending_without_a_node_to_wait_for_fails_too() -> None:
    async with bench() as b:
        await b.make_class()
        await make_owned(b)
        await b.until_phase("Pending")
        patch: JSONObject = {"metadata": {"labels": None}}
        await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
        await fails_at(b, 1200, "was not created within")


@on_bench
async def test_a_secret_without_user_data_is_named_and_its_mending_noticed() -> None:
    async with bench() as b:
        for name in ("s", "creds"):
            key = base64.b64encode(b"x").decode()
            body: JSONObject = {"metadata": {"name": name}, "data": {"key": key}}
            await b.client.create(SECRETS, body, namespace=NAMESPACE)
        class_: JSONObject = {
            "metadata": {"name": "c"},
            "providerSpec": {},
            "secretRef": {"name": "s", "namespace": NAMESPACE},
        }
        await b.client.create(MACHINE_CLASSES, class_, namespace=NAMESPACE)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        shown = (await b.machine()).status.last_operation
        assert shown.description == (
            "secret default/s has no key userData, which VMs boot with: add it"
        )
        assert (shown.state, shown.type) == ("Failed", "Create")
        patch: JSONObject = {"credentialsSecretRef": {"name": "creds", "namespace": NAMESPACE}}
        await b.client.patch(MACHINE_CLASSES, "c", patch, namespace=NAMESPACE)
        await b.settle()
        assert "secrets default/s and default/creds have no key userData" in (
            (await b.machine()).status.last_operation.description
        )
        assert not b.driver.count("create")
        data = {"userData": base64.b64encode(b"#!/bin/sh").decode()}
        await b.client.patch(SECRETS, "creds", {"data": data}, namespace=NAMESPACE)
        assert await b.until_phase("Pending") < 1.0
        assert b.events().count("CreationBlocked") == 1


@on_bench
async def test_what_was_made_while_nobody_worked_is_tried_before_it_is_given_up() -> None:
    async with bench(started=False) as b:
        await b.make_class()
        await make_owned(b)
        b.driver.vms["m"] = "cloud:///m-0"
        await b.join()
        await b.settle(7200)
        b.driver.fail("status", Code.UNAVAILABLE, times=0)
        await b.start()
        assert await b.until_phase("Running") < 1.0


async def with_clock_of_its_own(b: Bench) -> LoopClock:
    """Begin a process whose clock is not the server's."""
    await b.crash()
    b.clock = LoopClock(EPOCH)
    await b.start()
    return b.clock


def jump(clock: LoopClock, span: timedelta) -> None:
    clock._epoch += span


@pytest.mark.parametrize("span", [timedelta(hours=5), timedelta(hours=-5)])
@pytest.mark.parametrize("verb", ["status", "create", "initialize"])
@on_bench
async def test_a_jump_of_the_clock_ends_no_creation_early_nor_late(
    verb: str, span: timedelta
) -> None:
    async with bench() as b:
        clock = await with_clock_of_its_own(b)
        await b.make_class()
        b.driver.needs_initialization = True
        b.driver.fail(verb, Code.INTERNAL, times=1000)
        await make_owned(b)
        await b.settle(300)
        jump(clock, span)
        assert (await b.machine()).phase == "CrashLoopBackOff"
        await fails_at(b, 900)


@pytest.mark.parametrize("span", [timedelta(hours=5), timedelta(hours=-5)])
@on_bench
async def test_a_jump_of_the_clock_ends_no_joining_early_nor_late(span: timedelta) -> None:
    async with bench() as b:
        clock = await with_clock_of_its_own(b)
        await b.make_class()
        await make_owned(b)
        await b.until_phase("Pending")
        await b.settle(300)
        jump(clock, span)
        await b.label_machine("m", "somebody", "looks")
        await fails_at(b, 900, "failed to join the cluster in 20m0s")


@on_bench
async def test_a_clock_that_is_put_right_again_has_done_no_harm() -> None:
    async with bench() as b:
        clock = await with_clock_of_its_own(b)
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL, times=3)
        await make_owned(b)
        for hours in (5, -10, 5, 9):
            await b.settle(120)
            jump(clock, timedelta(hours=hours))
        await b.until_phase("Pending", within=300)
        jump(clock, timedelta(hours=-9))
        await b.join()
        assert await b.until_phase("Running") < 1.0
        assert b.driver.made == 1


@on_bench
async def test_a_later_annotation_gives_a_machine_more_time() -> None:
    async with bench() as b:
        await b.make_class()
        b.faults.answer(500, method="POST", path=r"/kube-system/secrets$")
        await make_owned(b)
        await b.settle(600)
        patch: JSONObject = {
            "metadata": {"annotations": {ANNOTATION_EFFECTIVE_CREATION_TIMEOUT: "1h"}}
        }
        await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
        await fails_at(b, 3000, "within 1h0m0s")


@on_bench
async def test_an_annotation_that_cannot_be_read_is_ignored_and_told_once() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL, times=100)
        await make_owned(b, timeout="soon")
        await fails_at(b, 1200)
        assert b.events().count("InvalidCreationTimeout") == 1


# ---- the decision ------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "known_for", "left"),
    [
        (0.0, 0.0, 1200.0),
        (0.0, 1199.0, 1.0),
        (0.0, 1200.0, 0.0),
        (600.0, 100.0, 500.0),
        (7200.0, 0.0, 60.0),  # a process that has just begun tries it for a minute
        (7200.0, 59.0, 1.0),
        (7200.0, 61.0, -1.0),
        (1190.0, 5.0, 55.0),
    ],
)
def test_the_time_left_follows_from_age_and_from_how_long_it_is_known(
    age: float, known_for: float, left: float
) -> None:
    assert seconds_left(20 * MINUTE, FirstSight(5.0, age), 5.0 + known_for) == left


def test_a_timeout_shorter_than_a_minute_is_kept() -> None:
    assert seconds_left(timedelta(seconds=10), FirstSight(0.0, 0.0), 10.0) == 0.0


@pytest.mark.parametrize(
    ("now", "age"), [(after(), 0.0), (after(minutes=5), 300.0), (after(hours=-3), 0.0)]
)
def test_an_age_is_never_negative(now: datetime, age: float) -> None:
    assert first_sight(machine(), now, 7.0) == FirstSight(7.0, age)


@given(
    age=st.floats(0, 1e6),
    known=st.floats(0, 1e6),
    more=st.floats(0, 1e6),
    timeout=st.floats(1, 1e5),
)
def test_time_only_runs_out(age: float, known: float, more: float, timeout: float) -> None:
    span, seen = timedelta(seconds=timeout), FirstSight(0.0, age)
    assert seconds_left(span, seen, known + more) <= seconds_left(span, seen, known)
    if known < min(AT_LEAST_TRIED_FOR, timeout) - 1:
        assert seconds_left(span, seen, known) > 0
    if known > max(AT_LEAST_TRIED_FOR, timeout) + 1:
        assert seconds_left(span, seen, known) <= 0
