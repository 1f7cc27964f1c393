"""Which taints a Node is to have: those of the template, and other people's as they are.

One of them is ours, whoever put it there: it keeps pods away until the machine runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mcm.api.core import Taint
from mcm.api.meta import JSONObject
from mcm.api.names import TAINT_INSTANCE_NOT_READY


def taints_to_write(
    present: Sequence[Taint], applied: Sequence[Taint], wanted: Sequence[Taint]
) -> tuple[Taint, ...] | None:
    """Return the complete new list, in the order found; None if nothing changes.

    ``applied`` is what was applied last: what is no longer wanted of it leaves the Node.
    """
    want = {_place(taint): taint for taint in wanted}
    drop = {_place(taint) for taint in applied} - want.keys()
    result: list[Taint] = []
    for taint in present:
        place = _place(taint)
        if place in drop:
            continue
        wish = want.pop(place, None)
        # The time a taint was added is not part of the wish: as given once, so it stays.
        result.append(taint if wish is None or wish.value == taint.value else wish)
    result.extend(want.values())
    return None if result == list(present) else tuple(result)


def is_instance_not_ready(taint: Taint) -> bool:
    return taint.key == TAINT_INSTANCE_NOT_READY


def _place(taint: Taint) -> tuple[str, str]:
    return taint.key, taint.effect


def encode_taint(taint: Taint) -> JSONObject:
    encoded: JSONObject = msgspec.to_builtins(taint)
    return {k: encoded[k] for k in ("key", "value", "effect", "timeAdded") if k in encoded}
