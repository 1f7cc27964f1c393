"""No path became dearer, or cheaper without its budget: see ``docs/performance.md``."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from tests.guard import cost
from tests.guard.cost import Cost, complaint, this_python
from tests.guard.paths import PATHS

_ROOT = Path(__file__).parents[2]
_SUPPORTED = [
    classifier.rpartition(" ")[2]
    for classifier in tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"][
        "classifiers"
    ]
    if classifier.startswith("Programming Language :: Python :: 3.")
]


@pytest.fixture(scope="module")
def costs() -> Mapping[str, Cost]:
    """Measured in a process of its own, in which no other test has warmed or loaded anything."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.guard", "--json"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=dict[str, Cost])


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.skipif(this_python() not in _SUPPORTED, reason="has budgets for supported Pythons")
def test_a_path_costs_what_it_may(costs: Mapping[str, Cost], path: str) -> None:
    budget = cost.read().get(this_python(), {}).get(path)
    wrong = complaint(path, costs[path], budget)
    assert not wrong, wrong


def test_every_supported_python_has_a_budget_for_each_path() -> None:
    budgets = cost.read()
    assert sorted(budgets) == sorted(_SUPPORTED)
    for held in budgets.values():
        assert held.keys() == PATHS.keys()


def test_the_budgets_are_written_as_the_command_writes_them() -> None:
    assert cost.BUDGETS.read_bytes() == cost.written(cost.read())
