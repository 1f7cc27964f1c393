"""The kubelets of a cluster that is taken over: each VM joins, and comes to be ready."""

from __future__ import annotations

from typing import final

from mcm.api.core import NODES
from mcm.client.errors import NotFound
from tests.unit.machine.bench import Bench

JOINS_AFTER = 3.0


@final
class Kubelets:
    """One for each VM: it registers its Node if there is none, and reports that it is ready."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def run(self) -> None:
        while True:
            await self._bench.clock.sleep(JOINS_AFTER)
            for name in list(self._bench.driver.vms):
                await self._report(name)

    async def _report(self, name: str) -> None:
        b, node_name = self._bench, self._bench.driver.node_name(name)
        try:
            node = await b.client.get(NODES, node_name)
        except NotFound:
            body = {"metadata": {"name": node_name}, "spec": {"providerID": b.driver.vms[name]}}
            await b.client.create(NODES, body)
            return
        ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
        if ready is None or ready.status != "True":
            await b.set_ready(name, "True")
