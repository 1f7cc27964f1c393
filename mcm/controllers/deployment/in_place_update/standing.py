"""Where each machine stands in an update in place, from the machine and its Node's marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto
from typing import final

from mcm.api.core import Node
from mcm.api.machine import Machine, MachinePhase, MachineSet
from mcm.api.names import (
    ANNOTATION_UPDATE_TO_SET,
    CONDITION_IN_PLACE_UPDATE,
    LABEL_SCALE_UP_DISABLED,
    REASON_UPDATE_SUCCESSFUL,
    STRATEGY_IN_PLACE_UPDATE,
)
from mcm.controllers.deployment.fleet import DeploymentSnapshot, UpdatesInPlace, by_age
from mcm.controllers.deployment.revisions.numbers import revision_of
from mcm.controllers.in_place_marks import InPlaceMarks, Stage, marks_of
from mcm.controllers.node_ownership import is_managed
from mcm.controllers.replicas.deletion_order import DEFAULT_PRIORITY, priority_of
from mcm.controllers.replicas.membership import is_pinned, is_terminating

_HANDED_OVER_FROM = frozenset(
    {MachinePhase.RUNNING, MachinePhase.UNKNOWN, MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL}
)
"""Phases of an updated machine; the Go original may let it run before its set takes it over."""
_WITH_THE_AGENT = frozenset({Stage.DRAINED, Stage.READY})

_NEVER = datetime.max.replace(tzinfo=UTC)


class Standing(Enum):
    """Where a machine stands."""

    OUT = auto()
    """It cannot be updated now: it has no Node of its own, joins, is unwell, or leaves."""
    AT_REST = auto()
    """It runs, and nothing is asked of it."""
    UNDER_WAY = auto()
    """It was selected; its result is to come."""
    UPDATED = auto()
    """It is updated, and shows it: its new set may take it over."""
    FAILED = auto()


@final
@dataclass(frozen=True, slots=True)
class Member:
    """One machine of a deployment's set, with its own Node, if that is known."""

    machine: Machine
    owner: MachineSet
    node: Node | None = None

    @property
    def name(self) -> str:
        return self.machine.metadata.name

    @property
    def marks(self) -> InPlaceMarks | None:
        return marks_of(self.node) if self.node is not None else None

    @property
    def recorded(self) -> str:
        """The set for which its Node says it is updated; empty if it says nothing."""
        if self.node is None:
            return ""
        return self.node.metadata.annotations.get(ANNOTATION_UPDATE_TO_SET, "")

    @property
    def standing(self) -> Standing:
        return standing_of(self.machine, self.marks)

    @property
    def is_with_the_agent(self) -> bool:
        """Its node agent was asked, and may still answer."""
        marks = self.marks
        failed = self.machine.phase == MachinePhase.IN_PLACE_UPDATE_FAILED
        return marks is not None and marks.stage in _WITH_THE_AGENT and not failed

    @property
    def awaits_hand_over(self) -> bool:
        """It is updated, and its Node still says so."""
        return self.marks is not None and self.marks.awaits_hand_over

    @property
    def is_begun_for_another(self) -> bool:
        """It is updated, or may be by its agent, and did not change its set since: the Go original
        uncordons it when it does."""
        cordoned = self.node is not None and self.node.spec.unschedulable
        return cordoned and (self.awaits_hand_over or self.is_with_the_agent)


def standing_of(machine: Machine, marks: InPlaceMarks | None) -> Standing:
    """Tell where ``machine`` stands; ``marks`` are its own Node's, None where there is none."""
    if is_terminating(machine) or machine.phase == MachinePhase.FAILED:
        return Standing.OUT
    stage = marks.stage if marks is not None else None
    if machine.phase == MachinePhase.IN_PLACE_UPDATE_FAILED or stage is Stage.FAILED:
        return Standing.FAILED
    if marks is None:
        updating = machine.phase == MachinePhase.IN_PLACE_UPDATING
        return Standing.UNDER_WAY if updating else Standing.OUT
    if marks.awaits_hand_over:
        return Standing.UPDATED if shows_success(machine) else Standing.UNDER_WAY
    asked = marks.selected or stage in _WITH_THE_AGENT or stage is Stage.SELECTED
    if asked or machine.phase == MachinePhase.IN_PLACE_UPDATING:
        return Standing.UNDER_WAY
    return Standing.AT_REST if machine.phase == MachinePhase.RUNNING else Standing.OUT


def shows_success(machine: Machine) -> bool:
    """Tell whether the machine itself says that it is updated: its controller has read the result,
    which may be taken off its Node then."""
    if machine.phase not in _HANDED_OVER_FROM:
        return False
    return any(
        c.type == CONDITION_IN_PLACE_UPDATE and c.reason == REASON_UPDATE_SUCCESSFUL
        for c in machine.status.conditions
    )


