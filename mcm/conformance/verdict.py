"""How the check of a rule can end short of success."""

from __future__ import annotations

from typing import final


@final
class Violation(AssertionError):
    """The driver breaks a rule; the text says how, and what it should have done."""


@final
class NotApplicable(Exception):
    """The rule cannot be checked; the text says what is missing."""
