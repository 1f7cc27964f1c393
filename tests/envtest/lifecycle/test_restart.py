"""The API server dies under the manager and comes back."""

from __future__ import annotations

import pytest

from mcm.api.machine import MACHINES
from mcm.clock import SystemClock
from tests.envtest.control_plane import ControlPlane
from tests.envtest.lifecycle.fleet import Fleet
from tests.envtest.lifecycle.running import RunningManager, simulated_cloud

pytestmark = pytest.mark.envtest


@pytest.mark.parametrize("forgetful", [False, True], ids=["as it was", "history compacted"])
async def test_nothing_is_lost_or_invented_when_the_api_server_restarts(
    control_plane: ControlPlane, fleet: Fleet, forgetful: bool
) -> None:
    namespace = fleet.admin.namespace
    async with (
        simulated_cloud(control_plane, namespace),
        RunningManager(control_plane, namespace) as manager,
    ):
        await fleet.create(replicas=3)
        await fleet.until(lambda: fleet.runs(small=3), what="three machines run")
        before = await _states(fleet)
        control_plane.kill_apiserver()
        if forgetful:
            await control_plane.compact()
        await SystemClock().sleep(1.0)
        await control_plane.start_apiserver()
        await fleet.until(lambda: _serves(fleet), what="the API server serves our kinds again")
        manager.transport.answers.clear()  # it refuses everybody until it has read its roles
        await fleet.scale(5)
        await fleet.until(lambda: fleet.runs(small=5), within=60, what="five machines run")
        after = await _states(fleet)
        assert before.keys() <= after.keys()
        await fleet.until(lambda: _mirrors(manager, fleet), what="the mirror agrees")
        assert len(await fleet.vms()) == len(await fleet.nodes()) == 5
        assert not manager.ended
        await fleet.delete()
        await fleet.until(lambda: _gone(fleet), what="the fleet is gone")
    assert manager.transport.forbidden == []


async def _serves(fleet: Fleet) -> bool:
    """Ready is not all: definitions are read again, and their storage comes up, a moment later."""
    paths = [fleet.path(kind) for kind in ("machinedeployments", "machinesets", "machines")]
    return all([(await fleet.admin.send("GET", path)).status == 200 for path in paths])


async def _states(fleet: Fleet) -> dict[str, str]:
    """Return the version of each machine by UID."""
    return {m["metadata"]["uid"]: m["metadata"]["resourceVersion"] for m in await fleet.machines()}


async def _mirrors(manager: RunningManager, fleet: Fleet) -> bool:
    mirrored = manager.manager.control_informers.store(MACHINES).list()
    states = {m.metadata.uid: m.metadata.resource_version for m in mirrored}
    return states == await _states(fleet)


async def _gone(fleet: Fleet) -> bool:
    return not (await fleet.machines() or await fleet.vms() or await fleet.nodes())
