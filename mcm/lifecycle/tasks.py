"""The names of everything that one process runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import final


class Kind(Enum):
    """What a task is there for."""

    CHECKS = "checks"  # whether the servers can serve us at all
    MIRROR = "mirror"
    SYNC = "sync"  # ends when every mirror has seen its first list
    LEASE = "lease"  # contends, holds, renews; ends when the lease is lost
    SERVICE = "service"
    CONTROLLER = "controller"
    RELEASE = "release"


ENDS_BY_ITSELF = frozenset({Kind.CHECKS, Kind.SYNC, Kind.RELEASE})
"""All others run until they are cancelled, or their queue is shut down."""


@final
@dataclass(frozen=True, slots=True)
class TaskName:
    """Names one task. What there is only one of has no name of its own."""

    kind: Kind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}".rstrip()


@final
@dataclass(frozen=True, slots=True)
class Components:
    """What a process has of each kind, by name; the leases in their order of precedence."""

    mirrors: Sequence[str] = ()
    leases: Sequence[str] = ()
    services: Sequence[str] = ()
    controllers: Sequence[str] = ()

    def tasks(self, kind: Kind) -> Iterator[TaskName]:
        """Yield the tasks of ``kind``, in order."""
        named = {
            Kind.MIRROR: self.mirrors,
            Kind.LEASE: self.leases,
            Kind.SERVICE: self.services,
            Kind.CONTROLLER: self.controllers,
            Kind.RELEASE: self.leases,
        }
        for name in named.get(kind, ("",)):
            yield TaskName(kind, name)
