"""What people should know of a pod that a drain has to do with, in words that follow its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from mcm.api.core import Pod
from mcm.drain.pods import is_finished
from mcm.drain.selection.arrangement import Arrangement, Stay
from mcm.drain.selection.wishes import asked_surge, misread


class RemarkKind(Enum):
    MISREAD = auto()
    """A label or annotation for drains that nobody understands: for its author to mend."""
    COMES_BACK = auto()
    """Left on the node, as its owner puts it back: for the owner's author to mend."""
    UNMANAGED = auto()
    """Nobody makes another one."""
    NO_SUCCESSOR = auto()
    """It asks for one before it goes, and gets none."""
    SUCCESSOR_FIRST = auto()
    """It asks for one before it goes."""
    LOCAL_STORAGE = auto()
    """What it has in its ``emptyDir`` volumes is lost."""


@final
@dataclass(frozen=True, slots=True)
class Remark:
    """``text`` follows the pod's name."""

    pod: Pod
    kind: RemarkKind
    text: str

    def __str__(self) -> str:
        return f"pod {self.pod.metadata.key}: {self.text}"


def remarks_on(arrangement: Arrangement) -> Iterator[Remark]:
    """Say what there is to say, pod by pod."""
    yield from to_mend(arrangement)
    for pod in arrangement.taken:
        if is_finished(pod):
            continue
        if (surge := asked_surge(pod)) is not None:
            text = f"asks for a successor before it goes ({surge.value} of its Deployment)"
            yield Remark(pod, RemarkKind.SUCCESSOR_FIRST, text)
        if pod.metadata.controller_ref() is None:
            yield Remark(pod, RemarkKind.UNMANAGED, "no controller owns it, so none replaces it")
        if any(volume.empty_dir is not None for volume in pod.spec.volumes):
            text = "what it keeps in emptyDir volumes is lost"
            yield Remark(pod, RemarkKind.LOCAL_STORAGE, text)


def to_mend(arrangement: Arrangement) -> Iterator[Remark]:
    """Say only what somebody should mend: the rest is how drains are."""
    for left in arrangement.left:
        if left.why in (Stay.MIRROR, Stay.DAEMON_SET):
            continue
        yield from _misread(left.pod)
        if left.why is Stay.COMES_BACK:
            yield Remark(left.pod, RemarkKind.COMES_BACK, _comes_back(left.pod))
    for pod in arrangement.taken:
        yield from _misread(pod)


def _misread(pod: Pod) -> Iterator[Remark]:
    return (Remark(pod, RemarkKind.MISREAD, text) for text in misread(pod))


def _comes_back(pod: Pod) -> str:
    owner = pod.metadata.controller_ref()
    name = f"{owner.kind} {pod.metadata.namespace}/{owner.name}" if owner else "its owner"
    return (
        f"{name} has put pods back onto the node twice, which tolerate its being unschedulable; "
        "this one is left there"
    )
