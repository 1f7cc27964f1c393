from __future__ import annotations

from collections.abc import Callable

import pytest

from mcm.sandbox.apiserver.front.http import Certificates
from tests.faults.scenario import Security

REPORT = "report line"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.load_or_create(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def security(certificates: Certificates) -> Security:
    return Security.of(certificates)


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
