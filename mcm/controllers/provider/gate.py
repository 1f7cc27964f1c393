"""The driver as the controllers call it: fenced, bounded in time, with one kind of failure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast, final

from mcm.api.machine import Machine, MachineClass
from mcm.api.timestamps import rfc3339
from mcm.clock import Clock
from mcm.controllers.provider.bounded import BoundedCalls, Overdue, Runaway
from mcm.controllers.provider.failures import ProviderFailed, failed, failure_of
from mcm.controllers.provider.masking import Masks
from mcm.controllers.provider.metrics import DriverMetrics
from mcm.controllers.provider.responses import flaw_in
from mcm.controllers.write_guard import progressed
from mcm.driver.codes import Code
from mcm.driver.contract import (
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    Driver,
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
    UnsupportedDriver,
    UpdateMachineRequest,
    UpdateMachineResponse,
)
from mcm.fence import Fence
from mcm.tracing import NO_TRACES, Kind, Tracer, Value

logger = logging.getLogger(__name__)

CALL_LIMIT = 900.0
"""Seconds after which a call is given up: longer than any cloud takes, shorter than for ever."""

UPDATE_LIMIT = 120.0
"""The same for an update of a VM that runs: as long as it takes, nobody looks at its health."""

R = TypeVar(
    "R",
    CreateMachineResponse,
    InitializeMachineResponse,
    UpdateMachineResponse,
    DeleteMachineResponse,
    GetMachineStatusResponse,
    ListMachinesResponse,
    GetVolumeIDsResponse,
    GenerateMachineClassForMigrationResponse,
)


@final
@dataclass(frozen=True, slots=True)
class _Call(Generic[R]):
    """One verb to call. Calls for the same ``subject`` must not overlap."""

    verb: str
    subject: str
    machine_class: MachineClass
    secret: Mapping[str, bytes]
    promised: type[R]
    start: Callable[[], object]
    limit: float = CALL_LIMIT
    slow: Callable[[], Awaitable[None]] | None = None


@final
class Provider:
    """The driver's verbs.

    Each raises only :class:`ProviderFailed`, CancelledError if the caller is cancelled, and what
    the fence raises: before the call, or in the midst of it, which then is cancelled. What came of
    a call that was cancelled is unknown; the next leader asks the provider. ``within`` shortens, in
    seconds, how long an answer is waited for; ``slow`` is awaited while a call goes on that takes
    longer than :data:`SLOW_AFTER`, and must not raise but what the fence does.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        clock: Clock,
        fence: Fence,
        metrics: DriverMetrics | None = None,
        limit: float = CALL_LIMIT,
        tracer: Tracer = NO_TRACES,
    ) -> None:
        self._driver = driver
        self._tracer = tracer
        self._clock = clock
        self._fence = fence
        self._metrics = metrics
        self._limit = limit
        self._calls = BoundedCalls(clock=clock, fence=fence, metrics=metrics)
        self._masks = Masks()

    async def create(
        self, request: CreateMachineRequest, *, within: float | None = None
    ) -> CreateMachineResponse:
        call = _of_machine(
            "create_machine",
            request,
            CreateMachineResponse,
            lambda: self._driver.create_machine(request),
        )
        return await self._through(call if within is None else replace(call, limit=within))

    async def initialize(self, request: InitializeMachineRequest) -> InitializeMachineResponse:
        call = _of_machine(
            "initialize_machine",
            request,
            InitializeMachineResponse,
            lambda: self._driver.initialize_machine(request),
        )
        return await self._through(call)

    def is_called_for(self, machine_key: str) -> bool:
        """Tell whether a call for the machine still runs although it was given up."""
        subjects = (f"machine {machine_key}", f"volumes of machine {machine_key}")
        return any(self._calls.runaway(subject) is not None for subject in subjects)

    @property
    def can_update(self) -> bool:
        """Whether the driver has a verb of its own to update VMs; one made before there was such a
        verb has none at all."""
        verb = getattr(self._driver, "update_machine", None)
        return getattr(verb, "__func__", verb) not in (None, UnsupportedDriver.update_machine)

    async def update(self, request: UpdateMachineRequest) -> UpdateMachineResponse:
        call = _of_machine(
            "update_machine",
            request,
            UpdateMachineResponse,
            lambda: self._driver.update_machine(request),
        )
        return await self._through(replace(call, limit=UPDATE_LIMIT))

    async def delete(
        self, request: DeleteMachineRequest, *, slow: Callable[[], Awaitable[None]] | None = None
    ) -> DeleteMachineResponse:
        call = _of_machine(
            "delete_machine",
            request,
            DeleteMachineResponse,
            lambda: self._driver.delete_machine(request),
        )
        return await self._through(replace(call, slow=slow))

    async def status(
        self,
        request: GetMachineStatusRequest,
        *,
        within: float | None = None,
        slow: Callable[[], Awaitable[None]] | None = None,
    ) -> GetMachineStatusResponse:
        call = _of_machine(
            "get_machine_status",
            request,
            GetMachineStatusResponse,
            lambda: self._driver.get_machine_status(request),
        )
        limit = CALL_LIMIT if within is None else within
        return await self._through(replace(call, limit=limit, slow=slow))

    async def list(self, request: ListMachinesRequest) -> ListMachinesResponse:
        class_ = request.machine_class
        call = _Call(
            "list_machine",
            f"machine class {class_.metadata.key}",
            class_,
            request.secret,
            ListMachinesResponse,
            lambda: self._driver.list_machines(request),
        )
        return await self._through(call)

    async def volume_ids(
        self,
        request: GetVolumeIDsRequest,
        *,
        machine: Machine,
        machine_class: MachineClass,
        secret: Mapping[str, bytes],
        within: float | None = None,
    ) -> GetVolumeIDsResponse:
        """Translate the volumes of ``machine``'s pods. A call that hangs holds up no other verb:
        the machine can be deleted all the same."""
        call = _Call(
            "get_volume_ids",
            f"volumes of machine {machine.metadata.key}",
            machine_class,
            secret,
            GetVolumeIDsResponse,
            lambda: self._driver.get_volume_ids(request),
        )
        return await self._through(call if within is None else replace(call, limit=within))

    async def generate_class(
        self, request: GenerateMachineClassForMigrationRequest
    ) -> GenerateMachineClassForMigrationResponse:
        """Have a MachineClass made of an older one. A driver made before there was such a verb does
        not implement it."""
        name = "generate_machine_class_for_migration"
        verb = getattr(self._driver, name, UnsupportedDriver().generate_machine_class_for_migration)
        older = request.class_spec
        call = _Call(
            name,
            f"{older.kind} {request.machine_class.metadata.namespace}/{older.name}",
            request.machine_class,
            {},
            GenerateMachineClassForMigrationResponse,
            lambda: verb(request),
        )
        return await self._through(call)

    async def _through(self, call: _Call[R]) -> R:
        self._fence.check()
        started = self._clock.monotonic()
        progressed(started)
        provider = call.machine_class.provider
        try:
            with self._tracer.span(call.verb, _traced(call), kind=Kind.CLIENT) as span:
                answer = await self._answer(call)
                if isinstance(answer, ProviderFailed):
                    span.set("error.type", answer.code.text)
        finally:
            ended = self._clock.monotonic()
            progressed(ended)
            took = ended - started
            logger.debug(
                "driver call",
                extra={"verb": call.verb, "subject": call.subject, "seconds": round(took, 3)},
            )
            if self._metrics is not None:
                self._metrics.duration.labels(provider, call.verb).observe(took)
        if not isinstance(answer, ProviderFailed):
            return answer
        # A driver whose own requests the fence stopped says no more than that.
        self._fence.check()
        if self._metrics is not None:
            code = answer.code.text
            self._metrics.failures.labels(provider, call.verb, code).inc()
        # Not where the driver's exception is being handled: it would be in this one's traceback.
        raise answer

    async def _answer(self, call: _Call[R]) -> R | ProviderFailed:
        if runaway := self._calls.runaway(call.subject):
            return failed(Code.INTERNAL, _still_runs(runaway, call.subject))
        limit = min(self._limit, call.limit)
        try:
            task = await self._calls.run(
                call.start, verb=call.verb, subject=call.subject, limit=limit, slow=call.slow
            )
        except Overdue as overdue:
            return failed(Code.DEADLINE_EXCEEDED, _no_answer(call, limit, overdue))
        return self._answer_of(task, call)

    def _answer_of(self, task: asyncio.Task[object], call: _Call[R]) -> R | ProviderFailed:
        """Judge a call that ended by itself: nobody but the driver can have cancelled it."""
        if task.cancelled():
            cancelled = (
                f"the driver broke its contract: {call.verb} ended as if it had been cancelled"
            )
            return failed(Code.INTERNAL, cancelled)
        if error := task.exception():
            return failure_of(
                error, verb=call.verb, subject=call.subject, mask=self._masks.of(call.secret)
            )
        response = task.result()
        if flaw := flaw_in(response, call.promised):
            broken = f"the driver broke its contract: {call.verb} {flaw}"
            return failed(Code.INTERNAL, broken)
        return cast("R", response)


def _of_machine(
    verb: str,
    request: CreateMachineRequest
    | InitializeMachineRequest
    | UpdateMachineRequest
    | DeleteMachineRequest
    | GetMachineStatusRequest,
    promised: type[R],
    start: Callable[[], object],
) -> _Call[R]:
    subject = f"machine {request.machine.metadata.key}"
    return _Call(verb, subject, request.machine_class, request.secret, promised, start)


def _traced(call: _Call[R]) -> Mapping[str, Value]:
    class_ = call.machine_class
    return {
        "mcm.driver.verb": call.verb,
        "mcm.driver.subject": call.subject,
        "mcm.driver.provider": class_.provider,
        "mcm.machine_class": class_.metadata.key,
    }


def _no_answer(call: _Call[R], limit: float, overdue: Overdue) -> str:
    text = f"{call.verb} did not answer within {limit:g} s and was cancelled"
    return f"{text}, which the driver ignores" if overdue.ignores else text


def _still_runs(runaway: Runaway, subject: str) -> str:
    return (
        f"the driver broke its contract: {runaway.verb} was cancelled at "
        f"{rfc3339(runaway.since)} and still runs. The driver is asked nothing more for {subject} "
        "before that call ends; a restart of the manager ends it"
    )
