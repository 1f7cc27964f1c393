"""How many machines were replaced because their health failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from prometheus_client import CollectorRegistry, Counter

from mcm.api.machine import Machine, OperationType
from mcm.controllers.replicas.membership import is_failed
from mcm.informers.store import Store
from mcm.metrics import once_per_registry


@final
class StaleMachines:
    """One object a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._deleted = Counter(
            "mcm_machine_stale_machines",
            "Failed machines that sets deleted since their health checks had failed.",
            registry=registry,
        )

    @classmethod
    def of(cls, registry: CollectorRegistry) -> StaleMachines:
        return once_per_registry(registry, cls)

    def count(self, chosen: Iterable[Machine], machines: Store[Machine]) -> None:
        """Count those of ``chosen`` that are on their way out by now."""
        self._deleted.inc(sum(_is_stale(m) and _is_going(m, machines) for m in chosen))


def _is_stale(machine: Machine) -> bool:
    return is_failed(machine) and machine.status.last_operation.type == OperationType.HEALTH_CHECK


def _is_going(machine: Machine, machines: Store[Machine]) -> bool:
    latest = machines.get(machine.metadata.key)
    return latest is None or latest.metadata.deletion_timestamp is not None
