from __future__ import annotations

import os
import subprocess
from contextlib import suppress

import pytest

from tests.charts import helm_binary
from tests.charts.helm_binary import Helm


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """helm without a cluster."""
    return find_helm(tmp_path_factory)


def find_helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    try:
        return Helm(helm_binary.locate(), tmp_path_factory.mktemp("helm"))
    except helm_binary.HelmMissing as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before any test's time runs; the fixture tells what went wrong."""
    wanted = any("helm" in getattr(item, "fixturenames", ()) for item in session.items)
    if wanted and not session.config.option.collectonly and os.environ.get("CI") == "true":
        with suppress(helm_binary.HelmMissing, subprocess.TimeoutExpired):
            helm_binary.locate()
