from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.prometheus.binaries import BinariesMissing, locate


@pytest.fixture(scope="session")
def binaries() -> Path:
    """The folder with prometheus and promtool."""
    try:
        return locate()
    except BinariesMissing as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture
def promtool(binaries: Path) -> Callable[..., tuple[int, str]]:
    """Runs promtool; returns its exit code and all that it said."""

    def run(*arguments: str | Path, given: bytes = b"") -> tuple[int, str]:
        done = subprocess.run(
            [binaries / "promtool", *arguments],
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout.decode()

    return run
