"""What an API server answered, counted by itself: ``apiserver_request_total``.

Nothing in that family says who asked. So that the manager's share is known, what the bench sent is
counted by the bench and taken off, and what no manager of machines writes (the server's own leases
and settings) is shown apart. An audit log would name everybody, but each of its lines is work for
the server that is being measured. At a server that others use too, theirs count as the manager's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, final

WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION"})
EVENTS: Final = "events"
MANAGED: Final = frozenset(
    {
        "machines",
        "machinesets",
        "machinedeployments",
        "machineclasses",
        "nodes",
        "secrets",
        "pods",
        "persistentvolumes",
        "persistentvolumeclaims",
        "volumeattachments",
    }
)
"""What a manager of machines writes, beside events and its leases."""

_SERIES = "apiserver_request_total{"
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_VERBS = {"CREATE": "POST", "UPDATE": "PUT", "APPLY": "PATCH"}
"""As the sandbox and server-side apply are counted, in HTTP's words."""


class Kind(NamedTuple):
    """What requests are counted by; ``resource`` is the plural without its group."""

    verb: str
    resource: str
    subresource: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'/' * bool(self.subresource)}{self.subresource}"

    @property
    def writes(self) -> bool:
        return self.verb in WRITES


@final
@dataclass(frozen=True)
class Counts:
    """Requests by kind; ``refused`` are those of them that failed (status 400 and above)."""

    all: Mapping[Kind, int]
    refused: Mapping[Kind, int]

    def since(self, before: Counts) -> Counts:
        return Counts(_less(self.all, before.all), _less(self.refused, before.refused))

    def without(self, sent: Mapping[Kind, int]) -> Counts:
        return Counts(_less(self.all, sent), self.refused)

    def writes(self) -> dict[Kind, int]:
        return {k: n for k, n in self.all.items() if k.writes}

    def own_writes(self) -> dict[Kind, int]:
        """Writes of what a manager keeps, events left out."""
        return {k: n for k, n in self.all.items() if k.writes and k.resource in MANAGED}

    def own_reads(self) -> dict[Kind, int]:
        return {k: n for k, n in self.all.items() if k.verb == "GET" and k.resource in MANAGED}

    def events(self) -> dict[Kind, int]:
        return {k: n for k, n in self.all.items() if k.writes and k.resource == EVENTS}

    def others(self) -> dict[Kind, int]:
        known = MANAGED | {EVENTS}
        return {k: n for k, n in self.all.items() if k.writes and k.resource not in known}

    def own_refused(self) -> int:
        return sum(n for k, n in self.refused.items() if k.writes and k.resource in MANAGED)


def read_counts(text: str) -> Counts:
    """Read a server's ``/metrics``. Watches and what concerns no resource are left out."""
    every: Counter[Kind] = Counter()
    refused: Counter[Kind] = Counter()
    for labels, count in _series(text.splitlines()):
        verb = _VERBS.get(labels["verb"], labels["verb"])
        resource = labels.get("resource", "").partition(".")[0]
        if not resource or verb in ("WATCH", "CONNECT"):
            continue
        kind = Kind(verb, resource, labels.get("subresource", ""))
        every[kind] += count
        if labels.get("code", "") >= "400":
            refused[kind] += count
    return Counts(every, refused)


def _series(lines: Iterable[str]) -> Iterable[tuple[dict[str, str], int]]:
    for line in lines:
        if line.startswith(_SERIES):
            inside, _, value = line[len(_SERIES) :].rpartition("} ")
            yield dict(_LABEL.findall(inside)), int(float(value.split()[0]))


def _less(more: Mapping[Kind, int], less: Mapping[Kind, int]) -> dict[Kind, int]:
    left = {kind: count - less.get(kind, 0) for kind, count in more.items()}
    return {kind: count for kind, count in left.items() if count > 0}
