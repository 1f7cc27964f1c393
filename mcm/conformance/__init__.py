"""The conformance kit for authors of providers: point it at a driver, and it checks the contract.

In a test module of the provider's own package::

    class TestContract(DriverContract):
        @pytest.fixture
        def subject(self, tmp_path: Path) -> Subject:
            return Subject(new_driver=..., machine_class=..., secret={...})

Or, for a provider that is installed, without writing a line::

    pytest -p mcm.conformance.plugin --mcm-provider example \
        --mcm-machineclass class.yaml --mcm-secret secret.yaml

Each rule is one test, named as in :data:`RULES`; a rule that cannot be checked is skipped, and says
what it lacks. ``docs/providers.md`` has a complete example. Needs the extra ``mcm[conformance]``.
"""

from __future__ import annotations

from mcm.conformance.contract import DriverContract
from mcm.conformance.rule import NotApplicable, Rule, Violation
from mcm.conformance.rules import RULES
from mcm.conformance.subject import Refusal, Subject

__all__ = [
    "RULES",
    "DriverContract",
    "NotApplicable",
    "Refusal",
    "Rule",
    "Subject",
    "Violation",
]
