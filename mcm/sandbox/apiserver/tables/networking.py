"""Columns of services and network policies."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.tables.columns import AGE, NAME, NONE, Column, View, wide
from mcm.sandbox.apiserver.tables.selectors import selector_text


def _ports(view: View) -> str:
    return ",".join(map(_port, view.objects("spec", "ports"))) or NONE


def _port(port: JSONObject) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}"


def _external_address(view: View) -> str:
    if view.text("spec", "type") == "ExternalName":
        return view.text("spec", "externalName", missing=NONE)
    addresses = view.texts("spec", "externalIPs")
    if view.text("spec", "type") == "LoadBalancer":
        ingress = view.objects("status", "loadBalancer", "ingress")
        addresses = [str(i.get("ip") or i.get("hostname")) for i in ingress] + addresses
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or NONE


SERVICE_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Type", lambda view: view.text("spec", "type", missing="ClusterIP")),
    Column("Cluster-IP", lambda view: view.text("spec", "clusterIP", missing=NONE)),
    Column("External-IP", _external_address),
    Column("Port(s)", _ports),
    AGE,
    wide("Selector", lambda view: view.pairs("spec", "selector")),
)

NETWORK_POLICY_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Pod-Selector", lambda view: selector_text(view, "spec", "podSelector")),
    AGE,
)
