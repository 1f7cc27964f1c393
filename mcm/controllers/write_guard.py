"""Holds back, for the key whose reconcile asks, what :mod:`.repeated_writes` finds to be repeated.

It stands before the informers' writer, where every write of a controller passes.

Who asks is known by a context variable that only the worker runtime sets, around each reconcile:
the tasks a reconcile starts inherit it, and no controller has to hand its key to every write. What
is written outside a reconcile belongs to nobody and passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar, final

import msgspec

from mcm.client.errors import KubeError
from mcm.client.requests import Call, Patch
from mcm.client.transport import Response
from mcm.client.verbs import ObjectWriter
from mcm.clock import Clock
from mcm.controllers.repeated_writes import RepeatedWrites, Repetition, Target

R = TypeVar("R")

_FIELDS_SHOWN: Final = 3
_REVERTED: Final = (
    "each time somebody changed it back: find who else claims it, and stop one of the two"
)
_UNSTEADY: Final = "always to the same: find what makes it necessary again and again"


class NotConverging(KubeError):
    """A patch was not sent, as the same was made again and again and got nowhere.

    ``retry_after`` is in seconds.
    """

    def __init__(self, note: str, *, retry_after: float) -> None:
        super().__init__(note)
        self.retry_after = retry_after


@final
@dataclass(slots=True)
class Reconcile:
    """One reconcile under way: whose; when it last got anywhere (monotonic seconds); what it wrote
    once too often, in words for people; and in how many seconds the first of the patches that were
    held back may be made."""

    writer: str
    progressed_at: float
    repeated: list[str] = field(default_factory=list)
    held_for: float | None = None


_under_way: ContextVar[Reconcile | None] = ContextVar("reconcile under way", default=None)


@contextmanager
def reconciling(writer: str, now: float) -> Iterator[Reconcile]:
    """Count what is written inside as written by ``writer``: a controller's name and a key."""
    reconcile = Reconcile(writer, now)
    token = _under_way.set(reconcile)
    try:
        yield reconcile
    finally:
        _under_way.reset(token)


def progressed(now: float) -> None:
    """Take note that the reconcile under way, if there is one, is not stuck at ``now``: a call that
    it makes, and whose length is bounded, begins or has ended."""
    if (reconcile := _under_way.get()) is not None:
        reconcile.progressed_at = now


def author() -> str:
    """Name the reconcile that this is called in, as :func:`author_of` does; empty: in none."""
    reconcile = _under_way.get()
    return reconcile.writer if reconcile is not None else ""


def author_of(controller: str, key: str) -> str:
    """Name the reconciles of a controller's key."""
    return f"{controller} {key}"


@final
class WriteGuard(ObjectWriter):
    """The verbs of ``writer``, one of which may be refused: a patch that gets nowhere."""

    def __init__(self, writer: ObjectWriter, *, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._writes = RepeatedWrites()
        self.field_manager = writer.field_manager

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        """Have ``call`` carried out; raises NotConverging if it is a patch that must wait."""
        reconcile = _under_way.get()
        if reconcile is None or call.verb != "PATCH":
            return await self._writer.perform(call, read)
        target = Target(reconcile.writer, call.about, call.namespace, call.name, call.subresource)
        patch: Patch = msgspec.json.decode(call.body)
        found = self._writes.held(target, patch, self._clock.monotonic())
        if found is not None:
            reconcile.held_for = min(found.wait, reconcile.held_for or found.wait)
            raise NotConverging(self._note(call, found), retry_after=found.wait)
        answer = await self._writer.perform(call, read)
        found = self._writes.wrote(target, _uid(call, answer), patch, self._clock.monotonic())
        if found is not None:
            reconcile.repeated.append(self._note(call, found))
        return answer

    def _note(self, call: Call, found: Repetition) -> str:
        fields = ", ".join(found.fields[:_FIELDS_SHOWN])
        if len(found.fields) > _FIELDS_SHOWN:
            fields += f" and {len(found.fields) - _FIELDS_SHOWN} more"
        kind = call.resource.kind if call.resource is not None else call.path
        since = self._clock.now() - timedelta(seconds=found.during)
        return (
            f"Set {fields} of {kind} {call.name} {found.times} times since "
            f"{since:%H:%M:%S} UTC, {_REVERTED if found.reverted else _UNSTEADY}. "
            "Tried less and less often until then"
        )


def _uid(call: Call, answer: object) -> str:
    if call.resource is None or not isinstance(answer, call.resource.type):
        return ""
    return answer.metadata.uid
