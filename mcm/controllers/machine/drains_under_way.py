"""What is remembered of all drains under way, found by machine and by what each of them watches."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Final, final

from mcm.drain.memory import DrainMemory, Watched
from mcm.drain.watch import DrainWatch

_NOTHING: Final = Watched()


@final
@dataclass(slots=True)
class Drain:
    """What is remembered of one drain under way."""

    machine_key: str
    memory: DrainMemory
    watch: DrainWatch


@final
class DrainsUnderWay(MutableMapping[str, Drain]):
    """Drains by machine UID. Whom a budget, a claim or a volume concerns is known without asking
    each: what a drain watches is filed whenever its memory takes note of it."""

    def __init__(self) -> None:
        self._drains: dict[str, Drain] = {}
        self._filed: dict[str, Watched] = {}
        self._by_budget: dict[str, dict[str, None]] = {}
        self._by_claim: dict[str, dict[str, None]] = {}
        self._by_volume: dict[str, dict[str, None]] = {}
        self._budgets_of: dict[str, dict[str, None]] = {}

    def __getitem__(self, uid: str) -> Drain:
        return self._drains[uid]

    def __setitem__(self, uid: str, drain: Drain) -> None:
        self.pop(uid, None)
        self._drains[uid] = drain
        drain.memory.when_watched(lambda watched: self._file(uid, watched))

    def __delitem__(self, uid: str) -> None:
        drain = self._drains.pop(uid)
        drain.memory.when_watched(None)
        self._file(uid, _NOTHING)

    def __iter__(self) -> Iterator[str]:
        return iter(self._drains)

    def __len__(self) -> int:
        return len(self._drains)

    def held_by(self, budget: str) -> Iterator[Drain]:
        """Yield the drains that the budget of that key holds back."""
        return self._found(self._by_budget, budget)

    def held_in(self, namespace: str) -> Iterator[Drain]:
        """Yield the drains that budgets of that namespace hold back."""
        budgets = self._budgets_of.get(namespace, ())
        uids = dict.fromkeys(uid for key in budgets for uid in self._by_budget[key])
        return map(self._drains.__getitem__, uids)

    def awaiting_claim(self, claim: str) -> Iterator[Drain]:
        """Yield the drains with an open handover of the claim of that key."""
        return self._found(self._by_claim, claim)

    def awaiting_volume(self, volume: str) -> Iterator[Drain]:
        """Yield the drains that wait for the volume of that name to be on its way."""
        return self._found(self._by_volume, volume)

    def _found(self, files: dict[str, dict[str, None]], key: str) -> Iterator[Drain]:
        return map(self._drains.__getitem__, tuple(files.get(key, ())))

    def _file(self, uid: str, watched: Watched) -> None:
        """File a drain under what it watches now, and nothing else."""
        before = self._filed.pop(uid, _NOTHING)
        if watched != _NOTHING:
            self._filed[uid] = watched
        _refile(self._by_claim, uid, before.claims, watched.claims)
        _refile(self._by_volume, uid, before.volumes, watched.volumes)
        _refile(self._by_budget, uid, before.budgets, watched.budgets)
        for key in sorted(before.budgets ^ watched.budgets):
            _file_budget(self._budgets_of, key, held=key in self._by_budget)


def _refile(
    files: dict[str, dict[str, None]], uid: str, before: frozenset[str], now: frozenset[str]
) -> None:
    for key in before - now:
        _discard(files, key, uid)
    for key in sorted(now - before):
        files.setdefault(key, {})[uid] = None


def _file_budget(files: dict[str, dict[str, None]], key: str, *, held: bool) -> None:
    namespace = key.partition("/")[0]
    if held:
        files.setdefault(namespace, {})[key] = None
    else:
        _discard(files, namespace, key)


def _discard(files: dict[str, dict[str, None]], key: str, member: str) -> None:
    members = files.get(key, {})
    members.pop(member, None)
    if not members:
        files.pop(key, None)
