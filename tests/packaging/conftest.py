from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging import sealed_root

SOURCES = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image's steps put into an empty root, from what the image's build is given."""
    root, context = tmp_path_factory.mktemp("image"), tmp_path_factory.mktemp("context")
    for line in (SOURCES / ".dockerignore").read_text().splitlines():
        if line.startswith("!"):
            given(line[1:], context)
    environment = {**os.environ, "PYTHON": sys.executable, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(
        [str(context / "image/install"), str(root)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def given(name: str, context: Path) -> None:
    source, target = SOURCES / name, context / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


@pytest.fixture
def can_seal() -> None:
    """Skips, in CI fails, where no root can be sealed."""
    if why := sealed_root.why_not():
        reason = f"a read-only root of its own for a process is not to be had here: {why}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
