"""Ages as ``kubectl`` shows them: one or two units, coarser the older."""

from __future__ import annotations

from datetime import datetime

from mcm.api.timestamps import parse_rfc3339

UNKNOWN = "<unknown>"
INVALID = "<invalid>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
# (older than this many seconds, unit, divisor, the smaller unit beside it, its divisor)
_STEPS = (
    (8 * _YEAR, "y", _YEAR, "", 1),
    (2 * _YEAR, "y", _YEAR, "d", _DAY),
    (8 * _DAY, "d", _DAY, "", 1),
    (2 * _DAY, "d", _DAY, "h", _HOUR),
    (8 * _HOUR, "h", _HOUR, "", 1),
    (3 * _HOUR, "h", _HOUR, "m", _MINUTE),
    (10 * _MINUTE, "m", _MINUTE, "", 1),
    (2 * _MINUTE, "m", _MINUTE, "s", 1),
)


def human_duration(seconds: float) -> str:
    """Write a duration: ``119s``, ``3m20s``, ``4h``, ``2d5h``, ``3y``.

    A clock a second behind counts as now; anything further in the future is ``<invalid>``.
    """
    whole = int(seconds)
    if whole < -1:
        return INVALID
    for limit, unit, size, minor, minor_size in _STEPS:
        if whole >= limit:
            rest = whole % size // minor_size if minor else 0
            return f"{whole // size}{unit}" + (f"{rest}{minor}" if rest else "")
    return f"{max(whole, 0)}s"


def age_of(stamp: object, now: datetime) -> str:
    """Write how long ago an RFC 3339 ``stamp`` was; ``<unknown>`` if there is none."""
    if not stamp:
        return UNKNOWN
    try:
        moment = parse_rfc3339(str(stamp))
    except ValueError:
        return INVALID
    return human_duration((now - moment).total_seconds())
