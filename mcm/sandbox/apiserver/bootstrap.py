"""What every API server has from the first: its namespaces, priorities and standard roles."""

from __future__ import annotations

from collections.abc import Iterator

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.authorization.standard_roles import standard_roles
from mcm.sandbox.apiserver.kinds.builtin import PERMANENT_NAMESPACES
from mcm.sandbox.apiserver.requests.calls import ServerState, WriteOptions
from mcm.sandbox.apiserver.writing.create_update import create_object
from mcm.sandbox.apiserver.writing.strategies.priorities import SYSTEM_PRIORITIES

_USES = {
    "system-cluster-critical": "Pods that the cluster needs, on whichever node they run.",
    "system-node-critical": "Pods that their node needs.",
}


def create_first_objects(state: ServerState) -> None:
    for obj in _first_objects():
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        info = state.registry.by_kind(group, version, str(obj["kind"]))
        assert info is not None, obj["kind"]
        create_object(state, info, obj, namespace="", options=WriteOptions(manager="apiserver"))


def _first_objects() -> Iterator[JSONObject]:
    for name in PERMANENT_NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for name, value in SYSTEM_PRIORITIES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": _USES[name],
        }
    yield from standard_roles()
