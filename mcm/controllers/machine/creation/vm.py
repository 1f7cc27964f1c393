"""Where a VM is made: found at the provider or created there, and initialised.

A VM that exists already, from a pass that was cut short or another implementation, is adopted.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import final

import msgspec

from mcm.api.core import NodeAddress
from mcm.api.machine import Machine, MachinePhase
from mcm.api.meta import JSONObject
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.creation import provider_answers
from mcm.controllers.machine.creation.bootstrap_token import BootstrapTokens
from mcm.controllers.machine.creation.claim import claimed
from mcm.controllers.machine.creation.deadline import AT_LEAST_TRIED_FOR, CreationTime
from mcm.controllers.machine.creation.inputs import CreationInputs
from mcm.controllers.machine.creation.provider_answers import CreationFailure, Existence
from mcm.controllers.machine.creation.shared_backoff import Hold
from mcm.controllers.machine.creation.turns import Turns
from mcm.controllers.machine.creation.user_data import user_data_for
from mcm.controllers.machine.initialization import as_uninitialized, is_initialized
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.provider import Provider, ProviderFailed
from mcm.driver.codes import Code
from mcm.driver.contract import (
    CreateMachineRequest,
    DeleteMachineRequest,
    GetMachineStatusRequest,
    InitializeMachineRequest,
)
from mcm.driver.errors import DriverError
from mcm.events import EventType

logger = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True)
class Vm:
    """What the provider tells of a machine's VM; its names only if it told them.

    ``initialized``: it says that there is nothing to initialise, or it has been done.
    ``made_with`` is the provider spec of one that was certainly made just now.
    """

    provider_id: str
    node_name: str
    addresses: tuple[NodeAddress, ...] = ()
    known_state: str = ""
    initialized: bool = True
    made_with: JSONObject | None = None


@final
@dataclass(frozen=True, slots=True)
class _NoVm:
    """``certain``: the provider said so, not that it cannot tell."""

    certain: bool


@final
class CreationIncomplete(Exception):
    """The creation got as far as it can for now; ``failure`` says why."""

    def __init__(self, failure: CreationFailure) -> None:
        self.failure = failure
        super().__init__(failure.code.text)


@final
class CreationHeld(Exception):
    """Others were refused meanwhile what the machine was about to ask for."""

    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        super().__init__(hold.refusal.text)


@final
class VMCreation:
    """The provider's side of a creation. All methods raise :class:`CreationIncomplete`."""

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster | None,
        *,
        provider: Provider,
        tokens: BootstrapTokens | None,
        time: CreationTime,
        turns: Turns,
        metrics: MachineMetrics,
    ) -> None:
        self._control = control
        self._target = target
        self._provider = provider
        self._tokens = tokens
        self._time = time
        self._turns = turns
        self._metrics = metrics

    async def ensure(self, inputs: CreationInputs) -> Vm:
        """Return the machine's VM, making it if there certainly is none yet.

        Of one that is not initialised the names may be unknown: :meth:`initialize` tells them.
        Claims the machine once the provider has answered, and raises what that write does, and
        :class:`CreationHeld`.
        """
        found = await self._find(inputs)
        inputs = replace(inputs, machine=await claimed(self._control, inputs.machine))
        if isinstance(found, _NoVm):
            made = await self._build(inputs, certainly_new=found.certain)
            return self._named(inputs.machine, made)
        return self._named(inputs.machine, found) if found.initialized else found

    async def initialize(self, inputs: CreationInputs, machine: Machine, vm: Vm) -> Vm:
        """Have ``vm`` initialised; return all that is known of it then. ``machine`` names it
        already, if it has a name and that could be written."""
        request = InitializeMachineRequest(machine, inputs.class_, inputs.credentials.data)
        try:
            done = await self._provider.initialize(request)
        except ProviderFailed as failure:
            if provider_answers.skips_initialization(failure.error):
                return self._named(machine, replace(vm, initialized=True))
            now, late = self._control.now(), self._time.is_over(machine)
            failed = provider_answers.on_initialization_error(
                machine, failure.error, failure.text, now, late=late
            )
            raise CreationIncomplete(failed) from failure
        self._metrics.initialized(machine, inputs.class_, self._control.now())
        known = replace(
            vm,
            provider_id=vm.provider_id or done.provider_id,
            node_name=vm.node_name or done.node_name,
            addresses=(*vm.addresses, *done.addresses),
            initialized=True,
        )
        return self._named(machine, known)

    def _named(self, machine: Machine, vm: Vm) -> Vm:
        """Pass ``vm`` on if the provider has named it; raise that it has not."""
        if vm.provider_id and (self._target is None or vm.node_name):
            return vm
        raise self.unusable(machine, "the provider named no provider ID or no node name")

    def unusable(self, machine: Machine, text: str) -> CreationIncomplete:
        """Return the exception that says what is wrong with the provider's answer."""
        error = DriverError(Code.INTERNAL, text)
        return self._incomplete(machine, ProviderFailed(error, str(error)))

    async def _find(self, inputs: CreationInputs) -> Vm | _NoVm:
        """Ask the provider for the machine's VM."""
        request = GetMachineStatusRequest(inputs.machine, inputs.class_, inputs.credentials.data)
        try:
            found = await self._provider.status(request, within=self._patience(inputs.machine))
        except ProviderFailed as failure:
            return self._unfound(inputs.machine, failure)
        return Vm(found.provider_id, found.node_name, found.addresses)

    def _unfound(self, machine: Machine, failure: ProviderFailed) -> Vm | _NoVm:
        recorded = machine.spec.provider_id
        match provider_answers.existence(failure.error, recorded=bool(recorded)):
            case Existence.ABSENT:
                return _NoVm(certain=failure.code is Code.NOT_FOUND)
            case Existence.ASSUMED:
                return Vm(recorded, machine.node_name)
            case Existence.UNINITIALIZED if failure.error is not None:
                # An error that came as text has no names: what is recorded must do.
                error = failure.error
                return Vm(
                    error.provider_id or recorded,
                    error.node_name or machine.node_name,
                    initialized=False,
                )
            case _:
                now, late = self._control.now(), self._time.is_over(machine)
                unclear = provider_answers.on_status_error(
                    machine, failure.error, failure.text, now, late=late
                )
                raise CreationIncomplete(unclear) from failure

    async def _build(self, inputs: CreationInputs, *, certainly_new: bool) -> Vm:
        machine = await self._recorded(inputs.machine)
        data = await user_data_for(machine, inputs.credentials.data, self._tokens)
        # Finding it and making its token took time, in which others may have been refused.
        if (hold := self._turns.hold_midway(replace(inputs, machine=machine))) is not None:
            raise CreationHeld(hold)
        try:
            request = CreateMachineRequest(machine, inputs.class_, data)
            made = await self._provider.create(request, within=self._patience(machine))
        except ProviderFailed as failure:
            raise self._incomplete(machine, failure) from failure
        self._metrics.created(machine, inputs.class_, self._control.now())
        await self._refuse_stale_node(inputs, made.provider_id, made.node_name)
        if vm := made.provider_id:
            self._control.tell(machine, EventType.NORMAL, "VMCreated", f"Created VM {vm}")
        return Vm(
            made.provider_id,
            made.node_name,
            made.addresses,
            known_state=made.last_known_state,
            initialized=False,
            # What was found rather than made may be an earlier state of the class.
            made_with=inputs.class_.provider_spec if certainly_new else None,
        )

    async def _recorded(self, machine: Machine) -> Machine:
        """See that the machine says of itself that its VM is to be initialised: this process may
        end as soon as there is one. Only one that lost its VM, or failed without, does not yet."""
        if not is_initialized(machine):
            return machine
        wanted = as_uninitialized(machine.status, self._control.now())
        return await self._control.write_status(machine, wanted)

    async def _refuse_stale_node(
        self, inputs: CreationInputs, provider_id: str, node_name: str
    ) -> None:
        """Take the VM back if an older Node bears its name: pods would run on both."""
        machine = inputs.machine
        if self._target is None or not self._target.owners.is_stale(
            node_name, machine, provider_id
        ):
            return
        spec = msgspec.structs.replace(machine.spec, provider_id=provider_id)
        stub = msgspec.structs.replace(machine, spec=spec)
        request = DeleteMachineRequest(stub, inputs.class_, inputs.credentials.data)
        try:
            await self._provider.delete(request)
        except ProviderFailed as failure:
            logger.warning(
                "a VM that would use an old node object could not be deleted",
                extra={"machine": machine.metadata.key, "cause": failure.text},
            )
        failed = provider_answers.on_stale_node(machine, self._control.now())
        raise CreationIncomplete(CreationFailure(failed, Pace.LASTING, Code.ALREADY_EXISTS))

    def _patience(self, machine: Machine) -> float | None:
        """Return the seconds an answer is of use for: the machine is given up in time even if the
        provider never answers. None: one that was given up and is tried all the same."""
        if machine.phase == MachinePhase.FAILED:
            return None
        return max(AT_LEAST_TRIED_FOR, self._time.left(machine))

    def _incomplete(self, machine: Machine, failure: ProviderFailed) -> CreationIncomplete:
        now, late = self._control.now(), self._time.is_over(machine)
        return CreationIncomplete(
            provider_answers.on_creation_error(machine, failure.error, failure.text, now, late=late)
        )
