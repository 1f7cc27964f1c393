"""A lease that several hold together under one name, and others wait for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mcm.api.core import Lease
from mcm.leaderelection import Timings
from mcm.leaderelection.election import Election

WALL = datetime(2026, 1, 1, tzinfo=UTC)


def election(identity: str, *, joint: bool = True, duration: float = 15.0) -> Election:
    return Election(
        name="x", namespace="n", identity=identity, joint=joint,
        timings=Timings(duration, duration - 5.0, 2.0), annotations={"k": identity},
    )  # fmt: skip


def take(candidate: Election, found: Lease | None, now: float) -> Lease:
    """Read ``found``, write the bid; return what stands on the server then."""
    candidate.observe(found, now)
    write = candidate.bid(now, WALL + timedelta(seconds=now))
    assert write is not None
    candidate.renewed(write.lease, sent_at=now, now=now)
    return write.lease


def test_all_of_one_name_hold_it_at_once_and_others_wait_for_the_last() -> None:
    one, two, other = election("shards"), election("shards"), election("go", joint=False)
    lease = take(one, None, 0.0)
    lease = take(two, lease, 1.0)
    assert one.leading(5.0) and two.leading(5.0)
    other.observe(lease, 1.0)
    assert other.bid(15.9, WALL) is None and other.free_in(1.0) == 15.0
    lease = take(two, lease, 9.0)
    other.observe(lease, 9.0)
    # The first was silent since 0 s: it acts no more by 10 s, whatever the second does.
    assert not one.leading(10.1) and two.leading(10.1)
    assert other.bid(23.9, WALL) is None and other.bid(24.1, WALL) is not None


def test_nobody_of_them_gives_it_up_for_the_others() -> None:
    one = election("shards")
    one.sending()
    take(one, None, 0.0)
    assert not one.may_hold
    assert one.renewal(1.0, WALL) is None, "another has written it since: it is read first"


def test_nobody_shortens_what_others_count_on() -> None:
    slow, quick = election("shards", duration=60.0), election("shards", duration=15.0)
    lease = take(quick, take(slow, None, 0.0), 1.0)
    assert lease.spec.lease_duration_seconds == 60
    assert take(election("go", joint=False), None, 0.0).spec.lease_duration_seconds == 15


def test_annotations_stay_on_the_lease_beside_those_of_others() -> None:
    lease = take(election("go", joint=False), None, 0.0)
    assert lease.metadata.annotations["k"] == "go"
