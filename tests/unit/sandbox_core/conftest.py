from __future__ import annotations

import pytest
from hypothesis import settings

from tests.unit.sandbox_core.workbench import Workbench

# The machines that run the tests may be busy with something else.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def api() -> Workbench:
    return Workbench()


@pytest.fixture
def toys() -> Workbench:
    """A server that knows Widgets."""
    bench = Workbench()
    bench.define_widgets()
    return bench
