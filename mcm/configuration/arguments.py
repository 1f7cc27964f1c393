"""The words of a command line: which flags they set, and all that is wrong with them at once.

As Go's programs read them: ``--flag=value`` and ``--flag value``, dashes or underscores, a boolean
alone or with ``=value``, the last of several wins, ``-v`` for the one flag of one letter. Unlike
these, a word that belongs to nothing is a fault, and a value does not begin with two dashes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

from mcm.configuration.flag import Flag
from mcm.configuration.given import Source, suggestion
from mcm.configuration.kinds import is_boolean


@final
@dataclass(slots=True)
class Arguments:
    """What the words set. ``rest`` are the words of the command's own options, in their order."""

    source: Source = field(default_factory=Source)
    rest: list[str] = field(default_factory=list)


def read_arguments(
    words: Iterable[str], flags: Mapping[str, Flag], own: Mapping[str, bool]
) -> Arguments:
    """Read all ``words``. ``own`` are the command's options beside ``flags``: whether each needs a
    value."""
    return _Reading(flags, own).of(deque(words))


@final
class _Reading:
    def __init__(self, flags: Mapping[str, Flag], own: Mapping[str, bool]) -> None:
        self._flags = flags
        self._own = own
        self._result = Arguments()
        self._problems = self._result.source.problems
        self._last = ""

    def of(self, words: deque[str]) -> Arguments:
        while words:
            word = words.popleft()
            if word == "--":
                self._problems += [_unexpected(word) for word in words]
                break
            if _is_value(word):
                self._stray(word)
                continue
            written, equals, value = _in_long_form(word, self._flags).partition("=")
            name = written.removeprefix("--").replace("_", "-")
            self._last = ""
            if (flag := self._flags.get(name)) is not None:
                self._flag(flag, value if equals else None, words)
            elif written in self._own or f"--{name}" in self._own:
                option = written if written in self._own else f"--{name}"  # ``-o`` is of one letter
                self._own_option(word, option, bool(equals), words)
            else:
                self._unknown(written, name, bool(equals), words)
        return self._result

    def _flag(self, flag: Flag, value: str | None, words: deque[str]) -> None:
        if value is None and flag.kind.needs_no_value:
            value = "true"
            self._last = flag.name
        elif value is None:
            if not words or words[0].startswith("--"):
                self._result.source.unread.add(flag.name)
                self._problems.append(f"--{flag.name}: needs a value ({flag.kind.word})")
                return
            value = words.popleft()
        self._result.source.take_text(flag, value, f"--{flag.name}")

    def _own_option(self, word: str, name: str, has_value: bool, words: deque[str]) -> None:
        self._result.rest.append(word)
        if self._own.get(name) and not has_value and words and _is_value(words[0]):
            self._result.rest.append(words.popleft())

    def _unknown(self, written: str, name: str, has_value: bool, words: deque[str]) -> None:
        if not has_value and words and _is_value(words[0]):
            words.popleft()  # most likely its value
        denied = self._flags.get(name.removeprefix("no-"))
        if denied is not None and denied.kind.needs_no_value:
            hint = f"; write --{denied.name}=false"
        else:
            own = (option.removeprefix("--") for option in self._own)
            hint = suggestion(name, [*self._flags, *own], prefix="--")
        self._problems.append(f"{written}: there is no such flag{hint}")

    def _stray(self, word: str) -> None:
        hint = f"; write --{self._last}={word}" if self._last and is_boolean(word) else ""
        self._problems.append(_unexpected(word) + hint)
        self._last = ""


def _is_value(word: str) -> bool:
    """A word that is no option: a negative number is none, nor is a dash alone."""
    return not word.startswith("-") or (len(word) > 1 and word[1] in "0123456789.") or word == "-"


def _in_long_form(word: str, flags: Collection[str]) -> str:
    """``-v=4``, ``-v4`` and ``-v`` as ``--v=4`` and ``--v``."""
    letter = word[1:2]
    if word.startswith("--") or letter not in flags:
        return word
    value = word[2:].removeprefix("=")
    return f"--{letter}={value}" if value else f"--{letter}"


def _unexpected(word: str) -> str:
    return f"{word!r}: belongs to no flag"
