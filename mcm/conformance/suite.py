"""The contract of the provider that the plugin's options name."""

from __future__ import annotations

import pytest

from mcm.conformance.contract import DriverContract
from mcm.conformance.subject import Subject


class TestContract(DriverContract):
    @pytest.fixture
    def subject(self, mcm_subject: Subject) -> Subject:
        return mcm_subject
