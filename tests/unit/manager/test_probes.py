"""What a whole manager answers to probes, on virtual time, whatever befalls it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from aiohttp.test_utils import make_mocked_request

from mcm import manager as composition
from mcm.api.crds import crd_manifests
from mcm.api.machine import MACHINES
from mcm.client.errors import NotFound
from mcm.controllers.context import ControllerContext
from mcm.controllers.runtime import DONE, STUCK_AFTER, Controller, Outcome
from mcm.endpoints import Probe
from mcm.lifecycle import GRACE_PERIOD
from mcm.manager import LEASE_NAMES
from mcm.sandbox.cluster import create_all
from mcm.simulation.faults import Broken, WatchEnd
from mcm.simulation.virtualtime import run_virtual
from tests.unit.manager.process import (
    CLOCK,
    ManagedProcess,
    fill,
    give_leases_to,
    new_server,
    until,
)

MIRROR = f"control/{MACHINES.name}"


async def asked(process: ManagedProcess, path: str) -> tuple[int, str]:
    """Return status and text of a probe's page."""
    manager = process.manager
    pages = {
        "/healthz": Probe(problems=manager.alive, bad="Unhealthy"),
        "/readyz": Probe(problems=manager.ready, checks=manager.mirrored, bad="Not ready"),
    }
    answer = await pages[path].overview(make_mocked_request("GET", path))
    return answer.status, answer.text or ""


async def leader() -> ManagedProcess:
    """Return a process that leads no machines, with the probes of one that is well."""
    server = new_server()
    await create_all(server, crd_manifests())
    process = ManagedProcess(server)
    await until(lambda: process.leads)
    await CLOCK.sleep(5)
    assert await asked(process, "/healthz") == (200, "OK")
    assert await asked(process, "/readyz") == (200, "OK")
    return process


async def end(process: ManagedProcess) -> None:
    process.stop.set()
    assert await process.ended(GRACE_PERIOD) is None
    process.check_nothing_is_left()


# ---- readiness -----------------------------------------------------------------------------------


def test_a_watch_that_breaks_at_once_for_ever_is_no_readiness_but_freezes_nobody() -> None:
    async def scenario() -> None:
        process = await leader()
        process.faults.end_watches(path=r"/machines$")
        process.faults.cut_watches()
        await CLOCK.sleep(15)
        for _ in range(30):
            status, text = await asked(process, "/readyz")
            assert status == 500, f"at {CLOCK.monotonic():.0f} s"
            assert f"{MIRROR}: {MACHINES.name} cannot be watched since 2026-01-01T00:0" in text
            assert text.count("\n") == 2, "all others are watched"
            assert await asked(process, "/healthz") == (200, "OK"), "no restart would mend it"
            assert not process.manager.control_informers.problems(), "the server is within reach"
            await CLOCK.sleep(2)
        process.faults.clear()
        await CLOCK.sleep(60)
        assert await asked(process, "/readyz") == (200, "OK")
        await end(process)

    run_virtual(scenario)


def silence(process: ManagedProcess) -> None:
    """Nothing comes any more, and nothing says so."""
    process.faults.add(Broken.HANGS, path=r"/machines\b", method="GET")
    process.faults.cut_watches(WatchEnd.FROZEN)


def no_server(process: ManagedProcess) -> None:
    process.faults.refuse(path=r"/machines\b", method="GET")
    process.faults.cut_watches()


@pytest.mark.parametrize(("befalls", "within"), [(silence, 95.0), (no_server, 12.0)])
def test_a_mirror_that_hears_nothing_is_no_readiness(
    befalls: Callable[[ManagedProcess], None], within: float
) -> None:
    async def scenario() -> None:
        process = await leader()
        befalls(process)
        await CLOCK.sleep(within)
        status, text = await asked(process, "/readyz")
        assert status == 500 and f"{MIRROR}: " in text
        assert await asked(process, "/healthz") == (200, "OK")
        process.faults.clear()
        await CLOCK.sleep(60)
        assert await asked(process, "/readyz") == (200, "OK")
        await end(process)

    run_virtual(scenario)


