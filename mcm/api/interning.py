"""Sharing what every machine, node and pod repeats: the words of conditions, whole tolerations.

A condition's reason and message are mostly the same few texts in a whole fleet, yet decoding makes
new ones each time. Sharing these two is most of what sharing can save for its price; type and
status, which are short, would save half as much again and cost as much again. A pod's tolerations
take a quarter of it, and are the same two for most.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import force_setattr

from mcm.api.core import NodeCondition, Pod, Toleration

# A bound instead of sys.intern: messages may be anything, and some interpreters never free those.
_LIMIT = 4096
_LONGEST = 128
_texts: dict[str, str] = {}
_tolerations: dict[tuple[Toleration, ...], tuple[Toleration, ...]] = {}


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


def share_tolerations(pod: Pod) -> None:
    """Replace a freshly decoded pod's tolerations by equal ones seen before, as above."""
    if len(_tolerations) > _LIMIT:
        _tolerations.clear()
    tolerations = pod.spec.tolerations
    if tolerations:
        force_setattr(pod.spec, "tolerations", _tolerations.setdefault(tolerations, tolerations))
