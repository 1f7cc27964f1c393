"""Words of conditions and events: whether two say the same, and how long lists are cut short."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_VARYING: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b(?=[a-z-]{0,64}[0-9])[0-9a-z-]{12,128}|[0-9]+",
    re.IGNORECASE,
)


def same_words(one: str, other: str) -> bool:
    """Tell whether two texts differ in numbers and identifiers at most."""
    return one == other or essence(one) == essence(other)


def essence(text: str) -> str:
    """Return ``text`` with a sign for each number and identifier."""
    return _VARYING.sub("#", text)


def first_few(texts: Sequence[str], most: int, *, separator: str = ", ") -> str:
    """Join the first ``most`` of ``texts``, and count the rest."""
    shown, rest = separator.join(texts[:most]), len(texts) - most
    joint = " " if separator == ", " else separator
    return f"{shown}{joint}and {rest} more" if rest > 0 else shown
