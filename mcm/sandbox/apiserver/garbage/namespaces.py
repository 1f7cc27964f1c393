"""Empties namespaces that are being deleted, and lets them go: the namespace controller's part."""

from __future__ import annotations

import asyncio
from typing import cast, final

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Request
from mcm.sandbox.apiserver.kinds.builtin import NAMESPACES
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.apiserver.store import Change, ChangeType, Stored

USER_AGENT = "namespace-controller"


@final
class NamespaceController:
    """Acts on one server while :meth:`run` runs; without it, namespaces stay Terminating."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._pending: dict[str, None] = {}
        self._work = asyncio.Event()

    async def run(self) -> None:
        """Empty namespaces until cancelled, those first that are waiting already."""
        unsubscribe = self._server.store.subscribe(self._observe)
        try:
            for namespace in self._server.store.collection(NAMESPACES):
                self._consider(namespace)
            while True:
                await self._work.wait()
                self._work.clear()
                while self._pending:
                    self._proceed(next(iter(self._pending)))
                    await self._server.clock.sleep(0)
        finally:
            unsubscribe()

    def _observe(self, change: Change) -> None:
        if change.storage == NAMESPACES:
            self._consider(change.stored)
        elif change.type is ChangeType.DELETED and change.stored.namespace:
            self._consider(self._namespace(change.stored.namespace))

    def _consider(self, namespace: Stored | None) -> None:
        if namespace is not None and namespace.terminating:
            self._pending[namespace.name] = None
            self._work.set()

    def _namespace(self, name: str) -> Stored | None:
        return self._server.store.collection(NAMESPACES).get(name)

    def _proceed(self, name: str) -> None:
        """Delete what is in the namespace and not being deleted; finalize it once it is empty."""
        del self._pending[name]
        namespace = self._namespace(name)
        if namespace is None or not namespace.terminating:
            return
        for info in self._namespaced():
            if any(not s.terminating for s in self._contents(info, name)):
                self._send("DELETE", info.path(name))
        if not any(self._contents(info, name) for info in self._namespaced()):
            self._finalize(name)

    def _namespaced(self) -> list[ResourceInfo]:
        """Return one version of each namespaced kind."""
        kept = (i for i in self._server.registry if i.namespaced and "delete" in i.verbs)
        return list({info.storage: info for info in kept}.values())

    def _contents(self, info: ResourceInfo, namespace: str) -> list[Stored]:
        return self._server.store.collection(info.storage).ordered(namespace)

    def _finalize(self, name: str) -> None:
        namespace = self._namespace(name)
        if namespace is None:
            return
        spec = cast(JSONObject, namespace.body.get("spec") or {})
        finalizers = cast("list[str]", spec.get("finalizers") or [])
        if finalizers:
            body = {**namespace.body, "spec": {**spec, "finalizers": []}}
            self._send("PUT", f"/api/v1/namespaces/{name}/finalize", body)

    def _send(self, method: str, path: str, body: JSONObject | None = None) -> None:
        self._server.respond(
            Request(
                method,
                path,
                headers={"content-type": "application/json", "user-agent": USER_AGENT},
                body=orjson.dumps(body) if body is not None else b"",
            )
        )
