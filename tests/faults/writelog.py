"""The server's own order of who held the lease and who wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast, final

from mcm.clock import SystemClock
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.apiserver.store import Change
from tests.faults.candidate import COUNTER, LEASE


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """``holder`` had the lease when ``writer`` wrote (empty: the entry is a change of holder)."""

    at: float
    holder: str
    writer: str = ""


@final
class WriteLog:
    """Listens to ``server`` from now on. Entries are in the order of the server's revisions."""

    def __init__(self, server: ApiServer) -> None:
        self.entries: list[Entry] = []
        self.holder = ""
        self._clock = SystemClock()
        server.store.subscribe(self._lease, "leases.coordination.k8s.io")
        server.store.subscribe(self._counter, "configmaps")

    def writers(self) -> list[str]:
        """Who wrote, without repetitions in a row."""
        names = [entry.writer for entry in self.entries if entry.writer]
        return [n for n, before in zip(names, ["", *names], strict=False) if n != before]

    def writes_of(self, writer: str) -> int:
        return sum(entry.writer == writer for entry in self.entries)

    def trespasses(self) -> list[Entry]:
        """Writes by somebody who did not hold the lease then."""
        return [e for e in self.entries if e.writer and e.writer != e.holder]

    def _lease(self, change: Change) -> None:
        body = cast("dict[str, Any]", change.stored.body)
        holder = str(body["spec"].get("holderIdentity") or "")
        if change.stored.name == LEASE and holder != self.holder:
            self.holder = holder
            self.entries.append(Entry(self._clock.monotonic(), holder))

    def _counter(self, change: Change) -> None:
        body = cast("dict[str, Any]", change.stored.body)
        writer = str((body.get("data") or {}).get("writer", ""))
        if change.stored.name == COUNTER and writer:
            self.entries.append(Entry(self._clock.monotonic(), self.holder, writer))
