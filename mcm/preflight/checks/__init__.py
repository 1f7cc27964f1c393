"""Judges what was seen: a module for each subject, each check a pure function to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from mcm.preflight.checks.crds import check_crds
from mcm.preflight.checks.fleet import check_fleet
from mcm.preflight.checks.leases import check_leases
from mcm.preflight.checks.nodes import check_nodes
from mcm.preflight.checks.objects import check_objects
from mcm.preflight.checks.permissions import check_permissions
from mcm.preflight.checks.servers import check_servers
from mcm.preflight.checks.surroundings import check_surroundings
from mcm.preflight.finding import Finding
from mcm.preflight.seen import Seen

Check: TypeAlias = Callable[[Seen], Iterator[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    check_servers,
    check_crds,
    check_permissions,
    check_leases,
    check_objects,
    check_fleet,
    check_nodes,
    check_surroundings,
)

__all__ = ["CHECKS", "Check"]
