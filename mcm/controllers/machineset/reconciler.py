"""One pass over one MachineSet: gather, decide, act, report.

The steps do not depend on one another's luck: a machine that cannot be patched keeps no other from
being made, and the status says what went wrong before the error is raised for a retry.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, final

from mcm.api.core import Node
from mcm.api.machine import MACHINE_SETS, Machine, MachineSet, MachineSetStatus
from mcm.api.meta import JSONObject
from mcm.api.names import MACHINE_FINALIZER, REASON_FAILED_CREATE, REASON_FAILED_DELETE
from mcm.api.templates import labels_of
from mcm.api.validation import FieldError, describe, validate_machine_set
from mcm.client.errors import KubeError, NotFound
from mcm.clock import Clock
from mcm.controllers.fanout import raise_together
from mcm.controllers.finalizers import with_finalizer, without_finalizer
from mcm.controllers.machineset.machine_actions import MachineActions
from mcm.controllers.machineset.preservation import protected_until
from mcm.controllers.machineset.scaling import ScalingPlan, plan
from mcm.controllers.machineset.status import (
    REASON_INVALID_SPEC,
    ReplicaFailure,
    rejected_status,
    status_change,
    status_of,
)
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.replicas.membership import is_failed
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.store import Store
from mcm.informers.writer import Writer

if TYPE_CHECKING:
    from mcm.events import EventSink

_CONFIRM_AFTER: Final = 2.0
"""Seconds until a creation whose answer got lost is looked at again, should no event come."""

_ORPHAN_CHILDREN: Final = "orphan"
"""The garbage collector's finalizer: whoever deleted the owner asked to keep what it owns."""

Errors = Sequence[KubeError]


