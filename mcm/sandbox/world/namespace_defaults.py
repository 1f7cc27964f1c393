"""What every namespace has: its `default` ServiceAccount, and the certificate to trust."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import final

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Request
from mcm.sandbox.apiserver.kinds.builtin import NAMESPACES
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.apiserver.store import Change, ChangeType

USER_AGENT = "namespace-defaults"
_ACCOUNT = ("serviceaccounts", "default")
_CERTIFICATE = ("configmaps", "kube-root-ca.crt")


@final
class NamespaceDefaults:
    """Makes both in each namespace, again where somebody deleted them. ``root_ca`` is in PEM."""

    def __init__(self, server: ApiServer, root_ca: str) -> None:
        self._server = server
        self._root_ca = root_ca
        self._pending: dict[str, None] = {}
        self._work = asyncio.Event()

    async def run(self) -> None:
        """Provide until cancelled, those first that are there already."""
        unsubscribe = self._server.store.subscribe(self._observe)
        try:
            for namespace in self._server.store.collection(NAMESPACES):
                self._consider(namespace.name)
            while True:
                await self._work.wait()
                self._work.clear()
                while self._pending:
                    self._provide(next(iter(self._pending)))
                    await self._server.clock.sleep(0)
        finally:
            unsubscribe()

    def _observe(self, change: Change) -> None:
        if change.storage == NAMESPACES:
            if change.type is ChangeType.ADDED:
                self._consider(change.stored.name)
        elif change.type is ChangeType.DELETED and _is_ours(change):
            self._consider(change.stored.namespace)

    def _consider(self, namespace: str) -> None:
        self._pending[namespace] = None
        self._work.set()

    def _provide(self, name: str) -> None:
        del self._pending[name]
        namespace = self._server.store.collection(NAMESPACES).get(name)
        if namespace is None or namespace.terminating:
            return
        for plural, obj in self._wanted():
            meta = obj["metadata"]
            assert isinstance(meta, dict)
            if self._server.store.collection(plural).get(f"{name}/{meta['name']}") is None:
                self._create(f"/api/v1/namespaces/{name}/{plural}", obj)

    def _wanted(self) -> Iterator[tuple[str, JSONObject]]:
        plural, name = _ACCOUNT
        yield plural, {"metadata": {"name": name}}
        plural, name = _CERTIFICATE
        note = "The certificates by which clients in the cluster know its API server."
        meta = {"name": name, "annotations": {"kubernetes.io/description": note}}
        yield plural, {"metadata": meta, "data": {"ca.crt": self._root_ca}}

    def _create(self, path: str, obj: JSONObject) -> None:
        """A refusal means that the namespace is going, or that somebody was faster."""
        headers = {"content-type": "application/json", "user-agent": USER_AGENT}
        self._server.respond(Request("POST", path, headers=headers, body=orjson.dumps(obj)))


def _is_ours(change: Change) -> bool:
    return (change.storage, change.stored.name) in (_ACCOUNT, _CERTIFICATE)
