"""The election's state machine: who may write what, judged by monotonic times only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcm.api.core import Lease, LeaseSpec
from mcm.api.meta import ObjectMeta
from mcm.leaderelection.election import Election, Timings

WALL = datetime(2026, 11, 21, 4, 51, 33, 120, tzinfo=UTC)


def candidate(identity: str = "me", timings: Timings | None = None) -> Election:
    return Election(name="lease", namespace="ns", identity=identity, timings=timings or Timings())


def lease(holder: str | None, *, version: str = "7", **spec: object) -> Lease:
    fields: dict[str, object] = {
        "lease_duration_seconds": 15,
        "acquire_time": "1970-01-01T00:00:00.000000Z",
        "renew_time": "2100-01-01T00:00:00.000000Z",
        "lease_transitions": 4,
        **spec,
    }
    meta = ObjectMeta(name="lease", namespace="ns", resource_version=version, labels={"a": "b"})
    return Lease(metadata=meta, spec=LeaseSpec(holder_identity=holder, **fields))  # type: ignore[arg-type]


def test_a_lease_that_is_not_there_is_created() -> None:
    election = candidate()
    election.observe(None, 0.0)
    write = election.bid(0.0, WALL)
    assert write is not None and write.create
    assert write.lease.metadata == ObjectMeta(name="lease", namespace="ns")
    assert write.lease.spec == LeaseSpec(
        holder_identity="me",
        lease_duration_seconds=15,
        acquire_time="2026-11-21T04:51:33.000120Z",
        renew_time="2026-11-21T04:51:33.000120Z",
        lease_transitions=0,
    )


@pytest.mark.parametrize("holder", ["", None])
def test_a_vacant_lease_is_taken_at_once(holder: str | None) -> None:
    election = candidate()
    election.observe(lease(holder), 100.0)
    write = election.bid(100.0, WALL)
    assert write is not None and not write.create
    assert write.lease.spec.holder_identity == "me"
    assert write.lease.spec.lease_transitions == 5


def test_anothers_lease_is_respected_for_its_duration_since_it_was_seen_to_change() -> None:
    election = candidate()
    election.observe(lease("other", lease_duration_seconds=20), 100.0)
    assert election.bid(119.9, WALL) is None
    election.observe(lease("other", lease_duration_seconds=20, version="8"), 110.0)
    assert election.bid(119.9, WALL) is None
    assert election.bid(120.0, WALL) is not None, "a new version of the same record is no renewal"
    election.observe(lease("other", lease_duration_seconds=20, renew_time="x"), 119.0)
    assert election.bid(138.9, WALL) is None
    assert election.bid(139.0, WALL) is not None


@given(st.integers(-10_000, 10_000), st.sampled_from(["acquire_time", "renew_time"]))
def test_the_times_in_the_record_decide_nothing(days: int, field: str) -> None:
    election = candidate()
    text = (WALL + timedelta(days=days / 10)).isoformat()
    election.observe(lease("other", **{field: text}), 0.0)
    assert election.bid(14.9, WALL) is None
    assert election.bid(15.0, WALL) is not None


def test_a_record_without_duration_is_given_ours() -> None:
    election = candidate(timings=Timings(30, 20, 2))
    election.observe(lease("other", lease_duration_seconds=None), 0.0)
    assert election.bid(29.9, WALL) is None
    assert election.bid(30.0, WALL) is not None


def test_a_takeover_keeps_what_it_does_not_know_and_counts() -> None:
    election = candidate()
    election.observe(lease("other", strategy="OldestEmulationVersion"), 0.0)
    write = election.bid(15.0, WALL)
    assert write is not None
    assert write.lease.metadata.labels == {"a": "b"}
    assert write.lease.metadata.resource_version == "7"
    assert write.lease.spec.strategy == "OldestEmulationVersion"
    assert write.lease.spec.lease_transitions == 5
    assert write.lease.spec.acquire_time == write.lease.spec.renew_time


def test_the_time_left_counts_from_before_the_renewal_was_sent() -> None:
    election = candidate()
    election.sending()
    election.renewed(lease("me"), sent_at=100.0, now=104.0)
    assert election.time_left(104.0) == 11.0
    assert election.leading(109.99)
    assert not election.leading(110.0), "the renew deadline"
    assert election.time_left(115.0) == 0.0


def test_a_renewal_whose_answer_came_too_late_gives_no_leadership() -> None:
    election = candidate()
    election.renewed(lease("me"), sent_at=0.0, now=10.5)
    assert not election.leading(10.5)


def test_a_renewal_keeps_acquire_time_and_transitions() -> None:
    election = candidate()
    election.renewed(lease("me"), sent_at=0.0, now=0.1)
    write = election.renewal(2.0, WALL)
    assert write is not None
    assert write.lease == replace(
        lease("me"),
        spec=replace(lease("me").spec, renew_time="2026-11-21T04:51:33.000120Z"),
    )


def test_the_fast_path_is_for_a_lease_that_is_surely_ours() -> None:
    election = candidate()
    assert election.renewal(0.0, WALL) is None
    election.observe(lease("me"), 0.0)
    assert election.renewal(0.0, WALL) is None, "from a former life: read first"
    election.renewed(lease("me"), sent_at=0.0, now=0.1)
    assert election.renewal(14.9, WALL) is not None
    assert election.renewal(15.0, WALL) is None


def test_seeing_another_holder_ends_leadership_at_once() -> None:
    election = candidate()
    election.renewed(lease("me"), sent_at=0.0, now=0.1)
    election.observe(lease("other"), 1.0)
    assert not election.leading(1.0)
    assert election.holder == "other"


def test_resigning_ends_leadership_whatever_the_lease_says() -> None:
    election = candidate()
    election.renewed(lease("me"), sent_at=0.0, now=0.1)
    election.resign()
    assert not election.leading(0.2)


def test_only_our_own_record_is_released() -> None:
    election = candidate()
    assert election.release(lease("other"), WALL) is None
    assert election.release(lease(""), WALL) is None
    write = election.release(lease("me"), WALL)
    assert write is not None
    assert write.lease.metadata.resource_version == "7"
    assert write.lease.spec == LeaseSpec(
        holder_identity="",
        lease_duration_seconds=1,
        acquire_time="2026-11-21T04:51:33.000120Z",
        renew_time="2026-11-21T04:51:33.000120Z",
        lease_transitions=4,
    )


def test_a_fraction_of_a_second_is_rounded_up_for_the_others() -> None:
    election = candidate(timings=Timings(2.2, 1.1, 0.5))
    election.observe(None, 0.0)
    write = election.bid(0.0, WALL)
    assert write is not None
    assert write.lease.spec.lease_duration_seconds == 3


def test_the_default_timings_are_those_of_client_go_and_work() -> None:
    timings = Timings()
    assert (timings.lease_duration, timings.renew_deadline, timings.retry_period) == (15, 10, 2)
    assert timings.problems() == []
    assert timings.margin == 5 and timings.request_limit == 5


@pytest.mark.parametrize(
    ("timings", "word"),
    [
        (Timings(15, 10, 0), "positive"),
        (Timings(15, 2.4, 2), "1.2 retry periods"),
        (Timings(12, 10, 2), "renew deadline plus retry period"),
        (Timings(10, 10, 2), "renew deadline plus retry period"),
        (Timings(0.9, 0.5, 0.1), "at least a second"),
    ],
)
def test_timings_that_cannot_work_are_refused(timings: Timings, word: str) -> None:
    (problem,) = timings.problems()
    assert word in problem
    with pytest.raises(ValueError, match=word):
        candidate(timings=timings)


def test_an_elector_without_identity_is_refused() -> None:
    with pytest.raises(ValueError, match="identity"):
        candidate(identity="")
