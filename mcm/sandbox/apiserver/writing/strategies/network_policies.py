"""NetworkPolicies: which directions one is about, and which protocol its ports mean."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import StatusCause, invalid, not_supported
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.strategies.strategy import (
    name_of,
    object_in,
    objects_in,
    spec_of,
    texts_in,
)

_DIRECTIONS = ("Ingress", "Egress")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def network_policy(_: ServerState, info: ResourceInfo, obj: JSONObject, __: Stored | None) -> None:
    spec = spec_of(obj)
    spec["podSelector"] = object_in(spec, "podSelector")
    types = texts_in(spec, "policyTypes")
    if not types:
        types = list(_DIRECTIONS) if spec.get("egress") else [_DIRECTIONS[0]]
    spec["policyTypes"] = types
    causes = [
        not_supported(f"spec.policyTypes[{index}]", found, _DIRECTIONS)
        for index, found in enumerate(types)
        if found not in _DIRECTIONS
    ]
    for member in ("ingress", "egress"):
        if spec.get(member):
            rules = objects_in(spec, member)
            for index, rule in enumerate(rules):
                causes += _default_protocols(rule, f"spec.{member}[{index}]")
            spec[member] = rules
    if causes:
        raise invalid(info, name_of(obj), causes)
    obj["spec"] = spec


def _default_protocols(rule: JSONObject, path: str) -> list[StatusCause]:
    if not rule.get("ports"):
        return []
    ports = objects_in(rule, "ports")
    causes: list[StatusCause] = []
    for index, port in enumerate(ports):
        port["protocol"] = port.get("protocol") or "TCP"
        if port["protocol"] not in _PROTOCOLS:
            field = f"{path}.ports[{index}].protocol"
            causes.append(not_supported(field, str(port["protocol"]), _PROTOCOLS))
    rule["ports"] = ports
    return causes
