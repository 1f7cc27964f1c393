"""Decides when a patch is one that was made again and again and gets nowhere.

Pure: told the time. A patch proves something when it comes a second time, from the same reconciled
key to the same object: had it stuck, there would have been nothing to patch. Two signs count.

- *Reverted*: it sets nothing but what this key set before, and nothing this key wrote in between
  changed those fields, so somebody else did: two machines that claim one Node, two programs that
  want an annotation each their way, a server that drops a field. A handful is enough.
- *Too often*: the same content, times apart, far faster than any life of an object calls for. This
  finds keys that revert themselves, and patches that carry the time of day. A count in a status
  that goes to and fro during a rollout is progress, and must not be taken for it.

Such a patch is held back after each time it is made, twice as long every time, until it was not
wanted for a while. Nothing else of the key is: whoever mends the cause finds the key at work.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, final

import orjson

from mcm.client.requests import Patch
from mcm.workqueue.backoff import Backoff
from mcm.workqueue.token_bucket import TokenBucket

REVERTS: Final = 5
"""How often a field may be found changed back before somebody is taken to do it on purpose."""
OFTEN: Final = 100
"""How often the same may be written at once, whoever changes it back …"""
OFTEN_RATE: Final = 0.2
"""… and how often a second for ever."""
HOLD: Final = Backoff(1.0, 300.0)
QUIET: Final = 600.0
"""Seconds after which a patch that was not wanted any more begins anew."""

_MEANINGFUL: Final = QUIET + HOLD.longest
"""Seconds after its last write in which a history can still matter."""
_TARGETS = 32_768
"""More than a fleet of 10,000 writes to at once, Nodes and machines and their statuses: with fewer,
a fight about all of them would push each one out of memory before it is seen a second time."""
_SPELLS = 16
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_ADDRESS = frozenset(
    {
        ("apiVersion",),
        ("kind",),
        ("metadata", "name"),
        ("metadata", "uid"),
        ("metadata", "resourceVersion"),
    }
)
"""Fields of a patch that say what it is for, and change nothing."""

_Path: TypeAlias = tuple[str, ...]
_Leaf: TypeAlias = tuple[_Path, object]


class Target(NamedTuple):
    """Who writes to what: a reconciled key (of a controller), and an object or its subresource."""

    writer: str
    resource: str
    namespace: str
    name: str
    subresource: str


class Repetition(NamedTuple):
    """A patch that gets nowhere: made ``times`` within ``during`` seconds, to set ``fields``, and
    not to be made again for ``wait`` seconds. ``reverted`` says that others undo it."""

    fields: tuple[str, ...]
    times: int
    during: float
    wait: float
    reverted: bool


@final
@dataclass(slots=True)
class _Spell:
    """One content that one key wrote to one object, however often."""

    paths: tuple[int, ...]
    since: float
    last: float
    recent: TokenBucket | None = None
    times: int = 1
    reverts: int = 0
    holds: int = 0
    held_until: float = 0.0

    def over(self, now: float) -> bool:
        return now - max(self.last, self.held_until) > QUIET


@final
@dataclass(slots=True)
class _History:
    """What one key wrote to one object: of each field a digest of the last value.

    ``unread`` are contents that were written once, in their order, each with when. Nothing follows
    from them before one comes again, as of hardly any does: only then are they taken apart.
    """

    uid: str
    last: float = 0.0
    values: dict[int, int] = field(default_factory=dict)
    spells: OrderedDict[int, _Spell] = field(default_factory=OrderedDict)
    unread: dict[int, tuple[bytes, float]] = field(default_factory=dict)

    def note(self, content: int, meant: bytes, now: float) -> _Spell | None:
        """Return the spell if its patch is held back from now on."""
        values = {hash(path): _digest(value) for path, value in _leaves(orjson.loads(meant))}
        _note_changes(self, values)
        self.values.update(values)
        return _note_repetition(self.spells, content, values, now)


@final
class RepeatedWrites:
    """Bounded in memory: what was not written to for so long that all would begin anew is
    forgotten, and beyond that the targets written to least recently."""

    def __init__(self, *, most_unread: int = _SPELLS) -> None:
        self._histories: OrderedDict[Target, _History] = OrderedDict()
        self._most_unread = most_unread

    def __len__(self) -> int:
        return len(self._histories)

    def held(self, target: Target, patch: Patch, now: float) -> Repetition | None:
        """Say why ``patch`` may not be made now; None if it may.

        One that is meant for another object than was written to before may.
        """
        history = self._histories.get(target)
        if history is None or all(now >= s.held_until for s in history.spells.values()):
            return None  # as nearly always: no need to look at the patch
        if _meant_for(patch) not in ("", history.uid):
            return None
        spell = history.spells.get(_content(_meant(patch)))
        return None if spell is None or now >= spell.held_until else _seen(spell, patch, now)

    def wrote(self, target: Target, uid: str, patch: Patch, now: float) -> Repetition | None:
        """Take note that ``patch`` was made, to the object ``uid``; say if it is held back now."""
        history = self._histories.get(target)
        if history is None or history.uid != uid:  # another object of the name is another story
            history = self._histories[target] = _History(uid)
        history.last = now
        self._histories.move_to_end(target)
        self._forget(now)
        meant = _meant(patch)
        content, unread = _content(meant), history.unread
        is_new = content not in unread and content not in history.spells
        if is_new and len(unread) < self._most_unread:
            unread[content] = _without_spare_room(meant), now
            return None
        for earlier, (set_then, at) in unread.items():
            history.note(earlier, set_then, at)
        unread.clear()
        spell = history.note(content, meant, now)
        return None if spell is None else _seen(spell, patch, now)

    def _forget(self, now: float) -> None:
        while True:
            oldest = next(iter(self._histories.values()))
            if len(self._histories) <= _TARGETS and now - oldest.last <= _MEANINGFUL:
                return
            self._histories.popitem(last=False)


def _seen(spell: _Spell, patch: Patch, now: float) -> Repetition:
    return Repetition(
        fields=tuple(".".join(path) for path, _ in _leaves(patch)),
        times=spell.times,
        during=now - spell.since,
        wait=spell.held_until - now,
        reverted=spell.reverts > REVERTS,
    )


def _note_changes(history: _History, values: Mapping[int, int]) -> None:
    """A field that we gave another value ourselves was not reverted by anybody else."""
    known = history.values
    changed = {path for path, value in values.items() if known.get(path, value) != value}
    if changed:
        for spell in history.spells.values():
            if not changed.isdisjoint(spell.paths):
                spell.reverts = 0


def _note_repetition(
    spells: OrderedDict[int, _Spell], content: int, values: Iterable[int], now: float
) -> _Spell | None:
    """Return the spell if its patch is held back from now on."""
    spell = spells.get(content)
    if spell is None or spell.over(now):
        spells[content] = _Spell(tuple(values), since=now, last=now)
        spells.move_to_end(content)
        if len(spells) > _SPELLS:
            spells.popitem(last=False)
        return None
    spells.move_to_end(content)
    spell.times += 1
    spell.reverts += 1
    spell.last = now
    if spell.recent is None:
        spell.recent = TokenBucket(rate=OFTEN_RATE, burst=OFTEN)
    calm = spell.recent.take(now) and spell.reverts <= REVERTS
    if calm:
        return None
    spell.held_until = now + HOLD.length(spell.holds)
    spell.holds += 1
    return spell


def _leaves(patch: Patch) -> list[_Leaf]:
    """Return each field that ``patch`` sets, and to what.

    A list is one value: merge patches replace it whole.
    """
    leaves: list[_Leaf] = []
    if isinstance(patch, Mapping):
        _collect(patch, (), leaves)
        return leaves
    for operation in patch:
        if operation.get("op") != "test":
            path = str(operation.get("path", "")).strip("/").split("/")
            leaves.append((tuple(path), operation.get("value")))
    return leaves


def _collect(node: Mapping[str, object], above: _Path, leaves: list[_Leaf]) -> None:
    for name, value in node.items():
        path = (*above, name)
        if isinstance(value, dict) and value:
            _collect(value, path, leaves)
        elif path not in _ADDRESS:
            leaves.append((path, value))


def _meant_for(patch: Patch) -> object:
    """The UID that a patch has as its precondition; empty: none."""
    metadata = patch.get("metadata") if isinstance(patch, Mapping) else None
    return metadata.get("uid", "") if isinstance(metadata, Mapping) else ""


def _meant(patch: Patch) -> bytes:
    """What a patch sets, without what says which object it is for: a patch again, in one form."""
    if not isinstance(patch, Mapping):
        operations = [operation for operation in patch if operation.get("op") != "test"]
        return _encoded(sorted(operations, key=lambda operation: str(operation.get("path"))))
    meant = {name: value for name, value in patch.items() if (name,) not in _ADDRESS}
    metadata = meant.pop("metadata", None)
    if isinstance(metadata, Mapping):
        metadata = {k: v for k, v in metadata.items() if ("metadata", k) not in _ADDRESS}
    return _encoded({**meant, "metadata": metadata} if metadata else meant)


def _without_spare_room(encoded: bytes) -> bytes:
    """Copy it: the encoder hands over bytes in the 4 KiB that it wrote them into."""
    return bytes(memoryview(encoded))


def _content(meant: bytes) -> int:
    """A digest of all that a patch sets, blind to times."""
    return hash(_TIME.sub(b"", meant))


def _digest(value: object) -> int:
    """A digest of one value; a truth value is no number."""
    return hash(_encoded(value) if isinstance(value, list | dict) else (type(value), value))


def _encoded(value: object) -> bytes:
    return orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
