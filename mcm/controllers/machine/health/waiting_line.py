"""Who is given up next: those that were refused as too many of their deployment move, in line.

Were all of them woken whenever one comes to rest, k that wait would ask k times each. So one is
called, and whoever is called and does not want it any more passes it on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, final

from mcm.api.machine import Machine
from mcm.controllers.machine.health.failure_permit import group_of

LOOK_AGAIN: Final = 60.0
"""Seconds after which the first in line asks again uncalled: no call that was lost stops a line."""


class _Answer(Enum):
    NONE = auto()
    GRANTED = auto()
    REFUSED = auto()


class _Line(NamedTuple):
    """The machines of each set wait apart: what stands in the way of those of one set need not
    stand in that of another's."""

    group: str
    set_uid: str


@final
@dataclass(slots=True)
class _Pass:
    """``called``: the line in which its machine was called, before the pass began."""

    called: _Line | None
    answer: _Answer = _Answer.NONE


@final
class WaitingLine:
    """Machines, by key, in the order in which they were first refused; empty after a restart, where
    all machines ask anew.

    Each room that may have come is offered to one machine of each line of the group
    (:meth:`next_of`). In its next pass that either takes it, is refused and keeps its place, or
    does not ask, and the next one is woken. ``wake_after`` brings a key back in so many seconds.
    """

    def __init__(
        self, wake: Callable[[str], None], wake_after: Callable[[str, float], None]
    ) -> None:
        self._wake = wake
        self._wake_after = wake_after
        self._lines: dict[str, dict[_Line, dict[str, None]]] = {}
        self._stands: dict[str, _Line] = {}
        self._called: dict[str, _Line] = {}
        self._passes: dict[str, _Pass] = {}

    @property
    def called(self) -> Collection[str]:
        """The keys of those that were called and have had no pass since."""
        return self._called.keys()

    @contextmanager
    def attending(self, key: str) -> Iterator[None]:
        """Surround each pass over ``key``: who does not ask in it waits no more."""
        current = self._passes[key] = _Pass(self._called.pop(key, None))
        try:
            yield
        finally:
            del self._passes[key]
            self._ended(key, current)

    def granted(self, machine: Machine) -> None:
        """It may be given up; whoever holds a permit in vain has to call the next one."""
        self._answered(machine, _Answer.GRANTED)
        self._leave(machine.metadata.key)

    def refused(self, machine: Machine) -> None:
        """Let the machine wait; where it stands, if it does."""
        key, line = machine.metadata.key, _line_of(machine)
        self._answered(machine, _Answer.REFUSED)
        if self._stands.get(key) != line:
            self._leave(key)
            self._stands[key] = line
            self._lines.setdefault(line.group, {}).setdefault(line, {})[key] = None

    def next_of(self, group: str) -> Sequence[str]:
        """Call who is next in each line of ``group``, and return their keys, to be woken."""
        called = [self._call(line) for line in self._lines.get(group, ())]
        return tuple(key for key in called if key is not None)

    def offer(self, group: str) -> None:
        """Call who is next, and wake them."""
        for key in self.next_of(group):
            self._wake(key)

    def _ended(self, key: str, current: _Pass) -> None:
        if current.answer is _Answer.NONE:
            self._leave(key)
            if current.called is not None and (other := self._call(current.called)) is not None:
                self._wake(other)
        elif current.answer is _Answer.REFUSED and (line := self._stands.get(key)) is not None:
            self._watch(line, key)

    def _answered(self, machine: Machine, answer: _Answer) -> None:
        if (current := self._passes.get(machine.metadata.key)) is not None:
            current.answer = answer

    def _call(self, line: _Line) -> str | None:
        """Call the first that is not called yet."""
        key = self._first(line)
        if key is not None:
            self._called[key] = line
            self._watch(line)
        return key

    def _first(self, line: _Line) -> str | None:
        waiting = self._lines.get(line.group, {}).get(line, ())
        return next((key for key in waiting if key not in self._called), None)

    def _watch(self, line: _Line, only: str | None = None) -> None:
        """Have the first in line look again by itself; if it is ``only``, where that is given."""
        key = self._first(line)
        if key is not None and only in (None, key):
            self._wake_after(key, LOOK_AGAIN)

    def _leave(self, key: str) -> None:
        line = self._stands.pop(key, None)
        if line is None:
            return
        lines = self._lines[line.group]
        was_first = self._first(line) == key
        del lines[line][key]
        if not lines[line]:
            del lines[line]
        if not lines:
            del self._lines[line.group]
        if was_first:
            self._watch(line)


def _line_of(machine: Machine) -> _Line:
    owner = machine.metadata.controller_ref()
    return _Line(group_of(machine), owner.uid if owner is not None else "")
