"""Columns of nodes, namespaces, configuration, events, leases and volumes."""

from __future__ import annotations

from mcm.sandbox.apiserver.tables.ages import UNKNOWN
from mcm.sandbox.apiserver.tables.columns import AGE, NAME, NONE, Column, View, integer, wide

_ROLE_PREFIX = "node-role.kubernetes.io/"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_UNSET = "<unset>"


def _column(name: str, *path: str, missing: str = "") -> Column:
    return Column(name, lambda view: view.text(*path, missing=missing))


# Nodes ---------------------------------------------------------------------------------------


def _node_status(view: View) -> str:
    ready = [c for c in view.objects("status", "conditions") if c.get("type") == "Ready"]
    status = {"True": "Ready"}.get(str(ready[0].get("status")), "NotReady") if ready else "Unknown"
    return f"{status},SchedulingDisabled" if view.at("spec", "unschedulable") else status


def _roles(view: View) -> str:
    labels = view.at("metadata", "labels")
    roles: set[str] = set()
    for key, value in labels.items() if isinstance(labels, dict) else ():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == "kubernetes.io/role" and value:
            roles.add(str(value))
    return ",".join(sorted(roles - {""})) or NONE


def _node_address(kind: str) -> Column:
    def cell(view: View) -> object:
        addresses = view.objects("status", "addresses")
        return next((a.get("address") for a in addresses if a.get("type") == kind), NONE)

    return wide(kind.replace("IP", "-IP"), cell)


def _node_info(name: str, field: str) -> Column:
    return wide(name, lambda view: view.text("status", "nodeInfo", field, missing=UNKNOWN))


NODE_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Status", _node_status),
    Column("Roles", _roles),
    AGE,
    _column("Version", "status", "nodeInfo", "kubeletVersion"),
    _node_address("InternalIP"),
    _node_address("ExternalIP"),
    _node_info("OS-Image", "osImage"),
    _node_info("Kernel-Version", "kernelVersion"),
    _node_info("Container-Runtime", "containerRuntimeVersion"),
)

# Namespaces and configuration ----------------------------------------------------------------

NAMESPACE_COLUMNS: tuple[Column, ...] = (NAME, _column("Status", "status", "phase"), AGE)

SECRET_COLUMNS: tuple[Column, ...] = (
    NAME,
    _column("Type", "type"),
    Column("Data", lambda view: view.size("data")),
    AGE,
)

CONFIG_MAP_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Data", lambda view: view.size("data") + view.size("binaryData")),
    AGE,
)

SERVICE_ACCOUNT_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Secrets", lambda view: view.size("secrets")),
    AGE,
)

LEASE_COLUMNS: tuple[Column, ...] = (NAME, _column("Holder", "spec", "holderIdentity"), AGE)

BUDGET_COLUMNS: tuple[Column, ...] = (
    NAME,
    _column("Min Available", "spec", "minAvailable", missing="N/A"),
    _column("Max Unavailable", "spec", "maxUnavailable", missing="N/A"),
    integer("Allowed Disruptions", "status", "disruptionsAllowed"),
    AGE,
)

PRIORITY_CLASS_COLUMNS: tuple[Column, ...] = (
    NAME,
    integer("Value", "value"),
    Column("Global-Default", lambda view: view.at("globalDefault") is True, type="boolean"),
    AGE,
    _column("PreemptionPolicy", "preemptionPolicy"),
)

DEFINITION_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column(
        "Created At",
        lambda view: view.text("metadata", "creationTimestamp"),
        type="date",
        description="When the definition was created.",
    ),
)

# Events --------------------------------------------------------------------------------------


def _first_seen(view: View) -> str:
    stamp = ("firstTimestamp",) if view.at("firstTimestamp") else ("deprecatedFirstTimestamp",)
    return view.age(*stamp) if view.at(*stamp) else view.age("eventTime")


def _last_seen(view: View) -> str:
    if view.at("series"):
        return view.age("series", "lastObservedTime")
    for name in ("lastTimestamp", "deprecatedLastTimestamp"):
        if view.at(name):
            return view.age(name)
    return _first_seen(view)


def _times_seen(view: View) -> int:
    if view.at("series"):
        return view.count("series", "count")
    return view.count("count") or view.count("deprecatedCount") or 1


