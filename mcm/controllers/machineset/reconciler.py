"""One pass over one MachineSet: gather, decide, act, report.

The steps do not depend on one another's luck: a machine that cannot be patched keeps no other from
being made, and the status says what went wrong before the error is raised for a retry.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, final

from mcm.api.core import Node
from mcm.api.machine import MACHINE_SETS, Machine, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import (
    MACHINE_FINALIZER,
    REASON_FAILED_CREATE,
    REASON_FAILED_DELETE,
    REASON_INVALID_SPEC,
)
from mcm.api.validation import FieldError, describe, validate_machine_set
from mcm.client.errors import Conflict, KubeError
from mcm.client.verbs import ObjectReader, ObjectWriter
from mcm.clock import Clock
from mcm.controllers.fanout import raise_together
from mcm.controllers.machineset.awaited_orphans import told
from mcm.controllers.machineset.machine_template import new_machine
from mcm.controllers.machineset.metrics import StaleMachines
from mcm.controllers.machineset.ownership import OWNERSHIP
from mcm.controllers.machineset.preservation.auto_preserver import AutoPreserver
from mcm.controllers.machineset.preservation.protection import protected_until
from mcm.controllers.machineset.scaling import ScalingPlan, leaving, plan
from mcm.controllers.machineset.status import (
    ReplicaFailure,
    rejected_status,
    status_of,
)
from mcm.controllers.machineset.template_sync import sync_templates
from mcm.controllers.node_ownership import NodeOwners
from mcm.controllers.overshooting.limits import SetLimits
from mcm.controllers.owning import ChildControl, Claimer, Ending, OwnerWriter, ending_of
from mcm.controllers.proven_classes import ProvenClasses
from mcm.controllers.replicas.availability import min_ready_of, next_available_at
from mcm.controllers.replicas.membership import is_failed, is_terminating
from mcm.controllers.replicas.startup_note import note_change
from mcm.controllers.runtime import DONE, Outcome, earliest
from mcm.events import EventSink
from mcm.informers.store import Store

_CONFIRM_AFTER: Final = 2.0
"""Seconds until a creation whose answer got lost is looked at again, should no event come."""

_ADOPT_AFTER: Final = 5.0
"""Seconds until machines are looked at again whose owner is gone: their deletion tells nobody."""
_UNSURE: Final = timedelta(minutes=1)
"""How long a machine stays of which it is not known whether it is kept; a retry comes earlier."""

Errors = Sequence[KubeError]


@final
class MachineSetReconciler:
    """Stateless but for creations (:mod:`mcm.controllers.owning`) and annotations whose answers got
    lost."""

    def __init__(
        self,
        *,
        sets: Store[MachineSet],
        machines: Store[Machine],
        proven: ProvenClasses,
        owners: NodeOwners | None,
        reader: ObjectReader,
        writer: ObjectWriter,
        events: EventSink,
        clock: Clock,
        randomness: random.Random,
        preserve_timeout: timedelta,
        max_replicas: int,
        limits: SetLimits,
        stale: StaleMachines,
    ) -> None:
        self._sets = sets
        self._proven = proven
        self._owners = owners
        self._writer = writer
        self._events = events
        self._clock = clock
        self._preserve_timeout = preserve_timeout
        self._max_replicas = max_replicas
        self._limits = limits
        self._stale = stale
        self._store = machines
        self._set_writer = OwnerWriter(MACHINE_SETS, writer)
        self._claimer = Claimer(OWNERSHIP, sets, machines, reader=reader, writer=writer)
        self._machines = ChildControl(
            OWNERSHIP, machines, writer, events, body=self._new_machine, randomness=randomness
        )
        self._preserver = AutoPreserver(writer, self._node_of, preserve_timeout=preserve_timeout)

    async def reconcile(self, key: str) -> Outcome:
        """Bring the set ``key`` one step closer to its spec. Raises what the client raises."""
        machine_set = self._sets.get(key)
        if machine_set is None:
            self._forget(key)
            return DONE
        if machine_set.metadata.deletion_timestamp is not None:
            return await self._retire(machine_set)
        problems = validate_machine_set(machine_set, max_replicas=self._max_replicas)
        if problems:
            return await self._reject(machine_set, problems)
        machine_set = await self._set_writer.keep_finalizer(machine_set, MACHINE_FINALIZER)
        return await self._manage(machine_set)

    async def _manage(self, machine_set: MachineSet) -> Outcome:
        errors = [*await self._claimer.claim(machine_set)]
        errors += await sync_templates(self._writer, machine_set, self._claimer.owned(machine_set))
        now, shields = self._clock.now(), await self._keep_failed(machine_set, errors)
        owned = self._claimer.owned(machine_set)
        shields = {**self._protected(owned), **shields}
        awaited, decided = self._decided(machine_set, shields)
        if change := note_change(machine_set, owned, decided.delete):
            machine_set = await self._set_writer.patch(machine_set, change)
        failures, failure = await self._carry_out(machine_set, decided)
        latest = self._sets.get(machine_set.metadata.key)
        if decided.delete and not failures and latest and self._asks_the_same(machine_set):
            # Who failed is replaced in the same pass: one status for both.
            also_awaited, then = self._decided(latest, shields)
            if then.create:
                awaited, decided = also_awaited, then
                failures, failure = await self._carry_out(machine_set, decided)
        failure = failure or told(machine_set, awaited, now)
        await self._report(machine_set, failure)
        raise_together(f"machine set {machine_set.metadata.key}", (*errors, *failures))
        return self._look_again(machine_set, decided)

    def _decided(
        self, machine_set: MachineSet, shields: Mapping[str, datetime]
    ) -> tuple[Sequence[Machine], ScalingPlan]:
        """Return what follows from the machines as the store shows them now, and which ones may be
        adopted soon."""
        owned, now = self._claimer.owned(machine_set), self._clock.now()
        awaited = self._awaited(machine_set, owned)
        return awaited, plan(
            machine_set, owned, now, protected_until=shields, expected=len(awaited)
        )

    async def _keep_failed(
        self, machine_set: MachineSet, errors: list[KubeError]
    ) -> Mapping[str, datetime]:
        """Keep what may be kept. Return what must not be deleted before it is known whether it is
        kept, and until when; add to ``errors`` what went wrong."""
        owned, now = self._claimer.owned(machine_set), self._clock.now()
        failed = any(map(is_failed, owned))
        going = {m.metadata.name for m in leaving(machine_set, owned, now)} if failed else ()
        kept = await self._preserver.keep(machine_set, owned, going, now)
        errors += kept.errors
        return dict.fromkeys(kept.unsure, now + _UNSURE)

    async def _carry_out(
        self, machine_set: MachineSet, decided: ScalingPlan
    ) -> tuple[Errors, ReplicaFailure | None]:
        if decided.create:
            errors = await self._machines.create(
                machine_set, decided.create, go_on=lambda: self._asks_the_same(machine_set)
            )
            reason = REASON_FAILED_CREATE
        else:
            errors = await self._machines.delete(machine_set, decided.delete)
            self._stale.count(decided.delete, self._store)
            reason = REASON_FAILED_DELETE
        return errors, _failure(reason, errors)

    def _asks_the_same(self, machine_set: MachineSet) -> bool:
        """Tell whether the set wants now what it did when the pass began: its deployment may have
        changed its size since, and counts on no more machines than that."""
        latest, seen = self._sets.get(machine_set.metadata.key), machine_set.metadata
        return latest is not None and (
            latest.metadata.uid,
            latest.metadata.generation,
            latest.metadata.deletion_timestamp,
        ) == (seen.uid, seen.generation, seen.deletion_timestamp)

    def _awaited(self, machine_set: MachineSet, owned: Sequence[Machine]) -> Sequence[Machine]:
        """Return the machines that may be adopted soon, if any are missing."""
        if sum(not is_terminating(m) for m in owned) >= machine_set.spec.replicas:
            return ()
        return self._claimer.abandoned(machine_set)

    def _new_machine(self, machine_set: MachineSet, name: str) -> JSONObject:
        """What its class has been proven for is claimed at once: it will be asked for."""
        template, namespace = machine_set.spec.template, machine_set.metadata.namespace
        return new_machine(
            machine_set, name, claimed=self._proven.has_made_a_vm(template, namespace)
        )

    def _protected(self, machines: Iterable[Machine]) -> Mapping[str, datetime]:
        """Until when each Failed machine is kept, for those that are kept at all."""
        ends = (
            (m, protected_until(m, self._node_of(m), preserve_timeout=self._preserve_timeout))
            for m in machines
            if is_failed(m)
        )
        return {machine.metadata.name: end for machine, end in ends if end is not None}

    def _node_of(self, machine: Machine) -> Node | None:
        return self._owners.own_node(machine) if self._owners is not None else None

    def _forget(self, key: str) -> None:
        self._machines.forget(key)
        self._preserver.forget(key)

    def _look_again(self, machine_set: MachineSet, decided: ScalingPlan) -> Outcome:
        """Return when something happens by time alone."""
        now, owned = self._clock.now(), self._claimer.owned(machine_set)
        unseen = decided.create and self._machines.unconfirmed(machine_set)
        ready_at = next_available_at(owned, min_ready_of(machine_set), now)
        return earliest(
            Outcome(0.0, "more is to be made, or deleted, than one pass does")
            if decided.more
            else DONE,
            Outcome(_CONFIRM_AFTER, "a created machine was not seen yet") if unseen else DONE,
            Outcome(_ADOPT_AFTER, "machines may be adopted") if decided.awaits else DONE,
            Outcome.at(decided.again_at, now, "a failed machine is preserved until then"),
            Outcome.at(ready_at, now, "a machine has been ready for long enough then"),
        )

    # ---- the end of a set, and sets that make no sense -------------------------------------------

    async def _retire(self, machine_set: MachineSet) -> Outcome:
        """Delete what the set owns, then let the set go; its spec need not be valid for that."""
        self._forget(machine_set.metadata.key)
        owned = self._claimer.owned(machine_set)
        match ending_of(machine_set.metadata, MACHINE_FINALIZER, owned):
            case Ending.OVER:
                pass
            case Ending.LET_GO:
                await self._set_writer.let_go(machine_set, MACHINE_FINALIZER)
            case Ending.DELETE_CHILDREN:
                # As they were seen: they may be nobody's by now, and are not to go then.
                errors = await self._machines.delete(machine_set, owned, unchanged=True)
                told_of = [error for error in errors if not isinstance(error, Conflict)]
                await self._report(machine_set, _failure(REASON_FAILED_DELETE, told_of))
                raise_together(f"machine set {machine_set.metadata.key}", errors)
        return DONE

    async def _reject(self, machine_set: MachineSet, problems: Sequence[FieldError]) -> Outcome:
        complaint = describe(problems)
        wanted = rejected_status(machine_set, complaint, self._clock.now())
        if await self._set_writer.write_status(machine_set, wanted):
            note = f"{complaint}; nothing is done for this set before that is mended"
            self._events.event(MACHINE_SETS, machine_set, "Warning", REASON_INVALID_SPEC, note)
        return DONE

    async def _report(self, machine_set: MachineSet, failure: ReplicaFailure | None) -> None:
        """Write the status that follows from what the store shows now, own deeds included."""
        now, owned = self._clock.now(), self._claimer.owned(machine_set)
        limits = self._limits.of(machine_set)
        await self._set_writer.write_status(
            machine_set, status_of(machine_set, owned, failure, now, limits=limits)
        )


def _failure(reason: str, errors: Errors) -> ReplicaFailure | None:
    """Choose, of errors in no certain order, the same in every pass."""
    return ReplicaFailure(reason, min(map(str, errors))) if errors else None
