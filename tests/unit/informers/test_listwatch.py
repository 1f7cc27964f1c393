from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mcm.client.errors import (
    ApiError,
    BadRequest,
    ConnectionRefused,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from mcm.informers.listwatch import (
    Action,
    Ending,
    FetchPage,
    ListWatch,
    OpenWatch,
    ReflectorOptions,
    Wait,
)
from tests.unit.informers.apiserver import too_large

GONE = Gone(410, "Expired", "too old resource version")


def fresh(*, streamed: bool = False) -> ListWatch:
    return ListWatch(randomness=random.Random(7), options=ReflectorOptions(streamed_lists=streamed))


def watching(*, streamed: bool = False) -> ListWatch:
    """A machine that listed at version 100 and has been asked for a watch."""
    machine = fresh(streamed=streamed)
    machine.next()
    if streamed:
        machine.opened(0.0)
        machine.initial_events_end("100")
        machine.event("100")
        machine.ended(Ending.CLOSED, 400.0)
    else:
        assert machine.page("100", "")
    machine.next()
    return machine


def plan(machine: ListWatch) -> tuple[str, str]:
    """What comes next, waiting aside: (verb, version), and whether there is a wait before it."""
    action = machine.next()
    prefix = ""
    if isinstance(action, Wait):
        prefix, action = "wait, ", machine.next()
    return prefix + _verb(action), _version(action)


def _verb(action: Action) -> str:
    if isinstance(action, OpenWatch):
        return "stream" if action.streamed_list else "watch"
    assert isinstance(action, FetchPage)
    return "list" if action.limit else "list whole"


def _version(action: Action) -> str:
    assert not isinstance(action, Wait)
    return action.resource_version


def test_defaults_are_those_of_the_field() -> None:
    options = ReflectorOptions()
    assert (options.page_size, options.streamed_lists) == (500, True)
    assert (options.shortest_watch, options.longest_watch, options.silence) == (300, 600, 70.0)
    assert (options.backoff_base, options.backoff_cap) == (0.8, 30.0)


# ---- lists


def test_the_first_list_takes_the_newest_state_and_is_paged() -> None:
    assert fresh().next() == FetchPage("", 500)


def test_later_pages_carry_the_token_and_nothing_else() -> None:
    machine = fresh()
    machine.next()
    assert not machine.page("100", "token-1")
    assert machine.next() == FetchPage("", 500, "token-1")
    assert not machine.page("999", "token-2")
    assert machine.next() == FetchPage("", 500, "token-2")
    assert machine.page("999", "")
    assert machine.version == "100", "the version of a list is that of its first page"
    assert plan(machine) == ("watch", "100")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (GONE, ("wait, list", "")),
        (too_large(), ("wait, list", "")),
        (ConnectionRefused(), ("wait, list", "")),
        (RequestTimeout(), ("wait, list", "")),
        (TooManyRequests(429), ("wait, list", "")),
        (Unauthorized(401), ("wait, list", "")),
        (Forbidden(403), ("wait, list", "")),
        (NotFound(404), ("wait, list", "")),
        (ServerError(500), ("wait, list", "")),
        (ValueError("ours"), ("wait, list", "")),
    ],
)
def test_a_failed_first_list(error: Exception, expected: tuple[str, str]) -> None:
    machine = fresh()
    machine.next()
    machine.failed(error)
    assert plan(machine) == expected


def test_a_list_of_the_newest_state_that_fails_alike_waits() -> None:
    machine = fresh()
    machine.next()
    for error in (GONE, too_large(), GONE):
        machine.failed(error)
        assert plan(machine) == ("wait, list", "")


def test_an_expired_token_gives_one_whole_list_at_the_version_first_asked_for() -> None:
    machine = watching()
    machine.failed(Forbidden(403))
    assert plan(machine) == ("wait, list", "")
    machine.page("100", "token")
    machine.next()
    machine.failed(GONE)
    assert machine.next() == FetchPage("100", None)
    machine.failed(GONE)
    assert machine.next() == FetchPage("", 500)


def test_a_page_that_fails_otherwise_begins_the_list_anew() -> None:
    machine = fresh()
    machine.next()
    machine.page("100", "token")
    machine.next()
    machine.failed(ServerError(500))
    assert plan(machine) == ("wait, list", "")


def test_a_relist_in_pages_asks_for_the_newest_state() -> None:
    """With a limit, a version means that very one: what was deleted since would be back."""
    machine = watching()
    machine.opened(0.0)
    machine.error_event(GONE, 50.0)
    assert plan(machine) == ("wait, list", "")
    machine.failed(GONE)
    assert plan(machine) == ("wait, list", "")
    machine.page("200", "")
    assert plan(machine) == ("watch", "200")


