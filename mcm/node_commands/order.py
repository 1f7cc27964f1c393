"""What a person asks of a drain by hand, and the request to the engine that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, final

from mcm.drain.record import Record
from mcm.drain.request import DrainRequest, Limits, Purpose
from mcm.drain.selection import Arrangement, RemarkKind, remarks_on
from mcm.wording import first_few

DEFAULT_TIMEOUT: Final = timedelta(hours=2)
_NAMED: Final = 3
_WITHOUT_END: Final = 10**8
"""Retries: by hand a pod is never deleted because it refuses to be evicted, but by ``force``."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """``timeout`` None: what an earlier run was given, else the default. ``force``: at its end, or
    as soon as the Node is known to be dead, pods are deleted; without, the drain ends there."""

    timeout: timedelta | None = None
    force: bool = False
    delete_unmanaged: bool = False
    """Also pods go that no controller owns, which nobody makes again."""

    @property
    def at_once(self) -> bool:
        return self.force and self.timeout == timedelta(0)

    def request(self, node: str, record: Record, now: datetime) -> DrainRequest:
        """Ask the engine. A drain that was begun before goes on: it keeps its start, and its
        deadline unless another timeout is given, which counts from now."""
        start = min(record.start or now, now)
        return DrainRequest(
            node=node,
            start=start,
            deadline=self._deadline(record, now),
            force_asked=self.at_once,
            may_force=self.force,
            purpose=Purpose.COMMAND,
            limits=Limits(retries=_WITHOUT_END),
        )

    def why_refused(self, arrangement: Arrangement) -> str:
        """Say why nothing is begun at all; empty if there is no reason."""
        lost = [r.pod for r in remarks_on(arrangement) if r.kind is RemarkKind.UNMANAGED]
        if not lost or self.delete_unmanaged:
            return ""
        names = first_few([pod.metadata.key for pod in lost], _NAMED, separator=", ")
        return (
            f"no controller owns pod {names}, so that nobody would make it again; "
            "--delete-unmanaged has such pods go, too"
        )

    def _deadline(self, record: Record, now: datetime) -> datetime:
        if self.timeout is not None:
            return now + self.timeout
        if record.start is not None and record.deadline is not None:
            return record.deadline
        return now + DEFAULT_TIMEOUT


def without_deadline(request: DrainRequest) -> DrainRequest:
    """Return the same request with all the time there is, to find out what would never end."""
    return replace(request, deadline=request.start + _ALL_THE_TIME)


_ALL_THE_TIME: Final = timedelta(days=3650)
