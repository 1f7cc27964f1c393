"""Which taints tolerations let pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcm.api.core import Taint, Toleration
from mcm.api.names import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE

_EXISTS = "Exists"
_BARRING = (EFFECT_NO_SCHEDULE, EFFECT_NO_EXECUTE)


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Return the first taint that keeps a pod with these tolerations away."""
    barring = (t for t in taints if t.effect in _BARRING)
    return next((t for t in barring if not tolerates(tolerations, t)), None)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(_tolerates(t, taint) for t in tolerations)


def tolerates_everything(tolerations: Iterable[Toleration]) -> bool:
    """Tell whether no taint keeps a pod with these tolerations away, whatever it is."""
    effects = {t.effect for t in tolerations if not t.key and t.operator == _EXISTS}
    return "" in effects or effects.issuperset(_BARRING)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    """No effect means every effect; no key, with Exists, every taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == _EXISTS:
        return True
    return bool(toleration.key) and toleration.value == taint.value
