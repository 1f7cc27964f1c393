"""How many requests may be under way, as a server refuses some: the rule alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.client.in_flight import KEPT, InFlightLimit


def served(limit: InFlightLimit, answers: int, *, now: float = 0.0) -> int:
    """Have so many requests answered, as many under way as may be."""
    for _ in range(answers):
        limit.served(in_flight=limit.now_allowed, now=now)
    return limit.now_allowed


def test_all_that_is_allowed_may_be_under_way_where_nothing_is_refused() -> None:
    limit = InFlightLimit(64)
    assert served(limit, 1000) == 64


def test_what_was_sent_together_and_refused_cuts_once() -> None:
    limit = InFlightLimit(64)
    for late in range(40):
        limit.refused(in_flight=64, begun=0.0, now=0.01 + late / 1e6, wait=0.0)
    assert limit.now_allowed == int(64 * KEPT)
    limit.refused(in_flight=44, begun=0.02, now=0.03, wait=0.0)
    assert limit.now_allowed == int(44 * KEPT)


def test_the_cut_is_from_what_was_under_way_not_from_what_might_have_been() -> None:
    limit = InFlightLimit(64)
    limit.refused(in_flight=10, begun=0.0, now=0.1, wait=0.0)
    assert limit.now_allowed == 7


def test_one_request_may_always_be_under_way() -> None:
    limit = InFlightLimit(64)
    for second in range(100):
        limit.refused(in_flight=1, begun=second, now=second + 0.5, wait=0.0)
        assert limit.now_allowed == 1


def test_the_server_is_spared_for_as_long_as_it_asked() -> None:
    limit = InFlightLimit(64)
    limit.refused(in_flight=64, begun=0.0, now=0.1, wait=3.0)
    limit.refused(in_flight=44, begun=0.0, now=0.2, wait=1.0)  # who asks for less changes nothing
    cut = limit.now_allowed
    assert served(limit, 1000, now=3.0) == cut
    assert served(limit, 1000, now=3.2) > cut


def test_what_is_not_used_does_not_grow() -> None:
    limit = InFlightLimit(64)
    limit.refused(in_flight=64, begun=0.0, now=0.1, wait=0.0)
    for _ in range(1000):
        limit.served(in_flight=5, now=1.0)
    assert limit.now_allowed == int(64 * KEPT)


@pytest.mark.parametrize("most", [1, 2, 7, 64, 500])
def test_a_limit_cut_to_one_is_whole_again_after_a_bounded_number_of_answers(most: int) -> None:
    limit = InFlightLimit(most)
    for second in range(100):
        limit.refused(in_flight=1, begun=second, now=second + 0.5, wait=0.0)
    assert served(limit, most * most // 2 + most, now=200.0) == most


def test_less_than_one_is_no_limit() -> None:
    with pytest.raises(ValueError, match="at least one"):
        InFlightLimit(0)


_STEPS = st.lists(
    st.tuples(
        st.booleans(), st.integers(1, 100), st.floats(0, 10), st.floats(0, 10), st.floats(0, 20)
    ),
    max_size=80,
)


@given(most=st.integers(1, 100), steps=_STEPS)
def test_answers_never_lower_it_refusals_never_raise_it_and_it_stays_in_bounds(
    most: int, steps: list[tuple[bool, int, float, float, float]]
) -> None:
    """Whatever the clock does, however late an answer comes, and however long the server wants."""
    limit, now = InFlightLimit(most), 0.0
    for was_served, in_flight, passed, took, wait in steps:
        now += passed
        before = limit.now_allowed
        if was_served:
            limit.served(in_flight=in_flight, now=now)
            assert limit.now_allowed >= before
        else:
            limit.refused(in_flight=in_flight, begun=now - took, now=now, wait=wait)
            assert limit.now_allowed <= before
        assert 1 <= limit.now_allowed <= most
