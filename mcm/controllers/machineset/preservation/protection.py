"""Which Failed machines are kept for somebody to look at, and until when.

``preserveExpiryTime`` decides once the machine's own controller has stamped it; until then the
request itself protects, for as long as the preservation could at most last.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mcm.api.core import Node
from mcm.api.durations import parse_duration
from mcm.api.machine import Machine
from mcm.api.names import PRESERVE_AUTO, PRESERVE_NOW, PRESERVE_WHEN_FAILED
from mcm.controllers.replicas.deletion_order import preserved_until
from mcm.controllers.replicas.preserve_request import preserve_request

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
    if preserve_request(machine, node) not in _REQUESTS:
        return None
    return could_last_until(machine, preserve_timeout)


def could_last_until(machine: Machine, preserve_timeout: timedelta) -> datetime | None:
    """Return until when a Failed machine could at most be kept; None if nobody knows since when it
    has been Failed."""
    since = machine.status.current_status.last_update_time or machine.metadata.creation_timestamp
    return None if since is None else since + _timeout(machine, preserve_timeout)


def _timeout(machine: Machine, otherwise: timedelta) -> timedelta:
    text = machine.spec.machine_preserve_timeout
    try:
        return parse_duration(text) if text else otherwise
    except ValueError:
        return otherwise
