"""Owner-reference garbage collection, as the controller manager of a real cluster does it.

An object whose owners are all gone is deleted; one with some owners left loses its references to
the others. A deletion in the foreground waits for the dependents that block it, an orphaning one
first takes its references off them. Work comes from the store's changes; nothing is polled.

Without a running collector, propagation policies stay finalizers and dependents stay alive: that,
too, is how a server without controllers behaves.
"""

from __future__ import annotations

import asyncio
import logging
from typing import cast, final

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Request
from mcm.sandbox.apiserver.garbage.owners import Node, OwnerGraph, Standing
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.apiserver.store import Change
from mcm.sandbox.apiserver.writing.deletion import FOREGROUND_FINALIZER, ORPHAN_FINALIZER

logger = logging.getLogger(__name__)

USER_AGENT = "garbage-collector"
_ITEMS_PER_TURN = 16


@final
class GarbageCollector:
    """Acts on one server while :meth:`run` runs. Writes are requests, and counted as such."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._graph = OwnerGraph(server.registry)
        # Insertion-ordered set of uids to look at.
        self._pending: dict[str, None] = {}
        self._work = asyncio.Event()

    async def run(self) -> None:
        """Collect until cancelled. What happened before counts: the whole store is looked at."""
        unsubscribe = self._server.store.subscribe(self._observe)
        try:
            self._enqueue(*self._graph.load(self._server.store))
            while True:
                await self._work.wait()
                self._work.clear()
                while self._pending:
                    self._collect(_ITEMS_PER_TURN)
                    await self._server.clock.sleep(0)
        finally:
            unsubscribe()

    def _observe(self, change: Change) -> None:
        self._enqueue(*self._graph.observe(change))

    def _enqueue(self, *uids: str) -> None:
        for uid in uids:
            self._pending[uid] = None
        if self._pending:
            self._work.set()

    def _collect(self, most: int) -> None:
        for uid in list(self._pending)[:most]:
            del self._pending[uid]
            node = self._graph.node(uid)
            if node is not None:
                self._examine(node)

    def _examine(self, node: Node) -> None:
        stored = node.stored
        if stored.terminating:
            if ORPHAN_FINALIZER in stored.finalizers:
                self._orphan_dependents(node)
            elif FOREGROUND_FINALIZER in stored.finalizers:
                self._await_dependents(node)
        elif stored.owner_references:
            self._judge(node)

    # ---- an owner that is being deleted ---------------------------------------------------------

    def _orphan_dependents(self, owner: Node) -> None:
        for dependent in self._graph.dependents(owner.uid):
            kept = [r for r in dependent.stored.owner_references if r.get("uid") != owner.uid]
            if not self._set_owners(dependent, kept):
                return  # with the reference left on it, it would be deleted next
        self._drop_finalizer(owner, ORPHAN_FINALIZER)

    def _await_dependents(self, owner: Node) -> None:
        dependents = self._graph.dependents(owner.uid)
        if any(d.blocks(owner.uid) for d in dependents):
            self._enqueue(*(d.uid for d in dependents if not d.stored.terminating))
        else:
            self._drop_finalizer(owner, FOREGROUND_FINALIZER)

    def _drop_finalizer(self, node: Node, finalizer: str) -> None:
        self._patch(node, {"finalizers": [f for f in node.stored.finalizers if f != finalizer]})

    # ---- an object with owners ------------------------------------------------------------------

    def _judge(self, node: Node) -> None:
        references = node.stored.owner_references
        standings = [self._graph.standing(node, reference) for reference in references]
        if Standing.SOLID in standings:
            kept = [r for r, s in zip(references, standings, strict=True) if s is Standing.SOLID]
            if len(kept) < len(references):
                self._set_owners(node, kept)
            return
        self._delete(node, self._policy(node, awaited=Standing.AWAITING in standings))

    def _policy(self, node: Node, *, awaited: bool) -> str:
        dependents = self._graph.dependents(node.uid)
        if awaited and dependents:
            if any(FOREGROUND_FINALIZER in d.stored.finalizers for d in dependents):
                self._unblock_owners(node)  # a circle of owners would wait for itself
            return "Foreground"
        if ORPHAN_FINALIZER in node.stored.finalizers:
            return "Orphan"
        return "Foreground" if FOREGROUND_FINALIZER in node.stored.finalizers else "Background"

    def _unblock_owners(self, node: Node) -> None:
        references = node.stored.owner_references
        self._set_owners(node, [{**r, "blockOwnerDeletion": False} for r in references])

    # ---- writes ---------------------------------------------------------------------------------

    def _set_owners(self, node: Node, references: list[JSONObject]) -> bool:
        return self._patch(node, {"ownerReferences": references or None})

    def _patch(self, node: Node, meta: JSONObject) -> bool:
        """Merge into the metadata of that very object; False if the server refuses."""
        return self._send(node, "PATCH", {"metadata": {**meta, "uid": node.uid}})

    def _delete(self, node: Node, policy: str) -> None:
        options: JSONObject = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": node.uid},
            "propagationPolicy": policy,
        }
        self._send(node, "DELETE", options)

    def _send(self, node: Node, method: str, body: JSONObject) -> bool:
        info = self._server.registry.of_storage(node.storage)
        if info is None:
            return True
        media_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = Request(
            method,
            info.path(node.stored.namespace, node.stored.name),
            headers={"content-type": media_type, "user-agent": USER_AGENT},
            body=orjson.dumps(body),
        )
        status = self._server.respond(request).status
        # The graph is exact and requests do not interleave: a race cannot be lost, and what is
        # refused would be refused again.
        if status >= 400 and status != 404:
            logger.warning(
                "garbage collection was refused",
                extra={"path": request.path, "method": method, "code": status},
            )
            return False
        return True


def controller_reference(owner: JSONObject, *, blocks: bool = True) -> JSONObject:
    """Return the owner reference a controller puts on what it makes, for the sandbox's actors."""
    meta = cast(JSONObject, owner["metadata"])
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": blocks,
    }
