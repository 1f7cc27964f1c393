"""How long a volume takes to be attached and detached, and how often that fails."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from mcm.sandbox.world.kinds import PersistentVolume

PREFIX = "simulation.machine.sapcloud.io/"
NEVER = "never"
_ANNOTATIONS = {
    "attachSeconds": f"{PREFIX}attach-seconds",
    "detachSeconds": f"{PREFIX}detach-seconds",
    "attachFailures": f"{PREFIX}attach-failures",
    "detachFailures": f"{PREFIX}detach-failures",
}
_LONGEST = 86_400.0


@final
@dataclass(frozen=True, slots=True)
class Behaviour:
    """Seconds, None for never; and how many attempts fail first, counted for each attachment."""

    attach_seconds: float | None = 2.0
    detach_seconds: float | None = 1.0
    attach_failures: int = 0
    detach_failures: int = 0


def behaviour_of(volume: PersistentVolume) -> Behaviour:
    """Read a volume's attributes (its class's parameters), and its annotations, which win.

    Raises ValueError, which names what cannot be read.
    """
    csi = volume.spec.csi
    settings = dict(csi.volume_attributes) if csi is not None else {}
    for name, annotation in _ANNOTATIONS.items():
        if annotation in volume.metadata.annotations:
            settings[name] = volume.metadata.annotations[annotation]
    return read_behaviour(settings)


def read_behaviour(settings: Mapping[str, str]) -> Behaviour:
    """Read ``attachSeconds``, ``detachSeconds`` (or ``never``), ``attachFailures`` and
    ``detachFailures``; all else is others'. Raises ValueError, which names what cannot be read."""
    return Behaviour(
        _seconds(settings, "attachSeconds", _DEFAULT.attach_seconds),
        _seconds(settings, "detachSeconds", _DEFAULT.detach_seconds),
        _count(settings, "attachFailures"),
        _count(settings, "detachFailures"),
    )


_DEFAULT = Behaviour()


def _seconds(settings: Mapping[str, str], name: str, default: float | None) -> float | None:
    text = settings.get(name, "").strip()
    if text == NEVER:
        return None
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = math.nan
    if seconds is None or 0 <= seconds <= _LONGEST:
        return seconds
    raise ValueError(
        f"{name} is {text!r}: want a number of seconds from 0 to {_LONGEST:.0f}, or {NEVER!r}"
    )


def _count(settings: Mapping[str, str], name: str) -> int:
    text = settings.get(name, "").strip() or "0"
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f"{name} is {text!r}: want a whole number, 0 or more")
    return int(text)
