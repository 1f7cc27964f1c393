"""How the Go original reads a machine and its Node, as far as its next step depends on it."""

from __future__ import annotations

import json
import re

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.names import PRESERVE_NOW, PRESERVE_VALUES
from mcm.controllers.machine.own_conditions import OwnCondition

DELETION_MARKERS = (
    "Set machine status to termination. Now, getting VM Status",
    "Initiate node drain",
    "Delete Volume Attachments",
    "Initiate VM deletion",
    "Initiate node object deletion",
    "Initiate machine object finalizer removal",
)
"""In the order in which it looks for them, anywhere in the description."""

PHASES = frozenset(
    {
        "",
        "Available",
        "CrashLoopBackOff",
        "Failed",
        "InPlaceUpdateFailed",
        "InPlaceUpdateSuccessful",
        "InPlaceUpdating",
        "Pending",
        "Running",
        "Terminating",
        "Unknown",
    }
)
STATES = frozenset({"", "Processing", "Failed", "Successful"})
TYPES = frozenset({"", "Create", "Update", "InPlaceUpdate", "DrainNode", "HealthCheck", "Delete"})
JUDGED_BY = frozenset(
    {"Ready", "KernelDeadlock", "ReadonlyFilesystem", "DiskPressure", "NetworkUnavailable"}
)
STEERS_BY = frozenset({"Terminating", "InPlaceUpdate", "Preserved"})
_LAST_APPLIED = "node.machine.sapcloud.io/last-applied-anno-labels-taints"


_LAST_CAPACITY = "node.machine.sapcloud.io/last-applied-virtual-capacity"
_PRESERVE = "node.machine.sapcloud.io/preserve"
_EFFECTIVE_TIMEOUT = "node.machine.sapcloud.io/effective-creation-timeout"
_STEPS = {
    "InPlaceUpdate": re.compile(
        "True (CandidateForUpdate|SelectedForUpdate|DrainSuccessful|ReadyForUpdate"
        "|UpdateSuccessful|UpdateFailed) "
    ),
    "Preserved": re.compile(
        r"(True Preserved by (MCM|user)\. (Preserved node drained successfully\. )?"
        r"Machine preserved until "
        r"|False Preserved by (MCM|user)\. Preserved node could not be drained\. "
        r"|False Preservation stopped\. )"
    ),
    "Terminating": re.compile("True (Unhealthy|ScaleDown) "),
}
"""Conditions by which it finds out how far it was."""
_TIMED = frozenset({"Unknown", "InPlaceUpdating", "InPlaceUpdateFailed"})
"""Phases whose timeouts it counts from the status's time."""


def step_of(machine: Machine) -> int | None:
    """Return which step of a deletion it would take, counted from 1; None: it cannot tell, and
    begins again."""
    if machine.phase != "Terminating":
        return 1
    text = machine.status.last_operation.description
    return next((n for n, marker in enumerate(DELETION_MARKERS, 2) if marker in text), None)


def misread(machine: Machine) -> list[str]:
    """Return what on the machine it would not understand."""
    done = machine.status.last_operation
    found = []
    if machine.phase not in PHASES:
        found.append(f"phase {machine.phase}")
    if done.state not in STATES:
        found.append(f"state {done.state}")
    if done.type not in TYPES:
        found.append(f"type {done.type}")
    found += [
        f"condition without status: {c.type}" for c in machine.status.conditions if not c.status
    ]
    current = machine.status.current_status
    if machine.phase in _TIMED and current.last_update_time is None:
        found.append(f"{machine.phase} since when?")
    timeout = machine.metadata.annotations.get(_EFFECTIVE_TIMEOUT, "1m")
    if not re.fullmatch(r"([0-9.]+(h|m|s|ms|us|ns))+", timeout):
        found.append(f"{_EFFECTIVE_TIMEOUT}: {timeout}")
    if machine.metadata.annotations.get(_PRESERVE, "") not in {"", *PRESERVE_VALUES}:
        found.append(f"{_PRESERVE}: {machine.metadata.annotations[_PRESERVE]}")
    if machine.phase == "Terminating" and step_of(machine) is None:
        found.append(f"step {done.description}")
    return found


def misread_node(node: Node) -> list[str]:
    """Return what on the Node would stop it, or lead it astray: a record that is no JSON ends each
    of its passes; steps are found again by reasons and messages of conditions."""
    annotations = node.metadata.annotations
    found = _no_template(annotations.get(_LAST_APPLIED))
    found += _no_quantities(annotations.get(_LAST_CAPACITY))
    if annotations.get(_PRESERVE, PRESERVE_NOW) not in PRESERVE_VALUES:
        found.append(f"{_PRESERVE}: {annotations[_PRESERVE]}")
    for condition in node.status.conditions:
        said = f"{condition.status} {condition.reason} {condition.message}"
        if condition.type in _STEPS and not _STEPS[condition.type].match(said):
            found.append(f"condition {condition.type}: {said}")
    return found


def _no_template(text: str | None) -> list[str]:
    if text is None:
        return []
    try:
        template = json.loads(text)
    except ValueError as error:
        return [f"{_LAST_APPLIED}: {error}"]
    return [] if set(template) <= {"metadata", "spec"} else [f"{_LAST_APPLIED}: {text}"]


def _no_quantities(text: str | None) -> list[str]:
    try:
        found = json.loads(text) if text is not None else {}
    except ValueError as error:
        return [f"{_LAST_CAPACITY}: {error}"]
    if isinstance(found, dict) and all(isinstance(value, str) for value in found.values()):
        return []
    return [f"{_LAST_CAPACITY}: {text}"]


def mistakable() -> set[str]:
    """Return the types of our own conditions that it would take for something else."""
    return {kind.value for kind in OwnCondition} & (JUDGED_BY | STEERS_BY)
