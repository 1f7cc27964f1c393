"""Every name that is part of the interface: finalizers, labels, annotations, taints, conditions.

Other programs (the Go original, cluster-autoscaler, node agents, dashboards) read and write the
same names, so none of them may change. Marker texts of single flows live with their flow.
"""

from __future__ import annotations

from typing import Final

# Finalizers ---------------------------------------------------------------------------------------

MACHINE_FINALIZER: Final = "machine.sapcloud.io/machine-controller-manager"
"""On Machine, MachineClass, MachineSet and MachineDeployment."""
SECRET_FINALIZER: Final = "machine.sapcloud.io/machine-controller"
"""On Secrets that a class refers to; differs from :data:`MACHINE_FINALIZER` on purpose."""
NODE_FINALIZER: Final = "node.machine.sapcloud.io/machine-controller"

# Labels -------------------------------------------------------------------------------------------

LABEL_NODE: Final = "node"
"""On a Machine: the name of its Node."""
LABEL_NAME: Final = "name"
"""On a Machine, through the template: the MachineDeployment's name. Never written by us."""
LABEL_FORCE_DELETION: Final = "force-deletion"
"""On a Machine: a Go boolean text; true skips what a normal deletion waits for."""
LABEL_FORCE_DRAIN: Final = "force-drain"
"""On a Machine: ``True`` forces the drains of in-place updates and preservation."""
LABEL_MACHINE_TEMPLATE_HASH: Final = "machine-template-hash"
"""On MachineSet (labels, selector, template) and Machine: tells a deployment's sets apart."""
LABEL_FREEZE: Final = "freeze"
"""On MachineSet: ``True`` stops the creation of machines. On MachineDeployment it shows that one of
its sets bears it."""
LABEL_SCALE_UP_DISABLED: Final = "node.machine.sapcloud.io/scale-up-disabled"
"""On a MachineSet during an in-place update: no creation."""
LABEL_CANDIDATE_FOR_UPDATE: Final = "node.machine.sapcloud.io/candidate-for-update"
LABEL_SELECTED_FOR_UPDATE: Final = "node.machine.sapcloud.io/selected-for-update"
"""Both on a Node; presence counts, not the value."""
LABEL_UPDATE_RESULT: Final = "node.machine.sapcloud.io/update-result"
"""On a Node, by its agent; on a Machine while it moves between sets."""
LABEL_ZONE = "topology.kubernetes.io/zone"
LABEL_ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
LABEL_NODE_MACHINE_NAME: Final = "node.gardener.cloud/machine-name"
"""On a Node: the name of its Machine."""

LABEL_POD_DRAIN: Final = "machine.sapcloud.io/drain"
"""On a pod: ``skip`` leaves it on its node in a drain, ``wait-completed`` waits until it has
completed. Ours."""
LABEL_CLUSTER_API_DRAIN: Final = "cluster.x-k8s.io/drain"
"""The same on a pod, by the words of Cluster API."""

LABEL_VALUE_TRUE: Final = "True"
"""The value of the labels and annotations which are switches (freeze, force-drain, …)."""
UPDATE_RESULT_SUCCESSFUL: Final = "successful"
UPDATE_RESULT_FAILED: Final = "failed"

# Annotations --------------------------------------------------------------------------------------

ANNOTATION_PRIORITY: Final = "machinepriority.machine.sapcloud.io"
"""On a Machine: who goes first in a scale-down, smaller is earlier."""
PRIORITY_DEFAULT: Final = "3"
PRIORITY_DELETE_FIRST: Final = "1"

