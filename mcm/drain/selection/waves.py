"""In which wave a pod goes: by its annotation, then its priority; what the node lives by goes last.

The contract knows one wave, and so do the defaults, but for the last one: drivers of volumes and
the like must serve until the others are gone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, final

from mcm.api.core import Pod
from mcm.api.tolerations import tolerates_everything
from mcm.drain.pods import is_finished, uses_claims
from mcm.drain.selection.wishes import INT32, asked_wave

SYSTEM_NODE_CRITICAL: Final = 2_000_001_000
"""The priority of the class of that name, the highest that Kubernetes itself defines."""


class Turn(NamedTuple):
    """What decides about a pod's wave, in this order."""

    infrastructure: bool
    asked: int
    priority_class: int


@final
@dataclass(frozen=True, slots=True)
class WaveSettings:
    """``priorities``, ascending: a pod goes in the class after each of them that it reaches, so
    that the least important go first. None: priority makes no waves."""

    priorities: tuple[int, ...] = ()


ONE_WAVE: Final = WaveSettings()
"""As the contract has it."""


def problems_of(priorities: Sequence[int]) -> list[str]:
    """Return why these cannot be the priorities of :class:`WaveSettings`; empty if they can."""
    problems = [
        f"{priority} can be no pod's priority (a whole number of 32 bits)"
        for priority in priorities
        if priority not in INT32
    ]
    if any(second <= first for first, second in pairwise(priorities)):
        shown = ",".join(map(str, priorities))
        problems.append(f"must ascend, each priority above the one before, and are {shown}")
    return problems


def turn_of(pod: Pod, settings: WaveSettings) -> Turn:
    """Return what decides about the wave of a pod that is taken away and has not finished."""
    return Turn(
        infrastructure=is_infrastructure(pod),
        asked=asked_wave(pod),
        priority_class=bisect_right(settings.priorities, pod.spec.priority),
    )


def is_infrastructure(pod: Pod) -> bool:
    """Tell whether others on the node may live by it: it is critical to the node, or is as a
    DaemonSet's pod: it tolerates everything, and none is made of it elsewhere."""
    if pod.spec.priority >= SYSTEM_NODE_CRITICAL:
        return True
    return pod.metadata.controller_ref() is None and tolerates_everything(pod.spec.tolerations)


def in_order(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Sort the pods of a wave: finished ones, those without claims, then those with, of which the
    highest priority comes first."""
    return tuple(sorted(pods, key=_rank))


def _rank(pod: Pod) -> tuple[int, int, str]:
    if uses_claims(pod):
        return (2, -pod.spec.priority, pod.metadata.key)
    return (0 if is_finished(pod) else 1, 0, pod.metadata.key)
