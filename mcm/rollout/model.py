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
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINES,
    CurrentStatus,
    Machine,
    MachineDeployment,
    MachinePhase,
    MachineSet,
)
from mcm.api.meta import JSONObject, Resource
from mcm.api.names import PRESERVE_AUTO
from mcm.api.patches import merged
from mcm.controllers.deployment.bounds import bounds_of
from mcm.controllers.deployment.decision import Decision
from mcm.controllers.deployment.fleet import DeploymentSnapshot, by_age
from mcm.controllers.deployment.sets import new_set, wanted_sets
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
    """What has to happen before the next step: machines come up, and go."""

    coming: int = 0
    going: int = 0


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

    ``new_machines_fail`` supposes that nothing which is made from now on ever comes up.
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

    # ---- looking ---------------------------------------------------------------------------------

    def snapshot(self) -> DeploymentSnapshot:
        machines = {uid: tuple(owned.values()) for uid, owned in self._machines.items()}
        return DeploymentSnapshot.of(self.deployment, by_age(self._sets.values()), machines)

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
        return sum(self._available_of(uid) for uid in self._sets)

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
        sizes: list[Resize] = []
        for present, wanted in wanted_sets(snapshot, decision, self.now, marking=False):
            self._sets[present.metadata.uid] = wanted
            if wanted.spec.replicas != present.spec.replicas:
                name = present.metadata.name
                sizes.append(Resize(name, present.spec.replicas, wanted.spec.replicas))
        return tuple(sizes)

    def _create_set(self, snapshot: DeploymentSnapshot, replicas: int) -> Resize:
        bounds = bounds_of(self.deployment.spec)
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
        going = sum(map(self._let_go, tuple(self._sets)))
        self.now = max((self.now, *self._moments()))
        coming = self.serving() - before
        for uid in self._sets:
            self._report(uid)
        return Wait(coming, going) if coming or going else None

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
