"""One pass over one machine: see which steps are due, and let the acts do them."""

from __future__ import annotations

from typing import final

from mcm.api.machine import Machine
from mcm.api.names import MACHINE_FINALIZER
from mcm.api.validation import describe, validate_machine
from mcm.controllers.finalizers import with_finalizer
from mcm.controllers.machine import flow, last_operation, status
from mcm.controllers.machine.creation.vm import create
from mcm.controllers.machine.deletion.flow import Termination
from mcm.controllers.machine.flow import Step
from mcm.controllers.machine.health.check import tend
from mcm.controllers.machine.ports import Ports, Progress
from mcm.controllers.machine.writes import write_machine, write_status
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType


@final
class MachineReconciler:
    """Brings machines forward. Passes over the same machine never overlap; the queue sees to that.

    Raises what the API client raises, Conflict above all: then the pass is simply repeated.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._termination = Termination(ports)

    async def reconcile(self, key: str) -> Outcome:
        """Do what is due for the machine ``namespace/name``, as far as it can be done now."""
        with self._ports.places.attending(key):
            return await self._pass(key)

    async def _pass(self, key: str) -> Outcome:
        machine = self._ports.machines.get(key)
        if machine is None:
            return DONE
        outcome = DONE
        for step in flow.steps_of(machine, has_target=self._ports.target is not None):
            progress = await self._take(step, machine)
            machine, outcome = progress.machine, progress.outcome.sooner(outcome)
        return outcome

    async def _take(self, step: Step, machine: Machine) -> Progress:
        match step:
            case Step.CLAIM:
                return await self._claim(machine)
            case Step.TERMINATE:
                return await self._termination.terminate(machine)
            case Step.TEND if self._ports.target is not None:
                machine = await self._complain_if_invalid(machine)
                return await tend(self._ports, self._ports.target, machine)
            case Step.CREATE if flow.needs_creation(machine):
                return await create(self._ports, machine)
            case _:
                return Progress(machine)  # an earlier step of this pass made it needless

    async def _claim(self, machine: Machine) -> Progress:
        change = with_finalizer(machine.metadata, MACHINE_FINALIZER)
        if change is None:
            return Progress(machine)
        patch = for_this_version(machine.metadata, change)
        return Progress(await write_machine(self._ports, machine, patch))

    async def _complain_if_invalid(self, machine: Machine) -> Machine:
        """Say what is wrong with a machine that exists; that is no reason to neglect it."""
        errors = validate_machine(machine)
        if not errors or flow.needs_creation(machine):
            return machine  # the creation says it itself
        last = machine.status.last_operation
        done = last_operation.invalid(describe(errors), kind=last.type)
        if last.description == done.description:
            return machine
        self._ports.tell(machine, EventType.WARNING, "Invalid", done.description)
        wanted = status.with_operation(machine.status, done, self._ports.now())
        return await write_status(self._ports, machine, wanted)
