"""How the Go original reads a machine and its Node, as far as its next step depends on it."""

from __future__ import annotations

import json

from mcm.api.core import Node
from mcm.api.machine import Machine
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
    if machine.phase == "Terminating" and step_of(machine) is None:
        found.append(f"step {done.description}")
    return found


def misread_node(node: Node) -> list[str]:
    """Return what on the Node would stop it: a record that is no JSON ends each of its passes."""
    text = node.metadata.annotations.get(_LAST_APPLIED)
    if text is None:
        return []
    try:
        template = json.loads(text)
    except ValueError as error:
        return [f"{_LAST_APPLIED}: {error}"]
    known = {"metadata", "spec"}
    return [] if set(template) <= known else [f"{_LAST_APPLIED}: {text}"]


def mistakable() -> set[str]:
    """Return the types of our own conditions that it would take for something else."""
    return {kind.value for kind in OwnCondition} & (JUDGED_BY | STEERS_BY)