ANNOTATION_REVISION: Final = "deployment.kubernetes.io/revision"
ANNOTATION_REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
ANNOTATION_DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
ANNOTATION_MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
ANNOTATION_PREFER_NO_SCHEDULE: Final = "deployment.machine.sapcloud.io/prefer-no-schedule"
"""On a MachineSet: ``True`` once its Nodes got the taint of the same name."""
ANNOTATION_SURGE_POOL: Final = "deployment.machine.sapcloud.io/surge-pool"
"""On a MachineDeployment: the pool with whose members it shares surge and unavailability."""
ANNOTATION_RESTARTED_AT: Final = "machine.sapcloud.io/restartedAt"
"""On a deployment's template: when somebody asked for new machines of the same class."""
ANNOTATION_CHANGE_CAUSE: Final = "kubernetes.io/change-cause"
"""On MachineDeployment and MachineSet, by people: why a revision was made."""
ANNOTATION_COMPLETED: Final = "deployment.machine.sapcloud.io/completed"
"""On a MachineSet: ``True`` once a rollout to it was complete. Ours."""
ANNOTATION_FAILING_SINCE: Final = "deployment.machine.sapcloud.io/failing-since"
"""On a MachineSet: since when (RFC 3339) its machines fail to come up. Ours."""
ANNOTATION_STARTUP_FAILURES: Final = "machine.sapcloud.io/startup-failures"
"""On a MachineSet: JSON telling of machines given up before they ever joined. Ours."""
ANNOTATION_ROLLBACK_AFTER: Final = "deployment.machine.sapcloud.io/rollback-after"
"""On a MachineDeployment: how long (``30m``) a rollout may fail before it is rolled back. Ours."""
ANNOTATION_ROLLED_BACK: Final = "deployment.machine.sapcloud.io/rolled-back"
"""On a MachineDeployment: JSON telling of the last rollback that nobody asked for. Ours."""
ANNOTATION_UNFREEZE: Final = "safety.machine.sapcloud.io/unfreeze"
"""On MachineDeployment and MachineSet, any value: unfreeze now."""

ANNOTATION_LAST_APPLIED_ALT: Final = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
"""On a Node: JSON of the node template last applied (annotations, labels, taints)."""
ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY: Final = (
    "node.machine.sapcloud.io/last-applied-virtual-capacity"
)
ANNOTATION_LAST_APPLIED_PROVIDER_SPEC: Final = "last-applied-providerspec"
"""On a Machine: the ``providerSpec`` its VM was made with or last brought to. JSON, or the SHA-256
of it where it is too long. No prefix: the hot-update proposal has none."""
ANNOTATION_IN_FLIGHT_PROVIDER_SPECS: Final = "inflight-providerspecs"
"""On a Machine whose VM is being updated: JSON list of those that were tried since."""
ANNOTATION_NOT_MANAGED_BY_MCM: Final = "node.machine.sapcloud.io/not-managed-by-mcm"
"""On a Node without Machine: ``1``."""
ANNOTATION_NODE_NAMESPACE: Final = "node.machine.sapcloud.io/machine-namespace"
"""On a Node, where several managers share its cluster: the namespace of its Machine."""
NOT_MANAGED_VALUE: Final = "1"

ANNOTATION_TRIGGER_DELETION: Final = "node.machine.sapcloud.io/trigger-deletion-by-mcm"
"""On a MachineDeployment, by cluster-autoscaler: ``machine~time,machine~time``."""
ANNOTATION_MARKED_FOR_DELETION: Final = "machine.sapcloud.io/marked-for-deletion-time"
ANNOTATION_REPLICA_CHANGE_BY_SCALER: Final = (
    "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"
)
ANNOTATION_EFFECTIVE_CREATION_TIMEOUT: Final = "node.machine.sapcloud.io/effective-creation-timeout"
"""On MachineDeployment, MachineSet, Machine: a Go duration that wins over spec and flag."""
ANNOTATION_MACHINE_JOIN_DURATION: Final = "node.machine.sapcloud.io/machine-join-duration"
ANNOTATION_UPDATE_FAILED_REASON: Final = "node.machine.sapcloud.io/update-failed-reason"
"""On a Node, by its agent: why an in-place update failed."""

ANNOTATION_UPDATE_TO_SET: Final = "node.machine.sapcloud.io/update-to-machine-set"
"""On a Node that is to be updated in place: the MachineSet that its machine joins afterwards."""

ANNOTATION_CORDONED_BY_MCM: Final = "node.machine.sapcloud.io/cordoned-by-mcm"
"""On a Node that we cordoned and will uncordon again; the value says what for."""
CORDONED_FOR_UPDATE: Final = "in-place-update"

ANNOTATION_DRAIN_RECORD: Final = "machine.sapcloud.io/drain-record"
"""On a Machine, or on the Node that ``mcm drain`` empties: JSON, what a drain under way must not
forget. Ours."""
ANNOTATION_DRAINED_BY: Final = "machine.sapcloud.io/drained-by"
"""On a Node that ``mcm drain`` was told to empty: JSON, who told it, and whether the cordon is
ours."""
ANNOTATION_DRAIN_WAVE: Final = "machine.sapcloud.io/drain-wave"
"""On a pod: a whole number; in a drain it goes when all of smaller ones are gone. Ours."""
ANNOTATION_DRAIN_SURGE: Final = "machine.sapcloud.io/drain-surge"
"""On a pod: ``restart`` or ``scale`` has its Deployment make a successor before it goes in a drain.
On a Deployment: JSON telling of the successor that is being made. Ours."""
LABEL_DRAIN_SURGE: Final = ANNOTATION_DRAIN_SURGE
"""On a Deployment, beside the annotation: by it those are found."""
ANNOTATION_KUBECTL_RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
"""On a pod template, as ``kubectl rollout restart`` writes it."""
ANNOTATION_MIRROR_POD: Final = "kubernetes.io/config.mirror"
"""On a pod that shows a static one of its node's kubelet."""

