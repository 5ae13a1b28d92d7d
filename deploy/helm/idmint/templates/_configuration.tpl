{{/* What nodes are configured by: deploy/kubernetes/MODE/idmint.toml, with the values of the release. */}}
{{- define "idmint.hosts" -}}
{{- $namespace := printf "idmint.%s" .Release.Namespace -}}
{{- $names := list "idmint" $namespace (printf "%s.svc" $namespace) (printf "%s.svc.cluster.local" $namespace) -}}
{{- include "idmint.list" (.Values.hosts | default $names) -}}
{{- end -}}

{{/* A list as TOML has it. */}}
{{- define "idmint.list" -}}
[{{ range $at, $item := . }}{{ if $at }}, {{ end }}{{ $item | quote }}{{ end }}]
{{- end -}}

{{- define "idmint.configuration" -}}
{{- if eq .Values.mode "single" -}}
# What is not here has its default: config/default.toml. Another content is another config map, and rolls the node.
{{- else -}}
# The one configuration of all nodes. What is not here has its default: config/default.toml. Another content is another config map,
# and rolls the nodes.
{{- end }}

# What callers call the service by. Probes and Prometheus use the address of a pod, which is always answered.
http.hosts = {{ include "idmint.hosts" . }}
# Longer than it takes until a pod that ends is no endpoint of the service any more.
http.drain_delay = "10s"
{{- if ne .Values.mode "single" }}
# Callers keep connections: in this time they meet new pods.
http.connection_age_max = "10m"
{{- end }}
{{- if eq .Values.mode "single" }}

# A StatefulSet never runs two pods of one name: one pod, one slot, one volume.
worker.exclusive = true
{{- else if eq .Values.mode "ordinal" }}

# The pod idmint-3 has slot 3.
worker.slot = "ordinal"
# Frozen with the first id. docs/FLEET.md says how many.
worker.slots = 32
# A StatefulSet never runs two pods of one name, unless somebody deletes one by force while its machine still runs it.
worker.exclusive = true

# Nodes share no records: this gives one conjunction one id all the same.
conjunction.mode = "pure"
{{- else }}

storage.engine = "etcd"
etcd.endpoints = {{ include "idmint.list" .Values.etcd.endpoints }}
etcd.namespace = "default"
etcd.ca = "/etc/idmint/etcd/ca.crt"
etcd.certificate = "/etc/idmint/etcd/tls.crt"
etcd.key = "/etc/idmint/etcd/tls.key"
# Frozen with the first id. docs/FLEET.md says how many.
worker.slots = 32
{{- end }}

log.format = "json"
{{ end -}}

{{/* Another content is another name, the same that kustomize gives, so nodes never find a configuration that is not theirs. */}}
{{- define "idmint.configMap" -}}
{{- $content := dict "data" (dict "idmint.toml" (include "idmint.configuration" .)) "kind" "ConfigMap" "name" "" -}}
{{- $sum := $content | toJson | sha256sum | trunc 10 -}}
idmint-{{ $sum | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" | replace "e" "t" }}
{{- end -}}