@final
class MachineSetReconciler:
    """Stateless but for the creations whose answers got lost (:mod:`.unconfirmed`)."""

    def __init__(
        self,
        *,
        sets: Store[MachineSet],
        machines: Store[Machine],
        nodes: Store[Node] | None,
        writer: Writer,
        events: EventSink,
        clock: Clock,
        randomness: random.Random,
        preserve_timeout: timedelta,
    ) -> None:
        self._sets = sets
        self._nodes = nodes
        self._writer = writer
        self._events = events
        self._clock = clock
        self._preserve_timeout = preserve_timeout
        self._machines = MachineActions(machines, writer, events, randomness=randomness)

    async def reconcile(self, key: str) -> Outcome:
        """Bring the set ``key`` one step closer to its spec. Raises what the client raises."""
        machine_set = self._sets.get(key)
        if machine_set is None:
            self._machines.forget(key)
            return DONE
        if machine_set.metadata.deletion_timestamp is not None:
            return await self._retire(machine_set)
        problems = validate(machine_set)
        if problems:
            return await self._reject(machine_set, problems)
        change = with_finalizer(machine_set.metadata, MACHINE_FINALIZER)
        if change is not None:
            machine_set = await self._patch(machine_set, change)
        return await self._manage(machine_set)

    async def _manage(self, machine_set: MachineSet) -> Outcome:
        errors = [*await self._machines.claim(machine_set)]
        errors += await self._machines.sync_templates(
            machine_set, self._machines.owned(machine_set)
        )
        owned, now = self._machines.owned(machine_set), self._clock.now()
        decided = plan(machine_set, owned, now, protected_until=self._protected(owned))
        failures, failure = await self._carry_out(machine_set, decided)
        await self._report(machine_set, failure)
        raise_together(f"machine set {machine_set.metadata.key}", (*errors, *failures))
        return self._look_again(machine_set, decided, now)

    async def _carry_out(
        self, machine_set: MachineSet, decided: ScalingPlan
    ) -> tuple[Errors, ReplicaFailure | None]:
        if decided.create:
            errors = await self._machines.create(machine_set, decided.create)
            reason = REASON_FAILED_CREATE
        else:
            self._machines.forget(machine_set.metadata.key)
            errors = await self._machines.delete(machine_set, decided.delete)
            reason = REASON_FAILED_DELETE
        return errors, ReplicaFailure(reason, str(errors[0])) if errors else None

    def _protected(self, machines: Iterable[Machine]) -> Mapping[str, datetime]:
        """Until when each Failed machine is kept, for those that are kept at all."""
        ends = (
            (m, protected_until(m, self._node_of(m), preserve_timeout=self._preserve_timeout))
            for m in machines
            if is_failed(m)
        )
        return {machine.metadata.name: end for machine, end in ends if end is not None}

    def _node_of(self, machine: Machine) -> Node | None:
        if self._nodes is None or not machine.node_name:
            return None
        return self._nodes.get(machine.node_name)

    def _look_again(self, machine_set: MachineSet, decided: ScalingPlan, now: datetime) -> Outcome:
        if decided.create and self._machines.unconfirmed(machine_set):
            return Outcome(_CONFIRM_AFTER, "a machine that was created has not been seen yet")
        if decided.again_at is not None:
            seconds = (decided.again_at - now).total_seconds()
            return Outcome(seconds, "a failed machine is preserved until then")
        return DONE

    # ---- the end of a set, and sets that make no sense -------------------------------------------

    async def _retire(self, machine_set: MachineSet) -> Outcome:
        """Delete what the set owns, then let the set go; its spec need not be valid for that."""
        self._machines.forget(machine_set.metadata.key)
        change = without_finalizer(machine_set.metadata, MACHINE_FINALIZER)
        if change is None:
            return DONE
        owned = self._machines.owned(machine_set)
        if not owned or _ORPHAN_CHILDREN in machine_set.metadata.finalizers:
            await self._patch(machine_set, change)
            return DONE
        errors = await self._machines.delete(machine_set, owned)
        failure = ReplicaFailure(REASON_FAILED_DELETE, str(errors[0])) if errors else None
        await self._report(machine_set, failure)
        raise_together(f"machine set {machine_set.metadata.key}", errors)
        return DONE

    async def _reject(self, machine_set: MachineSet, problems: Sequence[FieldError]) -> Outcome:
        complaint = describe(problems)
        wanted = rejected_status(machine_set, complaint, self._clock.now())
        if await self._write_status(machine_set, wanted):
            note = f"{complaint}; nothing is done for this set before that is mended"
            self._events.event(MACHINE_SETS, machine_set, "Warning", REASON_INVALID_SPEC, note)
        return DONE

    # ---- writing ---------------------------------------------------------------------------------

    async def _report(self, machine_set: MachineSet, failure: ReplicaFailure | None) -> None:
        """Write the status that follows from what the store shows now, own deeds included."""
        now, owned = self._clock.now(), self._machines.owned(machine_set)
        await self._write_status(machine_set, status_of(machine_set, owned, failure, now))

    async def _write_status(self, machine_set: MachineSet, wanted: MachineSetStatus) -> bool:
        change = status_change(machine_set.status, wanted)
        if not change:
            return False
        try:
            await self._patch(machine_set, change, subresource="status")
        except NotFound:
            return False  # deleted meanwhile: there is nobody to report to
        return True

    async def _patch(
        self, machine_set: MachineSet, change: JSONObject, *, subresource: str = ""
    ) -> MachineSet:
        meta = machine_set.metadata
        return await self._writer.patch(
            MACHINE_SETS,
            meta.name,
            for_this_version(meta, change),
            namespace=meta.namespace,
            subresource=subresource,
        )


def validate(machine_set: MachineSet) -> Sequence[FieldError]:
    """Return what is wrong with a set, beyond what validation of the object itself finds: machines
    without labels could never be recognised as the set's own."""
    problems = validate_machine_set(machine_set)
    if not problems and not labels_of(machine_set.spec.template):
        field = "spec.template.metadata.labels"
        return (FieldError(field, "must hold the labels that spec.selector selects"),)
    return problems
