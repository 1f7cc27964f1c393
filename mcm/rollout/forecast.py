"""What a deployment would do next, step by step, and where that would end.

The controllers' own decisions are played against a :mod:`.model`. What waits for machines waits for
all of them at once: where they come up one by one the real steps are smaller, within the same
bounds, and in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import final

from mcm.api.machine import MachineSet
from mcm.api.names import LABEL_SELECTED_FOR_UPDATE
from mcm.api.strategies import is_orchestrated_by_people
from mcm.controllers.deployment.decision import Decision, next_step
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.revisions.numbers import beyond_history
from mcm.controllers.deployment.revisions.rollback import rollback
from mcm.controllers.deployment.scale_down_marks import scale_down_marks, time_of_change
from mcm.controllers.deployment.sizes.bounds import bounds_of, must_serve, room
from mcm.controllers.overshooting.decision import is_frozen
from mcm.rollout.model import Model, Resize, SetActs, Wait
from mcm.rollout.pool import Pool
from mcm.rollout.progress import trouble_of


@final
@dataclass(frozen=True, slots=True)
class Deletion:
    """Machines of one set that go: by name those that exist already, and a number of others."""

    set: str
    names: tuple[str, ...]
    others: int = 0


@final
@dataclass(frozen=True, slots=True)
class Step:
    """What is written at once, and how many machines there are then: those leaving included, and
    those that serve. ``selects`` names machines which are to be updated in place. ``wait`` comes
    after it; without one, the next step follows at once."""

    sizes: tuple[Resize, ...] = ()
    creates: Mapping[str, int] = field(default_factory=dict)
    deletes: tuple[Deletion, ...] = ()
    note: str = ""
    selects: tuple[str, ...] = ()
    machines: int = 0
    serving: int = 0
    wait: Wait | None = None

    @property
    def is_act(self) -> bool:
        """Whether anything is written; at the very beginning there may be a wait alone."""
        return bool(self.note or self.sizes or self.creates or self.deletes or self.selects)


class Outcome(StrEnum):
    """Where the steps end."""

    COMPLETE = "complete"
    PAUSED = "paused"
    FROZEN = "frozen"
    MANUAL = "manual"
    STUCK = "stuck"


@final
@dataclass(frozen=True, slots=True)
class Ending:
    """``reasons`` say, one a line, why it is not complete; ``removed`` are the old sets that the
    limited history loses."""

    outcome: Outcome
    reasons: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@final
class Forecast:
    """Iterate over :meth:`steps` to their end, then ask for the :meth:`ending`.

    ``others`` are the other deployments of the namespace: those of the same surge pool take part of
    what it allows, and stand still here. ``new_machines_fail``: see :class:`.Model`.
    """

    def __init__(
        self,
        seen: DeploymentSnapshot,
        now: datetime,
        *,
        others: Iterable[DeploymentSnapshot] = (),
        new_machines_fail: bool = False,
    ) -> None:
        self._model = Model(seen, now, new_machines_fail=new_machines_fail)
        self.pool = Pool(seen.deployment, others, now=now)
        self._decision = Decision()
        self._withheld: Mapping[str, str] = {}

    @property
    def snapshot(self) -> DeploymentSnapshot:
        """How it all is after the steps so far."""
        return self._model.snapshot()

    def steps(self) -> Iterator[Step]:
        """Yield one step after the other until nothing happens any more.

        Raises :class:`.OutOfBounds` if the controllers would refuse the step that is due.
        """
        pending: Step | None = None
        while True:
            step = self._next()
            if step is None:
                last, pending = pending or self._counted(Step()), None
                wait = self._model.machines_follow()
                if wait is None:
                    if last.is_act:
                        yield last
                    return
                yield replace(last, wait=wait)
            else:
                if pending is not None:
                    yield pending
                pending = step

    def _next(self) -> Step | None:
        """One pass of the deployment's controller, and what its sets do about it."""
        model = self._model
        note = self._roll_back()
        self._pass_on_marks()
        snapshot = model.look()
        self._decision = next_step(snapshot, model.now, self.pool.bounds(snapshot, model.now))
        sizes = model.carry_out(self._decision)
        acts = model.sets_act()
        self._withheld = acts.withheld
        selects = tuple(sorted(self._decision.select))
        if not (note or sizes or acts or selects):
            return None
        deletes = tuple(self._deletions(acts))
        return self._counted(Step(sizes, dict(acts.created), deletes, note, selects))

    def _counted(self, step: Step) -> Step:
        machines = tuple(self._model.machines())
        return replace(step, machines=len(machines), serving=self._model.serving())

    def _deletions(self, acts: SetActs) -> Iterator[Deletion]:
        for name, machines in acts.deleted.items():
            real = tuple(m.metadata.name for m in machines if self._model.is_real(m))
            yield Deletion(name, real, len(machines) - len(real))

    def _roll_back(self) -> str:
        model = self._model
        if model.deployment.spec.paused:
            return ""
        asked = rollback(model.deployment, model.snapshot().sets)
        if asked is None:
            return ""
        model.change_deployment(asked.change)
        return asked.note

    def _pass_on_marks(self) -> None:
        """Mark the machines that the autoscaler wants gone: they are deleted first."""
        model = self._model
        changed_at = time_of_change(model.snapshot().sets)
        marks = scale_down_marks(model.deployment, model.machine, model.now, changed_at=changed_at)
        for machine, change in marks.machines:
            model.change_machine(machine, change)
        if marks.change is not None:
            model.change_deployment(marks.change)

    # ---- the end ---------------------------------------------------------------------------------

    def ending(self) -> Ending:
        """Say where the steps have ended; to be asked when there are no more."""
        snapshot = self._model.snapshot()
        spec = snapshot.deployment.spec
        if self._is_complete(snapshot):
            removed = beyond_history(snapshot.old, spec.revision_history_limit)
            return Ending(Outcome.COMPLETE, removed=tuple(s.metadata.name for s in removed))
        if frozen := [s.metadata.name for s in snapshot.sets if self._is_frozen(s)]:
            reasons = (f"{name}: {self._withheld[name]}" for name in frozen)
            return Ending(Outcome.FROZEN, tuple(reasons))
        if spec.paused:
            return Ending(Outcome.PAUSED, ("the deployment is paused: only its size is changed",))
        selectable = self._model.look().in_place
        if selectable is not None and selectable.selectable and is_orchestrated_by_people(spec):
            names = ", ".join(selectable.selectable)
            why = f"people select whom to update in place, by {LABEL_SELECTED_FOR_UPDATE}: {names}"
            return Ending(Outcome.MANUAL, (why,))
        return Ending(Outcome.STUCK, tuple(self._obstacles(snapshot)))

    def _is_frozen(self, machine_set: MachineSet) -> bool:
        """Tell whether the set lacks machines that it may not make, for it is frozen."""
        return is_frozen(machine_set.metadata) and machine_set.metadata.name in self._withheld

    def _is_complete(self, snapshot: DeploymentSnapshot) -> bool:
        new, desired = snapshot.new, snapshot.deployment.spec.replicas
        if new is None or any(s.spec.replicas for s in snapshot.old):
            return False
        machines = tuple(self._model.machines())
        of_new = snapshot.machines[new.metadata.uid]
        return len(machines) == len(of_new) == desired == self._model.serving()

    def _obstacles(self, snapshot: DeploymentSnapshot) -> Iterator[str]:
        now = self._model.now
        bounds = self.pool.bounds(snapshot, now) or bounds_of(snapshot.deployment.spec)
        fleet = snapshot.fleet(now)
        if self.pool.busy:
            busy = ", ".join(self.pool.busy)
            yield f"it shares surge pool {self.pool.name}, of which these take their part: {busy}"
        if not room(fleet, bounds):
            there = fleet.potential()
            yield f"no machine may be added: there may be {bounds.most}, and there are {there}"
        if snapshot.new is not None and fleet.new is not None and fleet.new.failing:
            name = snapshot.new.metadata.name
            yield f"{name} fails to get its machines up: until it can, nothing that serves may go"
        elif (serving := fleet.guaranteed()) <= must_serve(fleet, bounds):
            yield f"none that serves may go: {bounds.least} must serve, and {serving} do"
        for machine in self._model.idle():
            yield f"{machine.metadata.name} does not serve: {trouble_of(machine)}"
