{{/* Writes a map as TOML: first its values, then its tables. The argument is a list of the name of the table and the map. toToml
of Helm would write integers of values as floats. */}}
{{- define "sequins.toml" -}}
{{- $path := index . 0 -}}
{{- range $key, $value := index . 1 }}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value)) }}
{{ include "sequins.tomlKey" $key }} = {{ include "sequins.tomlValue" $value }}
{{- end }}
{{- end }}
{{- range $key, $value := index . 1 }}
{{- if kindIs "map" $value }}
{{- $name := ternary (include "sequins.tomlKey" $key) (printf "%s.%s" $path (include "sequins.tomlKey" $key)) (empty $path) }}

[{{ $name }}]
{{- include "sequins.toml" (list $name $value) }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "sequins.tomlKey" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toRawJson . }}{{ end -}}
{{- end -}}

{{- define "sequins.tomlValue" -}}
{{- if kindIs "slice" . -}}
{{- $all := list -}}
{{- range . }}{{ $all = append $all (include "sequins.tomlValue" .) }}{{ end -}}
[{{ join ", " $all }}]
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- printf "%.0f" . -}}
{{- else -}}
{{- toRawJson . -}}
{{- end -}}
{{- end -}}

{{/* sequins.conf: config, and what the chart sets. */}}
{{- define "sequins.conf" -}}
{{- include "sequins.validate" . -}}
{{- $v := .Values -}}
{{- $c := deepCopy $v.config -}}
{{- if not $v.sharded -}}{{- $c = omit $c "sharding" "zk" -}}{{- end -}}
{{- $_ := mergeOverwrite $c (dict "source" $v.source "local_store" "/var/sequins" "bind" ":9599"
    "shutdown_delay" (printf "%ds" (int $v.shutdownDelaySeconds)) "debug" (dict "bind" ":9598")) -}}
{{- if $v.sharded -}}
{{- $_ := mergeOverwrite $c (dict "sharding" (dict "enabled" true "min_nodes" (include "sequins.minNodes" . | int) "min_replication" (include "sequins.minReplication" . | int)) "zk" (dict "servers" $v.zookeeper.servers)) -}}
{{- if $v.clusterSecret.existingSecret -}}{{- $_ := set $c.sharding "secret_file" "/etc/sequins-secrets/cluster/secret" -}}{{- end -}}
{{- if $v.zookeeper.auth.existingSecret -}}{{- $_ := set $c.zk "auth_file" "/etc/sequins-secrets/zookeeper/auth" -}}{{- end -}}
{{- with $v.zookeeper.tls -}}
{{- if .enabled -}}{{- $_ := set $c.zk "tls" true -}}{{- end -}}
{{- if .existingSecret -}}{{- $_ := set $c.zk "tls_ca" "/etc/sequins-secrets/zookeeper/ca.crt" -}}{{- end -}}
{{- if .clientCertificate -}}
{{- $_ := mergeOverwrite $c.zk (dict "tls_certificate" "/etc/sequins-secrets/zookeeper/tls.crt" "tls_key" "/etc/sequins-secrets/zookeeper/tls.key") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $v.tls -}}
{{- if .enabled -}}
{{- $_ := mergeOverwrite $c (dict "tls" (dict "certificate" "/etc/sequins-secrets/tls/tls.crt" "key" "/etc/sequins-secrets/tls/tls.key" "ca" "/etc/sequins-secrets/tls/ca.crt")) -}}
{{- if .clientCertificates -}}{{- $_ := set $c.tls "client_ca" "/etc/sequins-secrets/tls/ca.crt" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $v.tokens.existingSecret -}}{{- $_ := set $c "auth" (dict "tokens_file" "/etc/sequins-secrets/tokens/tokens") -}}{{- end -}}
{{- if $v.s3.existingSecret -}}{{- $_ := mergeOverwrite $c (dict "s3" (dict "secret_access_key_file" "/etc/sequins-secrets/s3/secret_access_key")) -}}{{- end -}}
{{- if $v.azure.existingSecret -}}{{- $_ := mergeOverwrite $c (dict "azure" (dict "account_key_file" "/etc/sequins-secrets/azure/account_key")) -}}{{- end -}}
{{- if $v.events.existingSecret -}}{{- $_ := set $c.events "secret_file" "/etc/sequins-secrets/events/secret" -}}{{- end -}}
{{- if $v.redis.enabled -}}{{- $_ := mergeOverwrite $c (dict "redis" (dict "bind" ":6379")) -}}{{- end -}}
{{- include "sequins.toml" (list "" $c) | trim -}}
{{- end -}}
