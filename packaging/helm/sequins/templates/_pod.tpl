{{- define "sequins.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* A probe of a path. The kubelet has no certificate of a client: where one is required, it asks the listener for metrics. */}}
{{- define "sequins.probe" -}}
{{- $tls := (index . 0).Values.tls -}}
httpGet:
  path: {{ index . 1 }}
  port: {{ ternary "metrics" "http" $tls.clientCertificates }}
  {{- if and $tls.enabled (not $tls.clientCertificates) }}
  scheme: HTTPS
  {{- end }}
{{- end -}}

{{- define "sequins.env" -}}
{{- if not (dig "limits" "cpu" "" .Values.resources) }}
# Go finds a limit of the CPU itself. Without one, it would use all cores of the node.
- name: GOMAXPROCS
  value: {{ include "sequins.procs" . | quote }}
{{- end }}
{{- with include "sequins.nodeMemory" . }}
# Half of what the loads leave. The other half is for indexes and for the pages of blocks.
- name: GOMEMLIMIT
  value: {{ div (int .) 2 }}MiB
{{- end }}
{{- if .Values.sharded }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
# A pod that moves keeps its partitions.
- name: SEQUINS_SHARDING_SHARD_ID
  value: $(POD_NAME)
- name: SEQUINS_SHARDING_ADVERTISED_HOSTNAME
  value: $(POD_NAME).{{ include "sequins.headless" . }}.$(POD_NAMESPACE).svc.{{ .Values.clusterDomain }}
{{- if eq .Values.zone.from "pod" }}
- name: SEQUINS_SHARDING_ZONE
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['topology.kubernetes.io/zone']
{{- end }}
{{- end }}
{{- with .Values.s3 }}
{{- if .existingSecret }}
- name: SEQUINS_S3_ACCESS_KEY_ID
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret | quote }}
      key: {{ .accessKeyIDKey | quote }}
{{- end }}
{{- end }}
{{- if .Values.gs.existingSecret }}
- name: GOOGLE_APPLICATION_CREDENTIALS
  value: /etc/sequins-secrets/gs/credentials.json
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The Secrets below /etc/sequins-secrets. */}}
{{- define "sequins.secrets" -}}
{{- $v := .Values -}}
{{- if $v.tls.enabled }}
{{ include "sequins.secret" (dict "name" (include "sequins.tlsSecret" .) "dir" "tls" "items" (list "tls.crt" "tls.key" "ca.crt")) }}
{{- end }}
{{- if $v.sharded }}
{{- with $v.clusterSecret.existingSecret }}
{{ include "sequins.secret" (dict "name" . "dir" "cluster" "key" $v.clusterSecret.key "path" "secret") }}
{{- end }}
{{- with $v.zookeeper.auth.existingSecret }}
{{ include "sequins.secret" (dict "name" . "dir" "zookeeper" "key" $v.zookeeper.auth.key "path" "auth") }}
{{- end }}
{{- with $v.zookeeper.tls.existingSecret }}
{{ include "sequins.secret" (dict "name" . "dir" "zookeeper" "items" (ternary (list "ca.crt" "tls.crt" "tls.key") (list "ca.crt") $v.zookeeper.tls.clientCertificate)) }}
{{- end }}
{{- end }}
{{- with $v.tokens.existingSecret }}
{{ include "sequins.secret" (dict "name" . "dir" "tokens" "key" $v.tokens.key "path" "tokens") }}
{{- end }}
{{- with $v.s3.existingSecret }}
{{ include "sequins.secret" (dict "name" . "dir" "s3" "key" $v.s3.secretAccessKeyKey "path" "secret_access_key") }}
{{- end }}
{{- with $v.gs.existingSecret }}
{{ include "sequins.secret" (dict "name" . "dir" "gs" "key" $v.gs.key "path" "credentials.json") }}
{{- end }}
{{- with $v.azure.existingSecret }}
{{ include "sequins.secret" (dict "name" . "dir" "azure" "key" $v.azure.key "path" "account_key") }}
{{- end }}
{{- with $v.events.existingSecret }}
{{ include "sequins.secret" (dict "name" . "dir" "events" "key" $v.events.key "path" "secret") }}
{{- end }}
{{- end -}}

{{/* Keys of one Secret in a directory: key as path, or items by their own names. */}}
{{- define "sequins.secret" -}}
- secret:
    name: {{ .name | quote }}
    items:
      {{- if .items }}
      {{- range .items }}
      - key: {{ . | quote }}
        path: {{ $.dir }}/{{ . }}
      {{- end }}
      {{- else }}
      - key: {{ .key | quote }}
        path: {{ .dir }}/{{ .path }}
      {{- end }}
{{- end -}}
