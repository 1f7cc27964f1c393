"""What a set does to machines: make, delete, bring up to the template, take and let go.

Each action reports its own failures as events and returns them; none stops another.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, final

from mcm.api.machine import MACHINE_SETS, MACHINES, Machine, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.templates import machine_spec_of
from mcm.client.errors import (
    AlreadyExists,
    ConnectionRefused,
    KubeError,
    NotFound,
    ProtocolError,
    ServerError,
    TransportError,
)
from mcm.controllers.fanout import fan_out
from mcm.controllers.machineset.machine_template import generated_name, new_machine
from mcm.controllers.machineset.slow_start import slow_start
from mcm.controllers.machineset.template_sync import sync_change
from mcm.controllers.machineset.unconfirmed import UnconfirmedMachines
from mcm.controllers.ownership import (
    adoption,
    children_of,
    claims_of,
    controller_reference,
    orphans_for,
    release,
)
from mcm.controllers.preconditions import for_this_object, for_this_version
from mcm.controllers.replicas.in_place_fields import NODE_TEMPLATE
from mcm.informers.store import Store
from mcm.informers.writer import Writer

if TYPE_CHECKING:
    from mcm.events import EventSink

EVENT_CREATED: Final = "SuccessfulCreate"
EVENT_NOT_CREATED: Final = "FailedCreate"
EVENT_DELETED: Final = "SuccessfulDelete"
EVENT_NOT_DELETED: Final = "FailedDelete"

Errors = Sequence[KubeError]


@final
class MachineActions:
    """All writes to Machines that a set makes; one object serves all sets."""

    def __init__(
        self,
        machines: Store[Machine],
        writer: Writer,
        events: EventSink,
        *,
        randomness: random.Random,
    ) -> None:
        self._machines = machines
        self._writer = writer
        self._events = events
        self._random = randomness
        self._unconfirmed = UnconfirmedMachines()

    # ---- creation ------------------------------------------------------------------------------

    async def create(self, machine_set: MachineSet, count: int) -> Errors:
        """Make ``count`` machines, slowly at first; return why not all, if so.

        Machines asked for earlier, whose answer never came, are asked for again by their names and
        count. So the set never gets one too many, even if answers get lost.
        """
        names = self._names_for(machine_set, count)
        errors: list[KubeError] = []

        async def create_one(number: int) -> bool:
            error = await self._create_one(machine_set, names[number])
            if error is not None:
                errors.append(error)
            return error is None

        await slow_start(count, create_one)
        return errors

    def forget(self, set_key: str) -> None:
        """The set needs no machines any more."""
        self._unconfirmed.keep_only(set_key, ())

    def unconfirmed(self, machine_set: MachineSet) -> int:
        """Return how many machines were asked for which the store does not show yet."""
        return len(self._pending(machine_set))

    def _pending(self, machine_set: MachineSet) -> Sequence[str]:
        namespace = machine_set.metadata.namespace
        return self._unconfirmed.pending(
            machine_set.metadata.key, exists=lambda name: f"{namespace}/{name}" in self._machines
        )

    def _names_for(self, machine_set: MachineSet, count: int) -> Sequence[str]:
        names = dict.fromkeys(self._pending(machine_set)[:count])
        self._unconfirmed.keep_only(machine_set.metadata.key, names)
        while len(names) < count:
            name = generated_name(machine_set, self._random)
            if f"{machine_set.metadata.namespace}/{name}" not in self._machines:
                names[name] = None
        return tuple(names)

    async def _create_one(self, machine_set: MachineSet, name: str) -> KubeError | None:
        key = machine_set.metadata.key
        try:
            await self._writer.create(
                MACHINES, new_machine(machine_set, name), namespace=machine_set.metadata.namespace
            )
        except AlreadyExists:
            # The first request did arrive: the watch will bring the machine.
            self._unconfirmed.add(key, name)
            return None
        except KubeError as error:
            if _may_have_happened(error):
                self._unconfirmed.add(key, name)
            else:
                self._unconfirmed.settle(key, name)
            note = f"Could not create machine {name}: {error}"
            self._events.event(MACHINE_SETS, machine_set, "Warning", EVENT_NOT_CREATED, note)
            return error
        self._unconfirmed.settle(key, name)
        note = f"Created machine {name}"
        self._events.event(MACHINE_SETS, machine_set, "Normal", EVENT_CREATED, note)
        return None

    # ---- deletion ------------------------------------------------------------------------------

    async def delete(self, machine_set: MachineSet, machines: Iterable[Machine]) -> Errors:
        """Delete those of ``machines`` that are not being deleted yet, all at once."""
        leaving = (m for m in machines if m.metadata.deletion_timestamp is None)
        return await fan_out(lambda m: self._delete_one(machine_set, m), leaving)

    async def _delete_one(self, machine_set: MachineSet, machine: Machine) -> None:
        meta = machine.metadata
        try:
            await self._writer.delete(MACHINES, meta.name, namespace=meta.namespace, uid=meta.uid)
        except NotFound:
            return
        except KubeError as error:
            note = f"Could not delete machine {meta.name}: {error}"
            self._events.event(MACHINE_SETS, machine_set, "Warning", EVENT_NOT_DELETED, note)
            raise
        note = f"Deleted machine {meta.name}"
        self._events.event(MACHINE_SETS, machine_set, "Normal", EVENT_DELETED, note)

    # ---- everything else -----------------------------------------------------------------------

    async def sync_templates(self, machine_set: MachineSet, machines: Iterable[Machine]) -> Errors:
        """Bring node template, configuration and class kind of ``machines`` up to the template."""
        template = machine_set.spec.template
        wanted, raw = machine_spec_of(template), template.spec.get(NODE_TEMPLATE)
        changes = ((m, sync_change(m, wanted, raw_node_template=raw)) for m in machines)
        return await fan_out(
            lambda pair: self._patch(pair[0], for_this_object(pair[0].metadata, pair[1])),
            (pair for pair in changes if pair[1]),
        )

    async def claim(self, machine_set: MachineSet) -> Errors:
        """Adopt the orphans the set selects, and release what it selects no more."""
        meta, selector = machine_set.metadata, machine_set.spec.selector
        claims = claims_of(
            meta,
            selector,
            children=children_of(self._machines, meta.uid),
            orphans=orphans_for(self._machines, selector, meta.namespace),
        )
        if claims.adopt:
            await self._prove_alive(machine_set)
        reference = controller_reference(MACHINE_SETS, meta)
        changes = [
            *((m, adoption(m.metadata, reference)) for m in claims.adopt),
            *((m, release(m.metadata, meta.uid)) for m in claims.release),
        ]
        return await fan_out(
            lambda pair: self._patch(pair[0], for_this_version(pair[0].metadata, pair[1])), changes
        )

    def owned(self, machine_set: MachineSet) -> Sequence[Machine]:
        """Return the machines that are the set's now, those on their way out included."""
        meta = machine_set.metadata
        children = children_of(self._machines, meta.uid)
        return claims_of(meta, machine_set.spec.selector, children=children, orphans=()).kept

    async def _prove_alive(self, machine_set: MachineSet) -> None:
        """Make sure the set was not deleted meanwhile: what a dead owner adopts, the garbage
        collector deletes. A patch without a change is answered with the set as it is, or refused.

        Raises Conflict if it is another set by now, or on its way out.
        """
        await self._writer.patch(
            MACHINE_SETS,
            machine_set.metadata.name,
            for_this_version(machine_set.metadata, {}),
            namespace=machine_set.metadata.namespace,
        )

    async def _patch(self, machine: Machine, patch: JSONObject) -> None:
        try:
            await self._writer.patch(
                MACHINES, machine.metadata.name, patch, namespace=machine.metadata.namespace
            )
        except NotFound:
            return  # gone: nothing is left to be patched


def _may_have_happened(error: KubeError) -> bool:
    if isinstance(error, ConnectionRefused):
        return False
    return isinstance(error, TransportError | ServerError | ProtocolError)
