"""The contract as a pytest class: derive from it, say which driver is meant, and run pytest."""

from __future__ import annotations

import asyncio

import pytest

from mcm.conformance.rule import NotApplicable, Rule, Violation
from mcm.conformance.rules import RULES
from mcm.conformance.subject import Subject


class DriverContract:
    """One test for each rule. Give the subclass a fixture ``subject``, a :class:`Subject`."""

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
    def test_rule(self, rule: Rule, subject: Subject) -> None:
        missing, violation = "", ""
        try:
            self.perform(rule, subject)
        except NotApplicable as error:
            missing = str(error)
        except Violation as error:
            violation = "\n".join([str(error), *getattr(error, "__notes__", ())])
        if missing:
            pytest.skip(missing)
        if violation:
            pytest.fail(f"{rule.text}\n\n{violation}", pytrace=False)

    def perform(self, rule: Rule, subject: Subject) -> None:
        """Run one check in a loop of its own. Override it to run on another kind of loop."""
        asyncio.run(rule.check_on(subject))
