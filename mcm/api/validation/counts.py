"""Numbers: replicas, seconds and limits, and shares of the replicas."""

from __future__ import annotations

from collections.abc import Mapping

from mcm.api.validation.field_errors import Errors, FieldError, required

_INT32_MAX = 2**31 - 1


def replicas_errors(replicas: int) -> Errors:
    if replicas < 0:
        yield FieldError("spec.replicas", "Replicas has to be a whole number", value=replicas)


def count_errors(counts: Mapping[str, int | None]) -> Errors:
    """Check numbers, by their field, that may be left out and must not be negative."""
    for field, count in counts.items():
        if count is not None and count < 0:
            yield FieldError(field, "must not be negative", value=count)


def share_errors(value: int | str | None, field: str, replicas: int) -> Errors:
    """Check a number of machines, or a percentage of the replicas."""
    if value is None:
        yield required(field, "must be a whole number or a percentage like 25%")
        return
    count = _count(value, replicas)
    if count is None or count < 0:
        yield FieldError(field, "must be a whole number or a percentage like 25%", value=value)
    elif count > _INT32_MAX:
        yield FieldError(field, "is more machines than an int32 can count", value=value)


def _count(value: int | str, replicas: int) -> int | None:
    """Resolve a share, rounded up; None if the text is no percentage."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if digits == value or not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        return None
    return -(-int(digits) * max(replicas, 0) // 100)
