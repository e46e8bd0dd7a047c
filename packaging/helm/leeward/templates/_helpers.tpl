{{- define "leeward.name" -}}
{{- printf "%s-%s" .root.Release.Name .part | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "leeward.selector" -}}
app.kubernetes.io/name: leeward
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "leeward.labels" -}}
{{ include "leeward.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "leeward.meta" -}}
name: {{ include "leeward.name" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "leeward.labels" . | nindent 2 }}
{{- end -}}

{{/* Metadata of objects of the whole cluster, whose names must differ between releases. */}}
{{- define "leeward.clusterMeta" -}}
name: {{ printf "%s-%s" .root.Release.Namespace (include "leeward.name" .) }}
labels:
  {{- include "leeward.labels" . | nindent 2 }}
{{- end -}}

{{- define "leeward.image" -}}
{{- if and (eq .root.Values.image.repository "localhost") (not .root.Values.image.onNodes) }}
{{- fail "image.repository: localhost: no registry. Push the images with `make kubernetes-push IMAGE_REPOSITORY=registry.example.com/leeward` and set image.repository to that name, or set image.onNodes=true if every node has the images" }}
{{- end -}}
image: {{ printf "%s/%s:%s" .root.Values.image.repository .image (.root.Values.image.tag | default .root.Chart.AppVersion) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- end -}}

{{- define "leeward.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Security of pods: no root, and the seccomp profile of the container engine. */}}
{{- define "leeward.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "leeward.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "leeward.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "leeward.tokenSecret" -}}
{{- .Values.tokens.existingSecret | default (include "leeward.name" (dict "root" . "part" "tokens")) -}}
{{- end -}}

{{- define "leeward.tlsSecret" -}}
{{- if eq .Values.tls.mode "existing" -}}
{{- required "tls.existingSecret: missing: name the Secret of the certificate" .Values.tls.existingSecret -}}
{{- else -}}
{{- include "leeward.name" (dict "root" . "part" "tls") -}}
{{- end -}}
{{- end -}}

{{- define "leeward.url" -}}
{{- $scheme := ternary "http" "https" (eq .Values.tls.mode "none") -}}
{{- printf "%s://%s.%s.svc:7600" $scheme (include "leeward.name" (dict "root" . "part" "controller")) .Release.Namespace -}}
{{- end -}}

{{/* The volume with the token of a client, and the certificate of the authority. */}}
{{- define "leeward.clientVolume" -}}
- name: leeward
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ include "leeward.tokenSecret" .root }}
          items: [{key: {{ .token }}, path: token}]
      {{- if ne .root.Values.tls.mode "none" }}
      - secret:
          name: {{ include "leeward.tlsSecret" .root }}
          items: [{key: ca.crt, path: ca.crt}]
      {{- end }}
{{- end -}}
