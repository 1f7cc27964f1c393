"""Which controllers a process runs, by names as kube-controller-manager takes them.

``*`` is all of them, ``NAME`` one, ``-NAME`` all but that one; the name of a group stands for its
members. What names a controller by itself counts more than what names its group, and that more
than ``*``; the order does not matter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

ALL: Final = "*"


class Group(StrEnum):
    """The controllers of one of the Go original's two processes."""

    SETS = "set-controllers"  # its machine-controller-manager
    MACHINES = "machine-controllers"  # its machine-controller, one for each provider


CONTROLLERS: Final[Mapping[str, Group]] = MappingProxyType(
    {
        "machinedeployment": Group.SETS,
        "machineset": Group.SETS,
        "overshooting": Group.SETS,
        "machine": Group.MACHINES,
        "machineclass": Group.MACHINES,
        "secret": Group.MACHINES,
        "node": Group.MACHINES,
        "orphan-vms": Group.MACHINES,
    }
)


def selected(words: Sequence[str]) -> frozenset[str]:
    """Return the names of the controllers that ``words`` select; unknown ones select nothing."""
    return frozenset(name for name in CONTROLLERS if _is_selected(name, words))


def groups_of(names: Collection[str]) -> tuple[Group, ...]:
    """Return the groups that have one of ``names``, in their fixed order."""
    return tuple(group for group in Group if any(CONTROLLERS[name] is group for name in names))


def problems_of(words: Sequence[str]) -> list[str]:
    """Return one line for each thing that is wrong with ``words``; empty when all is well."""
    known = {ALL, *CONTROLLERS, *Group}
    problems = [
        f"{word!r} is no controller: choose of {', '.join((ALL, *CONTROLLERS, *Group))}"
        for word in words
        if word.removeprefix("-") not in known or word == f"-{ALL}"
    ]
    if not problems and not selected(words):
        problems.append(f"selects no controller at all; begin with {ALL} to take some away")
    return problems


def _is_selected(name: str, words: Sequence[str]) -> bool:
    for level in (name, CONTROLLERS[name]):
        if level in words:
            return True
        if f"-{level}" in words:
            return False
    return ALL in words
