"""Sharing the texts which every machine and node repeats: their conditions' words.

A condition's type, status, reason and message are mostly the same few texts in a whole fleet, yet
decoding makes new ones each time. Sharing them takes 25 % off a Machine's memory (numbers:
:mod:`mcm.api.codec`).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import force_setattr

from mcm.api.core import NodeCondition

# A bound instead of sys.intern: messages may be anything, and some interpreters never free those.
_LIMIT = 4096
_LONGEST = 128
_texts: dict[str, str] = {}


def share_condition_texts(conditions: Iterable[NodeCondition]) -> None:
    """Replace the texts of freshly decoded conditions by equal ones seen before.

    Only for objects nobody else has seen yet: it writes to frozen ones. They stay equal.
    """
    if len(_texts) > _LIMIT:
        _texts.clear()
    share = _texts.setdefault
    for condition in conditions:
        force_setattr(condition, "type", share(condition.type, condition.type))
        force_setattr(condition, "status", share(condition.status, condition.status))
        force_setattr(condition, "reason", share(condition.reason, condition.reason))
        if len(condition.message) <= _LONGEST:
            force_setattr(condition, "message", share(condition.message, condition.message))
