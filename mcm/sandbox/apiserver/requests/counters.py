"""Who asked for what, how often: the write budgets of tests, and ``/metrics``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import final

WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@final
@dataclass(frozen=True, slots=True)
class RequestKind:
    """What requests are counted by. ``resource`` is ``plural.group``, empty for what is no
    resource; ``agent`` the user agent up to its first slash; ``code`` the HTTP status."""

    verb: str
    resource: str
    subresource: str
    agent: str
    code: int


_Key = tuple[str, str, str, str, int]


@final
class RequestCounters:
    """Counts every answered request. Reads are snapshots; filters left out match anything."""

    def __init__(self) -> None:
        self._counts: Counter[_Key] = Counter()

    def record(self, verb: str, resource: str, subresource: str, agent: str, code: int) -> None:
        self._counts[verb, resource, subresource, agent, code] += 1

    def total(
        self,
        *,
        verb: str | None = None,
        resource: str | None = None,
        subresource: str | None = None,
        agent: str | None = None,
        code: int | None = None,
    ) -> int:
        wanted = (verb, resource, subresource, agent, code)
        return sum(count for key, count in self._counts.items() if _matches(key, wanted))

    def writes(self, *, resource: str | None = None, agent: str | None = None) -> int:
        """Return how many requests tried to change something, refused ones included."""
        return sum(self.total(verb=v, resource=resource, agent=agent) for v in WRITE_VERBS)

    def snapshot(self) -> dict[RequestKind, int]:
        return {RequestKind(*key): count for key, count in self._counts.items()}

    def reset(self) -> None:
        self._counts.clear()


def _matches(key: _Key, wanted: tuple[str | int | None, ...]) -> bool:
    return all(want is None or want == have for want, have in zip(wanted, key, strict=True))


def exposition(counters: RequestCounters, *, watches: int, objects: dict[str, int]) -> str:
    """Return the Prometheus text of ``/metrics``."""
    lines = [
        "# HELP apiserver_request_total Answered requests.",
        "# TYPE apiserver_request_total counter",
    ]
    for kind, count in sorted(counters.snapshot().items(), key=lambda item: str(item[0])):
        labels = (
            f'verb="{kind.verb.upper()}",resource="{kind.resource}",'
            f'subresource="{kind.subresource}",user_agent="{_escaped(kind.agent)}",'
            f'code="{kind.code}"'
        )
        lines.append(f"apiserver_request_total{{{labels}}} {count}")
    lines += [
        "# HELP apiserver_longrunning_requests Watches under way.",
        "# TYPE apiserver_longrunning_requests gauge",
        f'apiserver_longrunning_requests{{verb="WATCH"}} {watches}',
        "# HELP apiserver_storage_objects Objects kept, by resource.",
        "# TYPE apiserver_storage_objects gauge",
    ]
    lines += [
        f'apiserver_storage_objects{{resource="{name}"}} {count}'
        for name, count in sorted(objects.items())
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
