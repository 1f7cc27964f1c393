"""Which pods keep a drain from going on until somebody mends something, in the words of old."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mcm.drain.result import PodStanding
from mcm.wording import first_few

_NAMED: Final = 3


def lasting_trouble(pods: Iterable[PodStanding]) -> str:
    """Name the first few in a stable order, and count the rest; empty if waiting alone helps. Other
    programs look for what it says of budgets."""
    texts = (f"pod {pod.pod}: {pod.detail or pod.cause.value}" for pod in pods if pod.lasting)
    return first_few(sorted(texts), _NAMED, separator="; ")
