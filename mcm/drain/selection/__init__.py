"""Which pods of a node a drain takes away, and in which order.

:func:`arrange` puts every pod of a node into exactly one place: left where it is, awaited until it
completes by itself, or in a wave. A wave begins when the one before is gone. It is pure: what it
must know beside the pods, how often owners have put pods back, is :class:`Comeback`, which the
drain's record keeps. What people should know of a pod's place is for :func:`remarks_on` to say.
"""

from __future__ import annotations

from mcm.drain.selection.arrangement import Arrangement, Left, Stay, arrange, must_go
from mcm.drain.selection.comebacks import (
    CORDON,
    NO_COMEBACKS,
    Comeback,
    Comebacks,
    with_eviction,
)
from mcm.drain.selection.remarks import Remark, RemarkKind, remarks_on
from mcm.drain.selection.waves import ONE_WAVE, WaveSettings
from mcm.drain.selection.wishes import SurgeKind, asked_surge

__all__ = [
    "CORDON",
    "NO_COMEBACKS",
    "ONE_WAVE",
    "Arrangement",
    "Comeback",
    "Comebacks",
    "Left",
    "Remark",
    "RemarkKind",
    "Stay",
    "SurgeKind",
    "WaveSettings",
    "arrange",
    "asked_surge",
    "must_go",
    "remarks_on",
    "with_eviction",
]