ANNOTATION_PRESERVE: Final = "node.machine.sapcloud.io/preserve"
"""On Node or Machine: one of the ``PRESERVE_*`` values."""
ANNOTATION_LAST_APPLIED_PRESERVE: Final = (
    "node.machine.sapcloud.io/last-applied-node-preserve-value"
)
PRESERVE_NOW: Final = "now"
PRESERVE_WHEN_FAILED: Final = "when-failed"
PRESERVE_AUTO: Final = "auto-preserved"
PRESERVE_FALSE: Final = "false"
PRESERVE_VALUES: Final = frozenset(
    {PRESERVE_NOW, PRESERVE_WHEN_FAILED, PRESERVE_AUTO, PRESERVE_FALSE}
)

ANNOTATION_SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: Final = (
    "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm"
)
"""Beside the former: it was we who set it, so we may take it away."""
SCALE_DOWN_DISABLED_VALUE: Final = "true"

ANNOTATION_LED_SINCE: Final = "machine.sapcloud.io/led-since"
"""On our Leases: when one was taken after nobody had held it for long."""
ANNOTATION_SHARD: Final = "machine.sapcloud.io/shard"
"""On a Machine, MachineSet or MachineDeployment: the shard that looks after it. On a Lease: whose
it is."""
ANNOTATION_SHARD_SELECTOR: Final = "machine.sapcloud.io/shard-selector"
"""On a shard's Lease: which objects belong to it."""
ANNOTATION_MIGRATED: Final = "machine.sapcloud.io/migrated"
"""On a provider-specific class: a MachineClass has taken its place."""
MIGRATED_VALUE_PREFIX: Final = "machine-controller-"
"""The value of the former; the kind follows."""

ANNOTATION_KUBECTL_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

