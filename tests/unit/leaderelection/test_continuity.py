"""Since when somebody leads without a long break: the record before, the clock, what follows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Lease, LeaseSpec
from mcm.api.meta import ObjectMeta
from mcm.api.names import ANNOTATION_LED_SINCE
from mcm.api.timestamps import micro_time
from mcm.leaderelection.continuity import MARGIN, ONCE_IN, led_since, with_note
from mcm.leaderelection.election import Election, Timings

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
FAILOVER = timedelta(seconds=17)
GARBAGE = (
    "",
    "yesterday",
    "12:00",
    "2026-11-21",
    "2026-13-45T99:00:00Z",
    "\N{SNOWMAN}",
    "0" * 5000,
)


def ago(seconds: float) -> str:
    return micro_time(NOW - timedelta(seconds=seconds))


def lease(renewed: str | None, noted: str | None = None, **spec: object) -> Lease:
    annotations = {} if noted is None else {ANNOTATION_LED_SINCE: noted}
    metadata = ObjectMeta(name="lease", namespace="ns", annotations=annotations)
    return Lease(metadata=metadata, spec=LeaseSpec(renew_time=renewed, **spec))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "since"),
    [
        pytest.param(lease(ago(2)), None, id="rolling restart"),
        pytest.param(lease(ago(17)), None, id="ordinary failover"),
        pytest.param(lease(ago(77)), None, id="failover, a slow start and clocks that differ"),
        pytest.param(lease(ago(-59)), None, id="renewed by a clock that is ahead of ours"),
        pytest.param(lease(ago(78)), 0, id="nobody led for longer than that"),
        pytest.param(lease(ago(1200)), 0, id="an outage"),
        pytest.param(None, 0, id="no lease"),
        pytest.param(lease(None), 0, id="a lease that nobody renewed"),
        pytest.param(lease(ago(-61)), 0, id="renewed in the future"),
        pytest.param(lease(ago(2), ago(300)), 300, id="a failover soon after a break"),
        pytest.param(lease(ago(2), ago(90_000)), 90_000, id="a failover long after a break"),
        pytest.param(lease(ago(330), ago(300)), 300, id="a process that crashes all the time"),
        pytest.param(lease(ago(330), ago(3599)), 3599, id="within the hour"),
        pytest.param(lease(ago(330), ago(3600)), 0, id="after the hour"),
        pytest.param(lease(ago(2), ago(-30)), 0, id="noted by a clock that is ahead of ours"),
        pytest.param(lease(ago(2), ago(-61)), None, id="noted in the future"),
        pytest.param(lease(ago(330), ago(-61)), 0, id="noted in the future, and a break"),
        *(pytest.param(lease(text), 0, id=f"renewed at {text[:20]!r}") for text in GARBAGE),
        *(pytest.param(lease(ago(2), t), None, id=f"noted at {t[:20]!r}") for t in GARBAGE),
        *(pytest.param(lease(ago(99), t), 0, id=f"noted at {t[:20]!r}, break") for t in GARBAGE),
    ],
)
def test_since_when_somebody_leads(found: Lease | None, since: float | None) -> None:
    wanted = None if since is None else NOW - timedelta(seconds=since)
    assert led_since(found, NOW, failover=FAILOVER) == wanted


moments = st.none() | st.text(max_size=30) | st.floats(-(10**7), 10**7).map(ago)


@given(moments, moments)
def test_timeouts_never_start_in_the_future_whatever_is_in_the_lease(
    renewed: str | None, noted: str | None
) -> None:
    since = led_since(lease(renewed, noted), NOW, failover=FAILOVER)
    assert since is None or since <= NOW


@given(st.lists(st.tuples(st.floats(1, 600), st.floats(0, 600)), min_size=1, max_size=40))
def test_processes_that_crash_all_the_time_start_timeouts_anew_once_an_hour_at_most(
    lives: list[tuple[float, float]],
) -> None:
    """Each is a time of work and a time until the next process leads."""
    now, found, starts = NOW, lease(ago(1200)), set[datetime]()
    for work, gap in lives:
        since = led_since(found, now, failover=FAILOVER)
        assert since is not None  # the first break is never forgotten
        starts.add(since)
        found = with_note(lease(micro_time(now + timedelta(seconds=work))), since)
        now += timedelta(seconds=work + gap)
    assert NOW in starts
    assert all(later - earlier >= ONCE_IN for earlier, later in pairwise(sorted(starts)))


# ---- what an election does with it ---------------------------------------------------------------


def taken(found: Lease | None, *, now: datetime = NOW) -> tuple[Lease, datetime | None]:
    """What a candidate writes that takes a lease it saw vacant, and what it knows then."""
    election = Election(name="lease", namespace="ns", identity="me", timings=Timings())
    election.observe(found, 0.0)
    write = election.bid(0.0, now)
    assert write is not None
    return write.lease, election.led_since


def test_a_long_break_is_noted_by_the_write_that_takes_the_lease() -> None:
    written, since = taken(lease(ago(1200)))
    assert since == NOW
    assert written.metadata.annotations == {ANNOTATION_LED_SINCE: micro_time(NOW)}
    later = NOW + timedelta(seconds=30)
    vacant = with_note(lease(micro_time(later)), NOW)
    assert taken(vacant, now=later) == (taken(vacant, now=later)[0], NOW)


def test_an_ordinary_change_of_leaders_leaves_no_note_and_takes_none_away() -> None:
    assert taken(lease(ago(2)))[0].metadata.annotations == {}
    noted = {ANNOTATION_LED_SINCE: ago(300)}
    written, since = taken(lease(ago(2), ago(300)))
    assert written.metadata.annotations == noted
    assert since == NOW - timedelta(seconds=300)


def test_that_the_answer_was_lost_changes_nothing() -> None:
    """The lease is read again, names us and was renewed a moment ago."""
    election = Election(name="lease", namespace="ns", identity="me", timings=Timings())
    election.observe(lease(ago(1200)), 0.0)
    write = election.bid(0.0, NOW)
    assert write is not None
    election.sending()
    election.observe(write.lease, 5.0)
    again = election.bid(5.0, NOW + timedelta(seconds=5))
    assert again is not None
    assert again.lease.metadata.annotations == {ANNOTATION_LED_SINCE: micro_time(NOW)}
    assert election.led_since == NOW


def test_renewing_ones_own_lease_after_a_pause_is_no_break() -> None:
    election = Election(name="lease", namespace="ns", identity="me", timings=Timings())
    election.observe(lease(ago(1200), holder_identity="me"), 0.0)
    write = election.bid(0.0, NOW)
    assert write is not None and write.lease.metadata.annotations == {}
    assert election.led_since is None


@pytest.mark.parametrize("duration", [-1, 0, 1, None, 10**9, 2**62])
def test_whatever_duration_a_lease_names_an_outage_is_one(duration: int | None) -> None:
    found = lease(ago(2 * 3600), lease_duration_seconds=duration)
    assert taken(found)[1] == NOW
    recent = lease(ago((FAILOVER + MARGIN).total_seconds()), lease_duration_seconds=duration)
    assert taken(recent)[1] is None
