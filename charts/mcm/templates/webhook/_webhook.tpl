{{- define "mcm.webhook.enabled" -}}
{{- if and (include "mcm.runsManager" .) .Values.webhook.enabled }}true{{ end -}}
{{- end -}}

{{- define "mcm.webhook.secretName" -}}
{{- if eq .Values.webhook.certificates.source "secret" -}}
{{- .Values.webhook.certificates.secretName -}}
{{- else -}}
{{- include "mcm.part" (list . "webhook") -}}
{{- end -}}
{{- end -}}

{{- /* The names that an API server may know the webhook by, as a JSON list. */ -}}
{{- define "mcm.webhook.hosts" -}}
{{- $service := include "mcm.part" (list . "webhook") -}}
{{- $hosts := list (printf "%s.%s.svc" $service .Release.Namespace) (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) -}}
{{- with .Values.webhook.url -}}
  {{- $hosts = append $hosts (regexReplaceAll "^https://(\\[[^]]*\\]|[^/:]*).*" . "${1}" | trimPrefix "[" | trimSuffix "]") -}}
{{- end -}}
{{- toJson $hosts -}}
{{- end -}}
