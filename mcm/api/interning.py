"""Sharing the texts which every machine and node repeats: the words of their conditions.

A condition's reason and message are mostly the same few texts in a whole fleet, yet decoding makes
new ones each time. Sharing these two is most of what sharing can save for its price; type and
status, which are short, would save half as much again and cost as much again.
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
    share, put = _texts.setdefault, force_setattr
    for condition in conditions:
        text = condition.reason
        put(condition, "reason", share(text, text))
        text = condition.message
        if len(text) <= _LONGEST:
            put(condition, "message", share(text, text))
