from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime

import pytest

from mcm.api.machine import MACHINES
from mcm.client.errors import (
    ConnectionRefused,
    Forbidden,
    Gone,
    ServerError,
    TooManyRequests,
    TransportError,
)
from mcm.informers import Informer, ReflectorOptions
from tests.unit.informers.apiserver import JSON, NAMESPACE, ApiServer, Break, Fault, Seen, too_large
from tests.unit.informers.mirror import Mirror, on_mirror

PAGED = ReflectorOptions(streamed_lists=False)
STREAMED = ReflectorOptions(streamed_lists=True)


def verbs(seen: list[Seen]) -> list[str]:
    return [f"{s.verb} {s.version}".strip() for s in seen]


def three() -> ApiServer:
    server = ApiServer()
    for name in ("a", "b", "c"):
        server.put(name, "Running")
    return server


def unreadable(name: str) -> JSON:
    """A machine whose spec is a number."""
    return {"metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}, "spec": 7}


def test_it_lists_then_watches_from_the_version_of_the_list() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        assert mirror.agrees()
        assert all(change.initial for change in mirror.replay.changes)
        await mirror.sleep(0.01)
        assert verbs(mirror.server.seen) == ["list", "watch 103"]

    on_mirror(scenario, server=three, options=PAGED)


def test_events_reach_store_and_handlers_as_they_come() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        await mirror.sleep(1)
        mirror.server.put("a", "Failed")
        mirror.server.drop("b")
        mirror.server.put("d")
        await mirror.sleep(0.01)
        assert mirror.agrees()
        assert mirror.informer.store.resource_version == "106"
        assert mirror.informer.stats.events == {"ADDED": 1, "MODIFIED": 1, "DELETED": 1}

    on_mirror(scenario, server=three, options=PAGED)


def test_pages_are_joined_to_one_list_at_the_version_of_the_first() -> None:
    def server() -> ApiServer:
        made = three()
        made.page_cap = 2
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        await mirror.sleep(0.01)
        assert verbs(mirror.server.seen) == ["list", "list", "watch 103"]
        assert mirror.agrees()

    on_mirror(scenario, server=server, options=PAGED)


def test_an_expired_later_page_costs_one_unpaged_list() -> None:
    def server() -> ApiServer:
        made = three()
        made.page_cap = 2
        made.list_faults.extend([None, Gone(410, "Expired", "")])
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(0.002)
        mirror.server.page_cap = None
        await mirror.informer.wait_synced()
        assert [(s.version, s.limit) for s in mirror.server.seen if s.verb == "list"] == [
            ("", 500),
            ("", 500),
            ("", None),
        ]
        assert mirror.agrees()

    on_mirror(scenario, server=server, options=PAGED)


@pytest.mark.parametrize("kind", list(Break))
def test_whatever_ends_a_watch_the_mirror_catches_up(kind: Break) -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.append(Fault(kind, after=10.0))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(12)
        mirror.server.drop("a")
        mirror.server.put("d", "Pending")
        await mirror.sleep(70)
        assert mirror.agrees()

    on_mirror(scenario, server=server, options=PAGED)


RELIST = {
    Break.TORN,
    Break.GARBAGE,
    Break.EXPIRED,
    Break.ERROR_500,
    Break.TOO_LARGE,
}


@pytest.mark.parametrize("kind", [k for k in Break if k is not Break.SILENCE])
def test_a_watch_that_ended_after_news_is_resumed_or_replaced_by_a_list(kind: Break) -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.append(Fault(kind, after=10.0))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(5)
        mirror.server.put("a", "Failed")
        await mirror.sleep(30)
        after = ["list", "watch 104"] if kind in RELIST else ["watch 104"]
        assert verbs(mirror.server.seen) == ["list", "watch 103", *after]
        waited = mirror.server.seen[2].at - 10.0
        if kind is Break.ERROR_429:
            assert waited >= 7
        elif kind in (Break.CLOSE, Break.RESET):
            assert waited < 0.01
        assert mirror.agrees()

    on_mirror(scenario, server=server, options=PAGED)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefused("refused"), ["watch 103"]),
        (TransportError("reset"), ["watch 103"]),
        (TooManyRequests(429, retry_after=5.0), ["watch 103"]),
        (Gone(410, "Expired", ""), ["list", "watch 103"]),
        (Forbidden(403, "Forbidden", ""), ["list", "watch 103"]),
        (ServerError(503, "", "", retry_after=5.0), ["list", "watch 103"]),
        (too_large(), ["list", "watch 103"]),
        (ValueError("a mistake of ours"), ["list", "watch 103"]),
    ],
)
def test_a_refused_watch_is_tried_again_or_replaced_by_a_list(
    error: Exception, expected: list[str]
) -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.append(error)
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(30)
        assert verbs(mirror.server.seen) == ["list", "watch 103", *expected]
        floor = getattr(error, "retry_after", None)
        if floor:
            assert mirror.server.seen[2].at - mirror.server.seen[1].at >= floor
        assert mirror.informer.stats.failures == {type(error).__name__: 1}

    on_mirror(scenario, server=server, options=PAGED)


