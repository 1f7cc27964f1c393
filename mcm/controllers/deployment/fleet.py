"""What is there of a deployment: its sets, which of them is the new one, and their machines.

Counts come from the machines themselves, not from the sets' statuses, which lag. A set's status
counts only where it speaks of more machines than are seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Final, TypeAlias, final

import msgspec

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    Machine,
    MachineDeployment,
    MachineDeploymentStatus,
    MachineSet,
)
from mcm.api.names import (
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_MAX_REPLICAS,
    CONDITION_PROGRESSING,
    LABEL_SCALE_UP_DISABLED,
    REASON_NEW_SET_AVAILABLE,
    STRATEGY_IN_PLACE_UPDATE,
    STRATEGY_ROLLING_UPDATE,
)
from mcm.controllers.conditions import reason_of
from mcm.controllers.deployment.startup_failures import failing_since, was_complete
from mcm.controllers.deployment.templates import identity_of
from mcm.controllers.owning import Ownership
from mcm.controllers.replicas.availability import is_available, min_ready_of
from mcm.controllers.replicas.deletion_order import (
    DEFAULT_PRIORITY,
    chosen_by_autoscaler,
    deletion_order,
    is_preserved,
    priority_of,
)
from mcm.controllers.replicas.joining import has_never_joined
from mcm.controllers.replicas.membership import is_failed, is_pinned, is_terminating

OWNERSHIP: Final = Ownership(
    owner=MACHINE_DEPLOYMENTS,
    child=MACHINE_SETS,
    selector=lambda deployment: deployment.spec.selector,
    noun="machine set",
)
"""Machines need no way of their own to a deployment: whatever counts of them shows in the status of
their set."""

_FIRST: Final = datetime.min.replace(tzinfo=UTC)

Targets: TypeAlias = Mapping[str, int]
"""Replicas by set UID; a set that is not named keeps its size."""


@final
@dataclass(frozen=True, slots=True)
class SetState:
    """One set. ``serving`` says of each machine that stays whether it serves, in the order in which
    they would be deleted; ``terminating`` more are on their way out.

    ``chosen`` machines go first by their priority, ``preserved`` ones failed and are kept for
    inspection. ``joining`` machines have never joined yet, ``joining_first`` of them stand first in
    the order of deletion. ``desired`` and ``most`` are the deployment's numbers at the last
    scaling, None if unknown. A set that is being ``deleted`` makes no machines, and keeps none. One
    that is ``failing`` cannot get its machines up; one that was ``completed`` once could. One that
    is ``locked`` makes none; ``pinned`` machines came in by an update in place.
    """

    uid: str
    replicas: int
    serving: tuple[bool, ...] = ()
    terminating: int = 0
    reported: int = 0
    chosen: int = 0
    preserved: int = 0
    joining: int = 0
    joining_first: int = 0
    desired: int | None = None
    most: int | None = None
    deleted: bool = False
    failing: bool = False
    completed: bool = False
    locked: bool = False
    pinned: int = 0

    @property
    def arrived(self) -> int:
        """How many machines it got for which its size does not account yet."""
        return max(0, min(self.pinned, len(self.serving) - self.replicas))

    @property
    def machines(self) -> int:
        return len(self.serving) + self.terminating

    @property
    def available(self) -> int:
        return sum(self.serving)

    @property
    def proven(self) -> bool:
        """Whether machines of this set are known to work."""
        return not self.failing and (self.completed or self.available > 0)

    @property
    def missing(self) -> int:
        """How many of its replicas have never joined, or are not even made."""
        joined = len(self.serving) - self.joining
        return max(0, self.replicas - joined - self.preserved)

    def useless(self, replicas: int) -> int:
        """How many of ``replicas`` can go without any machine that has ever joined."""
        return max(0, replicas - (len(self.serving) - self.joining_first))

    def potential(self, replicas: int) -> int:
        """How many machines there can be at once, if the set is to have ``replicas``."""
        if self.deleted:
            return self.machines
        return max(replicas + self.terminating, self.machines, self.reported)

    def guaranteed(self, replicas: int) -> int:
        """How many of those that serve now will be left, if the set is to have ``replicas``."""
        if self.deleted:
            return 0
        return sum(self.serving[max(0, len(self.serving) - replicas) :])

    def loss(self, replicas: int) -> int:
        """How many machines that serve go with the last one of ``replicas``: 1 or 0."""
        machines = len(self.serving)
        return int(not self.deleted and 0 < replicas <= machines and self.serving[-replicas])

    def reduced(self, replicas: int, by: int, *, losing: int = 0) -> int:
        """Return ``replicas`` less at most ``by``, as long as no more than ``losing`` machines that
        serve go. Replicas may be billions; only those that have machines are looked at one by one.
        """
        least = max(0, replicas - max(0, by))
        left = max(least, min(replicas, len(self.serving)))
        while left > least and self.loss(left) <= losing:
            losing -= self.loss(left)
            left -= 1
        return left


@final
@dataclass(frozen=True, slots=True)
class Fleet:
    """All sets of a deployment: the ``new`` one, whose template is the deployment's, and the
    ``old`` ones, oldest first. ``deleted`` sets only take room."""

    new: SetState | None = None
    old: tuple[SetState, ...] = ()
    deleted: tuple[SetState, ...] = ()

    @property
    def living(self) -> Sequence[SetState]:
        """All sets that can be scaled, oldest first, the new one last."""
        return (*self.old, self.new) if self.new else self.old

    @property
    def active(self) -> Sequence[SetState]:
        return tuple(s for s in self.living if s.replicas > 0)

    def replicas(self, targets: Targets | None = None) -> int:
        return sum(_target(s, targets) for s in self.living)

    def potential(self, targets: Targets | None = None) -> int:
        leaving = sum(s.machines for s in self.deleted)
        return leaving + sum(s.potential(_target(s, targets)) for s in self.living)

    def guaranteed(self, targets: Targets | None = None) -> int:
        return sum(s.guaranteed(_target(s, targets)) for s in self.living)

    @property
    def preserved(self) -> int:
        return sum(s.preserved for s in self.living)


def _target(state: SetState, targets: Targets | None) -> int:
    return state.replicas if targets is None else targets.get(state.uid, state.replicas)


def state_of(
    machine_set: MachineSet,
    machines: Iterable[Machine],
    now: datetime,
    *,
    rolling: bool = True,
    idle: AbstractSet[str] = frozenset(),
) -> SetState:
    """Read the state of a set and the machines it owns.

    ``rolling``: it is not one that was complete, and only loses and gets machines since. Machines
    that are ``idle``, by name, do not serve, whatever their phase says.
    """
    everyone = tuple(machines)
    staying = [m for m in everyone if not is_terminating(m)]
    going = {m.metadata.name for m in chosen_by_autoscaler(machine_set, staying)} | idle
    min_ready = min_ready_of(machine_set)
    serves = [is_available(m, min_ready, now) and m.metadata.name not in going for m in staying]
    if not all(serves):  # else, as nearly always, no order tells them apart
        by_name = {m.metadata.name: s for m, s in zip(staying, serves, strict=True)}
        staying = deletion_order(staying, now)
        serves = [by_name[m.metadata.name] for m in staying]
    joining = [has_never_joined(m) and not is_preserved(m, now) for m in staying]
    annotations = machine_set.metadata.annotations
    return SetState(
        uid=machine_set.metadata.uid,
        replicas=machine_set.spec.replicas,
        serving=tuple(serves),
        terminating=len(everyone) - len(staying),
        reported=machine_set.status.replicas,
        chosen=sum(priority_of(m) < DEFAULT_PRIORITY for m in staying),
        preserved=sum(is_failed(m) and is_preserved(m, now) for m in staying),
        joining=sum(joining),
        joining_first=sum(takewhile(bool, joining)),
        desired=_number(annotations, ANNOTATION_DESIRED_REPLICAS),
        most=_number(annotations, ANNOTATION_MAX_REPLICAS),
        deleted=machine_set.metadata.deletion_timestamp is not None,
        failing=failing_since(machine_set, everyone, now, rolling=rolling) is not None,
        completed=was_complete(machine_set),
        locked=LABEL_SCALE_UP_DISABLED in machine_set.metadata.labels,
        pinned=sum(map(is_pinned, staying)),
    )


def _number(annotations: Mapping[str, str], key: str) -> int | None:
    """Read a count from an annotation; None if it is absent or no number."""
    text = annotations.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


@final
@dataclass(frozen=True, slots=True)
class UpdatesInPlace:
    """Machines, by name, as their Nodes show them: ``idle`` ones serve nobody, as they are being
    updated; ``selectable`` ones may be next, in this order. ``on_the_way`` are about to join the
    new set."""

    idle: frozenset[str] = frozenset()
    selectable: tuple[str, ...] = ()
    on_the_way: int = 0


@final
@dataclass(frozen=True, slots=True)
class DeploymentSnapshot:
    """All that one pass knows, as the stores show it now. ``sets`` are all of the deployment's,
    oldest first, ``new`` is the one of its template; ``machines`` go by their set's UID.
    ``in_place`` is None where Nodes cannot be seen, or nothing speaks for an update in place."""

    deployment: MachineDeployment
    sets: Sequence[MachineSet]
    machines: Mapping[str, Sequence[Machine]]
    new: MachineSet | None
    in_place: UpdatesInPlace | None = None

    @classmethod
    def of(
        cls,
        deployment: MachineDeployment,
        sets: Sequence[MachineSet],
        machines: Mapping[str, Sequence[Machine]],
    ) -> DeploymentSnapshot:
        return cls(deployment, sets, machines, new_set_of(deployment, sets))

    def with_status(self, status: MachineDeploymentStatus) -> DeploymentSnapshot:
        """Return the same, the deployment's status being ``status``."""
        deployment = msgspec.structs.replace(self.deployment, status=status)
        return replace(self, deployment=deployment)

    @property
    def strategy(self) -> str:
        return defaulted_strategy(self.deployment.spec).type

    @property
    def taints_old_nodes(self) -> bool:
        """Whether pods should be steered from old machines to new ones."""
        return self.strategy in (STRATEGY_ROLLING_UPDATE, STRATEGY_IN_PLACE_UPDATE)

    @property
    def old(self) -> Sequence[MachineSet]:
        return tuple(s for s in self.sets if s is not self.new)

    @property
    def updating(self) -> bool:
        """Whether old sets have, or want, machines."""
        return any(s.spec.replicas or self.machines[s.metadata.uid] for s in self.old)

    def failing_since(self, machine_set: MachineSet, now: datetime) -> datetime | None:
        """Return since when a set of the deployment cannot get its machines up."""
        machines = self.machines[machine_set.metadata.uid]
        return failing_since(machine_set, machines, now, rolling=self._is_rolling(machine_set))

    def _is_rolling(self, machine_set: MachineSet) -> bool:
        if machine_set is not self.new:
            return not was_complete(machine_set)
        return self.updating or not (was_complete(machine_set) or self.is_settled)

    @property
    def is_settled(self) -> bool:
        """Whether the status says that the last rollout it knows of is over."""
        conditions = self.deployment.status.conditions
        return reason_of(conditions, CONDITION_PROGRESSING) == REASON_NEW_SET_AVAILABLE

    def was_complete(self, machine_set: MachineSet) -> bool:
        """Tell whether the status speaks of an earlier template still, and of this set alone."""
        behind = self.deployment.status.observed_generation < self.deployment.metadata.generation
        others = (s for s in self.sets if s is not machine_set)
        return (
            self.is_settled
            and behind
            and machine_set is not self.new
            and machine_set.spec.replicas > 0
            and not any(s.spec.replicas or self.machines[s.metadata.uid] for s in others)
        )

    def is_complete(self, now: datetime) -> bool:
        """Tell whether all that is wanted is there, of the present template, and serves."""
        new = self.new
        if new is None or self.deployment.spec.replicas <= 0:
            return False
        machines, min_ready = self.machines[new.metadata.uid], min_ready_of(new)
        desired = self.deployment.spec.replicas
        return (
            new.spec.replicas == desired == len(machines)
            and not any(self.machines[s.metadata.uid] for s in self.old)
            and all(is_available(m, min_ready, now) for m in machines)
        )

    def fleet(self, now: datetime) -> Fleet:
        idle = self.in_place.idle if self.in_place is not None else frozenset[str]()
        states = {
            s.metadata.uid: state_of(
                s,
                self.machines[s.metadata.uid],
                now,
                rolling=self._is_rolling(s),
                idle=idle,
            )
            for s in self.sets
        }
        old = [states[s.metadata.uid] for s in self.old]
        return Fleet(
            new=states[self.new.metadata.uid] if self.new else None,
            old=tuple(s for s in old if not s.deleted),
            deleted=tuple(s for s in old if s.deleted),
        )


def by_age(sets: Iterable[MachineSet]) -> list[MachineSet]:
    """Return ``sets``, the oldest first."""
    return sorted(sets, key=lambda s: (s.metadata.creation_timestamp or _FIRST, s.metadata.name))


def new_set_of(deployment: MachineDeployment, sets: Iterable[MachineSet]) -> MachineSet | None:
    """Return the set made from the deployment's template, the oldest if there are several.

    One that is being deleted is none any more.
    """
    wanted = identity_of(deployment.spec.template)
    living = (s for s in by_age(sets) if s.metadata.deletion_timestamp is None)
    return next((s for s in living if identity_of(s.spec.template) == wanted), None)
