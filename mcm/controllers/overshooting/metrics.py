"""How often sets were frozen and unfrozen here; which are is a condition of theirs."""

from __future__ import annotations

from typing import final

from prometheus_client import CollectorRegistry, Counter

from mcm.controllers.overshooting.decision import Action
from mcm.metrics import once_per_registry


@final
class FreezeMetrics:
    """One object a registry. ``action``: ``freeze`` or ``unfreeze``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._decisions = Counter(
            "mcm_machine_set_freeze_decisions",
            "Sets frozen or unfrozen for the number of their machines.",
            ("action",),
            registry=registry,
        )
        for action in ("freeze", "unfreeze"):
            self._decisions.labels(action)

    @classmethod
    def of(cls, registry: CollectorRegistry) -> FreezeMetrics:
        return once_per_registry(registry, cls)

    def decided(self, action: Action) -> None:
        self._decisions.labels("freeze" if action is Action.FREEZE else "unfreeze").inc()
