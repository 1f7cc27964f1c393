"""The driver's side of an attachment: it takes its time, may fail, and says how it went."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, final

from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339
from mcm.client.client import Client
from mcm.client.errors import NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.kinds import (
    PERSISTENT_VOLUMES,
    VOLUME_ATTACHMENTS,
    PersistentVolume,
    VolumeAttachment,
)
from mcm.sandbox.world.storage.attachments import finalizer_of
from mcm.sandbox.world.storage.behaviour import Behaviour, behaviour_of
from mcm.sandbox.world.storage.indexes import OF_VOLUME

_SOONEST_RETRY, _LATEST_RETRY = 1.0, 60.0
_ATTACH, _DETACH = "attach", "detach"


@final
@dataclass(slots=True)
class _Attempt:
    """What is under way for an attachment, when it may begin and how often it has failed; times
    are monotonic seconds."""

    action: str
    since: float
    failures: int = 0


@final
class Attacher(Actor):
    """Keyed by attachment; serves every driver whose volumes need attaching.

    Its finalizer keeps an attachment until the volume is detached. A process that starts anew
    begins each attempt, and the count of failures, anew.
    """

    name = "csi-attacher"
    workers: ClassVar[int] = 8

    def __init__(self, client: Client, mirror: InformerFactory, *, clock: Clock) -> None:
        super().__init__(client, mirror, clock=clock)
        self._volumes = mirror.store(PERSISTENT_VOLUMES)
        self._attachments = mirror.store(VOLUME_ATTACHMENTS)
        self._attempts: dict[str, _Attempt] = {}
        mirror.informer(VOLUME_ATTACHMENTS).add_handler(self._on_attachment)
        mirror.informer(PERSISTENT_VOLUMES).add_handler(self._on_volume)

    def _on_attachment(self, change: Change[VolumeAttachment]) -> None:
        if change.new is None:
            self._attempts.pop(change.object.metadata.uid, None)
        else:
            self._queue.add(change.new.metadata.key)

    def _on_volume(self, change: Change[PersistentVolume]) -> None:
        """Its settings may be others now."""
        for attachment in self._attachments.by_index(OF_VOLUME, change.object.metadata.name):
            self._queue.add(attachment.metadata.key)

    async def _reconcile(self, key: str) -> Outcome:
        attachment = self._attachments.get(key)
        if attachment is None:
            return DONE
        volume = self._volumes.get(attachment.volume_name)
        with suppress(NotFound):
            if attachment.terminating:
                return await self._detach(attachment, volume)
            if volume is not None and _serves(attachment, volume):
                return await self._attach(attachment, volume)
        return DONE

    async def _attach(self, attachment: VolumeAttachment, volume: PersistentVolume) -> Outcome:
        if attachment.status.attached:
            return DONE
        finalizer = finalizer_of(attachment)
        if finalizer not in attachment.metadata.finalizers:
            kept = [*attachment.metadata.finalizers, finalizer]
            attachment = await self._set_finalizers(attachment, kept)
        try:
            behaviour = behaviour_of(volume)
        except ValueError as error:
            await self._fail(attachment, "attachError", str(error))
            return DONE
        attempt = self._attempt(attachment, _ATTACH)
        if (left := self._left(attempt, behaviour.attach_seconds)) > 0:
            return _until(left, attempt)
        if attempt.failures < behaviour.attach_failures:
            text = f"the simulated driver fails {behaviour.attach_failures} times to attach"
            await self._fail(attachment, "attachError", text)
            return self._again(attempt, behaviour.attach_seconds)
        await self._set_status(attachment, {"attached": True, "attachError": None})
        self._attempts.pop(attachment.metadata.uid, None)
        return DONE

    async def _detach(
        self, attachment: VolumeAttachment, volume: PersistentVolume | None
    ) -> Outcome:
        finalizer = finalizer_of(attachment)
        if finalizer not in attachment.metadata.finalizers:
            return DONE
        behaviour = _lenient_behaviour(volume)
        attempt = self._attempt(attachment, _DETACH)
        if attachment.status.attached:
            if (left := self._left(attempt, behaviour.detach_seconds)) > 0:
                return _until(left, attempt)
            if attempt.failures < behaviour.detach_failures:
                text = f"the simulated driver fails {behaviour.detach_failures} times to detach"
                await self._fail(attachment, "detachError", text)
                return self._again(attempt, behaviour.detach_seconds)
        kept = [f for f in attachment.metadata.finalizers if f != finalizer]
        await self._set_finalizers(attachment, kept)
        return DONE

    # ---- attempts -------------------------------------------------------------------------------

    def _attempt(self, attachment: VolumeAttachment, action: str) -> _Attempt:
        uid = attachment.metadata.uid
        known = self._attempts.get(uid)
        if known is None or known.action != action:
            known = self._attempts[uid] = _Attempt(action, since=self._clock.monotonic())
        return known

    def _left(self, attempt: _Attempt, seconds: float | None) -> float:
        """Return the seconds it still takes; infinitely many if it will never be."""
        taken = self._clock.monotonic() - attempt.since
        return math.inf if seconds is None else seconds - taken

    def _again(self, attempt: _Attempt, seconds: float | None) -> Outcome:
        pause = min(_SOONEST_RETRY * 2.0**attempt.failures, _LATEST_RETRY)
        attempt.failures += 1
        attempt.since = self._clock.monotonic() + pause
        return Outcome(after=pause + (seconds or 0.0), reason=f"{attempt.action} failed")

    # ---- writes ---------------------------------------------------------------------------------

    async def _fail(self, attachment: VolumeAttachment, member: str, message: str) -> None:
        shown = attachment.status
        error = shown.attach_error if member == "attachError" else shown.detach_error
        if error is None or error.message != message:
            said = {"message": message, "time": rfc3339(self._clock.now())}
            await self._set_status(attachment, {member: said})

    async def _set_status(self, attachment: VolumeAttachment, status: JSONObject) -> None:
        meta = attachment.metadata
        patch: JSONObject = {"metadata": {"uid": meta.uid}, "status": status}
        await self._writer.patch(VOLUME_ATTACHMENTS, meta.name, patch, subresource="status")

    async def _set_finalizers(
        self, attachment: VolumeAttachment, finalizers: list[str]
    ) -> VolumeAttachment:
        """The version is a precondition: others have finalizers, too."""
        meta = attachment.metadata
        patch: JSONObject = {
            "metadata": {
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
                "finalizers": finalizers or None,
            }
        }
        return await self._writer.patch(VOLUME_ATTACHMENTS, meta.name, patch)


def _until(left: float, attempt: _Attempt) -> Outcome:
    """What never ends by itself ends when somebody changes the volume."""
    return DONE if math.isinf(left) else Outcome(after=left, reason=attempt.action)


def _serves(attachment: VolumeAttachment, volume: PersistentVolume) -> bool:
    csi = volume.spec.csi
    return (
        csi is not None and bool(volume.attached_name) and (csi.driver == attachment.spec.attacher)
    )


def _lenient_behaviour(volume: PersistentVolume | None) -> Behaviour:
    """A volume that is gone or illegible must not keep its attachment for ever."""
    try:
        return behaviour_of(volume) if volume is not None else Behaviour()
    except ValueError:
        return Behaviour()
