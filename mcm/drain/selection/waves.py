"""In which wave a pod goes: by its annotation, then its priority; what the node lives by goes last.

The contract knows one wave, and so do the defaults, but for the last one: drivers of volumes and
the like must serve until the others are gone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from mcm.api.core import Pod
from mcm.drain.selection.claims import is_finished, uses_claims
from mcm.drain.selection.wishes import asked_wave

SYSTEM_NODE_CRITICAL: Final = 2_000_001_000
"""The priority of the class of that name, the highest that Kubernetes itself defines."""

Turn: TypeAlias = tuple[bool, int, int]
"""Infrastructure or not, the wave that the pod asks for, the class of its priority: compared."""


@final
@dataclass(frozen=True, slots=True)
class WaveSettings:
    """``priorities``, ascending: a pod goes in the class after each of them that it reaches, so
    that the least important go first. None: priority makes no waves."""

    priorities: tuple[int, ...] = ()


ONE_WAVE: Final = WaveSettings()
"""As the contract has it."""


def turn_of(pod: Pod, settings: WaveSettings) -> Turn:
    """Return what decides about the wave of a pod that is taken away.

    A finished pod keeps nobody waiting: it is of the first wave there is, as the caller sees to.
    """
    return (
        is_infrastructure(pod),
        asked_wave(pod),
        bisect_right(settings.priorities, pod.spec.priority),
    )


def is_infrastructure(pod: Pod) -> bool:
    """Tell whether others on the node may live by it: it is critical to the node, or it is bound to
    it and tolerates everything, as a DaemonSet's pods do."""
    spec = pod.spec
    return spec.priority >= SYSTEM_NODE_CRITICAL


def in_order(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Sort the pods of a wave: finished ones, those without claims, then those with, of which the
    highest priority comes first."""
    return tuple(sorted(pods, key=_rank))


def _rank(pod: Pod) -> tuple[int, int, str]:
    if uses_claims(pod):
        return (2, -pod.spec.priority, pod.metadata.key)
    return (0 if is_finished(pod) else 1, 0, pod.metadata.key)
