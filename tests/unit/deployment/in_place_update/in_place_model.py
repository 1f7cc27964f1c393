"""A deployment that updates in place, as a game: every write is a move of its own.

Decisions are the real ones, of the deployment, the sets and the machines. A pass of the deployment
may end before any of its writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import msgspec

from mcm.api.core import Node, NodeCondition, NodeSpec, NodeStatus
from mcm.api.machine import (
    CurrentStatus,
    DeploymentStrategy,
    InPlaceUpdate,
    Machine,
    MachinePhase,
    MachineSet,
    MachineStatus,
)
from mcm.api.meta import ObjectMeta
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    CONDITION_IN_PLACE_UPDATE,
    CORDONED_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    UPDATE_RESULT_SUCCESSFUL,
)
from mcm.controllers.deployment.decision import Decision, next_step
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.in_place_update.node_marks import bears_marks, node_update
from mcm.controllers.deployment.in_place_update.standing import UpdateView, is_locked
from mcm.controllers.deployment.in_place_update.transfer import moves, unpinned
from mcm.controllers.deployment.sets.wanted import wanted_sets
from mcm.controllers.in_place_marks import Stage, marks_of
from mcm.controllers.machine.in_place_update.decision import (
    Drain,
    DropResult,
    Enter,
    Rest,
    Say,
    Situation,
    Turn,
    Uncordon,
    decide,
)
from mcm.controllers.reachability import Reachability
from mcm.controllers.replicas.membership import is_terminating
from tests.unit.deployment.fleet_model import FleetModel, Number

FOR_EVER = 10**6


def in_place(surge: Number, unavailable: Number, how: str = "Auto") -> DeploymentStrategy:
    block = InPlaceUpdate(max_surge=surge, max_unavailable=unavailable, orchestration_type=how)
    return DeploymentStrategy(type="InPlaceUpdate", in_place_update=block)


class InPlaceModel(FleetModel):
    """``nodes`` go by their machine's name."""

    def __init__(self, replicas: int, strategy: DeploymentStrategy) -> None:
        super().__init__(replicas, strategy)
        self.nodes: dict[str, Node] = {}
        self.transfers = 0

    # ---- looking -------------------------------------------------------------------------------

    def view(self) -> UpdateView | None:
        snapshot = super().snapshot()
        in_place = snapshot.strategy == "InPlaceUpdate"
        if not in_place and not any(map(is_locked, snapshot.sets)):
            return None
        return UpdateView.of(snapshot, lambda machine: self.nodes.get(machine.metadata.name))

    def snapshot(self) -> DeploymentSnapshot:
        view = self.view()
        return super().snapshot() if view is None else view.counted()

    @property
    def serving(self) -> int:
        """Machines that run, on Nodes that take pods."""
        return sum(
            m.phase == MachinePhase.RUNNING
            and not is_terminating(m)
            and not self.nodes[name].spec.unschedulable
            for name, m in self.machines.items()
        )

    def leftovers(self) -> list[str]:
        found = [f"{n}: marks" for n, node in self.nodes.items() if bears_marks(node)]
        found += [f"{n}: cordon" for n, node in self.nodes.items() if node.spec.unschedulable]
        found += [f"{n}: pin" for n, m in self.machines.items() if _is_pinned(m)]
        return found

    # ---- the deployment's controller -----------------------------------------------------------

    def passes(self, writes: int = FOR_EVER) -> Decision | None:
        """One pass, which ends before its write number ``writes``; return what it decided."""
        self._left = writes
        decision: Decision | None = None
        for _ in self._pass():
            decision = self._decided
            self._left -= 1
            if self._left < 0:
                return decision
        return self._decided

    def deployment_acts(self, within: object = None) -> Decision:
        return self.passes() or Decision()

    def _pass(self) -> Iterator[None]:
        """Every ``yield`` stands before a write."""
        self._clock += 1
        self._decided: Decision | None = None
        yield from self._unpin(frozenset())
        view = self.view()
        for move in list(moves(view)) if view is not None else ():
            yield
            self._move(move.member.name, move.target)
        view, snapshot = self.view(), self.snapshot()
        decision = self._decided = next_step(snapshot, self.now)
        if decision.create is not None:
            yield
            self._add_set(decision.create)
            return
        for present, wanted in wanted_sets(
            snapshot, decision, self.now, marking=False, updates=view
        ):
            if wanted != present:
                yield
                self.sets[present.metadata.uid] = wanted
        yield from self._unpin(decision.settling)
        view = self.view()
        for name, member in view.members.items() if view is not None else ():
            assert view is not None
            update = node_update(view, member, select=name in decision.select)
            if update.labels or update.annotations or update.uncordons:
                yield
                self._write(
                    name,
                    labels=dict(update.labels),
                    annotations=dict(update.annotations),
                    cordon=False if update.uncordons else None,
                )

    def _unpin(self, resized: frozenset[str]) -> Iterator[None]:
        for machine, _ in list(unpinned(super().snapshot(), resized=resized)):
            yield
            self._label(machine.metadata.name, LABEL_UPDATE_RESULT, None)

    def _move(self, name: str, target: MachineSet) -> None:
        self.transfers += 1
        self._label(name, "set", target.metadata.uid)
        self._label(name, LABEL_UPDATE_RESULT, UPDATE_RESULT_SUCCESSFUL)

    # ---- machines, and whoever works on them ---------------------------------------------------

    def machine_moves(self, name: str) -> None:
        machine = self.machines[name]
        if is_terminating(machine):
            super().machine_moves(name)
            self.nodes.pop(name, None)
        elif name not in self.nodes:
            self.nodes[name] = Node(metadata=ObjectMeta(name=name, uid=name))
            self._enter(name, MachinePhase.RUNNING)
        else:
            self._machine_controller(name)

    def agent_answers(self, name: str, result: str) -> None:
        node = self.nodes.get(name)
        if node is not None and marks_of(node).stage is Stage.READY:
            self._write(name, labels={LABEL_UPDATE_RESULT: result})

    def person_selects(self, name: str) -> None:
        """They select a candidate: labels of their own, on other Nodes, stay theirs."""
        if name in self.nodes and marks_of(self.nodes[name]).candidate:
            self._write(name, labels={LABEL_SELECTED_FOR_UPDATE: "true"})

    def person_tries_again(self, name: str) -> None:
        if name in self.nodes:
            self._write(name, labels={LABEL_UPDATE_RESULT: None})

    def machine_dies(self, name: str) -> None:
        if not is_terminating(self.machines[name]):
            self._delete(self.machines[name])

    def _machine_controller(self, name: str) -> None:
        """One move of its update, then what health makes of an updated one."""
        machine, node = self.machines[name], self.nodes[name]
        marks = marks_of(node)
        updated = machine.phase == MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL
        if updated and not marks.awaits_hand_over:
            self._enter(name, MachinePhase.RUNNING)
            return
        situation = Situation(
            machine=machine,
            marks=marks,
            healthy=lambda: True,
            timeout=timedelta(days=1),
            now=self.now,
            servers=Reachability(),
            drained=node.spec.unschedulable,
        )
        match decide(situation):
            case Turn(stage):
                self._turn(name, stage)
            case Drain():
                cordoned: dict[str, str | None] = {ANNOTATION_CORDONED_BY_MCM: CORDONED_FOR_UPDATE}
                self._write(name, annotations=cordoned, cordon=True)
            case DropResult():
                self._write(name, labels={LABEL_UPDATE_RESULT: None})
            case Uncordon():
                self._write(name, annotations={ANNOTATION_CORDONED_BY_MCM: None}, cordon=False)
            case Enter(phase):
                self._enter(name, phase)
            case Rest() | Say():
                pass

    def _turn(self, name: str, stage: Stage | None) -> None:
        self._clock += 1
        kept = tuple(c for c in self.nodes[name].status.conditions if not _is_ours(c))
        if stage is not None:
            reached = NodeCondition(
                type=CONDITION_IN_PLACE_UPDATE,
                status="True",
                reason=stage.value,
                last_transition_time=self.now,
            )
            kept = (*kept, reached)
        status = NodeStatus(conditions=kept)
        self.nodes[name] = msgspec.structs.replace(self.nodes[name], status=status)

    def _enter(self, name: str, phase: MachinePhase) -> None:
        node = self.nodes.get(name)
        self._clock += 1
        status = MachineStatus(
            current_status=CurrentStatus(phase=phase, last_update_time=self.now),
            conditions=node.status.conditions if node is not None else (),
        )
        self.machines[name] = msgspec.structs.replace(self.machines[name], status=status)

    def _label(self, name: str, key: str, value: str | None) -> None:
        machine = self.machines[name]
        labels = {k: v for k, v in machine.metadata.labels.items() if k != key}
        meta = msgspec.structs.replace(
            machine.metadata, labels=labels if value is None else {**labels, key: value}
        )
        self.machines[name] = msgspec.structs.replace(machine, metadata=meta)

    def _write(
        self,
        name: str,
        *,
        labels: dict[str, str | None] | None = None,
        annotations: dict[str, str | None] | None = None,
        cordon: bool | None = None,
    ) -> None:
        node = self.nodes[name]
        meta = msgspec.structs.replace(
            node.metadata,
            labels=_merged(node.metadata.labels, labels or {}),
            annotations=_merged(node.metadata.annotations, annotations or {}),
        )
        spec = node.spec if cordon is None else NodeSpec(unschedulable=cordon)
        self.nodes[name] = msgspec.structs.replace(node, metadata=meta, spec=spec)

    # ---- the end -------------------------------------------------------------------------------

    def end(self, *, rounds: int = 400) -> None:
        """Let everybody act, with agents that succeed and people who select, until all is still."""
        for _ in range(rounds):
            before = (dict(self.sets), dict(self.machines), dict(self.nodes))
            self.passes()
            for uid in self.sets:
                self.set_acts(uid)
                self.set_reports(uid)
            for name in tuple(self.machines):
                self.machine_moves(name)
            for name, node in tuple(self.nodes.items()):
                if marks_of(node).result is None:
                    self.agent_answers(name, UPDATE_RESULT_SUCCESSFUL)
                elif marks_of(node).stage is Stage.FAILED:
                    self.person_tries_again(name)
            if before == (self.sets, self.machines, self.nodes):
                return
        raise AssertionError(f"never settles: {self.sizes()} {self.leftovers()}")


def _is_ours(condition: NodeCondition) -> bool:
    return condition.type == CONDITION_IN_PLACE_UPDATE


def _is_pinned(machine: Machine) -> bool:
    return LABEL_UPDATE_RESULT in machine.metadata.labels


def _merged(present: object, change: dict[str, str | None]) -> dict[str, str]:
    assert isinstance(present, dict)
    return {k: v for k, v in {**present, **change}.items() if v is not None}
