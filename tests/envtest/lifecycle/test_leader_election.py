"""Two managers, one namespace: the record in the Lease is client-go's, field by field."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from mcm.api.timestamps import parse_rfc3339
from mcm.client.kubeconfig import load
from mcm.manager import LEASE_NAMES
from mcm.options import LeaderElection
from mcm.sandbox.apiserver.front.kubeconfig import write_kubeconfig
from tests.envtest import assets
from tests.envtest.bench import Document
from tests.envtest.control_plane import ControlPlane
from tests.envtest.lifecycle.fleet import Fleet
from tests.envtest.lifecycle.running import RunningManager

pytestmark = pytest.mark.envtest

BRISK = LeaderElection(
    lease_duration=timedelta(seconds=6),
    renew_deadline=timedelta(seconds=4),
    retry_period=timedelta(seconds=1),
)
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


async def test_one_of_two_leads_and_hands_over_in_order(
    control_plane: ControlPlane, fleet: Fleet, tmp_path: Path
) -> None:
    first = RunningManager(control_plane, fleet.admin.namespace, identity="one", election=BRISK)
    second = RunningManager(control_plane, fleet.admin.namespace, identity="two", election=BRISK)
    kubectl = _Kubectl(control_plane, fleet.admin.namespace, tmp_path)
    async with first:
        await fleet.until(lambda: _held_by(fleet, "one"), what="the first manager leads")
        async with second:
            for name in LEASE_NAMES:
                _is_held(kubectl.lease(name), by="one", transitions=0)
            await _while_renewed(fleet)
            assert await _held_by(fleet, "one")
            assert not second.ended
            await first.stop()
            took = await fleet.until(lambda: _held_by(fleet, "two"), what="the second takes over")
            assert took < BRISK.lease_duration.total_seconds()
            for name in LEASE_NAMES:
                _is_held(kubectl.lease(name), by="two", transitions=1)
            await fleet.until(lambda: _told_who_leads(fleet, "two"), what="the event is written")
            assert await _told_who_leads(fleet, "one")
    for name in LEASE_NAMES:
        _is_released(kubectl.lease(name), transitions=1)
    assert first.transport.forbidden == second.transport.forbidden == []


async def test_a_crashed_leader_is_followed_when_its_lease_has_run_out(
    control_plane: ControlPlane, fleet: Fleet
) -> None:
    first = RunningManager(control_plane, fleet.admin.namespace, identity="one", election=BRISK)
    second = RunningManager(control_plane, fleet.admin.namespace, identity="two", election=BRISK)
    async with first:
        await fleet.until(lambda: _held_by(fleet, "one"), what="the first manager leads")
        async with second:
            await _while_renewed(fleet)  # the second has seen the lease
            await first.crash()
            took = await fleet.until(
                lambda: _held_by(fleet, "two"), within=40, what="the second takes over"
            )
            # Counted from the last renewal, which may lie up to a retry period back.
            assert took > (BRISK.lease_duration - 2 * BRISK.retry_period).total_seconds()


class _Kubectl:
    """What people see of a lease."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._binary = assets.locate() / "kubectl"
        self._kubeconfig = folder / "kubeconfig.yaml"
        self._namespace = namespace
        write_kubeconfig(self._kubeconfig, plane)
        assert load(str(self._kubeconfig)).server == plane.url

    def lease(self, name: str) -> Document:
        command = [
            str(self._binary),
            f"--kubeconfig={self._kubeconfig}",
            f"--namespace={self._namespace}",
            *("get", "lease", name, "--output=json"),
        ]
        environment = {"HOME": str(self._kubeconfig.parent)}
        done = subprocess.run(command, capture_output=True, env=environment, timeout=30, check=True)
        found: Document = json.loads(done.stdout)
        return found


def _is_held(lease: Document, *, by: str, transitions: int) -> None:
    spec = lease["spec"]
    assert set(spec) == {
        "holderIdentity",
        "leaseDurationSeconds",
        "acquireTime",
        "renewTime",
        "leaseTransitions",
    }
    assert spec["holderIdentity"] == by
    assert spec["leaseDurationSeconds"] == 6
    assert spec["leaseTransitions"] == transitions
    assert MICRO_TIME.fullmatch(spec["acquireTime"]) and MICRO_TIME.fullmatch(spec["renewTime"])
    assert parse_rfc3339(spec["acquireTime"]) <= parse_rfc3339(spec["renewTime"])


def _is_released(lease: Document, *, transitions: int) -> None:
    spec = lease["spec"]
    assert spec["holderIdentity"] == ""
    assert spec["leaseDurationSeconds"] == 1
    assert spec["leaseTransitions"] == transitions
    assert MICRO_TIME.fullmatch(spec["acquireTime"]) and MICRO_TIME.fullmatch(spec["renewTime"])


async def _held_by(fleet: Fleet, identity: str) -> bool:
    path = fleet.admin.path("leases", group="coordination.k8s.io/v1")
    found = {
        item["metadata"]["name"]: item["spec"].get("holderIdentity")
        for item in (await fleet.admin.get(path))["items"]
    }
    return found == dict.fromkeys(LEASE_NAMES, identity)


async def _told_who_leads(fleet: Fleet, identity: str) -> bool:
    """As ``kubectl describe lease`` shows it, with the Go leaders' words."""
    path = fleet.admin.path("events", group="events.k8s.io/v1")
    told = {
        item["regarding"]["name"]
        for item in (await fleet.admin.get(path))["items"]
        if item["reason"] == "LeaderElection" and item["note"] == f"{identity} became leader"
        if item["regarding"]["kind"] == "Lease" and item["regarding"]["uid"]
    }
    return told == set(LEASE_NAMES)


async def _while_renewed(fleet: Fleet) -> None:
    """Wait until the first lease was renewed twice."""
    path = fleet.admin.path("leases", LEASE_NAMES[0], group="coordination.k8s.io/v1")
    times: set[str] = set()

    async def seen() -> bool:
        times.add((await fleet.admin.get(path))["spec"]["renewTime"])
        return len(times) > 2

    await fleet.until(seen, what="the lease is renewed")
