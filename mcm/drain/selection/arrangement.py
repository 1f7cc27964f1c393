"""Putting every pod of a node into its place in a drain: left, awaited, or in a wave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import final

from mcm.api.core import Pod, Taint
from mcm.api.names import ANNOTATION_MIRROR_POD
from mcm.drain.pods import is_finished
from mcm.drain.selection.comebacks import CORDON, NO_COMEBACKS, Comebacks, returns_for_ever
from mcm.drain.selection.waves import (
    ONE_WAVE,
    Turn,
    WaveSettings,
    in_order,
    turn_of,
)
from mcm.drain.selection.wishes import Wish, wish_of


class Stay(StrEnum):
    """Why a pod is left where it is, in words that follow its name."""

    MIRROR = "is the mirror of a static pod"
    DAEMON_SET = "belongs to a DaemonSet"
    SKIPPED = "asks to be skipped"
    COMES_BACK = "is put back onto the node each time it is taken away"


@final
@dataclass(frozen=True, slots=True)
class Left:
    pod: Pod
    why: Stay


@final
@dataclass(frozen=True, slots=True)
class Arrangement:
    """The places of a node's pods. Each is in exactly one."""

    left: tuple[Left, ...] = ()
    """Neither asked to go nor waited for."""
    awaited: tuple[Pod, ...] = ()
    """Not asked to go, but waited for until they complete, at most until the deadline."""
    waves: tuple[tuple[Pod, ...], ...] = ()
    """To take away, the first wave first; none is empty. In a wave, in the order of asking."""
    infrastructure_from: int = 0
    """The place in ``waves`` from which on they are of pods that the node lives by."""

    @property
    def taken(self) -> tuple[Pod, ...]:
        """All that must be gone before the drain is over."""
        return (*self.awaited, *(pod for wave in self.waves for pod in wave))

    @property
    def by_force(self) -> tuple[Pod, ...]:
        """All that a forced drain deletes: also what would come back, as no time is left for it."""
        return (*self.taken, *(left.pod for left in self.left if left.why is Stay.COMES_BACK))

    @property
    def due(self) -> tuple[Pod, ...]:
        """The wave whose turn it is. What the node lives by stays while pods are awaited."""
        if not self.waves or (self.awaited and not self.infrastructure_from):
            return ()
        return self.waves[0]

    @property
    def later(self) -> tuple[Pod, ...]:
        """The pods of waves whose turn has not come."""
        waves = self.waves[1:] if self.due else self.waves
        return tuple(pod for wave in waves for pod in wave)


def arrange(
    pods: Iterable[Pod],
    *,
    start: datetime,
    settings: WaveSettings = ONE_WAVE,
    comebacks: Comebacks = NO_COMEBACKS,
    barrier: Taint = CORDON,
) -> Arrangement:
    """Put the pods of one node into their places.

    ``start`` of the drain tells pods that came later from those it was asked for; ``comebacks`` is
    what its record knows of them (:func:`mcm.drain.selection.comebacks.with_eviction`), and
    ``barrier`` is what keeps new pods off the node.
    """
    left: list[Left] = []
    awaited: list[Pod] = []
    waves: dict[Turn, list[Pod]] = {}
    finished: list[Pod] = []
    for pod in pods:
        why = _lasting_stay(pod)
        if why is None and returns_for_ever(pod, comebacks, start, barrier):
            why = Stay.COMES_BACK
        if why is not None:
            left.append(Left(pod, why))
        elif is_finished(pod):
            finished.append(pod)
        elif wish_of(pod) is Wish.WAIT_COMPLETED:
            awaited.append(pod)
        else:
            waves.setdefault(turn_of(pod, settings), []).append(pod)
    ordinary = [waves[turn] for turn in sorted(waves) if not turn.infrastructure]
    last = [waves[turn] for turn in sorted(waves) if turn.infrastructure]
    if finished:  # They run nothing: they go with the first, whatever wave they are of.
        ordinary = [[*finished, *(ordinary[0] if ordinary else ())], *ordinary[1:]]
    return Arrangement(
        left=tuple(sorted(left, key=lambda left: left.pod.metadata.key)),
        awaited=tuple(sorted(awaited, key=lambda pod: pod.metadata.key)),
        waves=tuple(in_order(wave) for wave in (*ordinary, *last)),
        infrastructure_from=len(ordinary),
    )


def must_go(pod: Pod) -> bool:
    """Tell whether a drain waits until the pod is gone. One that comes back for ever counts too."""
    return _lasting_stay(pod) is None


def _lasting_stay(pod: Pod) -> Stay | None:
    if ANNOTATION_MIRROR_POD in pod.metadata.annotations:
        return Stay.MIRROR
    owner = pod.metadata.controller_ref()
    if owner is not None and owner.kind == "DaemonSet":
        return Stay.DAEMON_SET
    return Stay.SKIPPED if wish_of(pod) is Wish.SKIP else None
