"""What a life's state machine wants done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mcm.lifecycle.tasks import TaskName


@final
@dataclass(frozen=True, slots=True)
class Start:
    """Start a task; its end is to be told."""

    task: TaskName


@final
@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a running task; its end is to be told like any other's."""

    task: TaskName


@final
@dataclass(frozen=True, slots=True)
class Lead:
    """Tell whom it concerns that we lead from now on."""


@final
@dataclass(frozen=True, slots=True)
class ShutDownQueues:
    """Take no new work: controllers end when they have done what they are at."""


@final
@dataclass(frozen=True, slots=True)
class Finish:
    """It is over, because of ``error`` if there is one. ``left`` did not end although cancelled."""

    error: Exception | None
    left: tuple[TaskName, ...] = ()


Action = Start | Cancel | Lead | ShutDownQueues | Finish
