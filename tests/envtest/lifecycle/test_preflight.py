"""``mcm preflight`` looks at a real API server as the manager, as nobody and as the admin."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock
from mcm.options import Clusters, Options
from mcm.preflight.command import findings_of, seen_through
from mcm.preflight.finding import Finding, Outcome
from mcm.preflight.read_only import REVIEWS
from tests.envtest.control_plane import ADMIN, MANAGER, STRANGER, ControlPlane
from tests.envtest.lifecycle.fleet import Fleet
from tests.envtest.lifecycle.running import RecordingTransport

pytestmark = pytest.mark.envtest


async def looked(control_plane: ControlPlane, user: str, namespace: str) -> Sequence[Finding]:
    """Look as ``user``, and see that nothing was asked for but to read, and for reviews."""
    transport = RecordingTransport(HTTPTransport(control_plane.spec(user), clock=SystemClock()))
    options = Options(clusters=Clusters(namespace=namespace))
    try:
        seen = await seen_through(transport, transport, options, clock=SystemClock())
    finally:
        await transport.aclose()
    lines = {line for _, line in transport.answers}
    assert lines
    assert {line for line in lines if not line.startswith("GET ")} == {f"POST {REVIEWS}"}
    return findings_of(seen)


def texts(findings: Sequence[Finding], outcome: Outcome) -> list[str]:
    return [f"{f.check} {f.subject}: {f.text}" for f in findings if f.outcome is outcome]


async def everything(fleet: Fleet) -> list[object]:
    """All that a manager would make or change, version by version."""
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{fleet.admin.namespace}/leases"
    kinds = ("machines", "machinesets", "machinedeployments", "machineclasses")
    paths = [leases, fleet.admin.secrets(), "/api/v1/nodes", *(fleet.path(kind) for kind in kinds)]
    return [(await fleet.admin.get(path))["items"] for path in paths]


async def test_what_is_said_depends_on_who_looks_and_nothing_is_written(
    control_plane: ControlPlane, fleet: Fleet
) -> None:
    namespace = fleet.admin.namespace
    await fleet.create(replicas=1)
    before = await everything(fleet)

    as_manager = await looked(control_plane, MANAGER, namespace)
    assert texts(as_manager, Outcome.PROBLEM) == []
    granted = [t for t in texts(as_manager, Outcome.OK) if "all that is needed is granted" in t]
    assert len(granted) == 4
    assert any("its schema cannot be compared" in t for t in texts(as_manager, Outcome.WARNING))

    as_admin = await looked(control_plane, ADMIN, namespace)
    assert texts(as_admin, Outcome.PROBLEM) == []
    compared = [t for t in texts(as_admin, Outcome.OK) if "with every field there is" in t]
    assert len(compared) == 4
    assert any("machinedeployments: 1, none" in t for t in texts(as_admin, Outcome.OK))
    assert any(t.startswith("server control cluster: Kubernetes v1.") for t in
               texts(as_admin, Outcome.OK))  # fmt: skip

    as_nobody = await looked(control_plane, STRANGER, namespace)
    denied = texts(as_nobody, Outcome.PROBLEM)
    assert any("may not create, delete, get, list, patch, watch machines.mach" in t for t in denied)
    assert any("kube-system: may not create, delete, get, patch secrets" in t for t in denied)

    assert await everything(fleet) == before