# ---- watches


def test_a_watch_lasts_a_random_time_between_five_and_ten_minutes() -> None:
    machine = watching()
    lasting = set()
    for _ in range(300):
        machine.opened(0.0)
        machine.event("100")
        machine.ended(Ending.CLOSED, 400.0)
        action = machine.next()
        assert isinstance(action, OpenWatch)
        lasting.add(action.timeout_seconds)
    assert min(lasting) >= 300 and max(lasting) <= 600 and len(lasting) > 100


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefused(), ("wait, watch", "100")),
        (TransportError("reset"), ("wait, watch", "100")),
        (RequestTimeout(), ("wait, watch", "100")),
        (TooManyRequests(429), ("wait, watch", "100")),
        (GONE, ("wait, list", "")),
        (too_large(), ("wait, list", "")),
        (Unauthorized(401), ("wait, list", "")),
        (Forbidden(403), ("wait, list", "")),
        (NotFound(404), ("wait, list", "")),
        (ServerError(500), ("wait, list", "")),
        (ServerError(503), ("wait, list", "")),
        (ValueError("ours"), ("wait, list", "")),
    ],
)
def test_a_refused_watch(error: Exception, expected: tuple[str, str]) -> None:
    machine = watching()
    machine.failed(error)
    assert plan(machine) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (GONE, ("wait, list", "")),
        (too_large(), ("wait, list", "")),
        (TooManyRequests(429), ("wait, watch", "105")),
        (ServerError(500, "InternalError"), ("wait, list", "")),
        (ApiError(400, "BadRequest"), ("wait, list", "")),
    ],
)
def test_an_error_event(error: ApiError, expected: tuple[str, str]) -> None:
    machine = watching()
    machine.opened(0.0)
    machine.event("105")
    machine.error_event(error, 5.0)
    assert plan(machine) == expected


@pytest.mark.parametrize(
    ("ending", "lasted", "news", "expected"),
    [
        (Ending.CLOSED, 590.0, True, ("watch", "105")),
        (Ending.CLOSED, 20.0, True, ("watch", "105")),
        (Ending.CLOSED, 0.3, True, ("watch", "105")),
        (Ending.CLOSED, 599.0, False, ("watch", "100")),
        (Ending.CLOSED, 20.0, False, ("wait, watch", "100")),
        (Ending.CLOSED, 0.3, False, ("wait, list", "")),
        (Ending.SILENT, 70.0, True, ("watch", "105")),
        (Ending.SILENT, 70.0, False, ("watch", "100")),
        (Ending.GARBLED, 20.0, True, ("wait, list", "")),
        (Ending.GARBLED, 0.0, False, ("wait, list", "")),
    ],
)
def test_the_end_of_a_watch(
    ending: Ending, lasted: float, news: bool, expected: tuple[str, str]
) -> None:
    machine = watching()
    machine.opened(1000.0)
    if news:
        machine.event("105")
    machine.ended(ending, 1000.0 + lasted)
    assert plan(machine) == expected


def test_the_second_empty_watch_in_a_row_gives_a_list() -> None:
    machine = watching()
    for expected in (("wait, watch", "100"), ("wait, list", "")):
        machine.opened(0.0)
        machine.ended(Ending.CLOSED, 20.0)
        assert plan(machine) == expected
    assert machine.short_watches == 2


def test_news_in_between_make_the_next_empty_watch_the_first_again() -> None:
    machine = watching()
    for news in (False, True, False):
        machine.opened(0.0)
        if news:
            machine.event("101")
        machine.ended(Ending.CLOSED, 20.0)
        assert plan(machine)[0].endswith("watch")


def test_brief_watches_with_news_wait_from_the_second_on() -> None:
    machine = watching()
    verbs = []
    for _ in range(3):
        machine.opened(0.0)
        machine.event("101")
        machine.ended(Ending.CLOSED, 0.5)
        verbs.append(plan(machine)[0])
    assert verbs == ["watch", "wait, watch", "wait, watch"]


def test_made_up_additions_of_a_watch_from_nowhere_do_not_move_the_place_to_resume() -> None:
    machine = fresh()
    machine.next()
    machine.page("", "")
    assert plan(machine) == ("watch", "")
    machine.opened(0.0)
    machine.event("90", added=True)
    machine.event("7", added=True)
    assert machine.version == ""
    machine.event("95")
    machine.event("96", added=True)
    assert machine.version == "96"


def test_an_event_without_a_version_moves_nothing() -> None:
    machine = watching()
    machine.opened(0.0)
    machine.event("")
    assert machine.version == "100"


# ---- streamed lists


