"""When a mirror is believed to be current: by table, by histories, and with a reflector."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcm.client.errors import ConnectionRefused, Forbidden
from mcm.informers.freshness import BEHIND_FOR, CATCHING_UP, SILENT_FOR, Currency
from tests.unit.informers.apiserver import ApiServer, Break, Fault
from tests.unit.informers.mirror import Mirror, on_mirror

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Driver:
    """Reports to a :class:`Currency`, and keeps the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.currency = Currency("pods", lambda: EPOCH + timedelta(seconds=self.now))

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def hear(self) -> None:
        self.currency.heard(self.now)

    def list(self) -> None:
        self.hear()
        self.currency.listed(self.now)

    def open(self) -> None:
        self.hear()
        self.currency.opened(self.now)

    def close(self) -> None:
        self.currency.ended(self.now)

    def refuse(self) -> None:
        self.currency.failed(ConnectionRefused("connection refused"))

    def bookmark(self) -> None:
        self.hear()
        self.currency.bookmarked()

    @property
    def why(self) -> str:
        freshness = self.currency.judged(self.now)
        assert freshness.current == (not freshness.why)
        return freshness.why


def watching() -> Driver:
    driver = Driver()
    driver.list()
    driver.open()
    return driver


def test_before_its_first_list_it_is_not_current() -> None:
    driver = Driver()
    assert driver.why == "pods were not read yet"
    assert driver.currency.judged(0.0).heard_at is None
    driver.refuse()
    assert driver.why == "pods were not read yet (ConnectionRefused)"
    driver.list()
    assert driver.why == ""
    assert driver.currency.judged(0.0).heard_at == 0.0


def test_a_watch_may_be_closed_for_a_moment() -> None:
    driver = watching()
    driver.wait(60)
    driver.close()
    driver.wait(BEHIND_FOR - 0.1)
    assert driver.why == ""
    driver.wait(0.2)
    assert driver.why == "pods cannot be watched since 2026-01-01T00:01:00Z"


def test_the_first_refusal_is_told_so_that_the_words_stay() -> None:
    driver = watching()
    driver.wait(60)
    driver.close()
    driver.refuse()
    driver.wait(BEHIND_FOR)
    first = driver.why
    assert first == "pods cannot be watched since 2026-01-01T00:01:00Z (ConnectionRefused)"
    driver.wait(1200)
    driver.currency.heard(driver.now)
    driver.currency.failed(Forbidden(403, "Forbidden", "no"))
    assert driver.why == first


def test_headers_alone_do_not_make_a_mirror_current_that_was_behind() -> None:
    """What happened meanwhile comes after them."""
    driver = watching()
    driver.close()
    driver.wait(1200)
    driver.open()
    assert driver.why
    assert driver.currency.next_change(driver.now) == CATCHING_UP
    driver.wait(CATCHING_UP)
    assert driver.why == ""


@pytest.mark.parametrize("sign", [Driver.bookmark, Driver.list])
def test_a_bookmark_or_a_list_makes_it_current_at_once(sign: Callable[[Driver], None]) -> None:
    driver = watching()
    driver.close()
    driver.wait(1200)
    driver.open()
    sign(driver)
    assert driver.why == ""


def test_watches_too_brief_to_tell_anything_leave_it_behind() -> None:
    driver = watching()
    driver.wait(60)
    driver.close()
    for _ in range(5):
        driver.wait(BEHIND_FOR - 4)
        driver.open()
        driver.wait(CATCHING_UP - 1)
        driver.close()
    assert driver.why == "pods cannot be watched since 2026-01-01T00:01:00Z"


def test_a_list_after_which_no_watch_is_opened_gets_old() -> None:
    driver = Driver()
    driver.list()
    driver.wait(BEHIND_FOR)
    assert driver.why.startswith("pods cannot be watched since")


def test_a_silent_stream_is_not_believed_and_what_it_held_back_is_waited_for() -> None:
    driver = watching()
    driver.wait(SILENT_FOR)
    assert driver.why == ""
    driver.wait(1)
    assert driver.why == "nothing was heard of pods for more than 90 seconds"
    driver.hear()
    assert driver.why
    driver.wait(CATCHING_UP)
    assert driver.why == ""


def test_a_stream_that_ends_after_a_long_silence_had_told_nothing_since() -> None:
    driver = watching()
    driver.wait(SILENT_FOR + 1)
    driver.close()
    driver.hear()
    assert driver.why == "pods cannot be watched since 2026-01-01T00:00:00Z"
    driver.open()
    driver.wait(CATCHING_UP)
    assert driver.why == ""


STEPS: dict[str, Callable[[Driver], None]] = {
    "close": Driver.close,
    "open": Driver.open,
    "list": Driver.list,
    "hear": Driver.hear,
    "refuse": Driver.refuse,
    "bookmark": Driver.bookmark,
}


