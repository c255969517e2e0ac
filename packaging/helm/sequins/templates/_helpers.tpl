{{/* The name of all objects. StatefulSets add up to 11 characters for a label of their pods, and the headless service 6. */}}
{{- define "sequins.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The headless service, which gives each pod a name. */}}
{{- define "sequins.headless" -}}
{{ include "sequins.fullname" . }}-nodes
{{- end -}}

{{- define "sequins.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "sequins.labels" -}}
{{ include "sequins.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "sequins.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "sequins.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "sequins.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the certificate of [tls]. */}}
{{- define "sequins.tlsSecret" -}}
{{- if .Values.tls.certManager.enabled -}}
{{ include "sequins.fullname" . }}-tls
{{- else -}}
{{ .Values.tls.existingSecret }}
{{- end -}}
{{- end -}}

{{/* A size in MiB, rounded up: one of Kubernetes (4Gi, 500M), or one of sequins.conf (2GiB, 256MB, or bytes). */}}
{{- define "sequins.mebibytes" -}}
{{- $size := . -}}
{{- if not (kindIs "string" $size) -}}{{- $size = printf "%.0f" (float64 $size) -}}{{- end -}}
{{- $size = replace " " "" $size -}}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]+)?([kKMGT]i?)?B?$" $size) -}}
{{- fail (printf "%q is not a size such as 4Gi" .) -}}
{{- end -}}
{{- $number := regexFind "^[0-9.]+" $size | float64 -}}
{{- $unit := regexFind "[kKMGT]i?" $size -}}
{{- $factors := dict "" 1.0 "k" 1e3 "K" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 -}}
{{- divf (mulf $number (get $factors $unit)) 1048576.0 | ceil | int64 -}}
{{- end -}}

{{/* Cores, rounded up, of a number of CPUs such as "2", 1.5 or 500m. */}}
{{- define "sequins.cores" -}}
{{- $cpu := toString . -}}
{{- if hasSuffix "m" $cpu -}}
{{- divf (trimSuffix "m" $cpu | float64) 1000.0 | ceil | int -}}
{{- else -}}
{{- float64 $cpu | ceil | int -}}
{{- end -}}
{{- end -}}

{{/* The cores that Go uses: those of the CPU limit, which it finds itself, or GOMAXPROCS. */}}
{{- define "sequins.procs" -}}
{{- $limit := dig "limits" "cpu" "" .Values.resources -}}
{{- if $limit -}}
{{- max 2 (include "sequins.cores" $limit | int) -}}
{{- else if .Values.goMaxProcs -}}
{{- int .Values.goMaxProcs -}}
{{- else -}}
{{- max 4 (mul 2 (include "sequins.cores" (default "1" (dig "requests" "cpu" "" .Values.resources)) | int)) -}}
{{- end -}}
{{- end -}}

{{/* The MiB of memory that the pod has beside its loads: for the node's heap, its indexes, and the pages of blocks. Empty without a limit. */}}
{{- define "sequins.nodeMemory" -}}
{{- with dig "limits" "memory" "" .Values.resources -}}
{{- sub (include "sequins.mebibytes" . | int) (mul (int $.Values.config.max_parallel_loads) (include "sequins.mebibytes" $.Values.config.load.memory_limit | int)) -}}
{{- end -}}
{{- end -}}

{{/* The pods that may be missing at a time. When a version is served, each partition has min_replication replicas, so that one less may
be missing; and a version that is loaded meanwhile needs as many of its replication. */}}
{{- define "sequins.maxUnavailable" -}}
{{- if not (kindIs "invalid" .Values.podDisruptionBudget.maxUnavailable) -}}
{{ .Values.podDisruptionBudget.maxUnavailable }}
{{- else if .Values.sharded -}}
{{- $min := include "sequins.minReplication" . | int -}}
{{ max 1 (min (sub $min 1) (sub (int .Values.config.sharding.replication) $min)) }}
{{- else -}}
1
{{- end -}}
{{- end -}}

{{- define "sequins.minReplication" -}}
{{- with .Values.config.sharding -}}
{{- if kindIs "invalid" .min_replication -}}
{{ min 2 (int .replication) (int $.Values.replicas) }}
{{- else -}}
{{ int .min_replication }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "sequins.minNodes" -}}
{{- with .Values.config.sharding -}}
{{- if kindIs "invalid" .min_nodes -}}
{{ min (int .replication) (int $.Values.replicas) }}
{{- else -}}
{{ int .min_nodes }}
{{- end -}}
{{- end -}}
{{- end -}}
