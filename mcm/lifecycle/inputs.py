"""What a life's state machine is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mcm.lifecycle.tasks import TaskName


@final
@dataclass(frozen=True, slots=True)
class Begin:
    """Given once, first."""


@final
@dataclass(frozen=True, slots=True)
class TaskEnded:
    """``error`` is None if the task returned, or was cancelled."""

    task: TaskName
    error: Exception | None = None


@final
@dataclass(frozen=True, slots=True)
class LeaseWon:
    """The task that contends for ``lease`` holds it now."""

    lease: str


@final
@dataclass(frozen=True, slots=True)
class StopAsked:
    """``at_once``: whoever asks cannot wait, or asks for the second time."""

    at_once: bool = False


@final
@dataclass(frozen=True, slots=True)
class TimePassed:
    """Given when the machine's deadline has come; harmless at any other time."""


Input = Begin | TaskEnded | LeaseWon | StopAsked | TimePassed
