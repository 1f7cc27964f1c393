"""``kill -9`` of the leader while another process waits, on a real server; timed by the records."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from mcm.api.timestamps import parse_rfc3339
from mcm.manager import LEASE_NAMES
from mcm.sandbox.apiserver.front.kubeconfig import write_kubeconfig
from tests.envtest.control_plane import ControlPlane
from tests.envtest.lifecycle.fleet import Fleet
from tests.envtest.processes import free_ports
from tests.integration.replica import BRISK, Replica

pytestmark = [pytest.mark.envtest, pytest.mark.timeout(180)]


async def test_a_killed_leader_is_followed_within_one_lease_duration(
    control_plane: ControlPlane, fleet: Fleet, tmp_path: Path
) -> None:
    kubeconfig, namespace = tmp_path / "kubeconfig.yaml", fleet.admin.namespace
    write_kubeconfig(kubeconfig, control_plane)
    ports = free_ports(2)
    with (
        Replica(tmp_path, kubeconfig, port=ports[0], namespace=namespace) as first,
        Replica(tmp_path, kubeconfig, port=ports[1], namespace=namespace) as second,
    ):

        async def one_leads() -> bool:
            return first.leads or second.leads

        await fleet.until(one_leads, within=60, what="one of them leads")
        leader, waiting = (first, second) if first.leads else (second, first)

        async def it_has_seen_the_leader() -> bool:
            return waiting.waits and not waiting.leads

        async def it_works() -> bool:
            return waiting.leads and len(await fleet.machines()) == 3

        await fleet.until(it_has_seen_the_leader, within=60, what="the other one waits")
        leader.kill()
        renewed = await lease_times(fleet, "renewTime")
        await fleet.create(replicas=3)
        await fleet.until(it_works, within=60, what="the other one works")
        acquired = await lease_times(fleet, "acquireTime")
    waited = max(acquired.values()) - max(renewed.values())
    # The promise is one duration and one retry period; the rest is what a busy machine adds. Leases
    # that ran out one after the other would take two durations.
    assert BRISK.lease_duration <= waited < 1.5 * BRISK.lease_duration


async def lease_times(fleet: Fleet, field: str) -> dict[str, datetime]:
    """Return a moment out of each lease's record."""
    found = {}
    for name in LEASE_NAMES:
        path = fleet.admin.path("leases", name, group="coordination.k8s.io/v1")
        found[name] = parse_rfc3339((await fleet.admin.get(path))["spec"][field])
    return found
