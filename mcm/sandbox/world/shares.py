"""Numbers that may be percentages of another: ``maxSurge``, ``minAvailable`` and the like."""

from __future__ import annotations


def share(value: int | str | None, of: int, *, round_up: bool) -> int:
    """Resolve ``3`` or ``"25%"`` of ``of``; what is neither counts as 0."""
    if isinstance(value, int):
        return value
    text = (value or "").strip()
    if not text.endswith("%") or not text[:-1].isdecimal():
        return int(text) if text.isdecimal() else 0
    hundredths = int(text[:-1]) * of
    return -(-hundredths // 100) if round_up else hundredths // 100
