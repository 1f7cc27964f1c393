"""What was seen of the clusters, once; the checks look at nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias, final

from mcm.access import Purpose, Rule
from mcm.options import Options

JSONDocument: TypeAlias = dict[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read, and what the server said instead."""

    why: str


Objects: TypeAlias = "Sequence[JSONDocument] | Unread"
"""A collection; empty too where the server does not serve its kind."""
One: TypeAlias = "JSONDocument | Unread | None"
"""One object, None if there is none."""


@final
@dataclass(frozen=True, slots=True)
class Server:
    """``name`` is that of the cluster; ``version`` what it says of itself, empty if it does not.
    ``ahead`` is by how much its clock goes before ours; None: it does not tell."""

    name: str
    version: str = ""
    ahead: timedelta | None = None
    unreachable: str = ""


@final
@dataclass(frozen=True, slots=True)
class Denied:
    """What a rule asks for and the server refuses, in a ``place``; ``verbs`` by resource."""

    purpose: Purpose
    rule: Rule
    place: str
    verbs: Mapping[str, tuple[str, ...]]


@final
@dataclass(frozen=True, slots=True)
class Granted:
    """What the reviews of one purpose came to. ``unanswered`` says why they could not be asked."""

    purpose: Purpose
    place: str
    denied: Sequence[Denied] = ()
    unanswered: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All of it."""

    options: Options
    now: datetime
    servers: Sequence[Server]
    crds: Mapping[str, One] = field(default_factory=dict)
    """By name; what the server holds of each that is needed."""
    served: Mapping[str, Sequence[str] | Unread] = field(default_factory=dict)
    """By group and version, the resources and subresources that the server offers."""
    access: Sequence[Granted] = ()
    leases: Mapping[str, One] = field(default_factory=dict)
    machines: Objects = ()
    machine_sets: Objects = ()
    machine_deployments: Objects = ()
    machine_classes: Objects = ()
    old_classes: Mapping[str, Objects] = field(default_factory=dict)
    """Of the kinds there were before, by plural."""
    nodes: Objects = ()
    webhooks: Objects = ()
    deployments: Objects = ()
    """Workloads in the namespace of the machines: other managers may be among them."""
