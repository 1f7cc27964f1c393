"""Looks whether the API servers are there, of which release, and what time it is there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from mcm.preflight.finding import Finding, ok, problem, warning
from mcm.preflight.seen import Seen, Server

_CHECK: Final = "server"
_WORTH_TELLING: Final = timedelta(seconds=2)


def check_servers(seen: Seen) -> Iterator[Finding]:
    for server in seen.servers:
        subject = f"{server.name} cluster"
        if server.unreachable:
            remedy = f"check --{server.name}-kubeconfig and the network"
            yield problem(_CHECK, subject, server.unreachable, remedy)
            continue
        yield ok(_CHECK, subject, f"Kubernetes {server.version or 'of a release it does not tell'}")
        yield from _clock(server, subject, seen)


def _clock(server: Server, subject: str, seen: Seen) -> Iterator[Finding]:
    """Leases are told apart from what ran out by watching, not by clocks; timeouts of machines
    are not."""
    if server.ahead is None or abs(server.ahead) <= _WORTH_TELLING:
        return
    way = "ahead of" if server.ahead > timedelta(0) else "behind"
    text = f"its clock is {abs(server.ahead).total_seconds():.0f} s {way} this one"
    remedy = "set the clocks (NTP): timeouts of machines compare the two"
    election = seen.options.leader_election
    spare = election.lease_duration - election.renew_deadline
    say = problem if abs(server.ahead) > spare else warning
    yield say(_CHECK, subject, text, remedy)
