"""Which Failed machines are kept for somebody to look at, and until when.

``preserveExpiryTime`` decides where somebody stamped it, which nothing here does yet; else the
request itself protects, for as long as the preservation could at most last.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mcm.api.core import Node
from mcm.api.durations import parse_duration
from mcm.api.machine import Machine
from mcm.api.names import (
    ANNOTATION_LAST_APPLIED_PRESERVE,
    ANNOTATION_PRESERVE,
    PRESERVE_AUTO,
    PRESERVE_NOW,
    PRESERVE_WHEN_FAILED,
)
from mcm.controllers.replicas.deletion_order import preserved_until

_REQUESTS = frozenset({PRESERVE_NOW, PRESERVE_WHEN_FAILED, PRESERVE_AUTO})


def protected_until(
    machine: Machine, node: Node | None, *, preserve_timeout: timedelta
) -> datetime | None:
    """Return until when a Failed machine must not be deleted for having failed; None: it may be.

    ``node`` is its Node, or None where there is none (or it is not known): the machine's own
    annotation decides then. ``preserve_timeout`` is the flag, which the machine's spec overrides.
    """
    until = preserved_until(machine)
    if until is not None:
        return until
    if _request(machine, node) not in _REQUESTS:
        return None
    since = machine.status.current_status.last_update_time or machine.metadata.creation_timestamp
    return None if since is None else since + _timeout(machine, preserve_timeout)


def _request(machine: Machine, node: Node | None) -> str:
    """The Node's word counts, also its silence after it once spoke; else the machine's."""
    annotations = machine.metadata.annotations
    on_node = node.metadata.annotations.get(ANNOTATION_PRESERVE, "") if node else ""
    followed_node = node is not None and annotations.get(ANNOTATION_LAST_APPLIED_PRESERVE)
    if on_node or followed_node:
        return on_node
    return annotations.get(ANNOTATION_PRESERVE, "")


def _timeout(machine: Machine, otherwise: timedelta) -> timedelta:
    text = machine.spec.machine_preserve_timeout
    try:
        return parse_duration(text) if text else otherwise
    except ValueError:
        return otherwise
