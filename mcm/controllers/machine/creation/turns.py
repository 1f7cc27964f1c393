"""Whose turn it is to be made where the provider refuses a class and zone; shown on those who wait.

The decisions are :mod:`.shared_backoff`'s; here machines become groups, answers become refusals and
holds become statuses.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import final

from mcm.api.machine import Machine, OperationState, OperationType
from mcm.api.timestamps import rfc3339
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.creation import provider_answers
from mcm.controllers.machine.creation.deadline import CreationTime
from mcm.controllers.machine.creation.inputs import CreationInputs
from mcm.controllers.machine.creation.provider_answers import CreationFailure
from mcm.controllers.machine.creation.shared_backoff import Group, Hold, Refusal, SharedBackoff
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.machine.zone import zone_of


@final
class Turns:
    """Machines whose VM is recorded take no turns: they ask for nothing new."""

    def __init__(
        self, control: ControlCluster, shared: SharedBackoff, *, time: CreationTime
    ) -> None:
        self._control = control
        self._time = time
        self._shared = shared

    def hold(self, inputs: CreationInputs) -> Hold | None:
        """Tell why the machine must wait; None if it may try, in an :meth:`attempt`."""
        group, meta = group_of(inputs), inputs.machine.metadata
        if group is None:
            return None
        return self._shared.ask(
            group, meta.uid, meta.key, self._now(), circumstances=_circumstances(inputs)
        )

    def hold_midway(self, inputs: CreationInputs) -> Hold | None:
        """Tell why the machine, in the midst of its attempt, must not ask for a VM after all."""
        group, meta = group_of(inputs), inputs.machine.metadata
        if group is None:
            return None
        return self._shared.ask_again(
            group, meta.uid, meta.key, self._now(), circumstances=_circumstances(inputs)
        )

    @contextmanager
    def attempt(self, inputs: CreationInputs) -> Iterator[None]:
        """Surround an attempt: if it ends without a word, cancelled for example, another machine
        may try."""
        try:
            yield
        finally:
            if (group := group_of(inputs)) is not None:
                self._shared.undecided(group, inputs.machine.metadata.uid, self._now())

    def not_begun(self, inputs: CreationInputs) -> None:
        """The machine may try, but must wait for a place first."""
        if (group := group_of(inputs)) is not None:
            self._shared.not_begun(group, inputs.machine.metadata.uid)

    def succeeded(self, inputs: CreationInputs) -> None:
        if (group := group_of(inputs)) is not None:
            self._shared.succeeded(group, inputs.machine.metadata.uid, self._now())

    def refused(self, inputs: CreationInputs, failure: CreationFailure) -> Hold | None:
        """Take note of a failure; None if it concerns this machine alone."""
        group, meta = group_of(inputs), inputs.machine.metadata
        if group is None:
            return None
        text = failure.status.last_operation.description
        return self._shared.refused(
            group,
            meta.uid,
            meta.key,
            self._now(),
            Refusal(failure.code, text, meta.name, self._control.now()),
            pace=failure.pace,
            circumstances=_circumstances(inputs),
        )

    def leave(self, machine: Machine) -> None:
        """The machine is not tried any more."""
        self._shared.forget(machine.metadata.uid, self._now())

    async def show(self, machine: Machine, inputs: CreationInputs, hold: Hold) -> Machine:
        """Say on ``machine`` why it waits, unless it says so: one write, however long it waits."""
        last, code = machine.status.last_operation, hold.refusal.code
        if (last.type, last.state, last.error_code) == (
            OperationType.CREATE,
            OperationState.FAILED,
            code.text,
        ):
            return machine
        control, now = self._control, self._control.now()
        until = rfc3339(self._time.end(machine))
        reason = hold_text(inputs, hold, until=until, now=rfc3339(now))
        held = last_operation.creation_held(reason, code)
        late = self._time.is_over(machine)
        return await control.write_failure(
            machine, provider_answers.on_held(machine, held, now, late=late)
        )

    def _now(self) -> float:
        return self._control.clock.monotonic()


def group_of(inputs: CreationInputs) -> Group | None:
    """Return what the machine shares refusals with; None if it shares none."""
    if inputs.machine.spec.provider_id:
        return None
    return Group(inputs.class_.metadata.key, _zone(inputs))


def _zone(inputs: CreationInputs) -> str:
    return zone_of(inputs.machine, None, inputs.class_)


def _circumstances(inputs: CreationInputs) -> Hashable:
    return inputs.class_.metadata.resource_version, inputs.credentials.versions


def hold_text(inputs: CreationInputs, hold: Hold, *, until: str, now: str) -> str:
    """Say why a machine is not tried, what it waits for, and how long at most."""
    zone, refusal = _zone(inputs), hold.refusal
    where = f"class {inputs.class_.metadata.name}" + (f" and zone {zone}" if zone else "")
    when = f"in {hold.retry_in:.0f} s" if hold.retry_in else "right now"
    return (
        f"Waiting with all machines of {where}, as machine {refusal.machine} was refused at "
        f"{rfc3339(refusal.at)}: {refusal.text.rstrip('. ')}. One of them tries again {when} "
        f"(written at {now}); once one succeeds the others follow. This one waits until {until}."
    )
