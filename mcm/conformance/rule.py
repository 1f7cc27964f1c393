"""A rule of the contract: its name, its text, and the check that a driver passes or violates."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from inspect import cleandoc
from types import ModuleType
from typing import Any, final

from mcm.conformance.lab import Lab
from mcm.conformance.subject import Subject
from mcm.conformance.verdict import NotApplicable, Violation
from mcm.driver import DriverError

__all__ = ["NotApplicable", "Rule", "Violation", "rule", "rules_in"]


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``text`` is what it demands, in a sentence or two."""

    name: str
    text: str
    check: Callable[[Lab], Coroutine[Any, Any, None]]

    async def check_on(self, subject: Subject) -> None:
        """Check ``subject``, and delete what was made for it.

        Raises :class:`Violation`, or :class:`NotApplicable` if the check lacks something.
        """
        async with Lab(subject) as lab:
            try:
                await self.check(lab)
            except DriverError as error:
                raise Violation(f"a call failed that must succeed here: {error}") from error


def rule(check: Callable[[Lab], Coroutine[Any, Any, None]]) -> Rule:
    """Make a rule of a function: its name with dashes, its docstring as the text."""
    return Rule(check.__name__.replace("_", "-"), cleandoc(check.__doc__ or ""), check)


def rules_in(module: ModuleType) -> tuple[Rule, ...]:
    """Return a module's rules in the order in which they are written."""
    return tuple(value for value in vars(module).values() if isinstance(value, Rule))
