"""Putting every pod of a node into its place in a drain: left, awaited, or in a wave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import final

from mcm.api.core import Pod
from mcm.api.names import ANNOTATION_MIRROR_POD
from mcm.drain.selection.claims import is_finished
from mcm.drain.selection.comebacks import NO_COMEBACKS, Comebacks, returns_for_ever
from mcm.drain.selection.waves import (
    ONE_WAVE,
    Turn,
    WaveSettings,
    in_order,
    is_infrastructure,
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
        if not self.waves or (self.awaited and is_infrastructure(self.waves[0][-1])):
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
) -> Arrangement:
    """Put the pods of one node into their places.

    ``start`` of the drain tells pods that came later from those it was asked for; ``comebacks`` is
    what its record knows of them (:func:`mcm.drain.selection.comebacks.with_eviction`).
    """
    left: list[Left] = []
    awaited: list[Pod] = []
    waves: dict[Turn, list[Pod]] = {}
    finished: list[Pod] = []
    for pod in pods:
        if (why := _stays(pod, start, comebacks)) is not None:
            left.append(Left(pod, why))
        elif is_finished(pod):
            finished.append(pod)
        elif wish_of(pod) is Wish.WAIT_COMPLETED:
            awaited.append(pod)
        else:
            waves.setdefault(turn_of(pod, settings), []).append(pod)
    ordered = [waves[turn] for turn in sorted(waves)]
    return Arrangement(
        left=tuple(sorted(left, key=lambda left: left.pod.metadata.key)),
        awaited=tuple(sorted(awaited, key=lambda pod: pod.metadata.key)),
        waves=_with_finished(ordered, finished),
    )


def must_go(pod: Pod) -> bool:
    """Tell whether a drain waits until the pod is gone. One that comes back for ever counts too."""
    return _lasting_stay(pod) is None


def _with_finished(waves: list[list[Pod]], finished: list[Pod]) -> tuple[tuple[Pod, ...], ...]:
    """Finished pods go with the first wave, whatever wave they are of: they run nothing.

    But infrastructure must wait for nobody's sake that is awaited, and they need not."""
    if not finished:
        return tuple(in_order(wave) for wave in waves)
    if not waves or is_infrastructure(waves[0][0]):
        waves = [[], *waves]
    return tuple(in_order(wave) for wave in ([*waves[0], *finished], *waves[1:]))


def _stays(pod: Pod, start: datetime, comebacks: Comebacks) -> Stay | None:
    if (why := _lasting_stay(pod)) is not None:
        return why
    return Stay.COMES_BACK if returns_for_ever(pod, comebacks, start) else None


def _lasting_stay(pod: Pod) -> Stay | None:
    if ANNOTATION_MIRROR_POD in pod.metadata.annotations:
        return Stay.MIRROR
    owner = pod.metadata.controller_ref()
    if owner is not None and owner.kind == "DaemonSet":
        return Stay.DAEMON_SET
    return Stay.SKIPPED if wish_of(pod) is Wish.SKIP else None
