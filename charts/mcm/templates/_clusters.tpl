{{- /* Questions about the clusters, answered by "true" or nothing. */ -}}

{{- define "mcm.runsManager" -}}
{{- if eq .Values.mode "manager" }}true{{ end -}}
{{- end -}}

{{- /* The machine objects are in the cluster that this release is installed in. */ -}}
{{- define "mcm.controlIsHere" -}}
{{- if include "mcm.runsManager" . -}}
  {{- if .Values.controlCluster.inCluster }}true{{ end -}}
{{- else -}}
  {{- if .Values.access.control }}true{{ end -}}
{{- end -}}
{{- end -}}

{{- /* The machines join the cluster that this release is installed in. */ -}}
{{- define "mcm.targetIsHere" -}}
{{- if include "mcm.runsManager" . -}}
  {{- $mode := .Values.targetCluster.mode -}}
  {{- if or (eq $mode "inCluster") (and (eq $mode "same") .Values.controlCluster.inCluster) }}true{{ end -}}
{{- else -}}
  {{- if .Values.access.target }}true{{ end -}}
{{- end -}}
{{- end -}}

{{- define "mcm.hasTarget" -}}
{{- if ne .Values.targetCluster.mode "none" }}true{{ end -}}
{{- end -}}

{{- define "mcm.isSimulated" -}}
{{- if eq .Values.manager.provider "simulated" }}true{{ end -}}
{{- end -}}

{{- /* The manager also plays the cloud, whose machines need a cluster to join; in a
shard it does not, as each of them would. */ -}}
{{- define "mcm.simulatesCloud" -}}
{{- if and (include "mcm.isSimulated" .) .Values.simulatedCloud.enabled (include "mcm.hasTarget" .) (not .Values.sharding.name) }}true{{ end -}}
{{- end -}}

{{- /* The pod talks to its own cluster, and so needs its service account's token. */ -}}
{{- define "mcm.needsToken" -}}
{{- if or (include "mcm.controlIsHere" .) (include "mcm.targetIsHere" .) .Values.serviceAccount.alwaysMountToken }}true{{ end -}}
{{- end -}}

{{- define "mcm.controlKubeconfig" -}}
{{- if .Values.controlCluster.inCluster -}}
inClusterConfig
{{- else -}}
/etc/mcm/control/{{ .Values.controlCluster.kubeconfigSecret.key }}
{{- end -}}
{{- end -}}

{{- define "mcm.targetKubeconfig" -}}
{{- $mode := .Values.targetCluster.mode -}}
{{- if eq $mode "none" -}}
none
{{- else if eq $mode "inCluster" -}}
inClusterConfig
{{- else if eq $mode "same" -}}
{{- include "mcm.controlKubeconfig" . -}}
{{- else -}}
/etc/mcm/target/{{ .Values.targetCluster.kubeconfigSecret.key }}
{{- end -}}
{{- end -}}

{{- define "mcm.subjects" -}}
{{- if and .Values.access.subjects (not (include "mcm.runsManager" .)) -}}
{{- toYaml .Values.access.subjects -}}
{{- else -}}
- kind: ServiceAccount
  name: {{ include "mcm.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
{{- end -}}

{{- /* The release says how requests are queued that come to the cluster it is installed in. */ -}}
{{- define "mcm.controlsFlow" -}}
{{- if and .Values.flowControl.enabled (or (include "mcm.controlIsHere" .) (include "mcm.targetIsHere" .)) }}true{{ end -}}
{{- end -}}

{{- /* Both are asked: without a cluster, helm takes any version for one that serves what it knows
itself; and a server may be new, and serve less. */ -}}
{{- define "mcm.servesFlowControl" -}}
{{- if and (semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version) (.Capabilities.APIVersions.Has "flowcontrol.apiserver.k8s.io/v1") }}true{{ end -}}
{{- end -}}

{{- /* Managers contend for leases in the cluster that this release is installed in. Roles for a
manager elsewhere cannot tell, and are for one that does. */ -}}
{{- define "mcm.holdsLeasesHere" -}}
{{- if and (include "mcm.controlIsHere" .) (or .Values.leaderElection.enabled (not (include "mcm.runsManager" .))) }}true{{ end -}}
{{- end -}}

{{- /* The same as mcm.subjects, in the form of a FlowSchema. */ -}}
{{- define "mcm.flowSubjects" -}}
{{- range include "mcm.subjects" . | fromYamlArray }}
- kind: {{ .kind }}
  {{- if eq .kind "ServiceAccount" }}
  serviceAccount:
    name: {{ .name | quote }}
    namespace: {{ .namespace | quote }}
  {{- else }}
  {{ lower .kind }}:
    name: {{ .name | quote }}
  {{- end }}
{{- end }}
{{- end -}}