def test_deletions_missed_during_a_gap_are_told_as_tombstones() -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.append(Fault(Break.EXPIRED, after=10.0))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(10.01)
        mirror.server.drop("b")
        mirror.server.drop("c")
        mirror.server.put("c")
        mirror.server.compact()
        await mirror.sleep(30)
        assert mirror.agrees()
        told = [c for c in mirror.replay.changes if not c.initial]
        assert [(c.object.metadata.name, c.new is None, c.tombstone) for c in told] == [
            ("b", True, True),
            ("c", True, True),
            ("c", False, False),
        ]
        assert mirror.informer.stats.relists == 1

    on_mirror(scenario, server=server, options=PAGED)


def test_a_silent_stream_is_reopened_at_the_same_version_without_a_list() -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.append(Fault(Break.SILENCE, after=10.0))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(5)
        mirror.server.put("a", "Failed")
        await mirror.sleep(10)
        mirror.server.put("a", "Pending")
        await mirror.sleep(65)
        assert verbs(mirror.server.seen) == ["list", "watch 103", "watch 104"]
        assert mirror.server.seen[2].at == pytest.approx(75.0)
        assert mirror.informer.stats.silent_watches == 1
        assert not mirror.informer.stats.failures
        assert mirror.agrees()

    on_mirror(scenario, server=server, options=PAGED)


def test_bookmarks_carry_the_place_to_resume_through_quiet_times() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        # Another resource's writes move the server's version, not this resource's objects.
        mirror.server.version = 500
        mirror.server.watch_faults.append(Fault(Break.CLOSE, after=1000))
        await mirror.sleep(650)
        assert mirror.informer.store.resource_version == "500"
        assert verbs(mirror.server.seen)[:2] == ["list", "watch 103"]
        assert set(verbs(mirror.server.seen)[2:]) == {"watch 500"}
        assert not [c for c in mirror.replay.changes if not c.initial]

    on_mirror(scenario, server=three, options=PAGED)


def test_a_server_that_always_closes_at_once_is_not_hammered() -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.extend([Fault(Break.CLOSE, at_once=True)] * 100_000)
        return made

    async def scenario(mirror: Mirror) -> int:
        await mirror.sleep(3600)
        assert mirror.informer.stats.short_watches > 100
        return len(mirror.server.seen)

    # A list and a watch for each back-off step of 15 s on average.
    assert 300 < on_mirror(scenario, server=server, options=PAGED) < 700


def test_an_endless_flow_of_brief_productive_watches_is_slowed_down() -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.extend([Fault(Break.CLOSE)] * 100_000)
        return made

    async def scenario(mirror: Mirror) -> int:
        for n in range(3600):
            mirror.server.put("a", str(n))
            await mirror.sleep(1)
        return len(mirror.server.seen)

    assert on_mirror(scenario, server=server, options=PAGED) < 700


def test_a_server_that_is_down_is_asked_with_growing_pauses() -> None:
    def server() -> ApiServer:
        return ApiServer(down=True)

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(3600)
        assert not mirror.informer.synced
        assert not mirror.informer.healthy(mirror.clock.monotonic())
        assert 150 < len(mirror.server.seen) < 400
        mirror.server.down = False
        mirror.server.put("a")
        await mirror.sleep(31)
        assert mirror.informer.healthy(mirror.clock.monotonic())
        assert mirror.agrees()

    on_mirror(scenario, server=server, options=PAGED)


