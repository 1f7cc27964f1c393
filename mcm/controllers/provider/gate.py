"""The driver as the controllers call it: bounded in time, measured, with one kind of failure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar, final

from mcm.api.machine import MachineClass
from mcm.clock import Clock
from mcm.controllers.provider.metrics import DriverMetrics
from mcm.driver.codes import Code
from mcm.driver.contract import (
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    Driver,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    InitializeMachineRequest,
    InitializeMachineResponse,
    ListMachinesRequest,
    ListMachinesResponse,
)
from mcm.driver.errors import DriverError, as_driver_error

logger = logging.getLogger(__name__)

CALL_LIMIT = 900.0
"""Seconds after which a call is given up: longer than any cloud takes, shorter than for ever."""

_LONGEST_TEXT = 2048
"""Characters of an error that are shown: it ends up in the machine's status."""

R = TypeVar("R")


@final
class ProviderFailed(Exception):
    """A driver call that did not succeed.

    ``error`` is None if nothing is known of it but its text; ``text`` is what users are shown.
    """

    def __init__(self, error: DriverError | None, text: str) -> None:
        self.error = error
        self.text = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
        super().__init__(error, text)

    def __str__(self) -> str:
        return self.text

    @property
    def code(self) -> Code:
        return self.error.code if self.error else Code.UNKNOWN

    def as_driver_error(self) -> DriverError:
        """The same, for the controller runtime to log and back off."""
        return self.error or DriverError(Code.UNKNOWN, self.text)


@final
class Provider:
    """The driver's verbs. Each raises only :class:`ProviderFailed` (and CancelledError)."""

    def __init__(
        self,
        driver: Driver,
        *,
        clock: Clock,
        metrics: DriverMetrics | None = None,
        limit: float = CALL_LIMIT,
    ) -> None:
        self._driver = driver
        self._clock = clock
        self._metrics = metrics
        self._limit = limit

    async def create(self, request: CreateMachineRequest) -> CreateMachineResponse:
        call = self._driver.create_machine(request)
        return await self._measured("create_machine", request.machine_class, call)

    async def initialize(self, request: InitializeMachineRequest) -> InitializeMachineResponse:
        call = self._driver.initialize_machine(request)
        return await self._measured("initialize_machine", request.machine_class, call)

    async def delete(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        call = self._driver.delete_machine(request)
        return await self._measured("delete_machine", request.machine_class, call)

    async def status(self, request: GetMachineStatusRequest) -> GetMachineStatusResponse:
        call = self._driver.get_machine_status(request)
        return await self._measured("get_machine_status", request.machine_class, call)

    async def list(self, request: ListMachinesRequest) -> ListMachinesResponse:
        call = self._driver.list_machines(request)
        return await self._measured("list_machine", request.machine_class, call)

    async def _measured(self, verb: str, class_: MachineClass, call: Awaitable[R]) -> R:
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._limit):
                return await call
        except Exception as error:  # whatever a driver raises is told, never let through
            failure = _failure(verb, error)
            if self._metrics is not None:
                labels = (class_.provider, verb, failure.code.text)
                self._metrics.failures.labels(*labels).inc()
            raise failure from error
        finally:
            if self._metrics is not None:
                took = self._clock.monotonic() - started
                self._metrics.duration.labels(class_.provider, verb).observe(took)


def _failure(verb: str, error: Exception) -> ProviderFailed:
    known = as_driver_error(error)
    if known is None:
        logger.error("a driver raised what it must not", extra={"verb": verb}, exc_info=error)
        return ProviderFailed(None, f"{type(error).__name__}: {error}")
    return ProviderFailed(known, str(known))
