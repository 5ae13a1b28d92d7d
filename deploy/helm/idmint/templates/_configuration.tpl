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
# config/default.toml lists the defaults of all other settings. A change creates a new config map and restarts the node.
{{- else -}}
# The configuration of all nodes. config/default.toml lists the defaults of all other settings. A change creates a new config map
# and restarts the nodes one by one.
{{- end }}

# The host names that callers use. Probes and Prometheus use the IP address of a pod, which is always accepted.
http.hosts = {{ include "idmint.hosts" . }}
# Longer than Kubernetes needs to remove a terminating pod from the endpoints of the service.
http.drain_delay = "10s"
{{- if ne .Values.mode "single" }}
# Callers keep connections open. After this time they reconnect, and can reach new pods.
http.connection_age_max = "10m"
{{- end }}
{{- if eq .Values.mode "single" }}

# True because a StatefulSet never runs two pods with the same name, and each pod has one slot and one volume.
worker.exclusive = true
{{- else if eq .Values.mode "ordinal" }}

# The slot is the number of the pod: idmint-3 has slot 3.
worker.slot = "ordinal"
# Cannot change after the first id. docs/FLEET.md explains how to choose the number.
worker.slots = 32
# True because a StatefulSet never runs two pods with the same name. The exception is a pod that is deleted by force while its
# machine still runs it.
worker.exclusive = true

# The nodes share no records. With this setting, all nodes still give a conjunction the same id.
conjunction.mode = "pure"
{{- else }}

storage.engine = "etcd"
etcd.endpoints = {{ include "idmint.list" .Values.etcd.endpoints }}
etcd.namespace = "default"
etcd.ca = "/etc/idmint/etcd/ca.crt"
etcd.certificate = "/etc/idmint/etcd/tls.crt"
etcd.key = "/etc/idmint/etcd/tls.key"
# Cannot change after the first id. docs/FLEET.md explains how to choose the number.
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
