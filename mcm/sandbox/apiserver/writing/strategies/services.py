"""Services: an address of their own, and ports that lead somewhere."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import cast

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    internal,
    invalid,
    not_permitted,
    not_supported,
    required,
    wrong_value,
)
from mcm.sandbox.apiserver.kinds.networking import SERVICES
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.strategies.strategy import (
    name_of,
    objects_in,
    set_members,
    spec_of,
    texts_in,
)

ADDRESSES = ipaddress.IPv4Network("10.96.0.0/16")
"""Where the addresses of services come from; the first is the API server's."""
NODE_PORTS = range(30000, 32768)

_HEADLESS = "None"
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_AFFINITIES = ("ClientIP", "None")
_PORTS = range(1, 65536)


def service(state: ServerState, info: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    """Default a service and give it what it lacks: a cluster IP, node ports.

    An update that leaves them out keeps them. Raises StatusError (422).
    """
    spec = set_members(spec_of(obj))
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    before = cast(JSONObject, live.body["spec"]) if live is not None else {}
    spec["ports"] = [_defaulted_port(port) for port in objects_in(spec, "ports")]
    causes = _faults(spec)
    if not causes and spec["type"] != "ExternalName":
        causes = _settle_address(state, spec, before, live)
    if causes:
        raise invalid(info, name_of(obj), causes)
    _settle_type(state, spec, before)
    if not spec["ports"]:
        del spec["ports"]
    obj["spec"] = spec


def _defaulted_port(port: JSONObject) -> JSONObject:
    port = set_members(port)
    port.setdefault("protocol", "TCP")
    if port.get("targetPort") in (None, 0, ""):
        port["targetPort"] = port.get("port")
    return port


# What is wrong with it --------------------------------------------------------------------------


def _faults(spec: JSONObject) -> list[StatusCause]:
    causes: list[StatusCause] = []
    ports = cast("list[JSONObject]", spec["ports"])
    kind, address = str(spec["type"]), str(spec.get("clusterIP") or "")
    if kind not in _TYPES:
        causes.append(not_supported("spec.type", kind, _TYPES))
    if kind == "ExternalName":
        if not spec.get("externalName"):
            causes.append(required("spec.externalName"))
        if address:
            why = "may not be set when `type` is ExternalName"
            causes.append(not_permitted("spec.clusterIPs", why))
    elif not ports and address != _HEADLESS:
        causes.append(required("spec.ports"))
    if spec["sessionAffinity"] not in _AFFINITIES:
        sent = str(spec["sessionAffinity"])
        causes.append(not_supported("spec.sessionAffinity", sent, _AFFINITIES))
    seen: set[tuple[object, object]] = set()
    names: set[object] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        causes += _faults_of_port(port, path, name_needed=len(ports) > 1)
        if (port.get("port"), port["protocol"]) in seen:
            shown = {"port": port.get("port"), "protocol": port["protocol"]}
            causes.append(_duplicate(path, shown))
        if port.get("name") and port["name"] in names:
            causes.append(_duplicate(f"{path}.name", port["name"]))
        seen.add((port.get("port"), port["protocol"]))
        names.add(port.get("name"))
    return causes


def _faults_of_port(port: JSONObject, path: str, *, name_needed: bool) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if name_needed and not port.get("name"):
        causes.append(required(f"{path}.name"))
    why = "must be between 1 and 65535, inclusive"
    for field in ("port", "targetPort"):
        number = port.get(field)
        if field == "targetPort" and isinstance(number, str):
            continue
        if number not in _PORTS:
            causes.append(wrong_value(f"{path}.{field}", number or 0, why))
    if port["protocol"] not in _PROTOCOLS:
        causes.append(not_supported(f"{path}.protocol", str(port["protocol"]), _PROTOCOLS))
    return causes


def _duplicate(path: str, value: object) -> StatusCause:
    found = wrong_value(path, value, "")
    message = found.message.replace("Invalid value", "Duplicate value").removesuffix(": ")
    return StatusCause("FieldValueDuplicate", message, path)


# The cluster IP ---------------------------------------------------------------------------------


def _settle_address(
    state: ServerState, spec: JSONObject, before: JSONObject, live: Stored | None
) -> list[StatusCause]:
    asked = str(spec.get("clusterIP") or "") or next(iter(texts_in(spec, "clusterIPs")), "")
    kept = str(before.get("clusterIP") or "")
    causes: list[StatusCause] = []
    if kept and asked and asked != kept:
        causes.append(wrong_value("spec.clusterIPs[0]", [asked], "may not change once set"))
    elif asked and asked != kept and asked != _HEADLESS:
        causes += _why_not(asked, _taken_addresses(state, live))
    address = asked or kept
    if not causes:
        address = address or _free_address(state, live)
        spec["clusterIP"], spec["clusterIPs"] = address, [address]
        spec.setdefault("ipFamilies", before.get("ipFamilies") or ["IPv4"])
        spec.setdefault("ipFamilyPolicy", before.get("ipFamilyPolicy") or "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")
    return causes


def _why_not(asked: str, taken: Iterable[str]) -> list[StatusCause]:
    try:
        address = ipaddress.ip_address(asked)
    except ValueError:
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return [wrong_value("spec.clusterIPs[0]", asked, why)]
    why = f"failed to allocate IP {asked}: "
    if address not in ADDRESSES:
        why += f"the provided IP ({asked}) is not in the valid range. The range of valid IPs is "
        return [wrong_value("spec.clusterIPs", [asked], f"{why}{ADDRESSES}")]
    if asked in taken:
        return [wrong_value("spec.clusterIPs", [asked], f"{why}provided IP is already allocated")]
    return []


def _taken_addresses(state: ServerState, live: Stored | None) -> set[str]:
    others = (s for s in state.store.collection(SERVICES).ordered(None) if s is not live)
    specs = (cast(JSONObject, other.body["spec"]) for other in others)
    return {str(spec.get("clusterIP")) for spec in specs}


def _free_address(state: ServerState, live: Stored | None) -> str:
    """Return one at random, so that an address is not soon another service's."""
    taken = _taken_addresses(state, live)
    first, last = 2, ADDRESSES.num_addresses - 2  # the network's, the API server's, broadcast
    start = state.random.randint(first, last)
    for number in (*range(start, last + 1), *range(first, start)):
        address = str(ADDRESSES[number])
        if address not in taken:
            return address
    raise internal("failed to allocate a serviceIP: range is full")


# What the type asks for -------------------------------------------------------------------------


def _settle_type(state: ServerState, spec: JSONObject, before: JSONObject) -> None:
    if spec["type"] not in ("NodePort", "LoadBalancer"):
        spec.pop("externalTrafficPolicy", None)
        return
    spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        if spec["allocateLoadBalancerNodePorts"] is False:
            return
    had = {(p.get("port"), p.get("protocol")): p for p in objects_in(before, "ports")}
    taken = _taken_node_ports(state)
    for port in cast("list[JSONObject]", spec["ports"]):
        if not port.get("nodePort"):
            kept = had.get((port["port"], port["protocol"]), {}).get("nodePort")
            port["nodePort"] = kept or _free_node_port(state, taken)
        taken.add(port["nodePort"])


def _taken_node_ports(state: ServerState) -> set[object]:
    specs = (s.body["spec"] for s in state.store.collection(SERVICES).ordered(None))
    return {
        port.get("nodePort")
        for spec in specs
        for port in objects_in(cast(JSONObject, spec), "ports")
    }


def _free_node_port(state: ServerState, taken: set[object]) -> int:
    first, last = NODE_PORTS[0], NODE_PORTS[-1]
    start = state.random.randint(first, last)
    ports: list[int] = [*range(start, last + 1), *range(first, start)]
    for port in ports:
        if port not in taken:
            return port
    raise internal("failed to allocate a nodePort: range is full")
