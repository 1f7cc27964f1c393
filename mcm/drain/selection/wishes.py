"""What a pod's own labels and annotations ask of a drain, and which of them nobody understands."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from mcm.api.core import Pod
from mcm.api.names import (
    ANNOTATION_DRAIN_SURGE,
    ANNOTATION_DRAIN_WAVE,
    LABEL_CLUSTER_API_DRAIN,
    LABEL_POD_DRAIN,
)

INT32: Final = range(-(2**31), 2**31)
"""The waves that an annotation may name, and the priorities there are."""


class Wish(StrEnum):
    """Values of the label. Others count as none."""

    SKIP = "skip"
    WAIT_COMPLETED = "wait-completed"


_WISHES: Final = {wish.value: wish for wish in Wish}


def wish_of(pod: Pod) -> Wish | None:
    """Read the pod's label; ours wins over Cluster API's, unless nobody understands it."""
    labels = pod.metadata.labels
    if not labels:
        return None
    ours = _read(labels.get(LABEL_POD_DRAIN, ""))
    return ours if ours is not None else _read(labels.get(LABEL_CLUSTER_API_DRAIN, ""))


class SurgeKind(StrEnum):
    """How a successor is made before the pod goes. Other values count as none."""

    RESTART = "restart"
    SCALE = "scale"


def asked_surge(pod: Pod) -> SurgeKind | None:
    """Read the pod's annotation that asks for a successor first."""
    text = pod.metadata.annotations.get(ANNOTATION_DRAIN_SURGE, "")
    return next((kind for kind in SurgeKind if kind == text), None)


def asked_wave(pod: Pod) -> int:
    """Read the pod's annotation. None, and one that is no whole number of 32 bits, is wave 0."""
    text = pod.metadata.annotations.get(ANNOTATION_DRAIN_WAVE)
    wave = _wave_in(text) if text is not None else None
    return wave if wave is not None else 0


def misread(pod: Pod) -> Iterator[str]:
    """Say of each value that nobody understands what it counts as."""
    for label in (LABEL_POD_DRAIN, LABEL_CLUSTER_API_DRAIN):
        value = pod.metadata.labels.get(label, "")
        if value and _read(value) is None:
            known = " nor ".join(Wish)
            yield f"its label {label} is {value!r}, neither {known}: it counts as none"
    text = pod.metadata.annotations.get(ANNOTATION_DRAIN_WAVE)
    if text is not None and _wave_in(text) is None:
        what = f"its annotation {ANNOTATION_DRAIN_WAVE} is {_short(text)!r}"
        yield f"{what}, which is no whole number of 32 bits: it counts as 0"
    surge = pod.metadata.annotations.get(ANNOTATION_DRAIN_SURGE, "")
    if surge and asked_surge(pod) is None:
        what = f"its annotation {ANNOTATION_DRAIN_SURGE} is {_short(surge)!r}"
        yield f"{what}, neither {' nor '.join(SurgeKind)}: it counts as none"


def _read(value: str) -> Wish | None:
    # Cluster API does not mind the case either.
    return _WISHES.get(value.lower()) if value else None


def _wave_in(text: str) -> int | None:
    if len(text) > 20 or not text.isascii():
        return None
    try:
        wave = int(text)
    except ValueError:
        return None
    return wave if wave in INT32 else None


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
