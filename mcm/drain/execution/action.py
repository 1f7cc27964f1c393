"""What may be asked of the server for one pod: its eviction, or its deletion."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from mcm.api.core import Pod


class Verb(Enum):
    EVICT = auto()
    DELETE = auto()


@final
@dataclass(frozen=True, slots=True)
class Action:
    """One request for one pod. ``grace`` in seconds; None leaves it to the pod."""

    verb: Verb
    pod: Pod
    grace: int | None = None