@final
@dataclass(frozen=True, slots=True)
class UpdateView:
    """All that is known of a deployment's update in place.

    ``strategy``: that is how it is to be updated. ``going_on``: so it is just now; not while it is
    paused, or has no new set yet.
    """

    snapshot: DeploymentSnapshot
    strategy: bool
    members: Mapping[str, Member] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: DeploymentSnapshot, find: Callable[[Machine], Node | None]) -> UpdateView:
        """Look at every machine; ``find`` returns its own Node, if that is to be touched."""
        members = {
            machine.metadata.name: Member(machine, owner, _managed(find(machine)))
            for owner in snapshot.sets
            for machine in snapshot.machines[owner.metadata.uid]
        }
        return cls(snapshot, snapshot.strategy == STRATEGY_IN_PLACE_UPDATE, members)

    @property
    def new(self) -> MachineSet | None:
        return self.snapshot.new

    @property
    def going_on(self) -> bool:
        return self.strategy and self.new is not None and not self.snapshot.deployment.spec.paused

    def counted(self) -> DeploymentSnapshot:
        """Return the snapshot with what decisions need to know of all this."""
        if not self.strategy:
            return self.snapshot
        counts = UpdatesInPlace(
            idle=frozenset(self._idle()),
            selectable=tuple(m.metadata.name for m in self._selectable()),
            on_the_way=self._on_the_way(),
        )
        return replace(self.snapshot, in_place=counts)

    def living_set(self, name: str) -> MachineSet | None:
        return next(
            (
                s
                for s in self.snapshot.sets
                if s.metadata.name == name and s.metadata.deletion_timestamp is None
            ),
            None,
        )

    def is_old(self, member: Member) -> bool:
        return self.new is not None and member.owner is not self.new

    def is_ours(self, member: Member) -> bool:
        """Tell whether its Node's marks are a deployment's and no person's, who may have a machine
        updated without any: its set is locked, its Node says for which one it is updated, or it
        came from a set that is locked still."""
        if member.recorded or is_locked(member.owner) or is_pinned(member.machine):
            return True
        return member.awaits_hand_over and any(map(is_locked, self.snapshot.sets))

    def destination(self, member: Member) -> MachineSet | None:
        """Return the set for which a machine is, or was, updated; None if that is no more.

        Where no Node says so, as with the Go original's updates: a set is locked before its
        machines are updated for another one, so an updated machine of any other set has come into
        it; and machines of the set that is wanted again were begun for the latest other one.
        """
        if member.recorded:
            return self.living_set(member.recorded)
        if is_pinned(member.machine):
            return member.owner
        if not is_locked(member.owner):
            returned = member.awaits_hand_over or not self.strategy
            return member.owner if returned else self.new
        if member.owner is self.new and member.is_begun_for_another:
            return self._latest_but(member.owner) or member.owner
        return self.new

    def is_to_be_recorded(self) -> bool:
        """Tell whether an updated machine is to move as soon as its Node says where to."""
        return any(
            m.standing is Standing.UPDATED
            and not m.recorded
            and self.destination(m) not in (None, m.owner)
            for m in self.members.values()
        )

    def _latest_but(self, owner: MachineSet) -> MachineSet | None:
        """The set of the highest revision beside ``owner``."""
        others = (s for s in self.snapshot.sets if s is not owner)
        living = [s for s in others if s.metadata.deletion_timestamp is None]
        return max(living, key=lambda s: revision_of(s.metadata.annotations) or 0, default=None)

    def is_settling(self) -> bool:
        """Tell whether a machine came into a set whose size does not account for it yet."""
        for owner in self.snapshot.sets:
            machines = self.snapshot.machines[owner.metadata.uid]
            staying = [m for m in machines if not is_terminating(m)]
            if len(staying) > owner.spec.replicas and any(map(is_pinned, staying)):
                return True
        return False

    def _idle(self) -> Iterator[str]:
        """Machines that serve nobody, whatever their phase says: they are drained, or were."""
        resting = (Standing.OUT, Standing.AT_REST)
        return (name for name, m in self.members.items() if m.standing not in resting)

    def _selectable(self) -> Iterator[Machine]:
        """Oldest set first, then oldest machine, those which somebody chose to be deleted last."""
        by_set: dict[str, list[Machine]] = {s.metadata.uid: [] for s in by_age(self.snapshot.sets)}
        for member in self.members.values():
            leaving = member.owner.metadata.deletion_timestamp is not None
            if not self.is_old(member) or leaving or is_pinned(member.machine):
                continue
            if member.standing is Standing.AT_REST:
                by_set[member.owner.metadata.uid].append(member.machine)
        return (m for machines in by_set.values() for m in sorted(machines, key=_turn))

    def _on_the_way(self) -> int:
        """How many machines of old sets are about to join the new one."""
        return sum(
            m.standing in (Standing.UNDER_WAY, Standing.UPDATED) and self.destination(m) is self.new
            for m in self.members.values()
            if self.is_old(m)
        )


def _turn(machine: Machine) -> tuple[bool, datetime, str]:
    created = machine.metadata.creation_timestamp or _NEVER
    return priority_of(machine) < DEFAULT_PRIORITY, created, machine.metadata.name


def is_locked(machine_set: MachineSet) -> bool:
    """Tell whether a set may make no machines, as its machines are updated in place."""
    return LABEL_SCALE_UP_DISABLED in machine_set.metadata.labels


def _managed(node: Node | None) -> Node | None:
    return node if node is not None and is_managed(node) else None
