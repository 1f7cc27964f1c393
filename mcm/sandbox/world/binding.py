"""Putting a pod on a Node: the one verb that only schedulers use."""

from __future__ import annotations

from typing import final

import msgspec

from mcm.api.core import PODS, Pod
from mcm.client import answers
from mcm.client.transport import Request, Transport


@final
class Binder:
    """Binds in the name of ``user_agent``. Raises what the client's verbs raise."""

    def __init__(self, transport: Transport, *, user_agent: str) -> None:
        self._transport = transport
        self._headers = {"Content-Type": "application/json", "User-Agent": user_agent}

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Raises Conflict if it is bound already or being deleted, NotFound if it is gone."""
        meta = pod.metadata
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        path = PODS.path(meta.namespace, meta.name, "binding")
        request = Request("POST", path, headers=self._headers, body=msgspec.json.encode(binding))
        response = await self._transport.request(request)
        error = answers.failure(response.status, response.headers, response.body)
        if error is not None:
            raise error
