"""Writes marks: on what nobody has and is to be ours, and on what is ours and is another's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, final

from mcm.api.meta import KubeObject, ObjectMeta
from mcm.client.errors import NotFound
from mcm.client.verbs import ObjectReader, ObjectWriter
from mcm.clock import Clock
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers import Change
from mcm.sharding.gate import Gate
from mcm.sharding.membership import HandOver, Take, decide
from mcm.sharding.peers import Peers
from mcm.sharding.roots import DIVIDED, Roots
from mcm.sharding.shard import MARK, Shard, holder_of

log = logging.getLogger(__name__)

NAME: Final = "shard"
_LOOK_AGAIN: Final = 1.0
"""Seconds until it is asked again whether what is under way for an object has ended."""
_RESOURCES: Final = {resource.plural: resource for resource in DIVIDED}


def key_of(plural: str, key: str) -> str:
    """Return the key of this controller for an object."""
    return f"{plural}/{key}"


@final
class Marks:
    """Keyed by :func:`key_of`.

    An object that is handed over is shut off first, and given away once nothing is under way for
    it. A write that gave it away may have been carried out although no answer came: as long as the
    mirror shows the version that it was bound to, it is repeated, whatever else has changed since.
    A conflict proves nothing: it may be with that very write.
    """

    def __init__(
        self, us: Shard, roots: Roots, gate: Gate, peers: Peers, *,
        reader: ObjectReader, writer: ObjectWriter, clock: Clock,
        handed_over: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._us = us
        self._roots = roots
        self._gate = gate
        self._peers = peers
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._handed_over = handed_over
        self._sent: dict[str, tuple[str, str]] = {}
        """Of objects that may have been given away: at which version, and to whom."""

    async def reconcile(self, key: str) -> Outcome:
        """Bring the mark of one object up to date. Raises what the client raises."""
        plural, _, object_key = key.partition("/")
        obj = self._roots.store(plural).get(object_key)
        if obj is None:
            self._sent.pop(key, None)
            self._gate.open(plural, object_key)
            return DONE
        match self._decision(key, obj):
            case Take():
                await self._mark(plural, obj.metadata, self._us.name)
            case HandOver(to):
                if key not in self._sent and not await self._is_confirmed(plural, obj):
                    return Outcome(_LOOK_AGAIN, "the mirror of its owners lags")
                return await self._hand_over(key, plural, obj.metadata, to)
            case _:
                self._gate.open(plural, object_key)
        return DONE

    def _decision(self, key: str, obj: KubeObject) -> object:
        meta = obj.metadata
        version, to = self._sent.get(key, ("", ""))
        if version == meta.resource_version:
            return HandOver(to)
        self._sent.pop(key, None)
        return decide(
            self._us,
            holder_of(meta),
            self._roots.standing_of(obj),
            deleting=meta.deletion_timestamp is not None,
            alive=self._peers.alive(self._clock.monotonic()),
        )

    async def _is_confirmed(self, plural: str, obj: KubeObject) -> bool:
        """Ask the server for the labels that are decided by, where these are an owner's: the write
        is not bound to that one's version. Two shards of which one's mirror lags would give the
        object to each other again and again."""
        of, meta = self._roots.top_of(plural, obj)
        if meta.uid == obj.metadata.uid:
            return True
        try:
            live = await self._reader.get(_RESOURCES[of], meta.name, namespace=meta.namespace)
        except NotFound:
            return False
        return (live.metadata.uid, live.metadata.labels) == (meta.uid, meta.labels)

    async def _hand_over(self, key: str, plural: str, meta: ObjectMeta, to: str) -> Outcome:
        self._gate.close(plural, meta.key)
        if self._gate.is_busy(plural, meta.key):
            return Outcome(_LOOK_AGAIN, "something is under way for it")
        self._sent[key] = (meta.resource_version, to)
        await self._mark(plural, meta, to)
        self._sent.pop(key, None)
        self._handed_over()
        log.info("handed over", extra={"object": key, "to": to})
        self._gate.open(plural, meta.key)
        return DONE

    async def _mark(self, plural: str, meta: ObjectMeta, shard: str) -> None:
        patch = for_this_version(meta, {"metadata": {"annotations": {MARK: shard}}})
        try:
            await self._writer.patch(_RESOURCES[plural], meta.name, patch, namespace=meta.namespace)
        except NotFound:
            return


def concerned_by(plural: str, roots: Roots) -> Callable[[Change[KubeObject]], Iterable[str]]:
    """Return what tells which marks a change of an object of ``plural`` may change."""

    def keys(change: Change[KubeObject]) -> Iterable[str]:
        old, new = change.old, change.new
        if old is not None and new is not None and _seen(old) == _seen(new):
            return
        yield key_of(plural, change.object.metadata.key)
        if old is None or new is None or _place(old) != _place(new):
            for below in roots.below(change.object):
                yield key_of(*below)

    return keys


def _seen(obj: KubeObject) -> object:
    meta = obj.metadata
    return (*_place(obj), holder_of(meta), meta.deletion_timestamp is not None)


def _place(obj: KubeObject) -> tuple[object, object]:
    return (obj.metadata.labels, obj.metadata.controller_ref())
