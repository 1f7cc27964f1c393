from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.durations import format_duration, parse_duration

_LONGEST = timedelta(microseconds=(2**63 - 1) // 1000)
_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("5s", 5_000_000),
        ("+5s", 5_000_000),
        ("-5s", -5_000_000),
        ("10m0s", 600_000_000),
        ("1h30m", 5_400_000_000),
        ("20m0s", 1_200_000_000),
        ("1.5h", 5_400_000_000),
        (".5s", 500_000),
        ("1.s", 1_000_000),
        ("3m2s1h", 3_782_000_000),
        ("100ms", 100_000),
        ("1us", 1),
        ("1µs", 1),
        ("1μs", 1),
        ("1999ns", 1),
        ("2562047h47m16.854775807s", 9_223_372_036_854_775),
    ],
)
def test_a_go_duration_is_understood(text: str, microseconds: int) -> None:
    assert parse_duration(text) == timedelta(microseconds=microseconds)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty"),
        ("-", "empty"),
        ("5", "missing unit"),
        ("10m5", "missing unit"),
        ("1d", "unknown unit 'd'"),
        ("1h 5m", "unknown unit 'h '"),
        ("h", "unexpected 'h'"),
        (".", "unexpected '.'"),
        (".s", "unexpected"),
        ("--5s", "unexpected"),
        ("1e3s", "unknown unit 'e'"),
        ("2562048h", "longer than 292 years"),
        ("9" * 400 + "h", "longer than 292 years"),
    ],
)
def test_what_is_no_duration_is_refused_with_a_reason(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="invalid duration") as caught:
        parse_duration(text)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(microseconds=1), "1µs"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(seconds=59, microseconds=10), "59.00001s"),
        (timedelta(minutes=10), "10m0s"),
        (timedelta(hours=26), "26h0m0s"),
        (timedelta(hours=1, seconds=2.25), "1h0m2.25s"),
        (-timedelta(minutes=1), "-1m0s"),
        (-timedelta(microseconds=1), "-1µs"),
    ],
)
def test_a_duration_is_written_as_go_prints_it(span: timedelta, text: str) -> None:
    assert format_duration(span) == text


@given(st.timedeltas(min_value=-_LONGEST, max_value=_LONGEST))
def test_what_is_written_is_read_back(span: timedelta) -> None:
    assert parse_duration(format_duration(span)) == span


@given(
    st.sampled_from(["", "-", "+"]),
    st.lists(
        st.tuples(
            st.integers(0, 10**6), st.integers(0, 10**9 - 1), st.sampled_from(sorted(_SECONDS))
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_the_terms_of_a_duration_add_up(sign: str, terms: list[tuple[int, int, str]]) -> None:
    text = sign + "".join(f"{whole}.{part:09}{unit}" for whole, part, unit in terms)
    exact = sum((whole + Fraction(part, 10**9)) * _SECONDS[unit] for whole, part, unit in terms)
    nanoseconds_cut_off = Fraction(len(terms), 10**9)

    if exact > Fraction(2**63 - 1, 10**9):
        with pytest.raises(ValueError, match="292 years"):
            parse_duration(text)
        return
    found = abs(Fraction(parse_duration(text) // timedelta(microseconds=1), 10**6))
    assert exact - Fraction(1, 10**6) - nanoseconds_cut_off < found <= exact


@given(st.text(alphabet="0123456789.-+hmsunµ d", max_size=12))
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    try:
        span = parse_duration(text)
    except ValueError:
        return
    assert abs(span) <= _LONGEST + timedelta(microseconds=1)
