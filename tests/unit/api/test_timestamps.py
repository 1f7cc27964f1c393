from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.timestamps import micro_time, parse_rfc3339, rfc3339, whole_seconds

_HOUR_EAST = timezone(timedelta(hours=1))
_moments = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001 - Hypothesis wants naive bounds
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, _HOUR_EAST, timezone(-timedelta(hours=11, minutes=30))]),
)


def test_a_time_is_written_in_utc_and_whole_seconds() -> None:
    moment = datetime(2026, 11, 21, 5, 51, 33, 999_999, tzinfo=_HOUR_EAST)
    assert rfc3339(moment) == "2026-11-21T04:51:33Z"


def test_a_micro_time_always_has_six_digits() -> None:
    assert micro_time(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000000Z"


def test_the_zero_time_of_go_keeps_its_four_digit_year() -> None:
    zero = parse_rfc3339("0001-01-01T00:00:00Z")
    assert rfc3339(zero) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T23:59:59Z", datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)),
        ("2026-01-31t23:59:59z", datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)),
        ("2026-01-31T23:59:59+02:00", datetime(2026, 1, 31, 21, 59, 59, tzinfo=UTC)),
        ("2026-01-31T23:59:59.5Z", datetime(2026, 1, 31, 23, 59, 59, 500_000, tzinfo=UTC)),
        (
            "2026-01-31T23:59:59.123456789Z",
            datetime(2026, 1, 31, 23, 59, 59, 123_456, tzinfo=UTC),
        ),
    ],
)
def test_a_timestamp_is_read_into_utc(text: str, moment: datetime) -> None:
    parsed = parse_rfc3339(text)
    assert parsed == moment
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31",
        "2026-01-31T23:59:59",
        "2026-01-31 23:59:59Z",
        "2026-02-30T00:00:00Z",
        "20260131T235959Z",
        "2026-W05-6T00:00:00Z",
        "0001-01-01T00:00:00+12:00",
        "yesterday",
    ],
)
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rfc3339(text)


def test_a_time_without_zone_is_refused() -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - what is tested
    with pytest.raises(ValueError, match="time zone"):
        rfc3339(naive)


@given(_moments)
def test_a_moment_survives_both_forms(moment: datetime) -> None:
    assert parse_rfc3339(micro_time(moment)) == moment
    assert parse_rfc3339(rfc3339(moment)) == whole_seconds(moment)
