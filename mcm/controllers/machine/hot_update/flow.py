"""Updating a machine's VM while it runs, when the provider spec of its class has changed.

Writes: what is tried, then that it is (the last operation; health and whoever else may overwrite
it), the call, what was applied, and that it was. Another attempt at the same costs no write until
something else comes of it. A failure changes nothing but what the machine says: it goes on running.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, final

from mcm.api.machine import (
    MACHINE_CLASSES,
    LastOperation,
    Machine,
    MachineClass,
    MachineStatus,
    OperationType,
)
from mcm.api.names import STATUS_FALSE
from mcm.api.validation import describe, validate_machine_class
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.backoff import Pace, pace_of
from mcm.controllers.machine.hot_update import record
from mcm.controllers.machine.hot_update.need import is_unfinished, needs_update
from mcm.controllers.machine.hot_update.pace import HotUpdatePace
from mcm.controllers.machine.hot_update.progress import HotUpdateProgress
from mcm.controllers.machine.hot_update.record import WantedSpec
from mcm.controllers.machine.own_conditions import OwnCondition, find_own, with_own, without_own
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.preconditions import for_this_object
from mcm.controllers.provider import Credentials, Places, Provider, ProviderFailed, Purpose
from mcm.controllers.runtime import DONE, Outcome
from mcm.driver.codes import Code
from mcm.driver.contract import UpdateMachineRequest
from mcm.events import EventType

logger = logging.getLogger(__name__)

_LOOK_AGAIN: Final = 300.0
"""Seconds after which a machine in line looks by itself; whoever is before it normally wakes it."""


@final
@dataclass(frozen=True, slots=True)
class _Inputs:
    """A class as it is now, and what its provider must be given."""

    class_: MachineClass
    wanted: WantedSpec
    credentials: Credentials

    @property
    def class_key(self) -> str:
        return self.class_.metadata.key

    @property
    def circumstances(self) -> Hashable:
        """What an answer of the provider depends on."""
        return self.class_.provider, self.wanted.text, self.credentials.versions

    @property
    def obstacle(self) -> str:
        """What must be mended before the provider can be asked; empty: nothing."""
        if errors := validate_machine_class(self.class_):
            return f"machine class {self.class_key} is invalid: {describe(errors)}"
        return "; ".join(self.credentials.problems)


@final
class HotUpdate:
    """Brings VMs to what their class says now. Machines come here that have a VM and live."""

    def __init__(
        self,
        control: ControlCluster,
        *,
        provider: Provider,
        places: Places,
        pace: HotUpdatePace,
        progress: HotUpdateProgress,
    ) -> None:
        self._control = control
        self._provider = provider
        self._places = places
        self._pace = pace
        self._progress = progress

    async def update(self, machine: Machine) -> Outcome:
        """Update the machine's VM if it is its turn. Raises what the writes do."""
        class_ = self._control.class_of(machine)
        if class_ is None:
            return DONE
        uid, wanted = machine.metadata.uid, self._progress.wanted_of(class_)
        if not needs_update(machine, wanted):
            self._pace.forget(uid)
            return DONE
        inputs = _Inputs(class_, wanted, self._control.credentials(class_))
        class_key = inputs.class_key
        self._pace.regard(class_key, inputs.circumstances)
        if self._pace.is_unsupported(class_key):
            return DONE
        if not self._provider.can_update:
            # A machine of which nothing is recorded is no sign that the class was changed.
            if record.last_applied(machine) is not None:
                self._pace.unsupported(uid, class_key)
                self._tell_that_it_cannot(class_)
            return DONE
        # The time for which nobody of the class was tried may be over.
        self._places.reconsider(Purpose.UPDATE)
        if (wait := self._pace.wait(uid, class_key)) > 0:
            return Outcome(after=wait, reason="back-off of the VM's update")
        with self._places.place(
            Purpose.UPDATE, machine.metadata.key, class_key=class_key
        ) as placed:
            if not placed:
                return Outcome(after=_LOOK_AGAIN, reason="waiting for others to be updated")
            if (wait := self._pace.turn(uid, class_key)) > 0:
                return Outcome(after=wait, reason="waiting for its turn to be updated")
            return await self._attempt(machine, inputs)

    async def _attempt(self, machine: Machine, inputs: _Inputs) -> Outcome:
        if inputs.obstacle:
            done = last_operation.update_blocked(inputs.obstacle)
            return await self._failed(machine, inputs, done, Pace.LASTING)
        request = _request(machine, inputs)
        announced = await self._announce(machine, inputs)
        try:
            await self._provider.update(request)
        except ProviderFailed as failure:
            machine = self._control.current(machine) or announced
            done = last_operation.update_failed(failure.text, failure.code)
            if failure.error is not None and failure.code is Code.UNIMPLEMENTED:
                return await self._unsupported(machine, inputs, done)
            return await self._failed(machine, inputs, done, pace_of(failure.error))
        self._pace.succeeded(machine.metadata.uid, inputs.class_key)
        await self._finish(self._control.current(machine) or announced, inputs)
        return DONE

    # ---- what is written and told ---------------------------------------------------------------

    async def _announce(self, machine: Machine, inputs: _Inputs) -> Machine:
        """Write what is going to be tried: if this process ends now, the next one knows."""
        begun = is_unfinished(machine) and (
            machine.status.last_operation.type == OperationType.UPDATE
        )
        changes = record.trying(machine, inputs.wanted)
        machine = await self._annotate(machine, changes)
        if begun and not changes:
            return machine
        text = f"The VM is being brought to the providerSpec of machine class {inputs.class_key}"
        wanted = self._outstanding(machine.status, "Updating", text)
        return await self._write(machine, wanted, last_operation.updating(inputs.class_key))

    async def _finish(self, machine: Machine, inputs: _Inputs) -> None:
        machine = await self._annotate(machine, record.brought_to(machine, inputs.wanted))
        wanted = without_own(machine.status, OwnCondition.PROVIDER_SPEC_APPLIED)
        done = last_operation.updated(inputs.class_key)
        machine = await self._write(machine, wanted, done)
        self._control.tell(machine, EventType.NORMAL, "VMUpdated", done.description)
        if count := self._progress.finished(inputs.class_):
            note = f"All {count} VMs are as the providerSpec says"
            self._tell_class(inputs.class_, EventType.NORMAL, "VMsUpdated", note)

    async def _failed(
        self, machine: Machine, inputs: _Inputs, done: LastOperation, pace: Pace
    ) -> Outcome:
        """Show it, then leave the VM alone for a while: if it cannot be shown, that comes first."""
        self._control.tell(machine, EventType.WARNING, "VMUpdateFailed", done.description)
        said = status.with_operation(machine.status, done, self._control.now())
        if not (
            find_own(machine.status, OwnCondition.PROVIDER_SPEC_APPLIED)
            and status.is_repetition(machine.status, said)
        ):
            reason = done.error_code or "Blocked"
            wanted = self._outstanding(machine.status, reason, done.description)
            await self._write(machine, wanted, done)
        wait = self._pace.failed(machine.metadata.uid, inputs.class_key, pace)
        return Outcome(after=wait, reason="the VM's update failed")

    async def _unsupported(self, machine: Machine, inputs: _Inputs, done: LastOperation) -> Outcome:
        """The provider touched nothing, and would touch nothing of any other machine's either."""
        machine = await self._annotate(machine, record.nothing_in_flight(machine))
        wanted = without_own(machine.status, OwnCondition.PROVIDER_SPEC_APPLIED)
        await self._write(machine, wanted, done)
        self._pace.unsupported(machine.metadata.uid, inputs.class_key)
        self._tell_that_it_cannot(inputs.class_)
        return DONE

    async def _annotate(self, machine: Machine, changes: Mapping[str, str | None]) -> Machine:
        if not changes:
            return machine
        # Not for the version seen: what others changed does not undo what was done to the VM.
        patch = for_this_object(machine.metadata, {"metadata": {"annotations": dict(changes)}})
        return await self._control.patch(machine, patch)

    async def _write(self, machine: Machine, wanted: MachineStatus, done: LastOperation) -> Machine:
        said = status.with_operation(wanted, done, self._control.now())
        return await self._control.write_status(machine, said)

    def _outstanding(self, said: MachineStatus, reason: str, message: str) -> MachineStatus:
        kind, now = OwnCondition.PROVIDER_SPEC_APPLIED, self._control.now()
        return with_own(said, kind, STATUS_FALSE, reason, message, now)

    def _tell_that_it_cannot(self, class_: MachineClass) -> None:
        note = (
            "The provider does not update VMs: a changed providerSpec reaches new machines only. "
            "To reach all, roll them over to a class of another name"
        )
        logger.warning(
            "the provider does not update VMs", extra={"machine_class": class_.metadata.key}
        )
        self._tell_class(class_, EventType.WARNING, "VMUpdateUnsupported", note)

    def _tell_class(self, class_: MachineClass, kind: EventType, reason: str, note: str) -> None:
        self._control.events.event(MACHINE_CLASSES, class_, kind, reason, note)


def _request(machine: Machine, inputs: _Inputs) -> UpdateMachineRequest:
    tried = record.in_flight(machine)
    return UpdateMachineRequest(
        machine,
        inputs.class_,
        inputs.credentials.data,
        provider_id=machine.spec.provider_id,
        last_applied_provider_spec=record.last_applied(machine),
        attempted_provider_specs=tuple(
            s for s in tried if record.canonical(s) != inputs.wanted.text
        ),
    )
