"""A deployment, its sets and their machines as a game: controllers, clouds and users take turns in
any order. Decisions are the real ones; everything around them is a few lines of dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import (
    CurrentStatus,
    DeploymentStrategy,
    Machine,
    MachineDeployment,
    MachineDeploymentSpec,
    MachinePhase,
    MachineSet,
    MachineSetSpec,
    MachineSetStatus,
    MachineStatus,
    MachineTemplate,
    RollingUpdate,
)
from mcm.api.meta import LabelSelector, ObjectMeta, OwnerReference
from mcm.api.names import ANNOTATION_PRIORITY
from mcm.controllers.deployment.decision import Decision, next_step
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.sets.wanted import size_annotations, wanted_sets
from mcm.controllers.deployment.sizes.bounds import Bounds, bounds_of
from mcm.controllers.deployment.sizes.scaling import asked_for
from mcm.controllers.machineset.scaling import plan as plan_machines
from mcm.controllers.replicas.availability import serves
from mcm.controllers.replicas.membership import is_terminating

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
Number = int | str


def template(version: int) -> MachineTemplate:
    return MachineTemplate(
        metadata={"labels": {"name": "pool"}},
        spec={"class": {"kind": "MachineClass", "name": f"class-{version}"}},
    )


def rolling(surge: Number, unavailable: Number) -> DeploymentStrategy:
    block = RollingUpdate(max_surge=surge, max_unavailable=unavailable)
    return DeploymentStrategy(type="RollingUpdate", rolling_update=block)


class FleetModel:
    """``over`` is how many machines more than the limit are there because the limit fell, or
    because a failed machine leaves while its replacement comes."""

    def __init__(self, replicas: int, strategy: DeploymentStrategy, *, name: str = "pool") -> None:
        self.deployment = MachineDeployment(
            metadata=ObjectMeta(name=name, namespace="ns", uid=name, generation=1),
            spec=MachineDeploymentSpec(
                replicas=replicas,
                selector=LabelSelector(match_labels={"name": "pool"}),
                strategy=strategy,
                template=template(0),
            ),
        )
        self.sets: dict[str, MachineSet] = {}
        self.machines: dict[str, Machine] = {}
        self.failures: set[str] = set()
        self.over = 0
        self._clock = 0

    # ---- looking -------------------------------------------------------------------------------

    @property
    def bounds(self) -> Bounds:
        return bounds_of(self.deployment.spec)

    @property
    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._clock)

    def snapshot(self) -> DeploymentSnapshot:
        sets = sorted(self.sets.values(), key=lambda s: s.metadata.creation_timestamp or EPOCH)
        machines = {s.metadata.uid: self.machines_of(s.metadata.uid) for s in sets}
        return DeploymentSnapshot.of(self.deployment, sets, machines)

    def machines_of(self, uid: str) -> Sequence[Machine]:
        return [m for m in self.machines.values() if m.metadata.labels["set"] == uid]

    @property
    def available(self) -> int:
        return sum(map(serves, self.machines.values()))

    @property
    def guaranteed(self) -> int:
        return self.snapshot().fleet(self.now).guaranteed()

    @property
    def leaving_failures(self) -> int:
        return len(self.failures & self.machines.keys())

    def sizes(self) -> tuple[int, int]:
        """Replicas of all old sets together, and of the new one."""
        snapshot = self.snapshot()
        return sum(
            s.spec.replicas for s in snapshot.old
        ), snapshot.new.spec.replicas if snapshot.new else 0

    # ---- controllers ---------------------------------------------------------------------------

    def deployment_acts(self, within: Bounds | None = None) -> Decision:
        """One pass of the deployment's controller over the sets, ``within`` its own bounds or
        those that others leave it."""
        self._clock += 1
        snapshot = self.snapshot()
        decision = next_step(snapshot, self.now, within)
        if decision.create is not None:
            self._add_set(decision.create)
            return decision
        for present, wanted in wanted_sets(snapshot, decision, self.now, marking=False):
            self.sets[present.metadata.uid] = wanted
        return decision

    def set_acts(self, uid: str) -> bool:
        """One pass of a set's controller over its machines; tell whether it did anything."""
        self._clock += 1
        machine_set = self.sets[uid]
        decided = plan_machines(machine_set, self.machines_of(uid), self.now)
        for _ in range(decided.create):
            self._add_machine(uid)
        for machine in decided.delete:
            self._delete(machine)
        return bool(decided.create or decided.delete)

    def set_reports(self, uid: str) -> None:
        machine_set = self.sets[uid]
        status = MachineSetStatus(replicas=len(self.machines_of(uid)))
        self.sets[uid] = msgspec.structs.replace(machine_set, status=status)

    # ---- machines ------------------------------------------------------------------------------

    def machine_moves(self, name: str) -> None:
        """Whatever comes next for a machine: gone, or serving."""
        machine = self.machines[name]
        if is_terminating(machine):
            del self.machines[name]
        elif machine.phase != MachinePhase.FAILED:
            self._enter(name, MachinePhase.RUNNING)

    def machine_breaks(self, name: str) -> None:
        if not is_terminating(self.machines[name]):
            broken = {MachinePhase.RUNNING: MachinePhase.UNKNOWN}
            phase = broken.get(MachinePhase(self.machines[name].phase), MachinePhase.FAILED)
            self._enter(name, phase)

    # ---- users ---------------------------------------------------------------------------------

    def user_scales(self, replicas: int) -> None:
        before = self.bounds.most
        self._change(replicas=replicas)
        self.over += max(0, before - self.bounds.most)

    def user_updates(self, version: int) -> None:
        self._change(template=template(version))

    def user_changes_strategy(self, strategy: DeploymentStrategy) -> None:
        self._change(strategy=strategy)

    def user_pauses(self, *, paused: bool) -> None:
        self._change(paused=paused)

    def user_prefers(self, name: str) -> None:
        """An administrator, or the autoscaler, chooses who goes first."""
        machine = self.machines[name]
        meta = msgspec.structs.replace(machine.metadata, annotations={ANNOTATION_PRIORITY: "1"})
        self.machines[name] = msgspec.structs.replace(machine, metadata=meta)

    def settle_excess(self) -> None:
        """What was over the limit, and can be no more, is not over it any more.

        What a user asked for and was not granted yet may still come on top of it.
        """
        fleet = self.snapshot().fleet(self.now)
        if asked_for(fleet, self.bounds):
            return
        excess = fleet.potential() - self.leaving_failures - self.bounds.most
        self.over = min(self.over, max(0, excess))

    # ---- inside --------------------------------------------------------------------------------

    def _change(self, **changes: object) -> None:
        spec = msgspec.structs.replace(self.deployment.spec, **changes)
        self.deployment = msgspec.structs.replace(self.deployment, spec=spec)

    def _add_set(self, replicas: int) -> None:
        uid = f"set-{self._clock}"
        self.sets[uid] = MachineSet(
            metadata=ObjectMeta(
                name=uid,
                namespace="ns",
                uid=uid,
                creation_timestamp=self.now,
                annotations=dict(size_annotations(self.bounds)),
            ),
            spec=MachineSetSpec(replicas=replicas, template=self.deployment.spec.template),
        )

    def _add_machine(self, uid: str) -> None:
        self._clock += 1
        name = f"machine-{self._clock:06}"
        self.machines[name] = Machine(
            metadata=ObjectMeta(
                name=name,
                namespace="ns",
                uid=name,
                labels={"set": uid, "name": "pool"},
                creation_timestamp=self.now,
                owner_references=(
                    OwnerReference(
                        api_version="machine.sapcloud.io/v1alpha1",
                        kind="MachineSet",
                        name=uid,
                        uid=uid,
                        controller=True,
                    ),
                ),
            )
        )
        self._enter(name, MachinePhase.PENDING)

    def _delete(self, machine: Machine) -> None:
        name = machine.metadata.name
        if machine.phase == MachinePhase.FAILED:
            self.failures.add(name)
        meta = msgspec.structs.replace(machine.metadata, deletion_timestamp=self.now)
        self.machines[name] = msgspec.structs.replace(machine, metadata=meta)

    def _enter(self, name: str, phase: MachinePhase) -> None:
        status = MachineStatus(current_status=CurrentStatus(phase=phase))
        self.machines[name] = msgspec.structs.replace(self.machines[name], status=status)

    def is_recreating(self) -> bool:
        return defaulted_strategy(self.deployment.spec).type == "Recreate"

    # ---- convergence ---------------------------------------------------------------------------

    def converge(self) -> None:
        """Let sets and machines follow until nothing moves; the deployment stays out of it."""
        moved = True
        while moved:
            moved = False
            for uid in self.sets:
                moved |= self.set_acts(uid)
            for name in tuple(self.machines):
                before = self.machines[name]
                self.machine_moves(name)
                moved |= self.machines.get(name) != before
            for uid in self.sets:
                self.set_reports(uid)

    def finish(self, *, passes: int = 200) -> None:
        """Let everything run until the deployment has nothing left to do."""
        for _ in range(passes):
            self.converge()
            before = dict(self.sets)
            self.deployment_acts()
            if self.sets == before:
                return
        raise AssertionError(f"never settles: {self.sizes()} of {self.bounds}")
