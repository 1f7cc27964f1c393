"""PriorityClasses, and what a pod's class comes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    forbidden,
    invalid,
    not_permitted,
    not_supported,
    wrong_value,
)
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.strategies.strategy import name_of

SYSTEM_PRIORITIES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_CLASSES = "priorityclasses.scheduling.k8s.io"
_HIGHEST = 1_000_000_000
_PREEMPTION = ("PreemptLowerPriority", "Never")


def priority_class(
    _: ServerState, info: ResourceInfo, obj: JSONObject, live: Stored | None
) -> None:
    """Default the preemption policy; nobody else may call himself a part of the system, and what
    pods were given stays true of their class."""
    obj["preemptionPolicy"] = obj.get("preemptionPolicy") or _PREEMPTION[0]
    value = obj.setdefault("value", 0)
    causes: list[StatusCause] = []
    if live is None:
        causes += _faults_of_new(name_of(obj), value)
    elif value != live.body.get("value"):
        causes.append(not_permitted("value", "may not be changed in an update."))
    if obj["preemptionPolicy"] not in _PREEMPTION:
        sent = str(obj["preemptionPolicy"])
        causes.append(not_supported("preemptionPolicy", sent, _PREEMPTION))
    elif live is not None and obj["preemptionPolicy"] != live.body.get("preemptionPolicy"):
        sent = str(obj["preemptionPolicy"])
        causes.append(wrong_value("preemptionPolicy", sent, "field is immutable"))
    if causes:
        raise invalid(info, name_of(obj), causes)


def _faults_of_new(name: str, value: object) -> list[StatusCause]:
    if SYSTEM_PRIORITIES.get(name) == value:
        return []
    causes: list[StatusCause] = []
    if name.startswith("system-"):
        why = "priority class names with 'system-' prefix are reserved for system use only. error: "
        known = "value" if name in SYSTEM_PRIORITIES else "name"
        why += f"the {known} of {name} is not that of a system priority class"
        causes.append(not_permitted("metadata.name", why))
    if not isinstance(value, int) or value > _HIGHEST:
        why = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        causes.append(not_permitted("value", why))
    return causes


def resolve_priority(
    state: ServerState, info: ResourceInfo, obj: JSONObject, spec: JSONObject
) -> None:
    """Give a new pod the priority of its class, or of the class for pods that name none; without
    either, 0. Raises StatusError (403) where there is no such class."""
    classes = state.store.collection(_CLASSES)
    name = spec.get("priorityClassName")
    if not name:
        default = _default_class(state)
        if default is None:
            spec.setdefault("priority", 0)
            return
        name = spec["priorityClassName"] = default
    found = classes.get(cast(str, name))
    if found is None:
        raise forbidden(info, name_of(obj), f"no PriorityClass with name {name} was found")
    spec["priority"] = found.body.get("value", 0)
    spec.setdefault("preemptionPolicy", found.body.get("preemptionPolicy", _PREEMPTION[0]))


def _default_class(state: ServerState) -> str | None:
    """Return the lowest of the classes that claim to be the default, as upstream does."""
    classes = state.store.collection(_CLASSES).ordered(None)
    found = [c for c in classes if c.body.get("globalDefault") is True]
    lowest = min(found, key=lambda c: cast(int, c.body.get("value", 0)), default=None)
    return None if lowest is None else lowest.name
