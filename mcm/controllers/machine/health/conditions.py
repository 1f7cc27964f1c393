"""What a Node's conditions say: healthy or not, changed or not, and in words.

Conditions about the machine itself, which its own list holds beside them, count for nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import NodeCondition
from mcm.api.names import (
    CONDITION_IN_PLACE_UPDATE,
    CONDITION_NODE_READY,
    STATUS_FALSE,
    STATUS_TRUE,
)
from mcm.controllers.machine.own_conditions import of_node


def is_healthy(conditions: Sequence[NodeCondition], listed: frozenset[str]) -> bool:
    """No news is bad news: a Node that never reported readiness is not ready."""
    reported = of_node(conditions)
    if not any(condition.type == CONDITION_NODE_READY for condition in reported):
        return False
    return not any(is_trouble(condition, listed) for condition in reported)


def conditions_differ(old: Sequence[NodeCondition], new: Sequence[NodeCondition]) -> bool:
    """Tell whether the lists differ in what decides: types and statuses (and update steps)."""
    return _essence(old) != _essence(new)


def describe_trouble(conditions: Sequence[NodeCondition], listed: frozenset[str]) -> str:
    """Write for people what makes a Node unhealthy: type, status, reason and message of each."""
    reported = sorted(of_node(conditions), key=lambda c: c.type)
    if not reported:
        return "none is reported"
    return "; ".join(_words(c) for c in reported if is_trouble(c, listed)) or "none is wrong"


def _words(condition: NodeCondition) -> str:
    why = ": ".join(text for text in (condition.reason, condition.message) if text)
    return f"{condition.type}={condition.status}" + (f" ({why})" if why else "")


def is_trouble(condition: NodeCondition, listed: frozenset[str]) -> bool:
    """Tell whether ``condition`` alone makes a Node unhealthy; ``listed`` are those that may not be
    True."""
    if condition.type == CONDITION_NODE_READY:
        return condition.status != STATUS_TRUE
    return condition.type in listed and condition.status != STATUS_FALSE


def _essence(conditions: Sequence[NodeCondition]) -> dict[str, tuple[str, str]]:
    return {
        c.type: (c.status, c.reason if c.type == CONDITION_IN_PLACE_UPDATE else "")
        for c in of_node(conditions)
    }
