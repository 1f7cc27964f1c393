"""What is not loaded where it is not needed: counted in modules, as time says more of the machine.

``bench/process_start.py`` measures the time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import process_start

NEVER = (
    "hypothesis",
    "kopf",
    "kubernetes_asyncio",
    "mcm.conformance",
    "mcm.launcher",
    "mcm.sandbox",
    "mcm.simulation",
    "mcm.validate",
    "pytest",
    "rich",
    "trustme",
)
IN_NO_MANAGER = (
    "cryptography",
    "mcm.node_commands",
    "mcm.rollout",
    "mcm.vm",
    "mcm.webhook",
    "yaml",
)
IN_NO_SHORT_COMMAND = (
    "aiohttp",
    "mcm.manager",
    "mcm.providers",
    "prometheus_client",
    "uvloop",
)


def of(start: process_start.Start, unwanted: tuple[str, ...]) -> set[str]:
    """Return those of the packages of which anything was loaded."""
    return {
        package
        for package in unwanted
        if any(f"{module}.".startswith(f"{package}.") for module in start.modules)
    }


@pytest.mark.parametrize("arguments", [("version",), ("run", "--help"), ("start", "--help")])
def test_a_command_that_needs_no_cluster_loads_no_library_for_one(
    arguments: tuple[str, ...],
) -> None:
    start = process_start.command(*arguments)
    assert "mcm.cli" in start.modules
    assert not of(start, NEVER + IN_NO_MANAGER + IN_NO_SHORT_COMMAND)


def test_a_manager_in_a_pod_loads_only_what_it_works_with(tmp_path: Path) -> None:
    start = process_start.first_request(tmp_path)
    assert {"aiohttp", "mcm.manager", "mcm.providers.simulated.driver"} <= start.modules
    assert not of(start, NEVER + IN_NO_MANAGER)
