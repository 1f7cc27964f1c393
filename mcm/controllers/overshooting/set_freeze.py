"""One look at one set: counts its machines, writes its label if that is due, and tells of it."""

from __future__ import annotations

from typing import Final, final

from mcm.api.machine import MACHINE_SETS, Machine, MachineSet
from mcm.api.names import CONDITION_FROZEN, EVENT_FROZE_SET, EVENT_UNFROZE_SET
from mcm.client.verbs import ObjectWriter
from mcm.controllers.overshooting.decision import (
    Action,
    SetSeen,
    decide,
    is_frozen,
    is_unfreeze_asked,
)
from mcm.controllers.overshooting.explanation import Situation, froze, unfroze
from mcm.controllers.overshooting.forced_unfreezes import ForcedUnfreezes
from mcm.controllers.overshooting.freeze_events import FreezeEvents, Note, Reasons
from mcm.controllers.overshooting.labelling import freezing, unfreezing
from mcm.controllers.overshooting.limits import Limits, SetLimits
from mcm.controllers.overshooting.metrics import FreezeMetrics
from mcm.controllers.owning import children_of, count_children
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventSink
from mcm.informers.store import Store

_SETTLED: Final = "an unfrozen set may be frozen again then"
_PERIODIC: Final = "sets are looked at from time to time whatever happens"


@final
class SetFreeze:
    """Freezes and unfreezes sets. ``period`` is in seconds; 0: events alone bring a set back."""

    def __init__(
        self,
        *,
        sets: Store[MachineSet],
        machines: Store[Machine],
        limits: SetLimits,
        forced: ForcedUnfreezes,
        writer: ObjectWriter,
        events: EventSink,
        metrics: FreezeMetrics,
        period: float,
    ) -> None:
        self._sets = sets
        self._machines = machines
        self._limits = limits
        self._forced = forced
        self._writer = writer
        self._events = FreezeEvents(
            MACHINE_SETS, Reasons(EVENT_FROZE_SET, EVENT_UNFROZE_SET), events
        )
        self._metrics = metrics
        self._period = period

    async def reconcile(self, key: str) -> Outcome:
        """Let the label of the set ``key`` be what its machines call for. Raises what the client
        does; Conflict, if the set is not any more what was looked at."""
        machine_set = self._sets.get(key)
        if machine_set is None:
            self._forced.forget(key)
            self._events.forget(key)
            return DONE
        if machine_set.metadata.deletion_timestamp is not None:
            return DONE  # it makes no machines in any case
        limits = self._limits.of(machine_set)
        action = decide(self._seen(machine_set, limits))
        if action is Action.KEEP:
            self._observe(machine_set, limits)
        else:
            await self._carry_out(machine_set, limits, action)
        return self._look_again(key)

    def _seen(self, machine_set: MachineSet, limits: Limits | None) -> SetSeen:
        """A number tells; only what is said of it takes a look at the machines."""
        meta = machine_set.metadata
        return SetSeen(
            machines=count_children(self._machines, meta.uid),
            limits=limits,
            frozen=is_frozen(meta),
            asked=is_unfreeze_asked(meta),
            spared=self._forced.left(meta.key) > 0,
        )

    def _observe(self, machine_set: MachineSet, limits: Limits | None) -> None:
        """Tell of what others did, and of an own act that was never answered."""
        shown = any(c.type == CONDITION_FROZEN for c in machine_set.status.conditions)
        frozen = is_frozen(machine_set.metadata)
        self._events.observe(
            machine_set, self._note_on(machine_set, limits), frozen=frozen, shown=shown
        )

    async def _carry_out(
        self, machine_set: MachineSet, limits: Limits | None, action: Action
    ) -> None:
        meta = machine_set.metadata
        freeze = action is Action.FREEZE
        if is_unfreeze_asked(meta):
            self._forced.note(meta.key)
        note = self._note_on(machine_set, limits, at_once=True)
        change = freezing() if freeze else unfreezing(meta)
        await self._writer.patch(
            MACHINE_SETS, meta.name, for_this_version(meta, change), namespace=meta.namespace
        )
        if freeze or is_frozen(meta):
            self._metrics.decided(action)
            self._events.tell(machine_set, note, frozen=freeze)

    def _look_again(self, key: str) -> Outcome:
        left = self._forced.left(key)
        periodic = Outcome(self._period, _PERIODIC) if self._period else DONE
        return Outcome(left, _SETTLED).sooner(periodic) if left else periodic

    def _note_on(
        self, machine_set: MachineSet, limits: Limits | None, *, at_once: bool = False
    ) -> Note:
        """Return what tells of the set as it is when that is asked for, or as it is now."""

        def look() -> Situation:
            machines = children_of(self._machines, machine_set.metadata.uid)
            return Situation.of(machine_set, machines, limits)

        seen = look() if at_once else None

        def note(*, frozen: bool) -> str:
            situation = seen or look()
            return froze(situation) if frozen else unfroze(situation)

        return note
