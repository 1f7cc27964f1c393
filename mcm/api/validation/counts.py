"""Numbers: replicas, seconds and limits, and shares of the replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcm.api.validation.field_errors import FieldError, Findings, required, warning

DEFAULT_MAX_REPLICAS: Final = 100_000
"""More machines than any cluster holds: whoever writes this many did not mean it."""

_INT32_MAX: Final = 2**31 - 1
_TOO_LARGE: Final = "is more than an int32 can count"
_NO_SHARE: Final = "must be a whole number or a percentage like 25%"


def replicas_findings(replicas: int, max_replicas: int) -> Findings:
    """Check ``spec.replicas`` against the bound; 0 is no bound but that of the field's type."""
    if replicas < 0:
        yield FieldError("spec.replicas", "Replicas has to be a whole number", value=replicas)
    elif replicas > _INT32_MAX:
        yield FieldError("spec.replicas", _TOO_LARGE, value=replicas)
    elif 0 < max_replicas < replicas:
        detail = f"must be at most {max_replicas}, which --max-replicas allows"
        yield FieldError("spec.replicas", detail, value=replicas)


def count_findings(counts: Mapping[str, int | None]) -> Findings:
    """Check numbers, by their field, that may be left out and must not be negative."""
    for field, count in counts.items():
        if count is None:
            continue
        if count < 0:
            yield FieldError(field, "must not be negative", value=count)
        elif count > _INT32_MAX:
            yield FieldError(field, _TOO_LARGE, value=count)


def share_findings(value: int | str | None, field: str, replicas: int) -> Findings:
    """Check a number of machines, or a percentage of the replicas."""
    if value is None:
        yield required(field, _NO_SHARE)
        return
    count = _rounded_up(value, replicas)
    if count is None or count < 0:
        yield FieldError(field, _NO_SHARE, value=value)
    elif count > _INT32_MAX:
        yield FieldError(field, "is more machines than an int32 can count", value=value)
    elif isinstance(value, str) and int(value.removesuffix("%")) > 100:
        yield warning(field, "more than 100% has no more effect than 100%", value=value)


def leave_no_room(surge: int | str | None, unavailable: int | str | None, replicas: int) -> bool:
    """Tell whether two good shares are both none of ``replicas``, as surge is rounded up and
    unavailable down."""
    if surge is None or unavailable is None or replicas <= 0:
        return False
    return _rounded_up(surge, replicas) == 0 and _rounded_down(unavailable, replicas) == 0


def _rounded_up(value: int | str, replicas: int) -> int | None:
    """Resolve a share; None if the text is no percentage."""
    percentage = value if isinstance(value, int) else _percentage(value)
    if percentage is None or isinstance(value, int):
        return percentage
    return -(-percentage * max(replicas, 0) // 100)


def _rounded_down(value: int | str, replicas: int) -> int | None:
    if isinstance(value, int):
        return value
    percentage = _percentage(value)
    return None if percentage is None else percentage * max(replicas, 0) // 100


def _percentage(text: str) -> int | None:
    digits = text.removesuffix("%")
    if digits == text or not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        return None
    return int(digits)
