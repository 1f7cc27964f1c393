"""Columns of the kinds that own pods, and of services."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.tables.columns import AGE, NAME, NONE, Column, View, integer, wide


def _containers(member: str) -> Column:
    def cell(view: View) -> str:
        containers = view.objects("spec", "template", "spec", "containers")
        return ",".join(str(c.get(member, "")) for c in containers)

    return wide({"name": "Containers", "image": "Images"}[member], cell)


def _selector(view: View) -> str:
    """Write a label selector as ``-l`` takes it."""
    labels = view.at("spec", "selector", "matchLabels")
    parts = [f"{k}={v}" for k, v in sorted(labels.items())] if isinstance(labels, dict) else []
    parts += map(_requirement, view.objects("spec", "selector", "matchExpressions"))
    return ",".join(parts) or NONE


def _requirement(expression: JSONObject) -> str:
    key, operator = str(expression.get("key")), str(expression.get("operator"))
    values = expression.get("values")
    listed = ",".join(map(str, values)) if isinstance(values, list) else ""
    match operator:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case "In":
            return f"{key} in ({listed})"
        case _:
            return f"{key} notin ({listed})"


_CONTAINERS, _IMAGES = _containers("name"), _containers("image")
_SELECTOR = wide("Selector", _selector)


def _ready_of_wanted(view: View) -> str:
    wanted = view.at("spec", "replicas")
    ready = view.count("status", "readyReplicas")
    return f"{ready}/{wanted if isinstance(wanted, int) else 1}"


_READY = Column("Ready", _ready_of_wanted)

DEPLOYMENT_COLUMNS: tuple[Column, ...] = (
    NAME,
    _READY,
    Column("Up-to-date", lambda view: view.count("status", "updatedReplicas")),
    Column("Available", lambda view: view.count("status", "availableReplicas")),
    AGE,
    _CONTAINERS,
    _IMAGES,
    _SELECTOR,
)

REPLICA_SET_COLUMNS: tuple[Column, ...] = (
    NAME,
    integer("Desired", "spec", "replicas"),
    integer("Current", "status", "replicas"),
    integer("Ready", "status", "readyReplicas"),
    AGE,
    _CONTAINERS,
    _IMAGES,
    _SELECTOR,
)

STATEFUL_SET_COLUMNS: tuple[Column, ...] = (NAME, _READY, AGE, _CONTAINERS, _IMAGES)

DAEMON_SET_COLUMNS: tuple[Column, ...] = (
    NAME,
    integer("Desired", "status", "desiredNumberScheduled"),
    integer("Current", "status", "currentNumberScheduled"),
    integer("Ready", "status", "numberReady"),
    integer("Up-to-date", "status", "updatedNumberScheduled"),
    integer("Available", "status", "numberAvailable"),
    Column("Node Selector", lambda view: view.pairs("spec", "template", "spec", "nodeSelector")),
    AGE,
    _CONTAINERS,
    _IMAGES,
    _SELECTOR,
)


def _controller(view: View) -> str:
    """Write the controller as ``kind.group/name``."""
    owners = view.objects("metadata", "ownerReferences")
    found = next((owner for owner in owners if owner.get("controller") is True), None)
    if found is None:
        return NONE
    group = str(found.get("apiVersion", "")).rpartition("/")[0]
    kind = str(found.get("kind", "")).lower()
    return f"{kind}.{group}/{found.get('name')}" if group else f"{kind}/{found.get('name')}"


CONTROLLER_REVISION_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Controller", _controller),
    integer("Revision", "revision"),
    AGE,
)


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
