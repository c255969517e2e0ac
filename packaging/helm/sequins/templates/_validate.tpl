{{/* What the schema cannot check: values that do not fit together. */}}
{{- define "sequins.validate" -}}
{{- $v := .Values -}}
{{- if not $v.source -}}
{{- fail "source is empty: set it to where the data is, such as s3://bucket/path" -}}
{{- end -}}
{{- if $v.sharded -}}
{{- if not $v.zookeeper.servers -}}
{{- fail "zookeeper.servers is empty: a sharded cluster needs a ZooKeeper, such as [zk-0.zk.default.svc:2181]. Pods that each hold everything need none: sharded=false" -}}
{{- end -}}
{{- $min := include "sequins.minReplication" . | int -}}
{{- if gt $min (int $v.config.sharding.replication) -}}
{{- fail (printf "config.sharding.min_replication, %d, is more than config.sharding.replication, %d" $min (int $v.config.sharding.replication)) -}}
{{- else if gt $min (int $v.replicas) -}}
{{- fail (printf "config.sharding.min_replication, %d, is more than replicas, %d: no version would ever be served" $min (int $v.replicas)) -}}
{{- end -}}
{{- if gt (include "sequins.minNodes" . | int) (int $v.replicas) -}}
{{- fail (printf "config.sharding.min_nodes, %s, is more than replicas, %d: no pod would ever begin to serve" (include "sequins.minNodes" .) (int $v.replicas)) -}}
{{- end -}}
{{- if and $v.tokens.existingSecret (not $v.clusterSecret.existingSecret) -}}
{{- fail "clusterSecret.existingSecret is empty, and tokens.existingSecret is set: nodes need a secret to ask each other" -}}
{{- end -}}
{{- end -}}
{{- include "sequins.validateTLS" . -}}
{{- if and $v.metrics.serviceMonitor.enabled $v.metrics.podMonitor.enabled -}}
{{- fail "metrics.serviceMonitor and metrics.podMonitor are both enabled: Prometheus would scrape each pod twice" -}}
{{- end -}}
{{- if and $v.events.existingSecret (not (dig "events" "webhook" "" $v.config)) -}}
{{- fail "events.existingSecret is set, and config.events.webhook is not" -}}
{{- end -}}
{{- include "sequins.validateMemory" . -}}
{{- end -}}

{{- define "sequins.validateTLS" -}}
{{- $v := .Values -}}
{{- with $v.tls -}}
{{- if and .enabled (not .existingSecret) (not .certManager.enabled) -}}
{{- fail "tls is enabled, and there is no certificate: set tls.existingSecret or tls.certManager.enabled" -}}
{{- else if and .existingSecret .certManager.enabled -}}
{{- fail "tls.existingSecret and tls.certManager.enabled are both set: set one of them" -}}
{{- else if and .certManager.enabled (not .certManager.issuerRef.name) -}}
{{- fail "tls.certManager.issuerRef.name is empty" -}}
{{- end -}}
{{- if and (not .enabled) (or .existingSecret .certManager.enabled .clientCertificates) -}}
{{- fail "tls has a certificate or clientCertificates, and tls.enabled is false" -}}
{{- end -}}
{{- end -}}
{{- with $v.zookeeper.tls -}}
{{- if and (or .existingSecret .clientCertificate) (not .enabled) -}}
{{- fail "zookeeper.tls has a Secret or clientCertificate, and zookeeper.tls.enabled is false" -}}
{{- else if and .clientCertificate (not .existingSecret) -}}
{{- fail "zookeeper.tls.clientCertificate is set, and zookeeper.tls.existingSecret, which has the certificate, is not" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Loads are processes of the same container. Each may use its limit, which depends on the number of cores. */}}
{{- define "sequins.validateMemory" -}}
{{- with .Values.config -}}
{{- $limit := include "sequins.mebibytes" .load.memory_limit | int -}}
{{- $least := add (include "sequins.mebibytes" .load.memory | int) 128 (mul 64 (include "sequins.procs" $ | int)) -}}
{{- if lt $limit (int $least) -}}
{{- fail (printf "config.load.memory_limit, %d MiB, is less than %d MiB: config.load.memory, 128 MiB, and 64 MiB for each of %s cores" $limit $least (include "sequins.procs" $)) -}}
{{- end -}}
{{- if not (int .max_parallel_loads) -}}
{{- fail "config.max_parallel_loads is 0, which means ten loads: set their number, so that the memory for them is known" -}}
{{- end -}}
{{- $node := include "sequins.nodeMemory" $ -}}
{{- if and $node (lt (int $node) 512) -}}
{{- fail (printf "resources.limits.memory, %s, is not enough: config.max_parallel_loads × config.load.memory_limit are %d MiB of it, and the node needs at least 512 MiB beside them" (toString $.Values.resources.limits.memory) (mul (int .max_parallel_loads) $limit)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