def test_a_streamed_list_starts_with_the_newest_state_and_goes_on_as_a_watch() -> None:
    machine = fresh(streamed=True)
    action = machine.next()
    assert isinstance(action, OpenWatch)
    assert action.streamed_list and action.resource_version == ""
    machine.opened(0.0)
    machine.event("90", added=True)
    assert (machine.listing, machine.version) == (True, "")
    machine.initial_events_end("100")
    assert (machine.listing, machine.version) == (False, "100")
    machine.event("101", added=True)
    machine.ended(Ending.CLOSED, 400.0)
    assert plan(machine) == ("watch", "101")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Invalid(422), ("list", "")),
        (BadRequest(400), ("list", "")),
        (Forbidden(403), ("wait, list", "")),
        (ServerError(500), ("wait, list", "")),
        (ConnectionRefused(), ("wait, stream", "")),
        (TooManyRequests(429), ("wait, stream", "")),
        (GONE, ("wait, stream", "")),
        (too_large(), ("wait, stream", "")),
    ],
)
def test_a_refused_streamed_list(error: Exception, expected: tuple[str, str]) -> None:
    machine = fresh(streamed=True)
    machine.next()
    machine.failed(error)
    assert plan(machine) == expected


@pytest.mark.parametrize("error", [GONE, too_large()])
def test_a_streamed_relist_that_is_refused_for_its_version_asks_for_the_newest_at_once(
    error: ApiError,
) -> None:
    machine = watching(streamed=True)
    machine.failed(Forbidden(403))
    assert plan(machine) == ("wait, stream", "100")
    machine.failed(error)
    assert plan(machine) == ("stream", "")
    machine.failed(error)
    assert plan(machine) == ("wait, stream", "")


def test_only_a_server_that_calls_it_invalid_is_never_asked_to_stream_again() -> None:
    for error, again in ((Invalid(422), "list"), (ServerError(500), "stream")):
        machine = fresh(streamed=True)
        machine.next()
        machine.failed(error)
        plan(machine)
        machine.page("100", "")
        machine.next()
        machine.failed(Forbidden(403))
        assert plan(machine) == (f"wait, {again}", "" if again == "list" else "100")


@pytest.mark.parametrize("ending", list(Ending))
def test_after_a_streamed_list_that_ends_early_comes_one_in_pages(ending: Ending) -> None:
    machine = fresh(streamed=True)
    machine.next()
    machine.opened(0.0)
    machine.event("90", added=True)
    machine.ended(ending, 70.0)
    assert plan(machine) == ("wait, list", "")
    machine.page("100", "")
    machine.next()
    machine.failed(Forbidden(403))
    # Who falls silent instead of closing the list does not know that one was asked for.
    again = "list" if ending is Ending.SILENT else "stream"
    assert plan(machine) == (f"wait, {again}", "" if again == "list" else "100")


# ---- waiting


def waits(machine: ListWatch, fail: Callable[[ListWatch], None], times: int) -> list[float]:
    seconds = []
    for _ in range(times):
        fail(machine)
        action = machine.next()
        assert isinstance(action, Wait)
        seconds.append(action.seconds)
        machine.next()
    return seconds


def refuse(machine: ListWatch) -> None:
    machine.failed(ConnectionRefused())


def test_waits_grow_with_full_jitter_up_to_a_cap() -> None:
    rows = []
    for seed in range(400):
        machine = ListWatch(randomness=random.Random(seed))
        machine.next()
        rows.append(waits(machine, refuse, 12))
    for n in range(12):
        column = [row[n] for row in rows]
        ceiling = min(30.0, 0.8 * 2**n)
        assert max(column) <= ceiling
        assert max(column) > ceiling * 0.95
        assert min(column) < ceiling * 0.05


def test_retry_after_is_a_floor() -> None:
    machine = watching()
    first = waits(machine, lambda m: m.failed(TooManyRequests(429, retry_after=17.0)), 1)
    assert first == [17.0]


def outlast(machine: ListWatch, seconds: float) -> None:
    """A watch that brings news and is then refused."""
    machine.opened(0.0)
    machine.event("101")
    machine.error_event(TooManyRequests(429), seconds)


@pytest.mark.parametrize(("seconds", "reset"), [(29.0, False), (31.0, True)])
def test_only_a_watch_that_lasted_ends_a_row_of_failures(seconds: float, reset: bool) -> None:
    machine = watching()
    waits(machine, refuse, 9)
    outlast(machine, seconds)
    assert machine.failures == (1 if reset else 10)


def test_a_quiet_watch_that_had_its_time_ends_a_row_of_failures_too() -> None:
    machine = watching()
    waits(machine, refuse, 9)
    machine.opened(0.0)
    machine.ended(Ending.CLOSED, 600.0)
    assert machine.failures == 0
