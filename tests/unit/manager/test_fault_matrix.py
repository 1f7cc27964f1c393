"""Whatever befalls a process in whatever stage of its life: it ends in time and leaves nothing.

Each of {starting, syncing, waiting for leases, leading, stopping} with each of {stop, first lease
lost, second lease lost, both, API out, controller ends, service ends, second stop}. What does not
end a process in a stage (a mirror waits for an API server for ever) is followed by a stop, which
has to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from mcm.client.errors import ConfigurationError
from mcm.leaderelection import LeadershipLost
from mcm.lifecycle import GRACE_PERIOD
from mcm.lifecycle.machine import HURRIED
from mcm.manager import LEASE_NAMES
from mcm.sandbox.apiserver.server import ApiServer
from mcm.simulation.faults import Broken
from mcm.simulation.virtualtime import run_virtual
from tests.unit.manager.process import (
    CLOCK,
    RENEW_DEADLINE,
    ManagedProcess,
    fill,
    give_leases_to,
    holders,
    new_server,
    until,
)

OTHER = "another"
CONTROLLER, SERVICE = "controller machine", "service slow/poller"

# ---- stages: each returns a process that has got there ------------------------------------------


async def starting(server: ApiServer) -> ManagedProcess:
    process = ManagedProcess(server)
    process.faults.add(Broken.HANGS, path=r"^/apis/machine\.sapcloud\.io/v1alpha1$")
    await CLOCK.sleep(3)
    assert not process.task("checks").done()
    return process


async def syncing(server: ApiServer) -> ManagedProcess:
    process = ManagedProcess(server)
    process.faults.add(Broken.HANGS, path=r"/machinesets$")
    await until(lambda: holders(server) == ["me", "me"])
    await CLOCK.sleep(3)
    assert not process.task("sync").done()
    return process


async def waiting(server: ApiServer) -> ManagedProcess:
    await give_leases_to(server, OTHER, *LEASE_NAMES)
    process = ManagedProcess(server)
    await until(lambda: not process.manager.ready())
    await CLOCK.sleep(3)
    assert not process.task(f"lease {LEASE_NAMES[0]}").done() and not process.leads
    return process


async def leading(server: ApiServer) -> ManagedProcess:
    process = ManagedProcess(server)
    await until(lambda: process.driver.under_way == 3)
    await CLOCK.sleep(3)
    assert process.acts > 10, "there was something to look at"
    return process


async def stopping(server: ApiServer) -> ManagedProcess:
    process = await leading(server)
    process.stop.set()
    await CLOCK.sleep(3)
    assert not process.running.done() and process.driver.under_way == 3
    return process


# ---- what befalls it: each returns the seconds until the process takes notice at the latest ------

Fault = Callable[[ManagedProcess], Awaitable[float]]


async def stop(process: ManagedProcess) -> float:
    process.stop.set()
    return 0.0


async def first_lease_lost(process: ManagedProcess) -> float:
    process.faults.refuse(path=f"/leases/{LEASE_NAMES[0]}$")
    return RENEW_DEADLINE


async def second_lease_lost(process: ManagedProcess) -> float:
    process.faults.refuse(path=f"/leases/{LEASE_NAMES[1]}$")
    return RENEW_DEADLINE


async def both_leases_lost(process: ManagedProcess) -> float:
    process.faults.refuse(path="/leases/")
    return RENEW_DEADLINE


async def api_out(process: ManagedProcess) -> float:
    process.faults.clear()
    process.faults.refuse()
    process.faults.cut_watches()
    return RENEW_DEADLINE


async def controller_ends(process: ManagedProcess) -> float:
    return _end(process, CONTROLLER)


async def service_ends(process: ManagedProcess) -> float:
    return _end(process, SERVICE)


async def second_stop(process: ManagedProcess) -> float:
    process.stop.set()
    process.running.cancel()
    return 0.0


def _end(process: ManagedProcess, name: str) -> float:
    with suppress(ValueError):  # it does not run in this stage
        process.task(name).cancel()
    return 0.0


STAGES = (starting, syncing, waiting, leading, stopping)
FAULTS: tuple[Fault, ...] = (
    stop,
    first_lease_lost,
    second_lease_lost,
    both_leases_lost,
    api_out,
    controller_ends,
    service_ends,
    second_stop,
)
LOSSES = (first_lease_lost, second_lease_lost, both_leases_lost, api_out)


def outcome(stage: object, fault: Fault) -> type[BaseException] | None:
    """Return what a process in ``stage`` dies of when ``fault`` befalls it; None: in order."""
    if stage is stopping and fault is not second_stop:
        return None  # the first cause is the result
    if fault is second_stop:
        return asyncio.CancelledError
    if stage is starting:
        return ConfigurationError if fault is not stop else None
    if stage in (syncing, leading) and fault in LOSSES:
        return LeadershipLost
    if stage is leading and fault in (controller_ends, service_ends):
        return RuntimeError
    return None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
def test_it_ends_within_the_grace_period_and_leaves_nothing(
    stage: Callable[[ApiServer], Awaitable[ManagedProcess]], fault: Fault
) -> None:
    async def scenario() -> None:
        server = new_server()
        await fill(server)
        process = await stage(server)
        expected = outcome(stage, fault)
        noticed = await fault(process)
        if fault is second_stop:
            error = await process.ended(HURRIED)
        elif expected is None:
            await CLOCK.sleep(0.0 if stage is stopping else noticed)
            process.stop.set()
            error = await process.ended(GRACE_PERIOD)
        else:
            patience = 120.0 if stage is starting else noticed
            error = await process.ended(patience + GRACE_PERIOD)
        assert (type(error) if error is not None else None) is expected, error
        process.check_nothing_is_left()
        _check_releases(process, stage, fault)

    run_virtual(scenario)


def _check_releases(process: ManagedProcess, stage: object, fault: Fault) -> None:
    if stage is starting:
        assert process.released == [] and holders(process.server) == ["", ""]
    elif stage is waiting:
        assert process.released == [] and holders(process.server) == [OTHER, OTHER]
    elif fault not in LOSSES:
        assert sorted(process.released) == sorted(LEASE_NAMES)
        assert holders(process.server) == ["", ""]
    else:  # what could not be released runs out
        kept = {first_lease_lost: ["me", ""], second_lease_lost: ["", "me"]}
        assert holders(process.server) == kept.get(fault, ["me", "me"])
