"""Defaults as documented, and what validation says about impossible values."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from mcm.api.durations import format_duration
from mcm.controllers.settings import ControllerSettings, flag_of

DOCUMENTED = {
    "concurrent-syncs": 10,
    "machine-concurrent-syncs": 50,
    "min-resync-period": "12h0m0s",
    "max-replicas": 100_000,
    "machine-creation-timeout": "20m0s",
    "machine-health-timeout": "10m0s",
    "machine-drain-timeout": "2h0m0s",
    "machine-inplace-update-timeout": "20m0s",
    "machine-max-evict-retries": None,
    "machine-drain-priority-waves": (),
    "machine-pv-detach-timeout": "2m0s",
    "machine-drain-adaptive-lanes": False,
    "machine-pv-reattach-timeout": "1m30s",
    "machine-preserve-timeout": "96h0m0s",
    "node-conditions": (
        "KernelDeadlock",
        "ReadonlyFilesystem",
        "DiskPressure",
        "NetworkUnavailable",
    ),
    "machine-keep-managed-fields": False,
    "bootstrap-token-auth-extra-groups": "",
    "machine-max-concurrent-replacements": 1,
    "machine-safety-unhealthy-zone-threshold": 0.55,
    "machine-safety-unhealthy-fleet-threshold": 0.55,
    "machine-safety-unhealthy-min": 3,
    "resource-exhausted-retry": "10m0s",
    "machine-safety-orphan-vms-period": "15m0s",
    "machine-safety-apiserver-statuscheck-timeout": "30s",
    "machine-safety-apiserver-statuscheck-period": "1m0s",
    "sibling-namespaces": (),
    "safety-up": 2,
    "safety-down": 1,
    "machine-safety-overshooting-period": "1m0s",
    "autoscaler-scaledown-annotation-during-rollout": True,
}


def test_every_default_is_the_documented_one() -> None:
    settings = ControllerSettings()
    actual = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        text = format_duration(value) if isinstance(value, timedelta) else value
        actual[flag_of(field.name)] = text
    assert actual == DOCUMENTED


def test_the_defaults_are_valid() -> None:
    assert ControllerSettings().validate() == []


def test_no_retry_after_exhaustion_means_the_default_one() -> None:
    settings = ControllerSettings(resource_exhausted_retry=timedelta())
    assert settings.resource_exhausted_retry == timedelta(minutes=10)


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        ({"concurrent_syncs": 0}, "--concurrent-syncs:"),
        ({"machine_concurrent_syncs": -1}, "--machine-concurrent-syncs:"),
        ({"safety_up": -1}, "--safety-up:"),
        ({"max_evict_retries": -1}, "--machine-max-evict-retries:"),
        ({"drain_timeout": timedelta(seconds=-1)}, "--machine-drain-timeout:"),
        ({"min_resync_period": timedelta(seconds=-1)}, "--min-resync-period:"),
        ({"drain_priority_waves": (1, 1)}, "--machine-drain-priority-waves: must ascend"),
        ({"drain_priority_waves": (0, 1000, 10)}, "--machine-drain-priority-waves: must ascend"),
        ({"drain_priority_waves": (2**31,)}, "--machine-drain-priority-waves: 2147483648 can"),
        ({"node_conditions": ("Ready", "")}, "--node-conditions:"),
        ({"node_conditions": (" Ready",)}, "--node-conditions:"),
        (
            {"apiserver_statuscheck_timeout": timedelta(minutes=2)},
            "--machine-safety-apiserver-statuscheck-period:",
        ),
    ],
)
def test_an_impossible_value_is_named_by_its_flag(change: dict[str, Any], flag: str) -> None:
    (problem,) = ControllerSettings(**change).validate()
    assert problem.startswith(flag)


def test_all_problems_are_told_at_once() -> None:
    settings = ControllerSettings(safety_up=-1, safety_down=-1, concurrent_syncs=0)
    assert len(settings.validate()) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"safety_up": 0},
        {"max_evict_retries": 0},
        {"pv_detach_timeout": timedelta()},
        {"node_conditions": ()},
        {"drain_priority_waves": (-10, 0, 2_000_000_000)},
        {"apiserver_statuscheck_timeout": timedelta(minutes=1)},
    ],
)
def test_the_edges_are_allowed(change: dict[str, Any]) -> None:
    assert ControllerSettings(**change).validate() == []


def test_an_unknown_setting_has_no_flag() -> None:
    with pytest.raises(KeyError):
        flag_of("colour")
