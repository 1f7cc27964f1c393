"""Columns of the kinds that own pods."""

from __future__ import annotations

from mcm.sandbox.apiserver.tables.columns import AGE, NAME, NONE, Column, View, integer, wide
from mcm.sandbox.apiserver.tables.selectors import selector_text


def _containers(member: str) -> Column:
    def cell(view: View) -> str:
        containers = view.objects("spec", "template", "spec", "containers")
        return ",".join(str(c.get(member, "")) for c in containers)

    return wide({"name": "Containers", "image": "Images"}[member], cell)


_CONTAINERS, _IMAGES = _containers("name"), _containers("image")
_SELECTOR = wide("Selector", lambda view: selector_text(view, "spec", "selector"))


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
