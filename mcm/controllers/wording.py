"""Whether two messages say the same, but for the numbers and identifiers that each request has."""

from __future__ import annotations

import re
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
