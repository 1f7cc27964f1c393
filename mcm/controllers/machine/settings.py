"""The settings that hold for one machine: from its annotation, else its spec, else the flags."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import final

from mcm.api.durations import parse_duration
from mcm.api.machine import Machine
from mcm.api.names import ANNOTATION_EFFECTIVE_CREATION_TIMEOUT
from mcm.controllers.settings import ControllerSettings
from mcm.drain.plan.patience import EVICTION_INTERVAL
from mcm.drain.request import Limits
from mcm.drain.selection import WaveSettings


@final
@dataclass(frozen=True, slots=True)
class MachineSettings:
    """``health_timeout`` is None where the machine may be unhealthy for ever."""

    creation_timeout: timedelta
    health_timeout: timedelta | None
    drain_timeout: timedelta
    preserve_timeout: timedelta
    in_place_update_timeout: timedelta
    drain_waves: WaveSettings
    drain_limits: Limits
    node_conditions: frozenset[str]


def settings_of(machine: Machine, defaults: ControllerSettings) -> MachineSettings:
    """Resolve the settings of ``machine``. What cannot be read counts as not given."""
    spec = machine.spec
    drain = _first((spec.drain_timeout,), defaults.drain_timeout)
    health = _first((spec.health_timeout,), defaults.health_timeout)
    retries = defaults.max_evict_retries
    if spec.max_evict_retries is not None:
        retries = spec.max_evict_retries
    return MachineSettings(
        creation_timeout=_first(
            (
                machine.metadata.annotations.get(ANNOTATION_EFFECTIVE_CREATION_TIMEOUT),
                spec.creation_timeout,
            ),
            defaults.creation_timeout,
        ),
        health_timeout=None if spec.disable_health_timeout else health,
        drain_timeout=drain,
        preserve_timeout=_first((spec.machine_preserve_timeout,), defaults.preserve_timeout),
        in_place_update_timeout=_first(
            (spec.in_place_update_timeout,), defaults.inplace_update_timeout
        ),
        drain_waves=WaveSettings(defaults.drain_priority_waves),
        drain_limits=Limits(
            retries=_evictions(retries, drain),
            detach=defaults.pv_detach_timeout,
            reattach=defaults.pv_reattach_timeout,
            adaptive=defaults.drain_adaptive_lanes,
        ),
        node_conditions=_conditions(spec.node_conditions, defaults.node_conditions),
    )


def _evictions(retries: int | None, drain_timeout: timedelta) -> int:
    """Return as many as fit into the drain timeout, ``retries`` at most. Where not even one fits,
    that one lasts until the timeout: only who asks for no evictions gets none."""
    most = max(1, drain_timeout // EVICTION_INTERVAL)
    return most if retries is None else max(0, min(retries, most))


def _first(texts: Iterable[str | None], otherwise: timedelta) -> timedelta:
    for text in texts:
        if text and (span := _span(text)) is not None:
            return span
    return otherwise


def is_span(text: str) -> bool:
    """Tell whether ``text`` is a duration that takes effect: what is not is ignored here, and told
    on the machine by whoever looks at it first."""
    return _span(text) is not None


def _span(text: str) -> timedelta | None:
    try:
        span = parse_duration(text)
    except ValueError:
        return None
    return span if span >= timedelta(0) else None


def _conditions(listed: str | None, otherwise: tuple[str, ...]) -> frozenset[str]:
    if listed is None:
        return frozenset(otherwise)
    return frozenset(part for part in map(str.strip, listed.split(",")) if part)
