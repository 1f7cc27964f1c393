"""A value that somebody gave a flag, with its place; and what one source gives, faults included."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import final

from mcm.configuration.flag import Flag


@final
@dataclass(frozen=True, slots=True)
class Given:
    """``place`` is how a reader finds it: ``--port``, ``MCM_PORT``, ``mcm.yaml:3: port``."""

    value: object
    place: str


@final
@dataclass(slots=True)
class Source:
    """All that one source gives, by the flags' names. ``unread`` are flags whose value it has, but
    not in a form that they take; ``remarks`` are for the log."""

    given: dict[str, Given] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def take_text(self, flag: Flag, text: str, place: str) -> None:
        """Note what ``text`` means to ``flag``, or what is wrong with it."""
        self._take(flag, partial(flag.kind.of_text, text), place)

    def take_yaml(self, flag: Flag, value: object, place: str) -> None:
        """The same of a value that YAML has typed."""
        self._take(flag, partial(flag.kind.of_yaml, value), place)

    def _take(self, flag: Flag, read: Callable[[], object], place: str) -> None:
        try:
            self.given[flag.name] = Given(read(), place)
        except ValueError as error:
            self.unread.add(flag.name)
            self.problems.append(f"{place}: {error}")


def suggestion(name: str, known: Iterable[str], *, prefix: str = "") -> str:
    """Return which name may have been meant, as the end of a sentence; empty if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"; did you mean {prefix}{near[0]}?" if near else ""


def by_name(flags: Iterable[Flag]) -> Mapping[str, Flag]:
    """Return the flags, by their names."""
    return {flag.name: flag for flag in flags}
