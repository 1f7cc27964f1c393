"""Who takes part in a race, and by which command: Python's clients, and client-go where Go is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.client_go import CannotBuild, program
from bench.contestants import CONTESTANTS
from bench.recorded_objects import KINDS

CLIENT_GO = "client-go"
NAMES = (*CONTESTANTS, CLIENT_GO)


@dataclass(frozen=True, slots=True)
class Course:
    """What is raced over: ``count`` objects of ``kind``, each of which changes ``rounds`` times."""

    kind: str
    count: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Entrant:
    """``command`` returns what runs one race against the server at a URL; with ``--weigh`` added
    it counts bytes instead."""

    version: str
    command: Callable[[Course, str], Sequence[str]]


def entered(names: Iterable[str]) -> tuple[Mapping[str, Entrant], Mapping[str, str]]:
    """Return those who can take part, and why the others cannot."""
    present: dict[str, Entrant] = {}
    missing: dict[str, str] = {}
    for name in names:
        try:
            present[name] = _client_go() if name == CLIENT_GO else _python(name)
        except CannotBuild as error:
            missing[name] = str(error)
        except ModuleNotFoundError:
            missing[name] = f"not installed: pip install {name} (or the extra 'contestants')"
    return present, missing


def _python(name: str) -> Entrant:
    contestant = CONTESTANTS[name]
    if not contestant.installed:
        raise ModuleNotFoundError(name)

    def command(course: Course, url: str) -> Sequence[str]:
        sizes = ("--count", str(course.count), "--rounds", str(course.rounds))
        return (sys.executable, "-m", "bench.race", name, course.kind, url, *sizes)

    return Entrant(contestant.version, command)


def _client_go() -> Entrant:
    built = program()

    def command(course: Course, url: str) -> Sequence[str]:
        kind = KINDS[course.kind]
        last = kind.last_version(course.count, course.rounds)
        return built.race(course.kind, url, last=last, indexed=kind.indexed)

    return Entrant(built.version, command)