def test_watches_that_end_in_their_time_do_not_touch_readiness() -> None:
    async def scenario() -> None:
        process = await leader()
        for _ in range(3):
            await CLOCK.sleep(300)
            process.faults.cut_watches(WatchEnd.CLOSED)
            for _ in range(15):
                await CLOCK.sleep(1)
                assert await asked(process, "/readyz") == (200, "OK")
        await end(process)

    run_virtual(scenario)


def test_who_waits_for_the_leases_is_ready_and_well() -> None:
    async def scenario() -> None:
        server = new_server()
        await fill(server)
        await give_leases_to(server, "another", *LEASE_NAMES)
        process = ManagedProcess(server)
        await CLOCK.sleep(0)
        assert (await asked(process, "/readyz"))[0] == 500, "nothing is mirrored yet"
        assert await asked(process, "/healthz") == (200, "OK")
        await until(lambda: not process.manager.ready())
        for _ in range(10):
            assert await asked(process, "/readyz") == (200, "OK")
            assert await asked(process, "/healthz") == (200, "OK")
            await CLOCK.sleep(60)
        assert not process.leads and process.acts == 0
        await end(process)

    run_virtual(scenario)


# ---- liveness ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("machine-worker-0", "machine: it ended by itself: controller machine: machine-worker-0 "),
        (f"informer {MACHINES.name}", f"control: it ended by itself: informer {MACHINES.name} "),
        (f"reflector {MACHINES.name}", f"control: it ended by itself: reflector {MACHINES.name} "),
    ],
)
def test_what_ends_by_itself_ends_the_process_and_is_named(task: str, named: str) -> None:
    async def scenario() -> None:
        process = await leader()
        began = CLOCK.monotonic()
        process.task(task).cancel()
        await until(lambda: bool(process.manager.alive()), within=1.0)
        status, text = await asked(process, "/healthz")
        assert status == 500
        assert named in text
        assert await process.ended(GRACE_PERIOD) is not None
        assert CLOCK.monotonic() - began <= GRACE_PERIOD
        process.check_nothing_is_left()

    run_virtual(scenario)


Body = Callable[[ControllerContext], Awaitable[None]]


def in_place_of_secrets(monkeypatch: pytest.MonkeyPatch, body: Body) -> None:
    """Have one reconcile of the manager be ``body``."""

    def build(ctx: ControllerContext) -> Sequence[Controller]:
        queue = ctx.queue("secret")

        async def reconcile(_: str) -> Outcome:
            await body(ctx)
            return DONE

        queue.add("default/s-1")
        return [ctx.controller("secret", queue, reconcile, workers=1)]

    monkeypatch.setitem(composition._BUILD, "secret", build)


def test_a_reconcile_that_hangs_is_named_half_an_hour_after_its_last_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read_and_hang(ctx: ControllerContext) -> None:
        await CLOCK.sleep(STUCK_AFTER - 60)
        with pytest.raises(NotFound):  # past the writer, as a drain reads
            await ctx.control.get(MACHINES, "no-such-machine", namespace="default")
        await asyncio.Event().wait()

    in_place_of_secrets(monkeypatch, read_and_hang)

    async def scenario() -> None:
        process = await leader()
        for moment in (STUCK_AFTER, 2 * STUCK_AFTER - 70):
            await CLOCK.sleep(moment - CLOCK.monotonic())
            assert await asked(process, "/healthz") == (200, "OK")
        await CLOCK.sleep(30)
        status, text = await asked(process, "/healthz")
        assert status == 500
        assert "secret default/s-1: its reconcile has got nowhere for 18" in text
        assert await asked(process, "/readyz") == (200, "OK"), "the mirrors are well"
        await end(process)

    run_virtual(scenario)
