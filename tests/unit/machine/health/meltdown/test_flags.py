from __future__ import annotations

from dataclasses import replace

import pytest

from mcm.controllers.settings import ControllerSettings


@pytest.mark.parametrize(
    ("field", "value", "flag"),
    [
        ("unhealthy_zone_threshold", 0.0, "machine-safety-unhealthy-zone-threshold"),
        ("unhealthy_zone_threshold", -0.1, "machine-safety-unhealthy-zone-threshold"),
        ("unhealthy_zone_threshold", float("nan"), "machine-safety-unhealthy-zone-threshold"),
        ("unhealthy_fleet_threshold", 0.0, "machine-safety-unhealthy-fleet-threshold"),
        ("unhealthy_min", 0, "machine-safety-unhealthy-min"),
        ("max_concurrent_replacements", -1, "machine-max-concurrent-replacements"),
    ],
)
def test_what_could_never_work_is_refused_with_the_flags_name(
    field: str, value: float, flag: str
) -> None:
    problems = replace(ControllerSettings(), **{field: value}).validate()  # type: ignore[arg-type]
    assert problems
    assert all(problem.startswith(f"--{flag}: ") for problem in problems)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("unhealthy_zone_threshold", 1.0),
        ("unhealthy_fleet_threshold", float("inf")),
        ("unhealthy_min", 1),
        ("max_concurrent_replacements", 0),
        ("max_concurrent_replacements", 50),
    ],
)
def test_each_protection_can_be_set_or_switched_off(field: str, value: float) -> None:
    assert replace(ControllerSettings(), **{field: value}).validate() == []  # type: ignore[arg-type]
