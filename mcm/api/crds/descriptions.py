"""What ``kubectl explain`` says: a text for each type (under ``""``) and for its fields.

What a field means and nobody acts on yet is said with the word "yet"; ``docs/gaps.md`` lists it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcm.api import core, machine, meta

_SECONDS_READY = (
    "Seconds a machine must be ready without a break before it counts as available. Default 0."
)
_AUTO_PRESERVE = (
    "How many failed machines a set keeps for inspection without anybody asking. Default 0. They"
    " stay replicas, so as many are missing. Each set of a deployment has its own: during an update"
    " there may be more in all."
)
_AVAILABLE = "Machines that are ready, and have been for minReadySeconds."
_FAILED = "Machines whose last operation failed."
_SURGE = (
    "Machines allowed on top of the replicas during the update: a number, or a percentage of the"
    " replicas, rounded up. If this and maxUnavailable are both 0, one machine may be unavailable."
)
_UNAVAILABLE = (
    "Machines that may be missing during the update: a number, or a percentage of the replicas,"
    " rounded down."
)
_CONDITION = {
    "type": "What the condition is about.",
    "status": "True, False or Unknown.",
    "lastTransitionTime": "When the status last changed.",
    "reason": "Why, as one word for programs.",
    "message": "Why, for people.",
}

DESCRIPTIONS: Mapping[type, Mapping[str, str]] = {
    machine.Machine: {
        "": "Machine is one virtual or physical machine, and the Node it becomes.",
        "spec": "What the machine should be.",
        "status": "What was last seen of the machine.",
    },
    machine.MachineSpec: {
        "": "What a machine should be.",
        "class": "The class that says how the machine is made.",
        "providerID": "The machine's identity at its cloud provider; set when it is created.",
        "nodeTemplate": "What the machine's Node should carry: labels, annotations, taints.",
        "drainTimeout": "How long a drain may take before pods are forced out, as 2h0m0s.",
        "healthTimeout": "How long a machine may be unhealthy before it counts as failed.",
        "creationTimeout": "How long a machine may take to join before it counts as failed.",
        "inPlaceUpdateTimeout": "How long an update in place may take, once the Node is drained,"
        " before it counts as failed.",
        "machinePreserveTimeout": "How long a machine is kept for inspection once that was asked"
        " for by the annotation node.machine.sapcloud.io/preserve on it or its Node, as 96h0m0s.",
        "disableHealthTimeout": "Never declare the machine failed because it is unhealthy.",
        "maxEvictRetries": "How often a refused eviction is tried again during a drain.",
        "nodeConditions": "Node conditions, separated by commas, that make a machine unhealthy.",
    },
    machine.ClassSpec: {
        "": "A reference to a class of machines in the same namespace.",
        "apiGroup": "API group of the class.",
        "kind": "Kind of the class: MachineClass.",
        "name": "Name of the class.",
    },
    machine.NodeTemplateSpec: {
        "": "What a Node made from the machine should carry.",
        "metadata": "Labels and annotations for the Node.",
        "spec": "Node attributes; the taints are applied.",
    },
    machine.TemplateNodeSpec: {
        "": "Attributes of a Node.",
        "configSource": "Where the kubelet takes its configuration from. Not used.",
        "externalID": "Not used.",
        "podCIDR": "Address range of the Node's pods. Not used.",
        "podCIDRs": "Address ranges of the Node's pods. Not used.",
        "providerID": "Identity of the Node at its cloud provider. Not used.",
        "taints": "Taints the Node must have.",
        "unschedulable": "Whether new pods are kept away. Not used.",
    },
    core.Taint: {
        "": "Keeps away pods that do not tolerate it.",
        "key": "Key of the taint.",
        "value": "Value that goes with the key.",
        "effect": "NoSchedule, PreferNoSchedule or NoExecute.",
        "timeAdded": "When the taint was put on the Node.",
    },
    machine.MachineStatus: {
        "": "What was last seen of a machine.",
        "addresses": "Addresses at which the machine can be reached.",
        "conditions": "The conditions of the machine's Node.",
        "lastOperation": "What was last done with the machine, and how it went.",
        "currentStatus": "The phase the machine is in, and since when.",
        "lastKnownState": "A note the provider's driver leaves to itself.",
    },
    core.NodeCondition: {
        **_CONDITION,
        "": "One thing that is known of a Node.",
        "lastHeartbeatTime": "When the condition was last confirmed.",
    },
    core.NodeAddress: {
        "": "One address of a machine.",
        "type": "Kind of the address, as InternalIP or Hostname.",
        "address": "The address.",
    },
    machine.LastOperation: {
        "": "What was last done, and how it went.",
        "description": "What is being done, or what went wrong.",
        "errorCode": "Code of the provider's error, if there was one.",
        "lastUpdateTime": "When this was last written.",
        "state": "Processing, Successful or Failed.",
        "type": "Create, Update, HealthCheck, InPlaceUpdate, DrainNode or Delete.",
    },
    machine.CurrentStatus: {
        "": "The phase of a machine.",
        "phase": "Pending, Available, Running, Unknown, Failed, Terminating and others.",
        "timeoutActive": "Whether a timeout runs for this phase.",
        "lastUpdateTime": "Since when the phase holds.",
        "preserveExpiryTime": "Until when the machine is kept for inspection; may be moved.",
    },
    machine.MachineClass: {
        "": "MachineClass says how machines are made at a cloud provider, for many to share.",
        "nodeTemplate": "What a Node of this class offers; lets an autoscaler start from zero.",
        "credentialsSecretRef": "Secret with credentials; its keys win over those of secretRef.",
        "secretRef": "Secret with user data, and with credentials if not held apart.",
        "providerSpec": "The provider's own description of a machine, in its own form.",
        "provider": "Name of the provider. Informational.",
    },
    machine.MachineClassNodeTemplate: {
        "": "What a Node of a class offers.",
        "capacity": "Resources of a Node; cpu, gpu and memory at least.",
        "virtualCapacity": "Further resources, which are written to the Node's capacity.",
        "instanceType": "The provider's name for this size of machine.",
        "region": "Region of the machines.",
        "zone": "Zone of the machines.",
        "architecture": "CPU architecture, as amd64.",
    },
    core.SecretReference: {
        "": "Names a Secret.",
        "name": "Name of the Secret.",
        "namespace": "Namespace of the Secret.",
    },
    machine.MachineSet: {
        "": "MachineSet keeps a number of equal machines.",
        "spec": "How many machines, and of which kind.",
        "status": "What was last seen of the machines.",
    },
    machine.MachineSetSpec: {
        "": "How many machines, and of which kind.",
        "replicas": "How many machines there should be. Default 0.",
        "selector": "Labels by which the set knows its machines.",
        "machineClass": "Not used; the class stands in the template.",
        "template": "What new machines are made from.",
        "minReadySeconds": _SECONDS_READY,
        "autoPreserveFailedMachineMax": _AUTO_PRESERVE,
    },
    machine.MachineTemplate: {
        "": "What machines are made from.",
        "metadata": "Labels, annotations and finalizers of the machines.",
        "spec": "What the machines should be.",
    },
    machine.MachineSetStatus: {
        "": "What was last seen of a set's machines.",
        "replicas": "Machines there are.",
        "fullyLabeledReplicas": "Machines with all labels of the template.",
        "readyReplicas": "Machines that are ready.",
        "availableReplicas": _AVAILABLE,
        "preservedFailedReplicas": "Failed machines that are kept for inspection.",
        "autoPreserveFailedMachineCount": "Those of them that nobody asked to keep.",
        "observedGeneration": "The generation of the spec that this status answers.",
        "machineSetCondition": "What else is known: ReplicaFailure, Frozen.",
        "lastOperation": "What was last done with the set.",
        "failedMachines": _FAILED,
    },
    machine.MachineSetCondition: {**_CONDITION, "": "One thing that is known of a set."},
    machine.MachineSummary: {
        "": "A failed machine in short.",
        "name": "Name of the machine.",
        "providerID": "The machine's identity at its cloud provider.",
        "lastOperation": "The operation that failed.",
        "ownerRef": "Name of the machine's owner.",
    },
    machine.MachineDeployment: {
        "": "MachineDeployment keeps machines of one kind and replaces them when the kind changes.",
        "spec": "How many machines, of which kind, and how to change them.",
        "status": "How far that has come.",
    },
    machine.MachineDeploymentSpec: {
        "": "How many machines, of which kind, and how to change them.",
        "replicas": "How many machines there should be. Default 0.",
        "selector": "Labels by which the deployment knows its sets and their machines.",
        "template": "What new machines are made from; a change of it replaces the old ones.",
        "strategy": "How old machines are replaced by new ones.",
        "minReadySeconds": _SECONDS_READY,
        "revisionHistoryLimit": "How many old, empty sets are kept. Default: all.",
        "paused": "Whether to leave a changed template alone for now.",
        "rollbackTo": "Deprecated. Go back to an earlier template; cleared when done.",
        "progressDeadlineSeconds": "Seconds without progress until an update counts as stuck."
        " Default: never.",
        "autoPreserveFailedMachineMax": _AUTO_PRESERVE,
    },
    machine.DeploymentStrategy: {
        "": "How old machines are replaced by new ones.",
        "type": "RollingUpdate, Recreate or InPlaceUpdate. Default is RollingUpdate.",
        "rollingUpdate": "Limits of a rolling update. Default: one more and one less at a time.",
        "inPlaceUpdate": "Limits of an update in place; needed for that type.",
    },
    machine.RollingUpdate: {
        "": "How many machines may be replaced at a time.",
        "maxSurge": _SURGE,
        "maxUnavailable": _UNAVAILABLE,
    },
    machine.InPlaceUpdate: {
        "": "How many machines may be updated at a time, and who chooses them.",
        "maxSurge": _SURGE + " Not used if Manual.",
        "maxUnavailable": _UNAVAILABLE,
        "orchestrationType": "Auto: the controller selects machines. Manual: somebody labels them.",
    },
    machine.RollbackConfig: {
        "": "An earlier template to go back to.",
        "revision": "Its revision; 0 means the last one.",
    },
    machine.MachineDeploymentStatus: {
        "": "How far a deployment has come.",
        "observedGeneration": "The generation of the spec that this status answers.",
        "replicas": "Machines there are.",
        "updatedReplicas": "Machines made from the current template.",
        "readyReplicas": "Machines that are ready.",
        "availableReplicas": _AVAILABLE,
        "preservedFailedReplicas": "Failed machines that are kept for inspection.",
        "unavailableReplicas": "Machines still missing until all replicas are available.",
        "conditions": "What else is known: Available, Progressing, ReplicaFailure, Frozen.",
        "collisionCount": "How often the name of a new set was taken; part of the next name.",
        "failedMachines": _FAILED,
    },
    machine.MachineDeploymentCondition: {
        **_CONDITION,
        "": "One thing that is known of a deployment.",
        "lastUpdateTime": "When the condition was last written.",
    },
    meta.LabelSelector: {
        "": "Selects objects by their labels; all parts must agree.",
        "matchLabels": "Labels an object must have.",
        "matchExpressions": "Further demands on the labels.",
    },
    meta.LabelSelectorRequirement: {
        "": "One demand on one label.",
        "key": "Key of the label.",
        "operator": "In, NotIn, Exists or DoesNotExist.",
        "values": "Values for In and NotIn.",
    },
}