def _regarding(view: View) -> str:
    member = "involvedObject" if view.at("involvedObject") else "regarding"
    kind, name = view.text(member, "kind").lower(), view.text(member, "name")
    return f"{kind}/{name}" if kind else name


def _sub_object(view: View) -> str:
    member = "involvedObject" if view.at("involvedObject") else "regarding"
    return view.text(member, "fieldPath")


def _event_source(view: View) -> str:
    member = "source" if view.at("source") else "deprecatedSource"
    component = view.text(member, "component") or view.text("reportingComponent")
    component = component or view.text("reportingController")
    host = view.text(member, "host") or view.text("reportingInstance")
    return f"{component}, {host}" if host else component


EVENT_COLUMNS: tuple[Column, ...] = (
    Column("Last Seen", _last_seen),
    _column("Type", "type"),
    _column("Reason", "reason"),
    Column("Object", _regarding),
    wide("Subobject", _sub_object),
    wide("Source", _event_source),
    Column("Message", lambda view: (view.text("message") or view.text("note")).strip()),
    wide("First Seen", _first_seen),
    wide("Count", _times_seen),
    wide("Name", lambda view: view.name),
)

# Volumes -------------------------------------------------------------------------------------


def _access_modes(*path: str) -> Column:
    def cell(view: View) -> str:
        modes = dict.fromkeys(view.texts(*path))
        return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)

    return Column("Access Modes", cell)


def _phase(view: View) -> str:
    return "Terminating" if view.terminating else view.text("status", "phase")


def _claim(view: View) -> str:
    if not view.at("spec", "claimRef"):
        return ""
    return f"{view.text('spec', 'claimRef', 'namespace')}/{view.text('spec', 'claimRef', 'name')}"


_CLASS = _column("StorageClass", "spec", "storageClassName")
_ATTRIBUTES_CLASS = _column(
    "VolumeAttributesClass", "spec", "volumeAttributesClassName", missing=_UNSET
)
_VOLUME_MODE = wide("VolumeMode", lambda view: view.text("spec", "volumeMode", missing=_UNSET))

VOLUME_COLUMNS: tuple[Column, ...] = (
    NAME,
    _column("Capacity", "spec", "capacity", "storage", missing="0"),
    _access_modes("spec", "accessModes"),
    _column("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"),
    Column("Status", _phase),
    Column("Claim", _claim),
    _CLASS,
    _ATTRIBUTES_CLASS,
    _column("Reason", "status", "reason"),
    AGE,
    _VOLUME_MODE,
)


def _claimed_capacity(view: View) -> str:
    bound = view.at("spec", "volumeName")
    return view.text("status", "capacity", "storage", missing="0") if bound else ""


def _claimed_modes(view: View) -> object:
    bound = view.at("spec", "volumeName")
    return _access_modes("status", "accessModes").cell(view) if bound else ""


CLAIM_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Status", _phase),
    _column("Volume", "spec", "volumeName"),
    Column("Capacity", _claimed_capacity),
    Column("Access Modes", _claimed_modes),
    _CLASS,
    _ATTRIBUTES_CLASS,
    AGE,
    _VOLUME_MODE,
)

ATTACHMENT_COLUMNS: tuple[Column, ...] = (
    NAME,
    _column("Attacher", "spec", "attacher"),
    _column("PV", "spec", "source", "persistentVolumeName"),
    _column("Node", "spec", "nodeName"),
    Column("Attached", lambda view: view.at("status", "attached") is True, type="boolean"),
    AGE,
)


def _class_name(view: View) -> str:
    default = view.at("metadata", "annotations", _DEFAULT_CLASS) == "true"
    return f"{view.name} (default)" if default else view.name


STORAGE_CLASS_COLUMNS: tuple[Column, ...] = (
    Column("Name", _class_name, format="name"),
    _column("Provisioner", "provisioner"),
    _column("ReclaimPolicy", "reclaimPolicy", missing="Delete"),
    _column("VolumeBindingMode", "volumeBindingMode", missing="Immediate"),
    Column("AllowVolumeExpansion", lambda view: view.at("allowVolumeExpansion") is True),
    AGE,
)

CSI_NODE_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Drivers", lambda view: view.size("spec", "drivers"), type="integer"),
    AGE,
)
