"""A rule of access, and the rules that serve one purpose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

CORE = ""
MACHINE_CONTROLLERS = "machine-controllers"


class Access(NamedTuple):
    """One verb on one resource, as an API server is asked about it."""

    group: str
    resource: str
    """Plural name, with ``/subresource``."""
    verb: str
    name: str
    """Of the one object; empty for any."""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """As a PolicyRule of ``rbac.authorization.k8s.io/v1``: every verb on every resource."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Of the only objects that it is about; empty for any."""
    reason: str = ""
    """Why, where the resource does not tell."""
    without: str = ""
    """What is left undone where it is not granted; empty: the manager cannot work."""

    only_for: str = ""
    """The group of controllers that needs it, as ``--controllers`` names it; empty for both."""

    def accesses(self) -> Iterator[Access]:
        """Yield all that it grants, one by one."""
        for group in self.groups:
            for resource in self.resources:
                for name in self.names or ("",):
                    for verb in self.verbs:
                        yield Access(group, resource, verb, name)


@final
@dataclass(frozen=True, slots=True)
class Purpose:
    """What is granted together: to one identity, in one cluster or one namespace of it."""

    name: str
    """Also of the chart's file, without the ending."""
    reason: str
    rules: tuple[Rule, ...]
