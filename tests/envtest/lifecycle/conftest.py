from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import pytest

from tests.envtest.bench import Bench, Peer
from tests.envtest.control_plane import CLOUD_AND_KUBELETS, MANAGER, ControlPlane
from tests.envtest.lifecycle.access import grant_cloud, grant_manager
from tests.envtest.lifecycle.fleet import Fleet

_numbers = count(1)


@pytest.fixture
async def fleet(control_plane: ControlPlane) -> AsyncIterator[Fleet]:
    """A fleet to be, in a namespace where manager and cloud have the chart's rights and no more."""
    peer = Peer("real", control_plane.spec(), control_plane.compact, control_plane.spec)
    admin = Bench(peer, f"fleet-{next(_numbers)}")
    meta = {"name": admin.namespace}
    try:
        await admin.create("/api/v1/namespaces", {"metadata": meta})
        await grant_manager(admin, MANAGER)
        await grant_cloud(admin, CLOUD_AND_KUBELETS)
        yield Fleet(admin)
    finally:
        await admin.aclose()
