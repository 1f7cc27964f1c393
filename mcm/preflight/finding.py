"""What a check says: how bad it is, of what, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import final


@final
class Outcome(Enum):
    """In the order in which they are shown."""

    PROBLEM = "problem"
    """The manager would not work, or not as it should."""
    WARNING = "warning"
    """It works; but somebody should know."""
    OK = "ok"


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """``subject`` names cluster, object or flag; ``remedy`` is empty where there is none."""

    outcome: Outcome
    check: str
    subject: str
    text: str
    remedy: str = ""


def ok(check: str, subject: str, text: str) -> Finding:
    return Finding(Outcome.OK, check, subject, text)


def warning(check: str, subject: str, text: str, remedy: str = "") -> Finding:
    return Finding(Outcome.WARNING, check, subject, text, remedy)


def problem(check: str, subject: str, text: str, remedy: str) -> Finding:
    return Finding(Outcome.PROBLEM, check, subject, text, remedy)
