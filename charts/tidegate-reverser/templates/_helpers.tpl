{{- define "reverser.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- define "reverser.serviceAccount" -}}
{{- default (include "reverser.name" .) .Values.serviceAccount.name -}}
{{- end -}}
{{- define "reverser.labels" -}}
app.kubernetes.io/name: tidegate-reverser
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
{{- define "reverser.selector" -}}
app.kubernetes.io/name: tidegate-reverser
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
