"""What the manager does in each cluster, and so needs to be allowed there; nothing else."""

from __future__ import annotations

from mcm.access.rules import CORE, MACHINE_CONTROLLERS, Purpose, Rule

_MACHINES = "machine.sapcloud.io"
_SIMULATION = "simulation.machine.sapcloud.io"
_LEASES = "coordination.k8s.io"

OLD_CLASSES = (
    "alicloudmachineclasses",
    "awsmachineclasses",
    "azuremachineclasses",
    "gcpmachineclasses",
    "openstackmachineclasses",
    "packetmachineclasses",
)
"""Plurals of the class kinds that there were before MachineClass."""

_NO_SUCCESSORS = "no pod gets a successor before it is drained"

_CONTROL = Purpose(
    "control",
    "What the manager does in its namespace of the control cluster, and nothing else.",
    (
        Rule((_MACHINES,), ("machines",), ("create", "delete", "get", "list", "patch", "watch")),
        Rule((_MACHINES,), ("machinesets",), ("create", "delete", "get", "list", "patch", "watch")),
        Rule((_MACHINES,), ("machinedeployments",), ("get", "list", "patch", "watch")),
        Rule(
            (_MACHINES,),
            ("machines/status", "machinesets/status", "machinedeployments/status"),
            ("patch",),
        ),
        Rule(
            (_MACHINES,),
            ("machinesets/finalizers", "machinedeployments/finalizers"),
            ("update",),
            reason="Where owner references that block a deletion are guarded, setting one needs "
            "this of the owner.",
        ),
        Rule(
            (_MACHINES,),
            ("machineclasses",),
            ("create", "list", "patch", "watch"),
            reason="Classes and their secrets get a finalizer while they are in use.",
        ),
        Rule(
            (_MACHINES,),
            OLD_CLASSES,
            ("get", "patch"),
            reason="Classes of the kinds there were before are replaced by MachineClasses, if the "
            "provider knows how.",
            without="classes of older kinds are not replaced",
            only_for=MACHINE_CONTROLLERS,
        ),
        Rule((CORE,), ("secrets",), ("list", "patch", "watch"), only_for=MACHINE_CONTROLLERS),
        Rule(
            (CORE, "events.k8s.io"),
            ("events",),
            ("create", "patch"),
            reason="Where events.k8s.io is not served, events go to the core group.",
            without="no events are recorded",
        ),
        Rule((_LEASES,), ("leases",), ("create",)),
        Rule(
            (_LEASES,),
            ("leases",),
            ("get", "update"),
            names=("machine-controller-manager", "machine-controller"),
        ),
    ),
)

_SHARDING = Purpose(
    "sharding",
    "What a shard (--shard-name) does in its namespace of the control cluster beside the rest.",
    (
        Rule(
            (_LEASES,),
            ("leases",),
            ("get", "list", "update"),
            reason="Shards hold leases that are named after them, and see by those of the others "
            "who else there is. A role may name the leases; then it needs list beside that.",
        ),
    ),
)

_TARGET = Purpose(
    "target",
    "What the manager does in the cluster that the machines join: keep nodes in line, and drain "
    "them.",
    (
        Rule((CORE,), ("nodes",), ("delete", "get", "list", "patch", "watch")),
        Rule((CORE,), ("nodes/status",), ("patch",), only_for=MACHINE_CONTROLLERS),
        Rule((CORE,), ("pods",), ("delete", "list", "watch"), only_for=MACHINE_CONTROLLERS),
        Rule((CORE,), ("pods/eviction",), ("create",), only_for=MACHINE_CONTROLLERS),
        Rule(
            (CORE,),
            ("persistentvolumeclaims", "persistentvolumes"),
            ("list", "watch"),
            only_for=MACHINE_CONTROLLERS,
        ),
        Rule(
            ("policy",), ("poddisruptionbudgets",), ("list", "watch"), only_for=MACHINE_CONTROLLERS
        ),
        Rule(
            ("storage.k8s.io",),
            ("volumeattachments",),
            ("delete", "list", "watch"),
            only_for=MACHINE_CONTROLLERS,
        ),
        Rule(
            ("apps",),
            ("deployments",),
            ("get", "list", "patch"),
            reason="Only for pods that ask for a successor before they are drained "
            "(machine.sapcloud.io/drain-surge).",
            without=_NO_SUCCESSORS,
            only_for=MACHINE_CONTROLLERS,
        ),
        Rule(
            ("apps",),
            ("replicasets",),
            ("get",),
            without=_NO_SUCCESSORS,
            only_for=MACHINE_CONTROLLERS,
        ),
        Rule(
            ("autoscaling",),
            ("horizontalpodautoscalers",),
            ("list",),
            without=_NO_SUCCESSORS,
            only_for=MACHINE_CONTROLLERS,
        ),
    ),
)

_BOOTSTRAP_TOKENS = Purpose(
    "target-bootstrap-tokens",
    "The bootstrap tokens by which new nodes join; they live in kube-system of the target cluster.",
    (
        Rule(
            (CORE,),
            ("secrets",),
            ("create", "delete", "get", "patch"),
            only_for=MACHINE_CONTROLLERS,
        ),
    ),
)

_SIMULATED_DRIVER = Purpose(
    "provider-simulated",
    "What the driver of the simulated cloud does in the control cluster.",
    (
        Rule(
            (_SIMULATION,),
            ("virtualmachines",),
            ("create", "delete", "get", "list", "patch"),
            only_for=MACHINE_CONTROLLERS,
        ),
    ),
)

_SIMULATED_CLOUD = Purpose(
    "simulated-cloud-control",
    "What the simulated cloud itself does in the control cluster (--simulate-cloud).",
    (
        Rule((_SIMULATION,), ("virtualmachines",), ("list", "watch")),
        Rule((_SIMULATION,), ("virtualmachines/status",), ("patch",)),
    ),
)

_SIMULATED_KUBELETS = Purpose(
    "simulated-cloud-target",
    "What the simulated kubelets do in the target cluster (--simulate-cloud): be nodes, and run "
    "pods.",
    (
        Rule((CORE,), ("nodes",), ("create", "get", "list", "watch")),
        Rule((CORE,), ("nodes/status",), ("patch",)),
        Rule((_LEASES,), ("leases",), ("create", "patch")),
        Rule((CORE,), ("pods",), ("delete", "list", "watch")),
        Rule((CORE,), ("pods/status",), ("patch",)),
        Rule((CORE,), ("persistentvolumeclaims", "persistentvolumes"), ("list", "watch")),
    ),
)

_METRICS_AUTHORIZATION = Purpose(
    "metrics-authorization",
    "What judges who may read metrics (--metrics-authorization), in the control cluster.",
    (
        Rule(("authentication.k8s.io",), ("tokenreviews",), ("create",)),
        Rule(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",)),
    ),
)

PURPOSES = (
    _CONTROL,
    _SHARDING,
    _TARGET,
    _BOOTSTRAP_TOKENS,
    _SIMULATED_DRIVER,
    _SIMULATED_CLOUD,
    _SIMULATED_KUBELETS,
    _METRICS_AUTHORIZATION,
)


def purpose(name: str) -> Purpose:
    """Return the purpose of this name. Raises KeyError for one there is not."""
    return {each.name: each for each in PURPOSES}[name]
