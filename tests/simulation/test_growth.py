"""A machine costs no more in a larger fleet: counted, so that no noise moves it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from bench.growth import Cost, measure
from bench.manager_side import CpuMeter

_PHASES = ("create", "roll")
_SMALL, _LARGE = 70, 140


@cache
def _costs(fleet: int) -> Mapping[str, Cost]:
    return {cost.phase: cost for cost in measure(fleet, CpuMeter(), phases=_PHASES).costs}


@pytest.mark.parametrize("phase", _PHASES)
def test_a_machine_costs_as_much_in_a_fleet_twice_as_large(phase: str) -> None:
    small, large = _costs(_SMALL)[phase], _costs(_LARGE)[phase]
    assert large.writes <= 1.05 * small.writes
    assert large.adds <= 1.1 * small.adds
    assert large.watch_events <= 1.05 * small.watch_events


@pytest.mark.parametrize("phase", _PHASES)
def test_passes_over_sets_and_deployments_grow_slower_than_what_they_look_at(phase: str) -> None:
    """Each looks at all machines: as many passes a machine would cost the square of the fleet."""
    small, large = _costs(_SMALL)[phase], _costs(_LARGE)[phase]
    for controller in ("machineset", "machinedeployment"):
        before = small.reconciles[controller] * small.machines
        assert large.reconciles[controller] * large.machines <= 1.5 * before + 2