def test_an_outage_is_told_once_a_minute_and_anew_after_the_server_was_heard(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(mirror: Mirror) -> None:
        for _ in range(2):
            await mirror.sleep(31)
            assert mirror.agrees()
            caplog.clear()
            mirror.server.down = True
            await mirror.sleep(600)
            said = [r for r in caplog.records if r.levelname == "WARNING"]
            assert 8 <= len(said) <= 12
            assert all("cannot" in r.getMessage() for r in said)
            mirror.server.down = False

    on_mirror(scenario, options=PAGED)


def test_a_restored_server_is_believed_although_its_versions_are_lower() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(1)
        mirror.replay.may_rewind = True
        mirror.server.rewind(50)
        mirror.server.objects.pop("b")
        mirror.server.down = True
        mirror.server.put("z")
        await mirror.sleep(1)
        mirror.server.down = False
        await mirror.sleep(60)
        assert mirror.agrees()
        assert mirror.informer.store.resource_version == "51"

    on_mirror(scenario, server=three, options=PAGED)


def test_a_streamed_list_needs_no_list_request_and_keeps_its_stream() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        mirror.server.put("d")
        await mirror.sleep(1)
        assert verbs(mirror.server.seen) == ["watch"]
        assert mirror.server.seen[0].streamed
        assert mirror.agrees()
        assert [c.initial for c in mirror.replay.changes] == [True, True, True, False]

    on_mirror(scenario, server=three, options=STREAMED)


def test_a_server_that_cannot_stream_lists_is_not_asked_again() -> None:
    def server() -> ApiServer:
        made = three()
        made.streams_lists = False
        made.watch_faults.extend([None, Fault(Break.EXPIRED, after=40)])
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(80)
        asked = ["watch", "list", "watch 103", "list", "watch 103"]
        assert verbs(mirror.server.seen) == asked
        assert [s.streamed for s in mirror.server.seen] == [True, False, False, False, False]
        assert mirror.agrees()

    on_mirror(scenario, server=server, options=STREAMED)


@pytest.mark.parametrize("kind", [k for k in Break if k is not Break.SILENCE])
def test_a_streamed_list_that_breaks_off_is_a_failed_list(kind: Break) -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.append(Fault(kind, at_once=True))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(0)
        await mirror.sleep(0.0015)
        assert not mirror.informer.synced
        await mirror.sleep(20)
        assert mirror.agrees()
        assert mirror.informer.synced

    on_mirror(scenario, server=server, options=STREAMED)


def test_an_object_that_cannot_be_read_costs_only_itself() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        mirror.server.put_raw("b", unreadable("b"))
        mirror.server.put("c", "Failed")
        await mirror.sleep(0.01)
        store = mirror.informer.store
        assert list(store.unreadable) == [f"{NAMESPACE}/b"]
        known = store.get(f"{NAMESPACE}/b")
        assert known is not None and known.phase == "Running"
        assert store.get(f"{NAMESPACE}/c") == mirror.server.machine("c")
        assert store.resource_version == "105"

        mirror.server.compact()
        mirror.server.watch_faults.append(Fault(Break.CLOSE))
        mirror.server.down = True
        mirror.server.put("d")
        await mirror.sleep(1)
        mirror.server.down = False
        await mirror.sleep(40)
        assert f"{NAMESPACE}/b" in store and f"{NAMESPACE}/b" in store.unreadable

        mirror.server.put("b", "Running")
        await mirror.sleep(40)
        assert not store.unreadable
        assert mirror.agrees()

    on_mirror(scenario, server=three, options=PAGED)


def test_an_unreadable_object_that_is_deleted_is_gone() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        mirror.server.put_raw("b", unreadable("b"))
        await mirror.sleep(1)
        mirror.server._record("DELETED", mirror.server.objects.pop("b"))
        await mirror.sleep(1)
        assert mirror.agrees()
        assert not mirror.informer.store.unreadable

    on_mirror(scenario, server=three, options=PAGED)


@pytest.mark.parametrize("after", [0.0, 0.0005, 0.0015, 0.003, 5.0, 65.0])
def test_a_stop_is_prompt_wherever_it_comes(after: float) -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.append(Fault(Break.SILENCE))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(after)
        stopped_at = mirror.clock.monotonic()
        mirror.task.cancel()
        await asyncio.gather(mirror.task, return_exceptions=True)
        assert mirror.clock.monotonic() == stopped_at
        told = len(mirror.replay.changes)
        mirror.server.put("late")
        await mirror.sleep(100)
        assert len(mirror.replay.changes) == told

    on_mirror(scenario, server=server, options=PAGED)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_any_cutting_of_the_stream_gives_the_same_objects(chunk: int) -> None:
    def server() -> ApiServer:
        return ApiServer(chunk=chunk)

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(1)
        for name, phase in (("a", "ü\u0085\u2028 \\r\\n"), ("b", "日本\r"), ("a", "𝄞")):
            mirror.server.put(name, phase)
        await mirror.sleep(1)
        assert mirror.agrees()
        assert len(mirror.server.seen) == 2

    on_mirror(scenario, server=server, options=PAGED)


def test_a_list_that_begins_anew_forgets_the_pages_it_had() -> None:
    def server() -> ApiServer:
        made = three()
        made.page_cap = 1
        made.list_faults.extend([None, ServerError(500)])
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(0.0015)
        mirror.server.drop("a")
        await mirror.informer.wait_synced()
        assert mirror.agrees()

    on_mirror(scenario, server=server, options=PAGED)


def test_a_list_after_a_streamed_one_that_was_cut_forgets_what_that_had() -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.append(Fault(Break.RESET, unfinished_list=True))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(0.0015)
        assert not mirror.informer.synced
        mirror.server.drop("a")
        await mirror.informer.wait_synced()
        assert mirror.agrees()
        assert [s.streamed for s in mirror.server.seen] == [True, False, False]

    on_mirror(scenario, server=server, options=STREAMED)


@pytest.mark.parametrize("streamed", [False, True])
def test_an_object_that_cannot_be_read_is_known_as_such_from_the_list_on(streamed: bool) -> None:
    def server() -> ApiServer:
        made = three()
        made.put_raw("b", unreadable("b"))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        store = mirror.informer.store
        assert (list(store.unreadable), len(store)) == ([f"{NAMESPACE}/b"], 2)
        assert mirror.informer.stats.unreadable == 1
        mirror.server.put("b")
        await mirror.sleep(1)
        assert mirror.agrees()
        assert not store.unreadable

    on_mirror(scenario, server=server, options=ReflectorOptions(streamed_lists=streamed))


def test_an_unreadable_object_is_reported_once_a_version(caplog: pytest.LogCaptureFixture) -> None:
    def server() -> ApiServer:
        made = three()
        made.put_raw("b", unreadable("b"))
        made.watch_faults.extend([Fault(Break.GARBAGE, after=5)] * 3)
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(60)
        assert mirror.informer.stats.relists == 3
        assert mirror.informer.stats.unreadable == 4
        reports = [r for r in caplog.records if "cannot read" in r.message]
        assert [(r.__dict__["key"], r.__dict__["version"]) for r in reports] == [
            (f"{NAMESPACE}/b", "104")
        ]

    on_mirror(scenario, server=server, options=PAGED)


def test_after_a_list_without_a_version_made_up_events_do_not_move_the_stores() -> None:
    def server() -> ApiServer:
        made = three()
        made.versioned_lists = False
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(1)
        assert verbs(mirror.server.seen) == ["list", "watch"]
        assert mirror.informer.stats.events == {"ADDED": 3}
        assert mirror.informer.store.resource_version == ""
        mirror.server.put("a", "Failed")
        await mirror.sleep(1)
        assert mirror.informer.store.resource_version == "104"
        assert mirror.agrees()

    on_mirror(scenario, server=server, options=PAGED)


class TickingClock:
    """A millisecond passes whenever somebody looks."""

    def __init__(self) -> None:
        self.ticks = 0.0
        self.yields = 0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        self.ticks += 0.001
        return self.ticks

    async def sleep(self, seconds: float) -> None:
        self.yields += seconds == 0
        await asyncio.sleep(0)  # noqa: TID251 - a clock's own


async def test_a_flood_of_chunks_that_are_there_already_lets_others_run() -> None:
    server = three()
    clock = TickingClock()
    informer = Informer(server, MACHINES, clock=clock, randomness=random.Random(0))
    task = asyncio.create_task(informer.run())
    await informer.wait_synced()
    server.chunk = 200
    for n in range(200):
        server.put("a", str(n))
    before = clock.yields
    last = asyncio.Event()
    informer.add_handler(lambda change: last.set() if change.object.phase == "199" else None)
    await last.wait()
    assert 20 < clock.yields - before < 200
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_watch_request_that_is_never_answered_is_given_up() -> None:
    def server() -> ApiServer:
        made = three()
        made.watch_faults.append(Fault(Break.SILENCE, unanswered=True))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(75)
        assert verbs(mirror.server.seen) == ["list", "watch 103", "watch 103"]
        assert mirror.informer.stats.failures == {"RequestTimeout": 1}

    on_mirror(scenario, server=server, options=PAGED)


def test_events_of_an_unknown_type_are_passed_over() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        await mirror.sleep(1)
        mirror.server._record("POLISHED", unreadable("a"))
        mirror.server.put("d")
        await mirror.sleep(1)
        assert len(mirror.server.seen) == 2
        assert mirror.agrees()
        assert not mirror.informer.store.unreadable
        assert mirror.informer.stats.unreadable == 1

    on_mirror(scenario, server=three, options=PAGED)


def test_reports_of_unreadable_objects_are_remembered_within_bounds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def server() -> ApiServer:
        made = ApiServer()
        for n in range(1500):
            made.put_raw(f"m{n}", unreadable(f"m{n}"))
        made.watch_faults.append(Fault(Break.GARBAGE, after=5))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(30)
        assert mirror.informer.stats.relists == 1
        reports = [r for r in caplog.records if "cannot read" in r.message]
        assert 1500 < len(reports) <= 3000
        assert len(mirror.informer.store.unreadable) == 1500

    on_mirror(scenario, server=server, options=PAGED)
