"""The record of a drain on its machine: taken up by whoever goes on, written where it says more."""

from __future__ import annotations

from typing import final

import msgspec

from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_DRAIN_RECORD
from mcm.api.timestamps import whole_seconds
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.preconditions import for_this_version
from mcm.drain.record import Record, read_record, record_text
from mcm.drain.request import DrainRequest
from mcm.events import EventType


@final
class RecordOnMachine:
    """Reads and writes the annotation."""

    def __init__(self, control: ControlCluster) -> None:
        self._control = control

    def of(self, machine: Machine, request: DrainRequest) -> Record:
        """Return what is written of this very drain. One that began at another time was another
        drain, whose record nobody took away."""
        found = read_record(machine.metadata.annotations.get(ANNOTATION_DRAIN_RECORD))
        if found.trouble:
            note = f"The drain goes on without what cannot be read: {found.trouble}"
            self._control.tell(machine, EventType.WARNING, "DrainRecordUnreadable", note)
        return _of_this_drain(found.record, request)

    async def keep(self, machine: Machine, request: DrainRequest, record: Record) -> Machine:
        """Write it if it says anything that could not be found out again and is not written."""
        found = read_record(machine.metadata.annotations.get(ANNOTATION_DRAIN_RECORD))
        if not record.says_more_than(_of_this_drain(found.record, request)):
            return machine
        return await self._write(machine, record_text(record))

    async def remove(self, machine: Machine) -> Machine:
        """Take the record of a drain that is over off a machine that lives on."""
        if ANNOTATION_DRAIN_RECORD not in machine.metadata.annotations:
            return machine
        return await self._write(machine, None)

    async def _write(self, machine: Machine, text: str | None) -> Machine:
        annotations: JSONObject = {ANNOTATION_DRAIN_RECORD: text}
        body = for_this_version(machine.metadata, {"metadata": {"annotations": annotations}})
        written = await self._control.patch(machine, body)
        # What the caller has decided of the status, and not written yet, stays decided.
        return msgspec.structs.replace(written, status=machine.status)


def _of_this_drain(record: Record, request: DrainRequest) -> Record:
    start = record.start
    if start is None or whole_seconds(start) != whole_seconds(request.start):
        return Record()
    return record
