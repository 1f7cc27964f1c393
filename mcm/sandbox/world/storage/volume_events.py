"""The events of a pod whose volumes are attached, or are not: each said once."""

from __future__ import annotations

from typing import final

from mcm.events import EventSink, EventType
from mcm.sandbox.world.kinds import PODS, Pod, VolumeAttachment

_FAILED = "FailedAttachVolume"
_SUCCEEDED = "SuccessfulAttachVolume"


@final
class VolumeEvents:
    """Remembers what was said of each pod, until it is forgotten."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._said: dict[str, set[str]] = {}

    def attachment(self, pod: Pod, attachment: VolumeAttachment) -> None:
        """Tell a pod that waits that its volume has come, or why it has not."""
        if pod.status.phase not in ("", "Pending") or attachment.terminating:
            return
        volume, error = attachment.volume_name, attachment.status.attach_error
        if attachment.status.attached:
            note = f'AttachVolume.Attach succeeded for volume "{volume}"'
            self._say(pod, EventType.NORMAL, _SUCCEEDED, note)
        elif error is not None:
            note = f'AttachVolume.Attach failed for volume "{volume}" : {error.message}'
            self._say(pod, EventType.WARNING, _FAILED, note)

    def multi_attach(self, pod: Pod, message: str) -> None:
        self._say(pod, EventType.WARNING, _FAILED, message)

    def forget(self, pod: Pod) -> None:
        self._said.pop(pod.metadata.uid, None)

    def _say(self, pod: Pod, kind: EventType, reason: str, note: str) -> None:
        said = self._said.setdefault(pod.metadata.uid, set())
        if note not in said:
            said.add(note)
            self._sink.event(PODS, pod, kind, reason, note, action="Attach")
