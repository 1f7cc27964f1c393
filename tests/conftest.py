"""What tests have to tell at the end of a run, from whatever process they ran in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

REPORT = "report line"


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Adds a line to the end of the run's output."""
    properties: list[tuple[str, object]] = request.node.user_properties
    return lambda line: properties.append((REPORT, line))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Properties come with a test's result, also from a worker process.
    for result in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, line in getattr(result, "user_properties", ()):
            if name == REPORT:
                terminalreporter.write_line(str(line))
