"""Tells who leads: a Go process, one of ours, or nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from mcm.api.timestamps import parse_rfc3339
from mcm.preflight.finding import Finding, ok, problem, warning
from mcm.preflight.seen import JSONDocument, One, Seen, Unread
from mcm.sharding.shard import JOINT_IDENTITY

_CHECK: Final = "lease"
_OURS: Final = re.compile(r".+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Host name, ``_``, a UUID; a Go process of this project is called as its host."""


def check_leases(seen: Seen) -> Iterator[Finding]:
    if not seen.options.leader_election.enabled:
        text = "leader election is off: nothing keeps other managers from acting as well"
        yield warning(_CHECK, "--leader-elect", text, "run with --leader-elect, in any cluster")
    for name, lease in seen.leases.items():
        subject = f"{seen.options.clusters.namespace}/{name}"
        yield _of(subject, lease, seen)


def _of(subject: str, lease: One, seen: Seen) -> Finding:
    if lease is None:
        return ok(_CHECK, subject, "is not there; whoever leads first makes it")
    if isinstance(lease, Unread):
        return warning(_CHECK, subject, f"cannot be read: {lease.why}", "see the rows on access")
    holder = str(_spec(lease).get("holderIdentity") or "")
    if not holder:
        return ok(_CHECK, subject, "nobody holds it")
    try:
        silent, lasts = _silence(lease, seen)
    except (KeyError, TypeError, ValueError):
        text = f"{holder} holds it, at a time that cannot be read"
        return problem(_CHECK, subject, text, f"kubectl delete lease {lease['metadata']['name']}")
    who = f"a manager of ours, {holder}," if _OURS.fullmatch(holder) else f"a Go process, {holder},"
    if holder == JOINT_IDENTITY:
        who = "a shard"
    seconds = f"{max(silent.total_seconds(), 0):.0f} s ago"
    if silent > lasts:
        text = f"{who} held it and has not renewed it since {seconds}: it is free"
        return ok(_CHECK, subject, text)
    since = _spec(lease).get("acquireTime", "?")
    if holder == JOINT_IDENTITY:
        return _of_shards(subject, f"shards hold it together and renewed it {seconds}", seen)
    text = f"{who} holds it since {since} and renewed it {seconds}"
    if _OURS.fullmatch(holder):
        return ok(_CHECK, subject, text)
    remedy = "nothing, or scale its Deployment to 0: ours waits until it has stopped"
    return warning(_CHECK, subject, text, remedy)


def _of_shards(subject: str, text: str, seen: Seen) -> Finding:
    if seen.options.sharding.shard is not None:
        return ok(_CHECK, subject, text)
    remedy = "stop all shards first (docs/high-availability.md): until then ours waits"
    return warning(_CHECK, subject, text, remedy)


def _silence(lease: JSONDocument, seen: Seen) -> tuple[timedelta, timedelta]:
    """Return for how long it was not renewed, and how long it lasts."""
    spec = _spec(lease)
    ahead = next((s.ahead for s in seen.servers if s.ahead is not None), timedelta(0))
    renewed = parse_rfc3339(str(spec["renewTime"]))
    return seen.now + ahead - renewed, timedelta(seconds=int(spec["leaseDurationSeconds"]))


def _spec(lease: JSONDocument) -> JSONDocument:
    spec: JSONDocument = lease.get("spec") or {}
    return spec
