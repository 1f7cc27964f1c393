"""What becomes of the flags that the Go original's processes were given."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import yaml

from mcm.configuration.flag import Flag
from mcm.configuration.table import WITHOUT_EFFECT, all_flags
from mcm.preflight.checks.surroundings import containers_of, program_of
from mcm.preflight.finding import Finding, ok, problem, warning

_CHECK: Final = "flag"
_SET_MANAGER: Final = "machine-controller-manager"
_OF_MACHINES: Final[Mapping[str, str]] = {"concurrent-syncs": "machine-concurrent-syncs"}
"""Flags of its machine controllers that bear another name here, as its other process has one of the
same name."""
_DIFFERS: Final[Mapping[str, str]] = {
    "kube-api-qps": "here it bounds both halves together; 0, our default, leaves it to the server",
    "kube-api-burst": "here it bounds both halves together",
    "port": "one process serves /metrics and /healthz for both halves",
    "machine-safety-overshooting-period": "sets are looked at when they change; this is the "
    "longest time between two looks",
}
_IDLE: Final[Mapping[str, str]] = {flag.name: flag.help for flag in WITHOUT_EFFECT.flags}


@final
@dataclass(frozen=True, slots=True)
class CommandLine:
    """Of one of its programs; ``flags`` in their order, without the dashes."""

    program: str
    flags: Sequence[tuple[str, str]]

    @property
    def is_of_machines(self) -> bool:
        """Tell whether it is the one whose providers link it; the other one manages sets."""
        return self.program != _SET_MANAGER


def command_lines(text: str) -> list[CommandLine]:
    """Read a command line, or manifests whose containers have one. Raises ValueError, whose text
    says what is wrong."""
    try:
        documents = [d for d in yaml.safe_load_all(text) if isinstance(d, dict)]
    except yaml.YAMLError:
        documents = []
    found = [
        CommandLine(program, tuple(_flags([*(c.get("command") or ()), *(c.get("args") or ())])))
        for document in documents
        for workload in (document.get("items") or [document])
        for c in containers_of(workload)
        if (program := program_of(c))
    ]
    if found:
        return found
    if documents:
        raise ValueError("no container of these manifests runs a machine-controller-manager")
    words = shlex.split(text.replace("\\\n", " "))
    if not any(word.startswith("-") for word in words):
        raise ValueError("is neither a command line nor a manifest")
    name = words[0].rpartition("/")[2] if not words[0].startswith("-") else _SET_MANAGER
    return [CommandLine(name, tuple(_flags(words)))]


def _flags(words: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield what a Go program would read: values after ``=``, or as the next word."""
    rest = iter([str(word) for word in words])
    waiting = ""
    for word in rest:
        if word.startswith("-"):
            if waiting:
                yield waiting, "true"
            name, equals, value = word.lstrip("-").partition("=")
            name = name.replace("_", "-")
            waiting = "" if equals else name
            if equals:
                yield name, value
        elif waiting:
            yield waiting, word
            waiting = ""
    if waiting:
        yield waiting, "true"


def check_flags(lines: Sequence[CommandLine]) -> Iterator[Finding]:
    """Say of each flag what it is here; last, the command line that all of it makes."""
    known: Mapping[str, Flag] = {flag.name: flag for flag in all_flags()}
    taken: dict[str, str] = {}
    for line in lines:
        for given, value in line.flags:
            subject = f"{line.program} --{given}"
            name = _OF_MACHINES.get(given, given) if line.is_of_machines else given
            if given in _IDLE:
                yield ok(_CHECK, subject, f"is accepted without effect. {_IDLE[given]}")
                continue
            if name not in known:
                remedy = "leave it out: mcm run refuses flags that it does not know"
                yield problem(_CHECK, subject, "is unknown here", remedy)
                continue
            if taken.setdefault(name, value) != value:
                text = f"is {value}, but the other process has {taken[name]}; there is one here"
                yield warning(_CHECK, subject, text, f"choose one for --{name}")
                continue
            yield _carried(subject, given, name, value)
    if lines:
        command = shlex.join(
            ["mcm", "run", *(f"--{name}={value}" for name, value in taken.items())]
        )
        yield ok(_CHECK, "all together", command)


def _carried(subject: str, given: str, name: str, value: str) -> Finding:
    if name != given:
        return warning(_CHECK, subject, f"is --{name} here", f"write --{name}={value}")
    if name in _DIFFERS:
        return warning(_CHECK, subject, f"differs: {_DIFFERS[name]}", "see docs/flags.md")
    return ok(_CHECK, subject, f"carries over: {value}")
