"""How the Go original would read a deployment, its sets and machines, if it were to go on."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from tests.simulation.takeover.as_left import API, DESIRED, FINALIZER, HASH, MOST, REVISION

Document: TypeAlias = dict[str, Any]

_STRATEGIES: Final = ("InPlaceUpdate", "Recreate", "RollingUpdate")
_METADATA: Final = ("annotations", "finalizers", "generateName", "name", "namespace")
_COUNTERS: Final = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
)


def misread_set(machine_set: Document, deployment: Document | None) -> list[str]:
    """Return what on a set it would stumble over: refuse, release, or count wrongly."""
    name, meta, spec = _name(machine_set), machine_set["metadata"], machine_set["spec"]
    labels = _labels(spec["template"])
    selector = spec.get("selector", {}).get("matchLabels") or {}
    found = [] if selector.items() <= labels.items() else ["selects what it does not make"]
    found += [] if HASH in selector else ["no hash in its selector"]
    found += [] if selector.get(HASH) == _labels(machine_set).get(HASH) else ["two hashes"]
    if deployment is not None:
        wanted = deployment["spec"]["selector"]["matchLabels"]
        found += [] if wanted.items() <= _labels(machine_set).items() else ["not selected"]
    annotations = meta.get("annotations", {})
    found += [
        f"{key} is {annotations.get(key)!r}"
        for key in (DESIRED, MOST, REVISION)
        if not annotations.get(key, "").isdigit()
    ]
    if annotations.get(MOST) == "0" and spec.get("replicas"):
        found.append("it would divide by zero")
    found += _of_owner(machine_set, "MachineDeployment")
    found += [] if _is_count(spec.get("replicas", 0)) else ["replicas"]
    class_ = spec["template"]["spec"]["class"]
    found += [] if class_.get("kind") and class_.get("name") else ["a class without kind or name"]
    found += _of_status(machine_set.get("status", {}), conditions="machineSetCondition")
    return [f"set {name}: {text}" for text in found]


def misread_deployment(deployment: Document) -> list[str]:
    """Return what on the deployment it would stumble over."""
    spec = deployment["spec"]
    found = [] if spec["strategy"]["type"] in _STRATEGIES else ["strategy"]
    annotations = deployment["metadata"].get("annotations", {})
    found += [] if annotations.get(REVISION, "0").isdigit() else ["revision"]
    listed = annotations.get("node.machine.sapcloud.io/trigger-deletion-by-mcm")
    if listed is not None:
        found += [f"listed {e!r}" for e in listed.split(",") if e.count("~") != 1]
    found += _of_status(deployment.get("status", {}), conditions="conditions")
    return [f"deployment: {text}" for text in found]


def misread_machine(machine: Document, sets: dict[str, Document]) -> list[str]:
    """Return what on a machine would make it lose its owner there."""
    found = _of_owner(machine, "MachineSet")
    owners = [r for r in machine["metadata"].get("ownerReferences", []) if r.get("controller")]
    for reference in owners:
        owner = sets.get(reference["uid"])
        if owner is None:
            continue
        selector = owner["spec"]["selector"]["matchLabels"]
        if not selector.items() <= _labels(machine).items():
            found.append(f"{reference['name']} owns and does not select it")
    return [f"machine {_name(machine)}: {text}" for text in found]


def new_set(deployment: Document, sets: list[Document]) -> str | None:
    """Return the name of the set that it would take for the new one."""
    ordered = sorted(sets, key=lambda s: (s["metadata"]["creationTimestamp"], _name(s)))
    wanted = deployment["spec"]["template"]
    return next((_name(s) for s in ordered if _equal(s["spec"]["template"], wanted)), None)


def next_acts(deployment: Document, sets: list[Document]) -> list[str]:
    """Return what it would do to sets that are complete: nothing, if they are."""
    desired = deployment["spec"].get("replicas", 0)
    found: list[str] = []
    new = new_set(deployment, sets)
    if new is None:
        return ["makes a set"]
    highest = 0
    for machine_set in sets:
        replicas = machine_set["spec"].get("replicas", 0)
        annotations = machine_set["metadata"]["annotations"]
        if replicas and annotations[DESIRED] != str(desired):
            found.append(
                f"scales, since {_name(machine_set)} was scaled for {annotations[DESIRED]}"
            )
        if _name(machine_set) == new and replicas != desired:
            found.append(f"resizes {new} from {replicas}")
        if _name(machine_set) != new:
            found += [f"empties {_name(machine_set)}"] if replicas else []
            highest = max(highest, int(annotations.get(REVISION, "0")))
    (its,) = [s["metadata"]["annotations"][REVISION] for s in sets if _name(s) == new]
    if int(its) <= highest or deployment["metadata"]["annotations"].get(REVISION) != its:
        found.append(f"numbers {new} anew: {its}")
    return found


def _equal(one: Document, other: Document) -> bool:
    return _identity(one) == _identity(other)


def _identity(template: Document) -> Document:
    meta, spec = template.get("metadata", {}), template["spec"]
    labels = {k: v for k, v in _labels(template).items() if k != HASH}
    rest = {key: meta[key] for key in _METADATA if meta.get(key)}
    class_ = spec["class"]
    return {
        "labels": labels,
        **rest,
        "class": (class_.get("name", ""), class_.get("apiGroup", "")),
        "providerID": spec.get("providerID", ""),
    }


def _of_owner(obj: Document, kind: str) -> list[str]:
    """It reads one controller, of its own kind; sorted finalizers are what it writes itself."""
    meta = obj["metadata"]
    owners = [r for r in meta.get("ownerReferences", []) if r.get("controller")]
    found = [] if len(owners) <= 1 else ["two controllers"]
    for owner in owners:
        same = owner["apiVersion"] == API and owner["kind"] == kind
        found += [] if same and owner.get("blockOwnerDeletion") is True else [f"owner {owner}"]
    finalizers = meta.get("finalizers", [])
    if "deletionTimestamp" in meta and FINALIZER not in finalizers:
        found.append("leaves without its finalizer")
    return found


def _of_status(status: Document, *, conditions: str) -> list[str]:
    found = [f"{key} {status[key]!r}" for key in _COUNTERS if not _is_count(status.get(key, 0))]
    found += [
        f"condition {said}"
        for said in status.get(conditions) or ()
        if not (said.get("type") and said.get("status") in ("True", "False", "Unknown"))
    ]
    other = {"conditions", "machineSetCondition"} - {conditions}
    found += [key for key in other if key in status]
    failed = status.get("failedMachines")
    for summary in failed or ():
        found += [] if summary.get("name") and "lastOperation" in summary else [f"{summary}"]
    return found


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 2**31


def _labels(obj: Document) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _name(obj: Document) -> str:
    return str(obj["metadata"]["name"])
