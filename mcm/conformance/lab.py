"""Calls a driver as the machine controller would, notes what it says, and cleans up behind it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, final

import msgspec

from mcm.api.machine import GROUP, ClassSpec, Machine, MachineClass, MachineSpec
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.names import LABEL_NODE
from mcm.conformance.disclosure import Overhearing, disclosed
from mcm.conformance.subject import Subject
from mcm.conformance.verdict import NotApplicable, Violation
from mcm.driver import (
    Code,
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    Driver,
    DriverError,
    GenerateMachineClassForMigrationRequest,
    GenerateMachineClassForMigrationResponse,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    GetVolumeIDsRequest,
    GetVolumeIDsResponse,
    InitializeMachineRequest,
    InitializeMachineResponse,
    ListMachinesRequest,
    ListMachinesResponse,
    UpdateMachineRequest,
    UpdateMachineResponse,
    as_driver_error,
)

logger = logging.getLogger(__name__)

CALL_LIMIT = 900.0
"""Seconds after which the machine controller cancels a call."""

R = TypeVar("R")
_LOOK = 0.5


@final
class Lab:
    """One driver, for the check of one rule. Enter it; on leaving, its VMs are deleted.

    All calls raise :class:`DriverError` as the driver does, and :class:`Violation` for what no call
    may do: other exceptions, other answers, changing its request, giving a secret away.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.driver = subject.new_driver()
        self._token = secrets.token_hex(3)
        self._made: dict[str, tuple[Machine, MachineClass]] = {}
        self._count = 0
        self._heard: list[str] = []
        self._log = Overhearing()

    def machine(self) -> Machine:
        """Return a new machine as it is before anything is known of its VM."""
        self._count += 1
        class_ = self.subject.machine_class.metadata
        return Machine(
            metadata=ObjectMeta(
                name=f"contract-{self._token}-{self._count}",
                namespace=class_.namespace or "default",
                uid=f"{self._token}-{self._count}",
            ),
            spec=MachineSpec(
                class_=ClassSpec(api_group=GROUP, kind="MachineClass", name=class_.name)
            ),
        )

    # ---- calls ----------------------------------------------------------------------------------

    async def create(
        self,
        machine: Machine,
        *,
        by: Driver | None = None,
        in_class: MachineClass | None = None,
        secret: Mapping[str, bytes] | None = None,
    ) -> CreateMachineResponse:
        class_ = in_class or self.subject.machine_class
        if class_ in (self.subject.machine_class, self.subject.neighbour):
            self._made[machine.metadata.name] = machine, class_  # whatever comes of the call
        request = CreateMachineRequest(machine, class_, self._secret(secret))
        answer = await self._call(
            (by or self.driver).create_machine, request, CreateMachineResponse
        )
        self._hear(answer.last_known_state)
        _check_identity("CreateMachine", answer.provider_id, answer.node_name)
        return answer

    async def initialize(
        self, machine: Machine, *, by: Driver | None = None
    ) -> InitializeMachineResponse:
        request = InitializeMachineRequest(machine, self.subject.machine_class, self._secret(None))
        return await self._call(
            (by or self.driver).initialize_machine, request, InitializeMachineResponse
        )

    async def status(
        self, machine: Machine, *, in_class: MachineClass | None = None
    ) -> GetMachineStatusResponse:
        class_ = in_class or self.subject.machine_class
        request = GetMachineStatusRequest(machine, class_, self._secret(None))
        return await self._call(self.driver.get_machine_status, request, GetMachineStatusResponse)

    async def delete(
        self,
        machine: Machine,
        *,
        by: Driver | None = None,
        in_class: MachineClass | None = None,
    ) -> DeleteMachineResponse:
        class_ = in_class or self.subject.machine_class
        request = DeleteMachineRequest(machine, class_, self._secret(None))
        answer = await self._call(
            (by or self.driver).delete_machine, request, DeleteMachineResponse
        )
        self._hear(answer.last_known_state)
        return answer

    async def list(self, *, in_class: MachineClass | None = None) -> Mapping[str, str]:
        """Return provider IDs with machine names, of this lab's machines only."""
        class_ = in_class or self.subject.machine_class
        request = ListMachinesRequest(class_, self._secret(None))
        answer = await self._call(self.driver.list_machines, request, ListMachinesResponse)
        return {
            provider_id: name
            for provider_id, name in answer.machines.items()
            if self._token in name or self._token in provider_id
        }

    async def update(
        self,
        machine: Machine,
        to: MachineClass,
        *,
        last_applied: MachineClass | None,
        attempted: MachineClass | None = None,
        by: Driver | None = None,
    ) -> UpdateMachineResponse:
        request = UpdateMachineRequest(
            machine,
            to,
            self._secret(None),
            provider_id=machine.spec.provider_id,
            last_applied_provider_spec=last_applied.provider_spec if last_applied else None,
            attempted_provider_specs=(attempted.provider_spec,) if attempted else (),
        )
        verb = (by or self.driver).update_machine
        return await self._call(verb, request, UpdateMachineResponse)

    async def volume_ids(self, request: GetVolumeIDsRequest) -> tuple[str, ...]:
        answer = await self._call(self.driver.get_volume_ids, request, GetVolumeIDsResponse)
        return tuple(answer.volume_ids)

    async def migrate(
        self, older: JSONObject, to: MachineClass, class_spec: ClassSpec
    ) -> MachineClass:
        request = GenerateMachineClassForMigrationRequest(older, to, class_spec)
        verb = self.driver.generate_machine_class_for_migration
        answer = await self._call(verb, request, GenerateMachineClassForMigrationResponse)
        return answer.machine_class

    # ---- what rules ask -------------------------------------------------------------------------

    async def exists(self, machine: Machine) -> bool:
        """Ask for the status. Raises NotApplicable if the driver has none."""
        try:
            await self.status(machine)
        except DriverError as error:
            match error.code:
                case Code.NOT_FOUND:
                    return False
                case Code.UNINITIALIZED:
                    return True
                case Code.UNIMPLEMENTED:
                    raise unimplemented("GetMachineStatus") from error
                case _:
                    raise
        return True

    async def listed(self, *, in_class: MachineClass | None = None) -> Mapping[str, str]:
        """List. Raises NotApplicable if the driver cannot."""
        try:
            return await self.list(in_class=in_class)
        except DriverError as error:
            if error.code is Code.UNIMPLEMENTED:
                raise unimplemented("ListMachines") from error
            raise

    async def count(self, machine: Machine) -> int:
        """Return how many VMs are listed for ``machine``."""
        return sum(name == machine.metadata.name for name in (await self.listed()).values())

    async def eventually(self, holds: Callable[[], Awaitable[bool]], violation: str) -> None:
        """Raise ``violation`` if a look, repeated while listings may lag behind, never holds."""
        clock = self.subject.clock
        deadline = clock.monotonic() + self.subject.visible_within
        while not await holds():
            if clock.monotonic() >= deadline:
                raise Violation(violation)
            await clock.sleep(_LOOK)

    # ---- inside ---------------------------------------------------------------------------------

    def _secret(self, given: Mapping[str, bytes] | None) -> Mapping[str, bytes]:
        return dict(self.subject.secret if given is None else given)

    def _hear(self, text: str) -> None:
        if text:
            self._heard.append(text)

    async def _call(
        self, verb: Callable[[Any], Awaitable[object]], request: object, kind: type[R]
    ) -> R:
        name, before = _spelled(verb.__name__), msgspec.json.encode(request)
        try:
            async with asyncio.timeout(CALL_LIMIT):
                answer = await verb(request)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():
                raise Violation(f"{name} raised CancelledError by itself") from None
            raise
        except Exception as error:
            raise self._judged(name, error) from error
        finally:
            if msgspec.json.encode(request) != before:
                raise Violation(f"{name} changed its request, which is shared with others")
        if not isinstance(answer, kind):
            raise Violation(f"{name} answered {type(answer).__name__}, not {kind.__name__}")
        return answer

    def _judged(self, verb: str, error: Exception) -> Exception:
        known = as_driver_error(error)
        self._hear(str(error))
        if known is None:
            return Violation(
                f"{verb} raised {type(error).__name__}, which tells nobody whether to try again: "
                f"raise DriverError with the code that fits"
            )
        self._hear(known.last_known_state)
        if known.code is Code.OK:
            return Violation(f"{verb} raised an error with the code OK")
        if not known.message.strip():
            return Violation(f"{verb} raised {known.code.text} without a message for people")
        return known

    def _check_disclosure(self) -> None:
        for key, _ in disclosed(self._heard, self.subject.secret):
            raise Violation(
                f"the Secret's value {key!r} stands in an error or a last known state, which "
                "end on the machine's status for everybody to read"
            )
        for key, _ in disclosed(self._log.lines, self.subject.secret):
            raise Violation(f"the Secret's value {key!r} stands in a log line")

    async def _clean_up(self) -> None:
        driver = self.subject.new_driver()
        for machine, class_ in self._made.values():
            try:
                await self.delete(machine, by=driver, in_class=class_)
            except DriverError as error:
                if error.code is not Code.NOT_FOUND:
                    raise Violation(
                        f"the VM of {machine.metadata.name} could not be deleted in the end, look "
                        f"after it: {error}"
                    ) from error
        for class_ in {id(class_): class_ for _, class_ in self._made.values()}.values():
            await self._expect_nothing_left(class_)

    async def _expect_nothing_left(self, class_: MachineClass) -> None:
        async def nothing_is_left() -> bool:
            try:
                return not await self.list(in_class=class_)
            except DriverError:
                return True  # nobody can tell

        await self.eventually(
            nothing_is_left,
            "VMs are still listed although DeleteMachine succeeded: look after them",
        )

    async def __aenter__(self) -> Lab:
        self._log.__enter__()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, _: object) -> None:
        try:
            await self._clean_up()
        except Violation as left:
            if error is None:
                raise
            error.add_note(str(left))
        finally:
            self._log.__exit__()
        if error is None or isinstance(error, NotApplicable):
            self._check_disclosure()


def recorded(machine: Machine, provider_id: str, node_name: str) -> Machine:
    """Return ``machine`` as it is once its VM was written down on it."""
    labels = {**machine.metadata.labels, LABEL_NODE: node_name}
    return msgspec.structs.replace(
        machine,
        metadata=msgspec.structs.replace(machine.metadata, labels=labels),
        spec=msgspec.structs.replace(machine.spec, provider_id=provider_id),
    )


def unimplemented(verb: str) -> NotApplicable:
    return NotApplicable(f"the driver does not implement {verb}")


def _check_identity(verb: str, provider_id: object, node_name: object) -> None:
    for field, value in (("provider_id", provider_id), ("node_name", node_name)):
        if not isinstance(value, str) or not value:
            raise Violation(f"{verb} answered without a {field}: {value!r}")


def _spelled(method: str) -> str:
    """``get_volume_ids`` as the contract spells it."""
    return "".join("IDs" if part == "ids" else part.capitalize() for part in method.split("_"))
