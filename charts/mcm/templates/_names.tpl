{{- /* The first part of all names: a DNS label that begins with a letter, as Services want it. */ -}}
{{- define "mcm.fullname" -}}
{{- $wanted := .Values.fullnameOverride -}}
{{- if not $wanted -}}
  {{- $wanted = ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- end -}}
{{- $name := regexReplaceAll "[^a-z0-9-]" $wanted "-" -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
  {{- $name = printf "mcm-%s" $name -}}
{{- end -}}
{{- if contains "." $wanted -}}
  {{- $name = printf "%s-%s" $name (sha256sum $wanted | trunc 8) -}}
{{- end -}}
{{- include "mcm.label" $name -}}
{{- end -}}

{{- /* What is too long for a label is cut, and told apart by a hash of the whole. */ -}}
{{- define "mcm.label" -}}
{{- if le (len .) 63 -}}
{{- . -}}
{{- else -}}
{{- printf "%s-%s" (trunc 54 . | trimSuffix "-") (sha256sum . | trunc 8) -}}
{{- end -}}
{{- end -}}

{{- /* The name of a part: include "mcm.part" (list . "webhook"). */ -}}
{{- define "mcm.part" -}}
{{- include "mcm.label" (printf "%s-%s" (include "mcm.fullname" (index . 0)) (index . 1)) -}}
{{- end -}}

{{- /* For what does not live in the release's namespace: neither part can hold the dot between
them, so that no two releases of a cluster have one name. */ -}}
{{- define "mcm.clusterName" -}}
{{- printf "%s.%s" .Release.Namespace (include "mcm.fullname" .) -}}
{{- end -}}

{{- define "mcm.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "mcm.fullname" .) -}}
{{- end -}}

{{- define "mcm.machineNamespace" -}}
{{- .Values.manager.namespace | default .Release.Namespace -}}
{{- end -}}

{{- /* What never changes in the life of a release, since selectors cannot. */ -}}
{{- define "mcm.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- end -}}

{{- define "mcm.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: machine-controller-manager
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{- define "mcm.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}
{{- end -}}
