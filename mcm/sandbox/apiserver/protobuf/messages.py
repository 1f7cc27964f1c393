"""The messages a client may send: field numbers, names and types, after Kubernetes 1.32.

A field is written ``number name type``. Types are string, bytes, int, bool, time, quantity,
intOrString, json, or another message. ``[]T`` repeats, ``map:T`` maps strings to T. ``T?`` is a
field that may be absent, so that its zero counts as a value; any other zero says nothing. ``+T``
has its members stand in the message around it. ``-`` is dropped: the server sets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_META = {
    "ObjectMeta": """
        1 name string, 2 generateName string, 3 namespace string, 4 selfLink string, 5 uid string,
        6 resourceVersion string, 7 generation int, 8 creationTimestamp time,
        9 deletionTimestamp time?, 10 deletionGracePeriodSeconds int?, 11 labels map:string,
        12 annotations map:string, 13 ownerReferences []OwnerReference, 14 finalizers []string,
        17 managedFields []ManagedFieldsEntry""",
    "OwnerReference": """
        1 kind string, 3 name string, 4 uid string, 5 apiVersion string, 6 controller bool?,
        7 blockOwnerDeletion bool?""",
    "ManagedFieldsEntry": """
        1 manager string, 2 operation string, 3 apiVersion string, 4 time time?,
        6 fieldsType string, 7 fieldsV1 FieldsV1?, 8 subresource string""",
    "FieldsV1": "1 raw +json",
    "LabelSelector": "1 matchLabels map:string, 2 matchExpressions []LabelSelectorRequirement",
    "LabelSelectorRequirement": "1 key string, 2 operator string, 3 values []string",
    "Preconditions": "1 uid string?, 2 resourceVersion string?",
    "DeleteOptions": """
        1 gracePeriodSeconds int?, 2 preconditions Preconditions?, 3 orphanDependents bool?,
        4 propagationPolicy string?, 5 dryRun []string""",
    "ObjectReference": """
        1 kind string, 2 namespace string, 3 name string, 4 uid string, 5 apiVersion string,
        6 resourceVersion string, 7 fieldPath string""",
    "LocalObjectReference": "1 name string",
}

_CONTAINERS = {
    "Container": """
        1 name string, 2 image string, 3 command []string, 4 args []string, 5 workingDir string,
        6 ports []ContainerPort, 7 env []EnvVar, 8 resources ResourceRequirements,
        9 volumeMounts []VolumeMount, 10 livenessProbe Probe?, 11 readinessProbe Probe?,
        13 terminationMessagePath string, 14 imagePullPolicy string,
        15 securityContext SecurityContext?, 16 stdin bool, 17 stdinOnce bool, 18 tty bool,
        19 envFrom []EnvFromSource, 20 terminationMessagePolicy string, 22 startupProbe Probe?,
        24 restartPolicy string?""",
    "ContainerPort": """
        1 name string, 2 hostPort int, 3 containerPort int, 4 protocol string, 5 hostIP string""",
    "EnvVar": "1 name string, 2 value string, 3 valueFrom EnvVarSource?",
    "EnvVarSource": """
        1 fieldRef ObjectFieldSelector?, 3 configMapKeyRef KeySelector?,
        4 secretKeyRef KeySelector?""",
    "ObjectFieldSelector": "1 apiVersion string, 2 fieldPath string",
    "KeySelector": "1 localObjectReference +LocalObjectReference, 2 key string, 3 optional bool?",
    "EnvFromSource": """
        1 prefix string, 2 configMapRef EnvSourceReference?, 3 secretRef EnvSourceReference?""",
    "EnvSourceReference": "1 localObjectReference +LocalObjectReference, 2 optional bool?",
    "ResourceRequirements": "1 limits map:quantity, 2 requests map:quantity",
    "VolumeMount": """
        1 name string, 2 readOnly bool, 3 mountPath string, 4 subPath string,
        5 mountPropagation string?, 6 subPathExpr string, 7 recursiveReadOnly string?""",
    "Probe": """
        1 handler +ProbeHandler, 2 initialDelaySeconds int, 3 timeoutSeconds int,
        4 periodSeconds int, 5 successThreshold int, 6 failureThreshold int,
        7 terminationGracePeriodSeconds int?""",
    "ProbeHandler": "1 exec ExecAction?, 2 httpGet HTTPGetAction?, 3 tcpSocket TCPSocketAction?",
    "ExecAction": "1 command []string",
    "HTTPGetAction": "1 path string, 2 port intOrString, 3 host string, 4 scheme string",
    "TCPSocketAction": "1 port intOrString, 2 host string",
    "SecurityContext": """
        1 capabilities Capabilities?, 2 privileged bool?, 4 runAsUser int?, 5 runAsNonRoot bool?,
        6 readOnlyRootFilesystem bool?, 7 allowPrivilegeEscalation bool?, 8 runAsGroup int?""",
    "Capabilities": "1 add []string, 2 drop []string",
}

_PODS = {
    "Pod": "1 metadata ObjectMeta, 2 spec PodSpec, 3 status -",
    "PodTemplateSpec": "1 metadata ObjectMeta, 2 spec PodSpec",
    "PodSpec": """
        1 volumes []Volume, 2 containers []Container, 3 restartPolicy string,
        4 terminationGracePeriodSeconds int?, 5 activeDeadlineSeconds int?, 6 dnsPolicy string,
        7 nodeSelector map:string, 8 serviceAccountName string, 9 serviceAccount string,
        10 nodeName string, 11 hostNetwork bool, 12 hostPID bool, 13 hostIPC bool,
        14 securityContext PodSecurityContext?, 15 imagePullSecrets []LocalObjectReference,
        16 hostname string, 17 subdomain string, 19 schedulerName string,
        20 initContainers []Container, 21 automountServiceAccountToken bool?,
        22 tolerations []Toleration, 24 priorityClassName string, 25 priority int?,
        29 runtimeClassName string?, 30 enableServiceLinks bool?, 31 preemptionPolicy string?""",
    "PodSecurityContext": """
        2 runAsUser int?, 3 runAsNonRoot bool?, 4 supplementalGroups []int, 5 fsGroup int?,
        6 runAsGroup int?""",
    "Toleration": """
        1 key string, 2 operator string, 3 value string, 4 effect string,
        5 tolerationSeconds int?""",
    "Volume": "1 name string, 2 volumeSource +VolumeSource",
    "VolumeSource": """
        1 hostPath HostPathVolumeSource?, 2 emptyDir EmptyDirVolumeSource?,
        6 secret SecretVolumeSource?, 10 persistentVolumeClaim ClaimVolumeSource?,
        19 configMap ConfigMapVolumeSource?""",
    "HostPathVolumeSource": "1 path string, 2 type string?",
    "EmptyDirVolumeSource": "1 medium string, 2 sizeLimit quantity?",
    "ClaimVolumeSource": "1 claimName string, 2 readOnly bool",
    "SecretVolumeSource": """
        1 secretName string, 2 items []KeyToPath, 3 defaultMode int?, 4 optional bool?""",
    "ConfigMapVolumeSource": """
        1 localObjectReference +LocalObjectReference, 2 items []KeyToPath, 3 defaultMode int?,
        4 optional bool?""",
    "KeyToPath": "1 key string, 2 path string, 3 mode int?",
    "Binding": "1 metadata ObjectMeta, 2 target ObjectReference",
}

_CORE = {
    "Namespace": "1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status -",
    "NamespaceSpec": "1 finalizers []string",
    "ConfigMap": """
        1 metadata ObjectMeta, 2 data map:string, 3 binaryData map:bytes, 4 immutable bool?""",
    "Secret": """
        1 metadata ObjectMeta, 2 data map:bytes, 3 type string, 4 stringData map:string,
        5 immutable bool?""",
    "ServiceAccount": """
        1 metadata ObjectMeta, 2 secrets []ObjectReference,
        3 imagePullSecrets []LocalObjectReference, 4 automountServiceAccountToken bool?""",
    "Service": "1 metadata ObjectMeta, 2 spec ServiceSpec, 3 status -",
    "ServiceSpec": """
        1 ports []ServicePort, 2 selector map:string, 3 clusterIP string, 4 type string,
        5 externalIPs []string, 7 sessionAffinity string, 8 loadBalancerIP string,
        9 loadBalancerSourceRanges []string, 10 externalName string,
        11 externalTrafficPolicy string, 12 healthCheckNodePort int,
        13 publishNotReadyAddresses bool, 17 ipFamilyPolicy string?, 18 clusterIPs []string,
        19 ipFamilies []string, 20 allocateLoadBalancerNodePorts bool?,
        21 loadBalancerClass string?, 22 internalTrafficPolicy string?""",
    "ServicePort": """
        1 name string, 2 protocol string, 3 port int, 4 targetPort intOrString, 5 nodePort int,
        6 appProtocol string?""",
    "Event": """
        1 metadata ObjectMeta, 2 involvedObject ObjectReference, 3 reason string,
        4 message string, 5 source EventSource, 6 firstTimestamp time, 7 lastTimestamp time,
        8 count int, 9 type string, 10 eventTime microTime, 11 series EventSeries?,
        12 action string, 13 related ObjectReference?, 14 reportingComponent string,
        15 reportingInstance string""",
    "EventSource": "1 component string, 2 host string",
    "EventSeries": "1 count int, 2 lastObservedTime microTime",
}

_OTHERS = {
    "Deployment": "1 metadata ObjectMeta, 2 spec DeploymentSpec, 3 status -",
    "DeploymentSpec": """
        1 replicas int?, 2 selector LabelSelector?, 3 template PodTemplateSpec,
        4 strategy DeploymentStrategy, 5 minReadySeconds int, 6 revisionHistoryLimit int?,
        7 paused bool, 9 progressDeadlineSeconds int?""",
    "DeploymentStrategy": "1 type string, 2 rollingUpdate RollingUpdateDeployment?",
    "RollingUpdateDeployment": "1 maxUnavailable intOrString?, 2 maxSurge intOrString?",
    "PodDisruptionBudget": "1 metadata ObjectMeta, 2 spec PodDisruptionBudgetSpec, 3 status -",
    "PodDisruptionBudgetSpec": """
        1 minAvailable intOrString?, 2 selector LabelSelector?, 3 maxUnavailable intOrString?,
        4 unhealthyPodEvictionPolicy string?""",
    "Eviction": "1 metadata ObjectMeta, 2 deleteOptions DeleteOptions?",
    "Lease": "1 metadata ObjectMeta, 2 spec LeaseSpec",
    "LeaseSpec": """
        1 holderIdentity string?, 2 leaseDurationSeconds int?, 3 acquireTime microTime?,
        4 renewTime microTime?, 5 leaseTransitions int?, 6 strategy string?,
        7 preferredHolder string?""",
    "PriorityClass": """
        1 metadata ObjectMeta, 2 value int, 3 globalDefault bool, 4 description string,
        5 preemptionPolicy string?""",
}

_ACCESS = {
    "Role": "1 metadata ObjectMeta, 2 rules []PolicyRule",
    "ClusterRole": """
        1 metadata ObjectMeta, 2 rules []PolicyRule, 3 aggregationRule AggregationRule?""",
    "PolicyRule": """
        1 verbs []string, 2 apiGroups []string, 3 resources []string, 4 resourceNames []string,
        5 nonResourceURLs []string""",
    "AggregationRule": "1 clusterRoleSelectors []LabelSelector",
    "RoleBinding": "1 metadata ObjectMeta, 2 subjects []Subject, 3 roleRef RoleRef",
    "ClusterRoleBinding": "1 metadata ObjectMeta, 2 subjects []Subject, 3 roleRef RoleRef",
    "Subject": "1 kind string, 2 apiGroup string, 3 name string, 4 namespace string",
    "RoleRef": "1 apiGroup string, 2 kind string, 3 name string",
    "TokenRequest": "1 metadata ObjectMeta, 2 spec TokenRequestSpec, 3 status -",
    "TokenRequestSpec": """
        1 audiences []string, 3 boundObjectRef BoundObjectReference?, 4 expirationSeconds int?""",
    "BoundObjectReference": "1 kind string, 2 apiVersion string, 3 name string, 4 uid string",
    "TokenReview": "1 metadata ObjectMeta, 2 spec TokenReviewSpec, 3 status -",
    "TokenReviewSpec": "1 token string, 2 audiences []string",
    "SubjectAccessReview": "1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec, 3 status -",
    "LocalSubjectAccessReview": "1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec, 3 status -",
    "SubjectAccessReviewSpec": """
        1 resourceAttributes ResourceAttributes?, 2 nonResourceAttributes NonResourceAttributes?,
        3 user string, 4 groups []string, 6 uid string""",
    "SelfSubjectAccessReview": "1 metadata ObjectMeta, 2 spec AccessReviewSpec, 3 status -",
    "AccessReviewSpec": """
        1 resourceAttributes ResourceAttributes?, 2 nonResourceAttributes NonResourceAttributes?""",
    "ResourceAttributes": """
        1 namespace string, 2 verb string, 3 group string, 4 version string, 5 resource string,
        6 subresource string, 7 name string""",
    "NonResourceAttributes": "1 path string, 2 verb string",
    "SelfSubjectRulesReview": "1 metadata ObjectMeta, 2 spec RulesReviewSpec, 3 status -",
    "RulesReviewSpec": "1 namespace string",
    "SelfSubjectReview": "1 metadata ObjectMeta, 2 status -",
}

MESSAGES: Mapping[str, str] = MappingProxyType(
    {**_META, **_CONTAINERS, **_PODS, **_CORE, **_OTHERS, **_ACCESS}
)

KINDS: frozenset[tuple[str, str]] = frozenset(
    {
        *(("v1", k) for k in ("Binding", "ConfigMap", "Event", "Namespace", "Pod", "Secret")),
        *(("v1", k) for k in ("Service", "ServiceAccount", "DeleteOptions")),
        ("apps/v1", "Deployment"),
        ("authentication.k8s.io/v1", "SelfSubjectReview"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("authentication.k8s.io/v1", "TokenReview"),
        ("authorization.k8s.io/v1", "LocalSubjectAccessReview"),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview"),
        ("authorization.k8s.io/v1", "SubjectAccessReview"),
        ("coordination.k8s.io/v1", "Lease"),
        ("policy/v1", "Eviction"),
        ("policy/v1", "PodDisruptionBudget"),
        *(("rbac.authorization.k8s.io/v1", k) for k in ("ClusterRole", "ClusterRoleBinding")),
        *(("rbac.authorization.k8s.io/v1", k) for k in ("Role", "RoleBinding")),
        ("scheduling.k8s.io/v1", "PriorityClass"),
    }
)
"""The (apiVersion, kind) pairs a body may be of; DeleteOptions come under any apiVersion."""
