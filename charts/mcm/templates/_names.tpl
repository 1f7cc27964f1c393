{{- define "mcm.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "mcm.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "mcm.fullname" .) -}}
{{- end -}}

{{- define "mcm.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "mcm.subjects" -}}
- kind: ServiceAccount
  name: {{ include "mcm.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- /* Cluster-wide names hold the namespace: the chart may be installed once in each. */ -}}
{{- define "mcm.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "mcm.fullname" .) -}}
{{- end -}}
