{{- /* A class's value cannot be changed, so that it is part of the name: another value, another class. */ -}}
{{- define "mcm.priorityClassName" -}}
{{- if .Values.priorityClass.create -}}
{{- printf "%s-%d-%s" (include "mcm.clusterName" .) (int64 .Values.priorityClass.value) (lower .Values.priorityClass.preemptionPolicy) -}}
{{- else -}}
{{- .Values.priorityClass.name -}}
{{- end -}}
{{- end -}}

{{- /* Both pass the restricted standard of pod security. */ -}}
{{- define "mcm.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ int64 .Values.podSecurity.user }}
runAsGroup: {{ int64 .Values.podSecurity.group }}
# Mounted secrets are read by this group.
fsGroup: {{ int64 .Values.podSecurity.group }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "mcm.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "mcm.args" -}}
- run
- --namespace={{ include "mcm.machineNamespace" . }}
- --provider={{ .Values.manager.provider }}
- --control-kubeconfig={{ include "mcm.controlKubeconfig" . }}
- --target-kubeconfig={{ include "mcm.targetKubeconfig" . }}
- --address={{ .Values.manager.address }}
- --port={{ .Values.manager.port }}
- --log-format={{ .Values.manager.logFormat }}
- --v={{ .Values.manager.verbosity }}
- --leader-elect={{ .Values.leaderElection.enabled }}
{{- with .Values.leaderElection.leaseDuration }}
- --leader-elect-lease-duration={{ . }}
{{- end }}
{{- with .Values.leaderElection.renewDeadline }}
- --leader-elect-renew-deadline={{ . }}
{{- end }}
{{- with .Values.leaderElection.retryPeriod }}
- --leader-elect-retry-period={{ . }}
{{- end }}
{{- if .Values.sharding.name }}
- --shard-name={{ .Values.sharding.name }}
- --shard-selector={{ .Values.sharding.selector }}
{{- end }}
{{- if include "mcm.simulatesCloud" . }}
- --simulate-cloud
{{- end }}
{{- if include "mcm.guardsMetrics" . }}
- --metrics-port={{ .Values.metrics.port }}
- --metrics-authorization={{ .Values.metrics.authorization.enabled }}
{{- end }}
{{- if .Values.metrics.tls.enabled }}
- --metrics-tls-cert-dir=/etc/mcm/metrics
{{- end }}
{{- if .Values.webhook.enabled }}
- --webhook-port={{ .Values.webhook.port }}
- --webhook-cert-dir=/etc/mcm/webhook
{{- end }}
{{- if .Values.manager.config }}
- --config=/etc/mcm/config/config.yaml
{{- end }}
{{- with .Values.manager.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "mcm.volumeMounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .Values.manager.config }}
- name: config
  mountPath: /etc/mcm/config
  readOnly: true
{{- end }}
{{- if not .Values.controlCluster.inCluster }}
- name: control-kubeconfig
  mountPath: /etc/mcm/control
  readOnly: true
{{- end }}
{{- if eq .Values.targetCluster.mode "kubeconfig" }}
- name: target-kubeconfig
  mountPath: /etc/mcm/target
  readOnly: true
{{- end }}
{{- if .Values.metrics.tls.enabled }}
- name: metrics-certificate
  mountPath: /etc/mcm/metrics
  readOnly: true
{{- end }}
{{- if .Values.webhook.enabled }}
- name: webhook-certificate
  mountPath: /etc/mcm/webhook
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "mcm.volumes" -}}
# Keys of clients are loaded through files there: they stay in memory.
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 16Mi
{{- if .Values.manager.config }}
- name: config
  configMap:
    name: {{ include "mcm.part" (list . "config") }}
{{- end }}
{{- if not .Values.controlCluster.inCluster }}
- name: control-kubeconfig
  secret:
    secretName: {{ .Values.controlCluster.kubeconfigSecret.name }}
    defaultMode: 0440
{{- end }}
{{- if eq .Values.targetCluster.mode "kubeconfig" }}
- name: target-kubeconfig
  secret:
    secretName: {{ .Values.targetCluster.kubeconfigSecret.name }}
    defaultMode: 0440
{{- end }}
{{- if .Values.metrics.tls.enabled }}
- name: metrics-certificate
  secret:
    secretName: {{ .Values.metrics.tls.secretName }}
    defaultMode: 0440
{{- end }}
{{- if .Values.webhook.enabled }}
- name: webhook-certificate
  secret:
    secretName: {{ include "mcm.webhook.secretName" . }}
    defaultMode: 0440
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Metrics have a port of their own, so that probes need neither certificate nor token. */ -}}
{{- define "mcm.guardsMetrics" -}}
{{- if or .Values.metrics.tls.enabled .Values.metrics.authorization.enabled }}true{{ end -}}
{{- end -}}
