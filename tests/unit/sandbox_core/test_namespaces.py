from __future__ import annotations

import asyncio

from mcm.sandbox.apiserver.garbage.namespaces import USER_AGENT, NamespaceController
from mcm.simulation.virtualtime import run_virtual
from tests.unit.sandbox_core.workbench import (
    WIDGETS,
    Workbench,
    config_map,
    pod,
    virtual_workbench,
    widget,
)

SPACE = "/api/v1/namespaces/n"
MAPS = f"{SPACE}/configmaps"


def space() -> Workbench:
    api = virtual_workbench()
    api.define_widgets()
    api.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    return api


async def settle(api: Workbench) -> None:
    for _ in range(50):
        await api.clock.sleep(0)


def test_a_namespace_goes_with_all_that_is_in_it() -> None:
    async def main() -> None:
        api = space()
        task = asyncio.create_task(NamespaceController(api.server).run())
        api.create(MAPS, config_map("a"))
        api.create(WIDGETS.replace("default", "n"), widget("w"))
        api.create("/api/v1/namespaces/default/configmaps", config_map("stays"))
        api.delete(SPACE)
        await settle(api)
        assert api.gone(SPACE)
        assert api.names("/api/v1/configmaps") == ["stays"]
        assert api.names("/apis/toys.example/v1/widgets") == []
        task.cancel()
        await asyncio.wait({task})

    run_virtual(main)


def test_a_namespace_waits_for_what_is_held() -> None:
    async def main() -> None:
        api = space()
        held = config_map("held")
        held["metadata"]["finalizers"] = ["x/y"]
        api.create(MAPS, held)
        api.create(f"{SPACE}/pods", pod("p", node="somewhere"))
        api.delete(SPACE)  # before anybody looks
        task = asyncio.create_task(NamespaceController(api.server).run())
        await settle(api)
        assert "deletionTimestamp" in api.get(f"{MAPS}/held")["metadata"]
        asked = api.server.requests.writes(agent=USER_AGENT)
        await settle(api)
        assert api.server.requests.writes(agent=USER_AGENT) == asked
        api.delete(f"{SPACE}/pods/p", gracePeriodSeconds="0")
        await settle(api)
        assert not api.gone(SPACE)
        api.patch(f"{MAPS}/held", {"metadata": {"finalizers": None}})
        await settle(api)
        assert api.gone(SPACE)
        task.cancel()
        await asyncio.wait({task})

    run_virtual(main)
