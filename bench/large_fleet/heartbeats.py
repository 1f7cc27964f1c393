"""Kubelets of all Nodes, as far as watchers see them: one status each, now and then."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import cycle
from typing import cast, final

from mcm.api.core import NODES
from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.apiserver.store import Stored


@final
class Heartbeats:
    """Each Node in turn, evenly spread over the period. Nobody's request brings them about."""

    def __init__(self, server: ApiServer) -> None:
        self._store = server.store
        self._nodes = self._store.collection(NODES.plural)
        self._task: asyncio.Task[None] | None = None
        self.sent = 0

    def set_period(self, seconds: float) -> None:
        """Report each Node once in that many seconds from now on; 0: none any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if seconds > 0 and len(self._nodes):
            self._task = asyncio.create_task(self._beat(seconds))

    async def _beat(self, period: float) -> None:
        keys = sorted(self._nodes.objects)
        loop = asyncio.get_running_loop()
        due, apart = loop.time(), period / len(keys)
        for key in cycle(keys):
            due += apart
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            node = self._nodes.get(key)
            if node is not None:
                self._store.replace(NODES.plural, node, reported(node))
                self.sent += 1


def reported(node: Stored) -> JSONObject:
    """Return a Node after its kubelet's next report: nothing is new but the times."""
    now = rfc3339(datetime.now(UTC))
    status = cast(JSONObject, node.body["status"])
    conditions = cast("list[JSONObject]", status["conditions"])
    return {
        **node.body,
        "metadata": dict(node.metadata),
        "status": {
            **status,
            "conditions": [{**condition, "lastHeartbeatTime": now} for condition in conditions],
        },
    }
