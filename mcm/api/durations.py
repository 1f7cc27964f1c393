"""Go's duration texts (``10m0s``, ``1h30m``, ``1.5s``), as they stand in specs, flags and events.

A ``timedelta`` counts microseconds: what a text says below that is cut off.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,  # U+03BC, Greek mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM = re.compile(
    r"(?:(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]*))?|\.(?P<bare>[0-9]+))(?P<unit>[^0-9.]+)"
)
_INT64_MAX = (1 << 63) - 1
_MICROSECOND = timedelta(microseconds=1)


@lru_cache(maxsize=1024)
def parse_duration(text: str) -> timedelta:
    """Parse a Go duration; raise ValueError saying what is wrong with it. All machines of a set
    say the same few, at each look: what was understood is remembered.

    Accepted: an optional sign, then numbers with units (ns, us, µs, ms, s, m, h), or a bare ``0``.
    What Go's 64 bits of nanoseconds cannot hold (about 292 years) is refused too.
    """
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return timedelta()
    total, end = 0, 0
    while end < len(body):
        term = _TERM.match(body, end)
        if term is None:
            break
        total += _nanoseconds(term, text)
        end = term.end()
    if end < len(body) or not body:
        raise ValueError(f"invalid duration {text!r}: {_complaint(body[end:])}")
    negative = text.startswith("-")
    if total > _INT64_MAX + negative:
        raise ValueError(f"invalid duration {text!r}: longer than 292 years")
    span = timedelta(microseconds=total // 1_000)
    return -span if negative else span


def _nanoseconds(term: re.Match[str], text: str) -> int:
    unit = _NANOSECONDS.get(term["unit"])
    if unit is None:
        raise ValueError(f"invalid duration {text!r}: unknown unit {term['unit']!r}")
    fraction = term["part"] or term["bare"] or ""
    part = int(fraction) * unit // 10 ** len(fraction) if fraction else 0
    return int(term["whole"] or 0) * unit + part


def _complaint(rest: str) -> str:
    if not rest:
        return "empty"
    return "missing unit (ns, us, ms, s, m or h)" if rest[0].isdigit() else f"unexpected {rest!r}"


def format_duration(span: timedelta) -> str:
    """Write a duration the way Go prints it: ``0s``, ``250ms``, ``1.5s``, ``10m0s``."""
    micros = span // _MICROSECOND
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if micros == 0:
        return "0s"
    if micros < 1_000:
        return f"{sign}{micros}µs"
    if micros < 1_000_000:
        return f"{sign}{_decimal(micros, 1_000)}ms"
    minutes, rest = divmod(micros, 60_000_000)
    seconds = _decimal(rest, 1_000_000)
    if not minutes:
        return f"{sign}{seconds}s"
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}h{minutes}m{seconds}s" if hours else f"{sign}{minutes}m{seconds}s"


def _decimal(value: int, unit: int) -> str:
    """``value / unit`` without trailing zeros; ``unit`` is a power of ten."""
    whole, part = divmod(value, unit)
    if not part:
        return str(whole)
    digits = len(str(unit)) - 1
    return f"{whole}.{part:0{digits}}".rstrip("0")
