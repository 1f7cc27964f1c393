"""The bench of whole fleets at a real API server that it starts itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.envtest import assets

pytestmark = [pytest.mark.envtest, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("more", "tokens"), [((), 0), (("--bootstrap-tokens", "--phases=create"), 5)]
)
def test_a_fleet_is_measured_at_a_real_api_server(more: tuple[str, ...], tokens: int) -> None:
    try:
        folder = assets.locate()
    except assets.AssetsMissing as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    flags = ("--server=real", "--machines=5", "--raw-objects=8", "--raw-connections=4", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "bench.fleet", *flags, *more],
        cwd=Path(__file__).parents[3],
        env={**os.environ, assets.VARIABLE: str(folder)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["results"]["runs"]
    assert run["server_version"].startswith("v1.")
    phases = {phase["name"]: phase for phase in run["phases"]}
    created, deleted = phases["create"]["writes"], phases["delete"]["writes"]
    assert created["POST machines"] == deleted["DELETE machines"] == deleted["DELETE nodes"] == 5
    assert "POST nodes" not in created
    # A machine that asks for a token has one of its own, which is deleted once it has joined.
    assert created.get("POST secrets", 0) == tokens
    assert sum(phase.get("DELETE secrets", 0) for phase in (created, deleted)) == tokens
    assert created["PATCH nodes"] == 5
    assert created["POST events"] >= 5
    assert all(0 < phase["efficiency"] < 5 for phase in phases.values())