class Oracle:
    """When a mirror last had certainly been told everything, from the history alone."""

    def __init__(self) -> None:
        self.known_at = self.heard_at = -1e9
        self.open_since: float | None = None

    def look(self, now: float) -> None:
        if self.open_since is None or now < self.open_since + CATCHING_UP:
            return
        known = now if now - self.heard_at <= SILENT_FOR else self.heard_at
        self.known_at = max(self.known_at, known)

    def take(self, step: str, now: float) -> None:
        self.look(now)
        if step in ("open", "list", "hear", "bookmark"):
            if now - self.heard_at > SILENT_FOR and self.open_since is not None:
                self.open_since = now
            self.heard_at = now
        if step == "open":
            self.open_since = now
        elif step == "close":
            self.open_since = None
        elif step == "list" or (step == "bookmark" and self.open_since is not None):
            self.known_at = now


PAUSES = st.integers(0, 200 * 16).map(lambda n: n / 16)  # sums of these are exact


@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), PAUSES), max_size=30))
@example([("list", 0.0), ("open", 91.0), ("close", 0.0), ("bookmark", 0.0)])
def test_it_is_current_exactly_while_everything_was_known_a_moment_ago(
    history: list[tuple[str, float]],
) -> None:
    """Whatever happened; and time alone changes the verdict only when that was foretold."""
    driver, oracle, listed = Driver(), Oracle(), False
    for step, pause in history:
        if step in ("open", "close") and (oracle.open_since is not None) == (step == "open"):
            continue  # no reflector reports that
        oracle.take(step, driver.now)
        STEPS[step](driver)
        listed = listed or step == "list"
        foretold, before = driver.currency.next_change(driver.now), driver.why
        driver.wait(pause)
        oracle.look(driver.now)
        heard_lately = driver.now - oracle.heard_at <= SILENT_FOR
        known_lately = driver.now < oracle.known_at + BEHIND_FOR
        assert (driver.why == "") == (listed and heard_lately and known_lately)
        if heard_lately and (foretold is None or pause < foretold):
            assert (driver.why == "") == (before == "")


# ---- with a reflector ------------------------------------------------------------------------


def why(mirror: Mirror) -> str:
    return mirror.informer.freshness(mirror.clock.monotonic()).why


def test_a_quiet_server_is_current_all_the_time_also_without_bookmarks() -> None:
    def server() -> ApiServer:
        made = ApiServer()
        made.bookmarks = False
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        for _ in range(2000):
            await mirror.sleep(1)
            assert why(mirror) == ""
        assert mirror.informer.stats.watches > 20

    on_mirror(scenario, server=server)


def test_a_refused_watch_is_told_after_ten_seconds_and_its_return_wakes() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        await mirror.sleep(30)
        assert woken == [0.0]
        mirror.server.down = True
        mirror.server.put("unseen")
        ended = mirror.clock.monotonic()
        await mirror.sleep(BEHIND_FOR - 1)
        assert why(mirror) == ""
        await mirror.sleep(2)
        assert "cannot be watched since 2026-01-01T00:00:30Z (ConnectionRefused)" in why(mirror)
        await mirror.sleep(1200)
        mirror.server.down = False
        while why(mirror):
            await mirror.sleep(0.1)
        # The longest back-off, then the time that what was missed may take to come.
        assert mirror.clock.monotonic() - ended < 1212 + 30 + CATCHING_UP + 1
        assert mirror.agrees()
        await mirror.sleep(0.1)
        assert len(woken) == 2 and mirror.clock.monotonic() - woken[1] < 0.3
        assert stale == [round(ended + BEHIND_FOR, 1)]

    woken: list[float] = []
    stale: list[float] = []

    async def with_handler(mirror: Mirror) -> None:
        await scenario(mirror)

    on_mirror(
        with_handler,
        on_current=lambda mirror: woken.append(round(mirror.clock.monotonic(), 1)),
        on_stale=lambda mirror: stale.append(round(mirror.clock.monotonic(), 1)),
    )


def test_a_watch_that_nothing_comes_out_of_is_told_before_long() -> None:
    def server() -> ApiServer:
        made = ApiServer()
        made.watch_faults.extend([Fault(Break.SILENCE, after=5.0)])
        made.watch_faults.extend([Fault(Break.SILENCE, unanswered=True)] * 3)
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        stale_at = current_at = 0.0
        while not current_at:
            await mirror.sleep(1)
            if why(mirror):
                stale_at = stale_at or mirror.clock.monotonic()
            elif stale_at:
                current_at = mirror.clock.monotonic()
        # A watch is given up after 70 s of silence, and not believed ten seconds later.
        assert 80 <= stale_at <= 90
        assert current_at > stale_at + 60

    on_mirror(scenario, server=server)


def test_a_handler_that_raises_does_not_end_the_mirror(caplog: pytest.LogCaptureFixture) -> None:
    def broken(mirror: Mirror) -> None:
        mirror.informer.stats.handler_errors = -1  # the fixture expects none after this one
        raise ValueError("mistake")

    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        await mirror.sleep(1)
        mirror.server.put("a")
        await mirror.sleep(1)
        assert mirror.agrees()
        assert "handler failed" in caplog.text

    on_mirror(scenario, on_current=broken)