ANNOTATION_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""On the BOOKMARK that ends the initial part of a streamed list: ``true``."""

# Taints -------------------------------------------------------------------------------------------

TAINT_PREFER_NO_SCHEDULE: Final = "deployment.machine.sapcloud.io/prefer-no-schedule"
"""Value ``True``, effect PreferNoSchedule: steers pods away from old sets."""
TAINT_CRITICAL_COMPONENTS_NOT_READY: Final = "node.gardener.cloud/critical-components-not-ready"
"""Effect NoSchedule; holds a machine in Pending while present."""
TAINT_INSTANCE_NOT_READY: Final = "node.machine.sapcloud.io/instance-not-ready"
"""By the kubelet, when it registers; taken off when the machine becomes Running."""
TAINT_PRESERVED: Final = "node.machine.sapcloud.io/preserved"
"""Effect NoSchedule; on Nodes of preserved failed machines."""
TAINT_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
"""Effect NoSchedule; what a pod must tolerate to be put onto a cordoned Node."""
TAINT_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

EFFECT_NO_SCHEDULE: Final = "NoSchedule"
EFFECT_PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
EFFECT_NO_EXECUTE: Final = "NoExecute"

# Conditions ---------------------------------------------------------------------------------------

STATUS_TRUE: Final = "True"
STATUS_FALSE: Final = "False"
STATUS_UNKNOWN: Final = "Unknown"

CONDITION_NODE_READY: Final = "Ready"
CONDITION_NODE_TERMINATING: Final = "Terminating"
REASON_SCALE_DOWN: Final = "ScaleDown"
REASON_UNHEALTHY: Final = "Unhealthy"
CONDITION_READONLY_FILESYSTEM: Final = "ReadonlyFilesystem"

CONDITION_IN_PLACE_UPDATE: Final = "InPlaceUpdate"
REASON_CANDIDATE_FOR_UPDATE: Final = "CandidateForUpdate"
REASON_SELECTED_FOR_UPDATE: Final = "SelectedForUpdate"
REASON_DRAIN_SUCCESSFUL: Final = "DrainSuccessful"
REASON_READY_FOR_UPDATE: Final = "ReadyForUpdate"
REASON_UPDATE_SUCCESSFUL: Final = "UpdateSuccessful"
REASON_UPDATE_FAILED: Final = "UpdateFailed"

CONDITION_PRESERVED: Final = "Preserved"
REASON_PRESERVED_BY_MCM: Final = "Preserved by MCM."
REASON_PRESERVED_BY_USER: Final = "Preserved by user."
REASON_PRESERVATION_STOPPED: Final = "Preservation stopped."

CONDITION_REPLICA_FAILURE: Final = "ReplicaFailure"
"""On MachineSet; copied to MachineDeployment."""
REASON_FAILED_CREATE: Final = "FailedCreate"
REASON_FAILED_DELETE: Final = "FailedDelete"

CONDITION_FROZEN: Final = "Frozen"
"""On MachineSet and MachineDeployment."""
REASON_OVERSHOOTING: Final = "OverShootingReplicaCount"
REASON_DEPLOYMENT_STATE_SYNC: Final = "MachineDeploymentStateSync"
"""On a MachineDeployment whose set is frozen for no reason that its machines give."""
EVENT_FROZE_SET: Final = "FrozeMachineSet"
EVENT_UNFROZE_SET: Final = "UnfrozeMachineSet"
EVENT_FROZE_DEPLOYMENT: Final = "FrozeMachineDeployment"
EVENT_UNFROZE_DEPLOYMENT: Final = "UnfrozeMachineDeployment"
"""Those on deployments are ours; the Go original tells of sets only."""

REASON_INVALID_SPEC: Final = "InvalidSpec"
"""Nothing can be done for a spec that cannot be acted on; the message names field and remedy."""
CONDITION_AVAILABLE: Final = "Available"
REASON_MINIMUM_AVAILABLE: Final = "MinimumReplicasAvailable"
REASON_MINIMUM_UNAVAILABLE: Final = "MinimumReplicasUnavailable"

CONDITION_PAUSED: Final = "Paused"
CONDITION_STRATEGY_ADJUSTED: Final = "StrategyAdjusted"
"""Of a MachineDeployment: its strategy's numbers cannot be meant, others are acted on."""
REASON_NOTHING_REPLACEABLE: Final = "NothingReplaceable"
CONDITION_ORPHANED_MACHINES: Final = "OrphanedMachines"
"""Of a MachineDeployment: it selects machines that belong to no set."""
REASON_NO_SET_ADOPTS: Final = "NoMachineSetAdopts"
CONDITION_DRAINED: Final = "Drained"
"""On a machine: False while its drain takes long or does not go on, and why."""
REASON_DRAIN_BLOCKED: Final = "Blocked"
CONDITION_DRAIN_BLOCKED: Final = "DrainBlocked"
"""On sets and deployments: drains of their machines do not go on by themselves."""
REASON_DRAINS_HELD_UP: Final = "DrainsHeldUp"
CONDITION_SURGE_POOL: Final = "SurgePool"
"""Of a MachineDeployment: ``False`` while something is to be said of the pool it names."""
REASON_WAITS_FOR_POOL: Final = "WaitingForSurgePool"
REASON_NUMBERS_DIFFER: Final = "NumbersDiffer"

CONDITION_PROGRESSING: Final = "Progressing"
REASON_NEW_MACHINES_FAILING: Final = "NewMachinesFailing"
"""``Progressing`` is False: machines of the new set fail to come up; the message quotes one."""
REASON_NO_TARGET_CLUSTER: Final = "NoTargetCluster"
"""``Progressing`` is False: an update is wanted that needs Nodes, and none can be seen."""
REASON_NEW_SET_CREATED: Final = "NewMachineSetCreated"
REASON_FOUND_NEW_SET: Final = "FoundNewMachineSet"
REASON_SET_UPDATED: Final = "MachineSetUpdated"
REASON_NEW_SET_AVAILABLE: Final = "NewMachineSetAvailable"
REASON_DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
REASON_SET_CREATE_ERROR: Final = "MachineSetCreateError"
REASON_PAUSED: Final = "DeploymentPaused"
REASON_RESUMED: Final = "DeploymentResumed"

# Kinds and strategies -----------------------------------------------------------------------------

KIND_MACHINE_CLASS: Final = "MachineClass"
"""The only class kind there is now; a class of another is to be migrated."""

STRATEGY_RECREATE: Final = "Recreate"
STRATEGY_ROLLING_UPDATE: Final = "RollingUpdate"
STRATEGY_IN_PLACE_UPDATE: Final = "InPlaceUpdate"
ORCHESTRATION_AUTO: Final = "Auto"
ORCHESTRATION_MANUAL: Final = "Manual"
