"""The two time forms of Kubernetes: ``Time`` (whole seconds) and ``MicroTime`` (six digits)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})",
    re.IGNORECASE,
)


def rfc3339(moment: datetime) -> str:
    """Write ``2026-11-21T04:51:33Z``: in UTC, fractions of a second cut off.

    Raises ValueError for a datetime without time zone.
    """
    return _utc(moment).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def micro_time(moment: datetime) -> str:
    """Write ``2026-11-21T04:51:33.000120Z``: what Leases and Events demand, always six digits."""
    return _utc(moment).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_rfc3339(text: str) -> datetime:
    """Read either form; the result is in UTC. Digits below a microsecond are dropped.

    Raises ValueError, also where the offset is missing.
    """
    if not _RFC3339.fullmatch(text):
        raise ValueError(f"invalid timestamp {text!r}: want RFC 3339, as 2026-01-31T23:59:59Z")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"invalid timestamp {text!r}: out of range") from None


def whole_seconds(moment: datetime) -> datetime:
    """Cut a moment to what :func:`rfc3339` keeps, so that it equals itself read back."""
    return _utc(moment).replace(microsecond=0)


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a timestamp needs a time zone")
    return moment.astimezone(UTC)
