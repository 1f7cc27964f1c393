"""Letting equal parts of many objects be one value: most of a fleet says the same things."""

from __future__ import annotations

from msgspec.structs import force_setattr

from mcm.api.core import Node, Pod
from mcm.api.interning import share_condition_texts, share_tolerations
from mcm.api.machine import Machine
from mcm.api.meta import T

_WITH_CONDITIONS = (Machine, Node)


def share_repeated(obj: T, known: T | None) -> None:
    """Replace parts of a freshly decoded object by equal ones seen before; it stays equal.

    ``known`` is the state it succeeds. What comes out of :mod:`mcm.api.codec` needs this no more;
    what a watch's own decoder makes does.
    """
    if isinstance(obj, Pod):
        share_tolerations(obj)
    if not isinstance(obj, _WITH_CONDITIONS):
        return
    conditions = obj.status.conditions
    if isinstance(known, _WITH_CONDITIONS) and conditions == known.status.conditions:
        force_setattr(obj.status, "conditions", known.status.conditions)
    else:
        share_condition_texts(conditions)
