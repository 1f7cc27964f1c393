from __future__ import annotations

import pytest

from mcm.sandbox.apiserver.front.http import Certificates
from tests.faults.scenario import Security

REPORT: pytest.StashKey[list[str]] = pytest.StashKey()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.load_or_create(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def security(certificates: Certificates) -> Security:
    return Security.of(certificates)


@pytest.fixture
def report(request: pytest.FixtureRequest) -> list[str]:
    """Lines for the end of the run's output."""
    return request.config.stash.setdefault(REPORT, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for line in config.stash.get(REPORT, []):
        terminalreporter.write_line(line)
