"""Puts our mark on sets and machines as they are made: they cost no write of their own then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar, final

import msgspec

from mcm.api.machine import MACHINE_SETS, MACHINES
from mcm.client.requests import Call
from mcm.client.transport import Response
from mcm.client.verbs import ObjectWriter
from mcm.sharding.shard import MARK

R = TypeVar("R")
_STAMPED: Final = frozenset({MACHINES.plural, MACHINE_SETS.plural})


@final
class StampingWriter(ObjectWriter):
    """The verbs of ``writer``; what it creates bears the mark of shard ``us``."""

    def __init__(self, writer: ObjectWriter, us: str) -> None:
        self._writer = writer
        self._us = us
        self.field_manager = writer.field_manager

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        if call.verb == "CREATE" and call.resource and call.resource.plural in _STAMPED:
            call = replace(call, body=_stamped(call.body, self._us))
        return await self._writer.perform(call, read)


def _stamped(body: bytes, us: str) -> bytes:
    obj: dict[str, Any] = msgspec.json.decode(body)
    metadata = obj.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), MARK: us}
    return msgspec.json.encode({**obj, "metadata": {**metadata, "annotations": annotations}})
