"""``kill -9`` of the leader while another waits, on the sandbox's server; timed by the records."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest

from mcm.api.crds import crd_manifests
from mcm.api.timestamps import parse_rfc3339
from mcm.clock import SystemClock
from mcm.manager import LEASE_NAMES
from mcm.providers.simulated import virtual_machine
from mcm.sandbox import samples
from mcm.sandbox.cluster import create_all
from tests.envtest.processes import free_ports
from tests.integration.background import BackgroundServer
from tests.integration.replica import BRISK, Replica

pytestmark = pytest.mark.timeout(180)
CLOCK = SystemClock()


def test_a_killed_leader_is_followed_within_one_lease_duration(tmp_path: Path) -> None:
    kinds = [*crd_manifests(), virtual_machine.crd_manifest()]
    ports = free_ports(2)
    with BackgroundServer(tmp_path, kinds) as background:
        background.do(create_all(background.server, samples.load()))

        with (
            Replica(tmp_path, background.kubeconfig, port=ports[0], namespace="default") as first,
            Replica(tmp_path, background.kubeconfig, port=ports[1], namespace="default") as second,
        ):
            until(background, lambda: first.leads or second.leads)
            leader, waiting = (first, second) if first.leads else (second, first)
            until(background, lambda: waiting.waits)
            background.do(CLOCK.sleep(BRISK.retry_period.total_seconds()))
            leader.kill()
            renewed = lease_times(background, "renewTime")
            until(background, lambda: waiting.leads)
            acquired = lease_times(background, "acquireTime")
    waited = max(acquired.values()) - max(renewed.values())
    # The promise is one duration and one retry period; the rest is what a busy machine adds. Leases
    # that ran out one after the other would take two durations.
    assert BRISK.lease_duration <= waited < 1.5 * BRISK.lease_duration


def lease_times(background: BackgroundServer, field: str) -> dict[str, datetime]:
    """Return a moment out of each lease's record."""
    found = background.server.objects("coordination.k8s.io", "leases")
    leases = {item["metadata"]["name"]: item["spec"] for item in cast("list[Any]", found)}
    return {name: parse_rfc3339(leases[name][field]) for name in LEASE_NAMES}


def until(background: BackgroundServer, condition: Callable[[], bool]) -> None:
    """Wait on the server's loop, up to a minute."""
    for _ in range(600):
        if condition():
            return
        background.do(CLOCK.sleep(0.1))
    raise AssertionError("not within a minute")
