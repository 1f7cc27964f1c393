"""The driver of a process that calls no provider."""

from __future__ import annotations

from typing import final

from mcm.driver.codes import Code
from mcm.driver.contract import (
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    UnsupportedDriver,
)
from mcm.driver.errors import DriverError


@final
class AbsentDriver(UnsupportedDriver):
    """Refuses every verb: a call of one would be a mistake of ours."""

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        raise _refused()

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        raise _refused()


def _refused() -> DriverError:
    return DriverError(Code.UNIMPLEMENTED, "this process runs none of the machine controllers")
