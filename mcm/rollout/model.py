"""A deployment, its sets and machines in memory, changed as the controllers would change them.

The decisions are the controllers' own. What machines do is as simple as can be: those that were
just made, or are on their way, come up; those being deleted go; what is broken stays broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar, final

import msgspec
import orjson

from mcm.api.codec import decode_object, read_object, to_json_object
from mcm.api.core import Node
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINES,
    CurrentStatus,
    Machine,
    MachineDeployment,
    MachinePhase,
    MachineSet,
)
from mcm.api.meta import JSONObject, ObjectMeta, Resource
from mcm.api.names import LABEL_CANDIDATE_FOR_UPDATE, LABEL_SELECTED_FOR_UPDATE, PRESERVE_AUTO
from mcm.api.patches import merged
from mcm.controllers.deployment.decision import Decision
from mcm.controllers.deployment.fleet import DeploymentSnapshot, by_age
from mcm.controllers.deployment.in_place_update.standing import Standing, UpdateView
from mcm.controllers.deployment.in_place_update.transfer import transfer_change, unpinned
from mcm.controllers.deployment.sets.wanted import completed_sets, new_set, wanted_sets
from mcm.controllers.deployment.sizes.bounds import recorded_bounds
from mcm.controllers.machineset.machine_template import new_machine
from mcm.controllers.machineset.preservation.budget import Subject, annotation, budget_of
from mcm.controllers.machineset.preservation.protection import protected_until
from mcm.controllers.machineset.scaling import leaving, plan
from mcm.controllers.replicas.availability import available_from, is_available, min_ready_of
from mcm.controllers.replicas.membership import is_failed, is_terminating

PRESERVE_TIMEOUT: Final = timedelta(days=3)
"""How long a failed machine is kept that asks for it and names no time of its own, as without the
flag: a file does not say with which flags its manager runs."""

_ON_ITS_WAY: Final = frozenset({"", MachinePhase.PENDING})
_BEING_UPDATED: Final = frozenset({Standing.UNDER_WAY, Standing.UPDATED})
_TICK: Final = timedelta(seconds=1)

K = TypeVar("K", Machine, MachineDeployment)


@final
@dataclass(frozen=True, slots=True)
class Resize:
    """A set that gets another size; one that is created had none before."""

    set: str
    before: int | None
    after: int


@final
@dataclass(frozen=True, slots=True)
class Wait:
    """What has to happen before the next step: machines come up, go, or are updated in place."""

    coming: int = 0
    going: int = 0
    updating: int = 0


@final
@dataclass(slots=True)
class SetActs:
    """What sets do about their sizes: machines made and deleted, each by the name of its set."""

    created: dict[str, int] = field(default_factory=dict)
    deleted: dict[str, list[Machine]] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.created or self.deleted)


@final
class Model:
    """How it all is at ``now``; ``seen`` is where it begins.

    ``new_machines_fail`` supposes that nothing which is made from now on ever comes up, and no
    update in place ever ends.
    """

    def __init__(
        self, seen: DeploymentSnapshot, now: datetime, *, new_machines_fail: bool = False
    ) -> None:
        self.now = now
        self.deployment = seen.deployment
        self._sets = {s.metadata.uid: s for s in seen.sets}
        self._machines = {
            s.metadata.uid: {m.metadata.name: m for m in seen.machines[s.metadata.uid]}
            for s in seen.sets
        }
        self._real = {m.metadata.name for m in self.machines()}
        self._new_machines_fail = new_machines_fail
        self._made = 0
        self._selected: set[str] = set()

    # ---- looking ---------------------------------------------------------------------------------

    def snapshot(self) -> DeploymentSnapshot:
        machines = {uid: tuple(owned.values()) for uid, owned in self._machines.items()}
        return DeploymentSnapshot.of(self.deployment, by_age(self._sets.values()), machines)

    def look(self) -> DeploymentSnapshot:
        """Return the snapshot to decide by, which counts who is being updated in place."""
        snapshot = self.snapshot()
        return UpdateView.of(snapshot, self._node_of).counted()

    def _node_of(self, machine: Machine) -> Node:
        """Return a Node as a machine would have one: nothing of it is known but what the model has
        written there. A machine in the middle of an update shows that by its phase."""
        asked = machine.metadata.name in self._selected
        labels = dict.fromkeys((LABEL_CANDIDATE_FOR_UPDATE, LABEL_SELECTED_FOR_UPDATE), "true")
        return Node(metadata=ObjectMeta(name=machine.node_name, labels=labels if asked else {}))

    def machines(self) -> Iterator[Machine]:
        for owned in self._machines.values():
            yield from owned.values()

    def machine(self, name: str) -> Machine | None:
        return next((m for m in self.machines() if m.metadata.name == name), None)

    def is_real(self, machine: Machine) -> bool:
        """Tell whether the machine exists, and is not one that the model has made."""
        return machine.metadata.name in self._real

    def idle(self) -> Sequence[Machine]:
        """The machines that stay, and are not available."""
        return tuple(
            m
            for s in self._sets.values()
            for m in self._machines[s.metadata.uid].values()
            if not (is_terminating(m) or is_available(m, min_ready_of(s), self.now))
        )

    def serving(self) -> int:
        """Count the machines that are available, and not being updated."""
        asked = sum(m.metadata.name in self._selected for m in self.machines())
        return sum(self._available_of(uid) for uid in self._sets) - asked

    def _available_of(self, uid: str) -> int:
        min_ready = min_ready_of(self._sets[uid])
        return sum(is_available(m, min_ready, self.now) for m in self._machines[uid].values())

    # ---- the deployment --------------------------------------------------------------------------

    def change_deployment(self, change: JSONObject) -> None:
        self.deployment = _changed(MACHINE_DEPLOYMENTS, self.deployment, change)

    def change_machine(self, machine: Machine, change: JSONObject) -> None:
        for owned in self._machines.values():
            if machine.metadata.name in owned:
                owned[machine.metadata.name] = _changed(MACHINES, machine, change)

    def carry_out(self, decision: Decision) -> tuple[Resize, ...]:
        """Make and change sets, as the deployment's controller does."""
        self.now += _TICK
        snapshot = self.snapshot()
        if decision.create is not None:
            return (self._create_set(snapshot, decision.create),)
        self._selected |= decision.select
        sizes: list[Resize] = []
        view = UpdateView.of(snapshot, self._node_of)
        wanted_now = wanted_sets(snapshot, decision, self.now, marking=False, updates=view)
        for present, wanted in wanted_now:
            self._sets[present.metadata.uid] = wanted
            if wanted.spec.replicas != present.spec.replicas:
                name = present.metadata.name
                sizes.append(Resize(name, present.spec.replicas, wanted.spec.replicas))
        for machine, change in tuple(unpinned(self.snapshot())):
            self.change_machine(machine, change)
        return tuple(sizes)

    def _create_set(self, snapshot: DeploymentSnapshot, replicas: int) -> Resize:
        for present, marked in completed_sets(snapshot):
            self._sets[present.metadata.uid] = marked
        bounds = recorded_bounds(self.deployment.spec)
        made = new_set(self.deployment, snapshot.sets, replicas=replicas, bounds=bounds)
        name = made.metadata.name
        metadata = msgspec.structs.replace(
            made.metadata, uid=f"{name} (to be made)", creation_timestamp=self.now
        )
        self._sets[metadata.uid] = msgspec.structs.replace(made, metadata=metadata)
        self._machines[metadata.uid] = {}
        return Resize(name, None, replicas)

    # ---- the sets --------------------------------------------------------------------------------

    def sets_act(self) -> SetActs:
        """Let each set make and delete machines until it has what it wants, or may not."""
        acts = SetActs()
        for uid, machine_set in self._sets.items():
            if machine_set.metadata.deletion_timestamp is None:
                self._set_acts(machine_set, acts)
            else:
                self._delete(machine_set, tuple(self._machines[uid].values()), acts)
            self._report(uid)
        return acts

    def _set_acts(self, machine_set: MachineSet, acts: SetActs) -> None:
        owned = self._machines[machine_set.metadata.uid]
        while True:
            self._keep_failed(machine_set)
            machines = tuple(owned.values())
            decided = plan(
                machine_set, machines, self.now, protected_until=self._protected(machines)
            )
            for _ in range(decided.create):
                self._create_machine(machine_set)
            name = machine_set.metadata.name
            if decided.create:
                acts.created[name] = acts.created.get(name, 0) + decided.create
            elif not self._delete(machine_set, decided.delete, acts):
                if decided.withheld:
                    acts.withheld[name] = decided.withheld
                return

    def _keep_failed(self, machine_set: MachineSet) -> None:
        """Let a set keep as many Failed machines as it may, unasked."""
        machines = tuple(self._machines[machine_set.metadata.uid].values())
        budget = budget_of(
            machine_set.spec.auto_preserve_failed_machine_max,
            (Subject(machine, None) for machine in machines),
            self.now,
            preserve_timeout=PRESERVE_TIMEOUT,
            leaving={m.metadata.name for m in leaving(machine_set, machines, self.now)},
        )
        for machine in budget.candidates[: budget.room]:
            self.change_machine(machine, dict(annotation(PRESERVE_AUTO)))
        for machine in budget.release:
            self.change_machine(machine, dict(annotation(None)))

    def _protected(self, machines: Sequence[Machine]) -> Mapping[str, datetime]:
        ends = (
            (m.metadata.name, protected_until(m, None, preserve_timeout=PRESERVE_TIMEOUT))
            for m in machines
            if is_failed(m)
        )
        return {name: end for name, end in ends if end is not None}

    def _create_machine(self, machine_set: MachineSet) -> None:
        self._made += 1
        name = f"{machine_set.metadata.name} new machine {self._made}"
        machine = read_object(MACHINES, orjson.dumps(new_machine(machine_set, name)))
        machine = _in_phase(machine, MachinePhase.PENDING, self.now)
        metadata = msgspec.structs.replace(machine.metadata, creation_timestamp=self.now)
        self._machines[machine_set.metadata.uid][name] = msgspec.structs.replace(
            machine, metadata=metadata
        )

    def _delete(
        self, machine_set: MachineSet, victims: Sequence[Machine], acts: SetActs
    ) -> Sequence[Machine]:
        going = [m for m in victims if not is_terminating(m)]
        owned = self._machines[machine_set.metadata.uid]
        for machine in going:
            metadata = msgspec.structs.replace(machine.metadata, deletion_timestamp=self.now)
            owned[machine.metadata.name] = msgspec.structs.replace(machine, metadata=metadata)
        if going:
            acts.deleted.setdefault(machine_set.metadata.name, []).extend(going)
        return going

    def _report(self, uid: str) -> None:
        machine_set = self._sets[uid]
        status = msgspec.structs.replace(
            machine_set.status,
            replicas=len(self._machines[uid]),
            available_replicas=self._available_of(uid),
        )
        self._sets[uid] = msgspec.structs.replace(machine_set, status=status)

    # ---- the machines ----------------------------------------------------------------------------

    def machines_follow(self) -> Wait | None:
        """Let those on their way come up, and those being deleted go; None if there are none."""
        before = self.serving()
        self.now += _TICK
        updating = self._update_in_place()
        going = sum(map(self._let_go, tuple(self._sets)))
        self.now = max((self.now, *self._moments()))
        coming = max(0, self.serving() - before - updating)
        for uid in self._sets:
            self._report(uid)
        return Wait(coming, going, updating) if coming or going or updating else None

    def _update_in_place(self) -> int:
        """Let the updates under way succeed: their machines move to the new set, or stay in the one
        that is the new one again."""
        view = UpdateView.of(self.snapshot(), self._node_of)
        if self._new_machines_fail or not view.strategy:
            return 0
        done = [m for m in view.members.values() if m.standing in _BEING_UPDATED]
        for member in done:
            name = member.name
            target = view.destination(member) or member.owner
            machine = self._machines[member.owner.metadata.uid].pop(name)
            if target is not member.owner:
                machine = _changed(
                    MACHINES, machine, transfer_change(machine, member.owner, target)
                )
            self._machines[target.metadata.uid][name] = _in_phase(
                machine, MachinePhase.RUNNING, self.now
            )
            self._selected.discard(name)
        return len(done)

    def _let_go(self, uid: str) -> int:
        """Drop the machines that are being deleted, and with the last one a set that is, too."""
        owned = self._machines[uid]
        gone = [name for name, machine in owned.items() if is_terminating(machine)]
        for name in gone:
            del owned[name]
        if not owned and self._sets[uid].metadata.deletion_timestamp is not None:
            del self._sets[uid], self._machines[uid]
        return len(gone)

    def _moments(self) -> Iterator[datetime]:
        """Let machines come up, and yield when each that serves counts as available."""
        for uid, machine_set in self._sets.items():
            owned, min_ready = self._machines[uid], min_ready_of(machine_set)
            for name, machine in tuple(owned.items()):
                if self._comes_up(machine):
                    owned[name] = _in_phase(machine, MachinePhase.RUNNING, self.now)
                if (at := available_from(owned[name], min_ready, self.now)) is not None:
                    yield at

    def _comes_up(self, machine: Machine) -> bool:
        if self._new_machines_fail and not self.is_real(machine):
            return False
        return machine.phase in _ON_ITS_WAY


def _in_phase(machine: Machine, phase: MachinePhase, now: datetime) -> Machine:
    current = CurrentStatus(phase=phase, last_update_time=now)
    status = msgspec.structs.replace(machine.status, current_status=current)
    return msgspec.structs.replace(machine, status=status)


def _changed(resource: Resource[K], obj: K, change: JSONObject) -> K:
    return decode_object(resource, orjson.dumps(merged(to_json_object(obj), change)))
