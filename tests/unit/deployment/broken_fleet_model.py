"""The game with versions that never come up, VMs that are lost, and the machine controller's limit.

What decides is the real code: the planner, the notes on sets, and who may be given up for its
health. Clouds and users are a few lines.
"""

from __future__ import annotations

import msgspec

from mcm.api.core import NodeCondition
from mcm.api.machine import (
    CurrentStatus,
    DeploymentStrategy,
    LastOperation,
    Machine,
    MachinePhase,
    MachineSet,
    MachineStatus,
)
from mcm.api.meta import ObjectMeta
from mcm.controllers.machine.health.failure_permit import FailurePermits
from mcm.controllers.machine.health.moving_machines import MovingMachines
from mcm.controllers.machineset.scaling import plan as plan_machines
from mcm.controllers.replicas.joining import has_never_joined
from mcm.controllers.replicas.membership import is_terminating
from mcm.controllers.replicas.startup_note import note_change
from mcm.informers import Change, Store
from tests.unit.deployment.fleet_model import FleetModel

REFUSED = LastOperation(
    description="no image", error_code="InvalidArgument", state="Failed", type="Create"
)
NEVER_JOINED = LastOperation(description="did not join", state="Failed", type="Create")
UNHEALTHY = LastOperation(description="is unhealthy", state="Failed", type="HealthCheck")


class BrokenFleetModel(FleetModel):
    """``refused`` versions get no VM, those of ``lonely`` one that never joins. ``stuck`` machines
    do not leave."""

    def __init__(self, replicas: int, strategy: DeploymentStrategy) -> None:
        super().__init__(replicas, strategy)
        self.refused: set[int] = set()
        self.lonely: set[int] = set()
        self.stuck: set[str] = set()
        self.given_up: set[str] = set()

    # ---- controllers ---------------------------------------------------------------------------

    def set_acts(self, uid: str) -> bool:
        self._clock += 1
        machine_set, machines = self.sets[uid], self.machines_of(uid)
        decided = plan_machines(machine_set, machines, self.now)
        if change := note_change(machine_set, machines, decided.delete):
            self._annotate(machine_set, change["metadata"]["annotations"])  # type: ignore[index]
        for _ in range(decided.create):
            self._add_machine(uid)
        for machine in decided.delete:
            self._delete(machine)
        return bool(decided.create or decided.delete)

    def machine_moves(self, name: str) -> None:
        machine = self.machines[name]
        if is_terminating(machine):
            if name not in self.stuck:
                del self.machines[name]
        elif machine.phase == MachinePhase.UNKNOWN:
            self._give_up(machine)
        elif has_never_joined(machine) and machine.phase != MachinePhase.FAILED:
            self._comes_up(machine)

    def machine_breaks(self, name: str) -> None:
        """A VM is lost, or one that joins takes too long."""
        machine = self.machines[name]
        if is_terminating(machine) or machine.phase in (MachinePhase.FAILED, MachinePhase.UNKNOWN):
            return
        if machine.phase == MachinePhase.RUNNING:
            self._become(name, MachinePhase.UNKNOWN, UNHEALTHY, ready="Unknown")
        else:
            self._become(name, MachinePhase.FAILED, NEVER_JOINED)

    def machine_recovers(self, name: str) -> None:
        if self.machines[name].phase == MachinePhase.UNKNOWN:
            self._become(name, MachinePhase.RUNNING, LastOperation(), ready="True")

    def faults_stop(self) -> None:
        self.stuck.clear()
        for uid, machine_set in self.sets.items():
            meta = msgspec.structs.replace(machine_set.metadata, labels={})
            self.sets[uid] = msgspec.structs.replace(machine_set, metadata=meta)

    def user_freezes(self, uid: str) -> None:
        meta = msgspec.structs.replace(self.sets[uid].metadata, labels={"freeze": "True"})
        self.sets[uid] = msgspec.structs.replace(self.sets[uid], metadata=meta)

    # ---- the end -------------------------------------------------------------------------------

    def run_out(self, *, passes: int = 300) -> None:
        """Let all of it run until nothing changes but machines that come and fail in vain."""
        seen: list[object] = []
        for _ in range(passes):
            self.converge_once()
            seen.append((self.sizes(), self.available, self._waiting()))
            if len(seen) > 25 and len(set(seen[-25:])) == 1 and not self._waiting():
                return
        raise AssertionError(f"never rests: {seen[-3:]} of {self.bounds}, {self.machines}")

    def converge_once(self) -> None:
        for uid in tuple(self.sets):
            self.set_acts(uid)
        for name in tuple(self.machines):
            self.machine_moves(name)
        for uid in tuple(self.sets):
            self.set_reports(uid)
        self.deployment_acts()

    def _waiting(self) -> int:
        return sum(m.phase == MachinePhase.UNKNOWN for m in self.machines.values())

    # ---- inside --------------------------------------------------------------------------------

    def _comes_up(self, machine: Machine) -> None:
        version = int(str(self._class_of(machine)).removeprefix("class-"))
        name = machine.metadata.name
        if version in self.refused:
            late = machine.phase == MachinePhase.CRASH_LOOP_BACK_OFF and self._clock % 5 == 0
            phase = MachinePhase.FAILED if late else MachinePhase.CRASH_LOOP_BACK_OFF
            self._become(name, phase, REFUSED)
        elif version in self.lonely:
            self._become(name, MachinePhase.FAILED, NEVER_JOINED)
        else:
            self._become(name, MachinePhase.RUNNING, LastOperation(), ready="True")

    def _class_of(self, machine: Machine) -> object:
        spec = self.sets[machine.metadata.labels["set"]].spec.template.spec
        return spec["class"]["name"]  # type: ignore[index]

    def _give_up(self, machine: Machine) -> None:
        """The machine controller's decision: asks how many others of the deployment move."""
        sets: Store[MachineSet] = Store()
        for machine_set in self.sets.values():
            meta = msgspec.structs.replace(machine_set.metadata, resource_version="1")
            sets.put(msgspec.structs.replace(machine_set, metadata=meta))
        moving = MovingMachines(sets)
        for other in self.machines.values():
            moving.note(Change(None, other))
        permits = FailurePermits(unused=lambda _: None)
        if permits.may_fail(machine, moving.in_group_of(machine)):
            self.given_up.add(machine.metadata.name)
            self._become(machine.metadata.name, MachinePhase.FAILED, UNHEALTHY, ready="Unknown")

    def _become(
        self, name: str, phase: MachinePhase, done: LastOperation, *, ready: str = ""
    ) -> None:
        conditions = (NodeCondition(type="Ready", status=ready),) if ready else ()
        status = MachineStatus(
            current_status=CurrentStatus(phase=phase), last_operation=done, conditions=conditions
        )
        self.machines[name] = msgspec.structs.replace(self.machines[name], status=status)

    def _annotate(self, machine_set: MachineSet, change: dict[str, str | None]) -> None:
        kept = {**machine_set.metadata.annotations, **change}
        annotations = {key: value for key, value in kept.items() if value is not None}
        meta: ObjectMeta = msgspec.structs.replace(machine_set.metadata, annotations=annotations)
        self.sets[meta.uid] = msgspec.structs.replace(machine_set, metadata=meta)
