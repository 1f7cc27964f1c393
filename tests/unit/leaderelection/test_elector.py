"""One elector at work, on virtual time: acquiring, renewing, losing, ending."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from mcm.api.core import Lease
from mcm.client.errors import BadRequest, Conflict, NotFound
from mcm.clock import LoopClock
from mcm.leaderelection import LeaderElector, LeadershipLost, new_identity
from mcm.simulation.virtualtime import run_virtual
from tests.unit.leaderelection.lease_server import (
    EPOCH,
    LeaseLink,
    LeaseServer,
    Network,
    SkewedClock,
)

CLOCK = LoopClock(EPOCH)


def virtual(test: Callable[..., Coroutine[object, object, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(**fixtures: object) -> None:
        run_virtual(lambda: test(**fixtures))

    return run


def elector(link: LeaseLink, identity: str = "me", **options: Any) -> LeaderElector:
    return LeaderElector(
        link,
        name=options.pop("name", "lease"),
        namespace="ns",
        identity=identity,
        clock=options.pop("clock", CLOCK),
        **options,
    )


def now() -> float:
    return asyncio.get_running_loop().time()


async def forever() -> None:
    await asyncio.Event().wait()


async def led_by(
    candidate: LeaderElector, work: Callable[[], Awaitable[None]] = forever
) -> asyncio.Task[None]:
    """Run ``candidate`` in a task and return it once its work has begun."""
    begun = asyncio.Event()

    async def lead() -> None:
        begun.set()
        await work()

    running = asyncio.create_task(candidate.run(lead))
    waiting = asyncio.create_task(begun.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return running


async def cancel(running: asyncio.Task[None]) -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def holder(server: LeaseServer, name: str = "lease") -> str | None:
    return server.leases[name].spec.holder_identity


@virtual
async def test_the_first_candidate_leads_at_once_and_releases_when_its_work_is_done() -> None:
    server = LeaseServer()
    candidate = elector(LeaseLink(server))

    async def lead() -> None:
        assert candidate.is_leading
        assert candidate.holder == holder(server) == "me"
        candidate.fence()
        await CLOCK.sleep(5)

    await candidate.run(lead)
    assert now() == 5
    assert not candidate.is_leading
    assert holder(server) == ""
    assert server.leases["lease"].spec.lease_duration_seconds == 1


@virtual
async def test_a_leader_renews_every_two_seconds_without_reading() -> None:
    server = LeaseServer()
    link = LeaseLink(server)
    running = await led_by(elector(link))
    link.requests.clear()
    await CLOCK.sleep(60.5)
    assert link.requests == ["update"] * 30
    times = [when for when, _ in server.writes[-3:]]
    assert times == [56, 58, 60]
    await cancel(running)


@virtual
async def test_a_second_candidate_waits_until_the_first_is_done() -> None:
    server = LeaseServer()
    first = await led_by(elector(LeaseLink(server), "first"), lambda: CLOCK.sleep(100))
    second = await led_by(elector(LeaseLink(server), "second"), lambda: CLOCK.sleep(1))
    assert first.done()
    assert 100 <= now() <= 100 + 4.4
    await second


@virtual
async def test_a_dead_leaders_lease_is_taken_after_its_duration() -> None:
    server = LeaseServer()
    network = Network()
    dead = await led_by(elector(LeaseLink(server, network), "dead"))
    network.hung = True
    dead.cancel()
    died_at = now()
    heir = await led_by(elector(LeaseLink(server), "heir"))
    assert 15 <= now() - died_at <= 15 + 4.4
    assert server.leases["lease"].spec.lease_transitions == 1
    await cancel(heir)
    await asyncio.wait([dead])


@virtual
async def test_a_wall_clock_gone_wrong_changes_nothing() -> None:
    server = LeaseServer()
    ahead = SkewedClock(wall_offset=1e7)
    behind = SkewedClock(wall_offset=-1e7)
    first = await led_by(elector(LeaseLink(server), "first", clock=ahead))
    second = elector(LeaseLink(server), "second", clock=behind)
    waiting = asyncio.create_task(second.run(forever))
    await CLOCK.sleep(300)
    assert holder(server) == "first"
    await cancel(first)
    await CLOCK.sleep(5)
    assert second.is_leading
    await cancel(waiting)


@pytest.mark.parametrize("trouble", ["refused", "hung"])
def test_leadership_that_cannot_be_renewed_ends_at_the_renew_deadline(trouble: str) -> None:
    @virtual
    async def scenario() -> None:
        server, network, ended = LeaseServer(), Network(), list[float]()
        candidate = elector(LeaseLink(server, network))

        async def lead() -> None:
            try:
                await forever()
            finally:
                ended.append(now())

        running = await led_by(candidate, lead)
        await CLOCK.sleep(20.5)
        setattr(network, trouble, True)  # the last renewal was sent at 20
        await CLOCK.sleep(9.4)
        candidate.fence()
        assert not ended
        await CLOCK.sleep(0.2)
        assert ended == [30.0]
        with pytest.raises(LeadershipLost, match="ours, but not renewed in time"):
            candidate.fence()
        with pytest.raises(LeadershipLost):
            await running
        assert now() <= 40.0, "the attempt to release is bounded, too"

    scenario()


@virtual
async def test_a_short_outage_costs_nothing() -> None:
    server, network = LeaseServer(), Network()
    candidate = elector(LeaseLink(server, network))
    running = await led_by(candidate)
    for _ in range(10):
        network.refused = True
        await CLOCK.sleep(5.5)
        assert candidate.is_leading
        network.refused = False
        await CLOCK.sleep(4)
    assert candidate.is_leading
    await cancel(running)


@virtual
async def test_an_answer_that_got_lost_is_found_out_by_reading() -> None:
    server, network, registry = LeaseServer(), Network(), CollectorRegistry()
    link = LeaseLink(server, network)
    candidate = elector(link, registry=registry)
    running = await led_by(candidate)
    await CLOCK.sleep(1)
    answers = iter([False, True])  # the request arrives, the answer does not
    network.loss = lambda: next(answers, False)
    link.requests.clear()
    await CLOCK.sleep(4)
    assert candidate.is_leading
    assert link.requests == ["update", "update", "get", "update"]
    slow = registry.get_sample_value("leader_election_slowpath_total", {"name": "lease"})
    assert slow == 1
    await cancel(running)


def usurp(server: LeaseServer, name: str = "lease") -> None:
    lease = server.leases[name]
    body = Lease(metadata=lease.metadata, spec=type(lease.spec)(holder_identity="usurper"))
    server.update(name, body)


@virtual
async def test_another_name_in_the_lease_ends_leadership_and_is_left_there() -> None:
    server = LeaseServer()
    running = await led_by(elector(LeaseLink(server)))
    await CLOCK.sleep(3)
    usurp(server)
    with pytest.raises(LeadershipLost, match="held by usurper"):
        await running
    assert now() == 4, "at the next renewal"
    assert holder(server) == "usurper"


@virtual
async def test_work_that_raises_because_of_the_loss_does_not_hide_it() -> None:
    server = LeaseServer()
    candidate = elector(LeaseLink(server))

    async def lead() -> None:
        try:
            await forever()
        finally:
            raise ValueError("half done")

    running = await led_by(candidate, lead)
    usurp(server)
    with pytest.raises(LeadershipLost) as caught:
        await running
    assert isinstance(caught.value.__cause__, ValueError)


@virtual
async def test_work_that_shrugs_the_loss_off_does_not_hide_it() -> None:
    server = LeaseServer()

    async def lead() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            return

    running = await led_by(elector(LeaseLink(server)), lead)
    usurp(server)
    with pytest.raises(LeadershipLost):
        await running


@virtual
async def test_a_cancellation_that_meets_the_loss_is_not_swallowed() -> None:
    server = LeaseServer()

    async def lead() -> None:
        try:
            await forever()
        finally:
            await CLOCK.sleep(5)  # long enough to be cancelled once more, from outside

    running = await led_by(elector(LeaseLink(server)), lead)
    usurp(server)
    await CLOCK.sleep(4)
    await cancel(running)


@virtual
async def test_a_namespace_that_does_not_exist_is_told_once_a_minute() -> None:
    network = Network()
    network.failure = NotFound(404, "NotFound", 'namespaces "ns" not found', about="namespaces")
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("mcm.leaderelection.elector")
    log.addHandler(handler)
    try:
        running = asyncio.create_task(elector(LeaseLink(LeaseServer(), network)).run(forever))
        await CLOCK.sleep(119)
        await cancel(running)
    finally:
        log.removeHandler(handler)
    told = [line for line in lines if "does not exist" in line]
    assert len(told) == 2
    assert told[0] == (
        "the namespace ns does not exist, in which machines and leases are (--namespace); "
        "`kubectl create namespace ns` makes it"
    )
    assert told[1].startswith(told[0]) and "more since the last line" in told[1]
    assert not any("attempt failed" in line for line in lines)


@virtual
async def test_any_error_in_the_renewal_ends_leadership() -> None:
    """L6: also one that nobody thought of."""
    server, network, ended = LeaseServer(), Network(), list[float]()
    candidate = elector(LeaseLink(server, network))

    async def lead() -> None:
        try:
            await forever()
        finally:
            ended.append(now())

    running = await led_by(candidate, lead)
    network.failure = MemoryError()
    with pytest.raises(LeadershipLost) as caught:
        await running
    assert isinstance(caught.value.__cause__, MemoryError)
    assert ended == [2.0]


@virtual
async def test_what_the_work_raises_is_raised_after_the_release() -> None:
    server = LeaseServer()

    async def lead() -> None:
        await CLOCK.sleep(1)
        raise KeyError("x")

    with pytest.raises(KeyError):
        await elector(LeaseLink(server)).run(lead)
    assert holder(server) == ""


@virtual
async def test_the_lease_is_renewed_while_cancelled_work_winds_down_and_released_after() -> None:
    server = LeaseServer()
    candidate, wound_down = elector(LeaseLink(server)), list[float]()

    async def lead() -> None:
        try:
            await forever()
        finally:
            await CLOCK.sleep(60)
            candidate.fence()
            assert holder(server) == "me"
            wound_down.append(now())

    running = await led_by(candidate, lead)
    await CLOCK.sleep(3)
    await cancel(running)
    assert wound_down == [63.0]
    assert holder(server) == ""
    assert server.writes[-1][0] == 63.0


@virtual
async def test_a_candidate_that_is_cancelled_while_its_request_is_under_way_leaves_no_trace() -> (
    None
):
    server = LeaseServer()
    link = LeaseLink(server, Network(latency=lambda: 1.0))
    running = asyncio.create_task(elector(link).run(forever))
    await CLOCK.sleep(2.5)  # get answered after 2, create leaves, arrives at 3
    assert link.requests == ["get", "create"] and not server.leases
    await cancel(running)
    assert holder(server) == ""


@virtual
async def test_a_candidate_that_never_wrote_has_nothing_to_release() -> None:
    server = LeaseServer()
    leader = await led_by(elector(LeaseLink(server), "leader"))
    link = LeaseLink(server)
    waiting = asyncio.create_task(elector(link, "waiting").run(forever))
    await CLOCK.sleep(30)
    seen = len(link.requests)
    await cancel(waiting)
    assert len(link.requests) == seen
    await cancel(leader)


@virtual
async def test_a_release_that_meets_a_change_reads_again() -> None:
    server = LeaseServer()
    link = LeaseLink(server, Network(latency=lambda: 0.25))
    running = await led_by(elector(link))
    link.requests.clear()
    running.cancel()
    await CLOCK.sleep(0.4)  # it was read at 0.25; now somebody labels it
    lease = server.leases["lease"]
    server.update("lease", lease)
    await asyncio.wait([running])
    assert link.requests == ["get", "update", "get", "update"]
    assert holder(server) == ""


@virtual
async def test_a_lease_that_was_deleted_is_created_again() -> None:
    server = LeaseServer()
    candidate = elector(LeaseLink(server))
    running = await led_by(candidate)
    await CLOCK.sleep(1)
    server.leases.clear()
    await CLOCK.sleep(4)
    assert candidate.is_leading or holder(server) is not None
    running.cancel()
    await asyncio.wait([running])


@virtual
async def test_a_lease_that_was_deleted_needs_no_release() -> None:
    server = LeaseServer()
    running = await led_by(elector(LeaseLink(server)))
    server.leases.clear()
    await cancel(running)
    assert not server.leases


@virtual
async def test_a_server_out_of_reach_delays_the_end_by_no_more_than_the_renew_deadline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, network = LeaseServer(), Network()
    running = await led_by(elector(LeaseLink(server, network)))
    network.hung = True
    started = now()
    await cancel(running)
    assert now() - started == 10
    assert caplog.messages[-1].endswith("not released: the server did not answer in time")


@virtual
async def test_the_fence_looks_at_the_clock_and_not_at_a_flag() -> None:
    """A blocked loop, or a stopped process: no renewal, no task, had a chance to notice."""
    clock = SkewedClock()
    candidate = elector(LeaseLink(LeaseServer()), clock=clock)
    running = await led_by(candidate)
    candidate.fence()
    clock.offset += 11
    with pytest.raises(LeadershipLost):
        candidate.fence()
    assert not candidate.is_leading
    with pytest.raises(LeadershipLost):
        await running


def test_the_fence_is_closed_before_and_the_state_says_so() -> None:
    @virtual
    async def scenario() -> None:
        candidate = elector(LeaseLink(LeaseServer()))
        assert not candidate.is_leading and candidate.holder == ""
        with pytest.raises(LeadershipLost, match="held by nobody known"):
            candidate.fence()

    scenario()


@virtual
async def test_two_leases_can_be_held_one_within_the_other() -> None:
    server = LeaseServer()
    outer, inner = (elector(LeaseLink(server), name=name) for name in ("outer", "inner"))
    order: list[str] = []
    server.on_write = lambda before, after: (
        order.append(after.metadata.name) if not after.spec.holder_identity else None
    )
    running = await led_by(outer, lambda: inner.run(forever))
    await CLOCK.sleep(30)
    assert outer.is_leading and inner.is_leading
    await cancel(running)
    assert order == ["inner", "outer"]


@virtual
async def test_the_loss_of_the_outer_lease_ends_the_inner_too() -> None:
    server, network = LeaseServer(), Network()
    outer = elector(LeaseLink(server, network), name="outer")
    inner = elector(LeaseLink(server), name="inner")
    running = await led_by(outer, lambda: inner.run(forever))
    await CLOCK.sleep(1)
    network.refused = True
    with pytest.raises(LeadershipLost, match="outer"):
        await running
    assert holder(server, "inner") == ""


@virtual
async def test_the_loss_of_the_inner_lease_ends_the_outer_too() -> None:
    server, network = LeaseServer(), Network()
    outer = elector(LeaseLink(server), name="outer")
    inner = elector(LeaseLink(server, network), name="inner")
    running = await led_by(outer, lambda: inner.run(forever))
    await CLOCK.sleep(1)
    network.refused = True
    with pytest.raises(LeadershipLost, match="inner"):
        await running
    assert holder(server, "outer") == ""


@virtual
async def test_the_status_metric_follows() -> None:
    server, registry = LeaseServer(), CollectorRegistry()
    candidates = [
        elector(LeaseLink(server), name=name, registry=registry) for name in ("lease", "idle")
    ]

    def status(name: str) -> float | None:
        return registry.get_sample_value("leader_election_master_status", {"name": name})

    assert status("lease") == status("idle") == 0
    running = await led_by(candidates[0])
    assert status("lease") == 1 and status("idle") == 0
    await cancel(running)
    assert status("lease") == 0


def test_identities_are_never_the_same_twice() -> None:
    first, second = new_identity("host"), new_identity("host")
    assert first.startswith("host_") and second.startswith("host_") and first != second
    assert "_" in new_identity()


@virtual
async def test_a_lease_deleted_under_its_leader_is_made_anew_whatever_the_server_calls_it() -> None:
    server = LeaseServer()
    running = await led_by(elector(LeaseLink(server)))
    for refusal in (NotFound(404), BadRequest(400, "BadRequest"), Conflict(409, "Conflict")):
        del server.leases["lease"]
        server.absent_on_update = refusal
        await CLOCK.sleep(5)
        assert not running.done()
        assert holder(server) == "me"
    await cancel(running)
