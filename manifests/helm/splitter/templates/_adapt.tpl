{{/*
The manifests of this chart are the files of `kubectl apply -k manifests`, in files/. Each object is read from
there, changed by the values, and written. Namespace, always: splitter-system becomes the release's.
*/}}

{{/* Writes every object of a file. Of: root, path. */}}
{{- define "splitter.file" -}}
{{- $text := .root.Files.Get .path -}}
{{- if not $text }}{{ fail (printf "%s is missing from the chart: package it with `helm package`, from a checkout with its links" .path) }}{{ end -}}
{{- range $document := regexSplit "(?m)^---$" (replace "splitter-system" .root.Release.Namespace $text) -1 }}
{{- $object := fromYaml $document }}
{{- if hasKey $object "Error" }}{{ fail (printf "%s: %s" $.path $object.Error) }}{{ end }}
{{- if and $object.kind (ne $object.kind "Namespace") }}
{{- include "splitter.object" (dict "root" $.root "object" $object) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Writes one object as the values want it, or nothing. Of: root, object. */}}
{{- define "splitter.object" -}}
{{- $values := .root.Values }}
{{- $object := .object }}
{{- $component := get ($object.metadata.labels | default dict) "app.kubernetes.io/component" | default "" }}
{{- if and $values.watchNamespaces (eq $component "workload-rights") }}
{{- include "splitter.roles" . }}
{{- else if and (eq $object.kind "PriorityClass") (eq $object.metadata.name "splitter") }}
{{- if $values.priorityClass.create }}
{{- $_ := set $object.metadata "name" $values.priorityClass.name }}
{{- include "splitter.yaml" $object }}
{{- end }}
{{- else if and (eq $object.metadata.name "splitter-priority") (not (and $values.priorityClass.create $values.priorityClass.name)) }}
{{- /* A class that is there already is not splitter's own, and none is nobody's. */ -}}
{{- else }}
{{- if eq $object.kind "CustomResourceDefinition" }}{{ include "splitter.crd" . }}
{{- else if eq $object.kind "ConfigMap" }}{{ include "splitter.settings" . }}
{{- else if eq $object.kind "NetworkPolicy" }}{{ include "splitter.network" . }}
{{- else if eq $object.kind "Deployment" }}{{ include "splitter.deployment" . }}
{{- else if and (eq $object.kind "ValidatingAdmissionPolicy") (eq $object.metadata.name "splitter-priority") }}{{ include "splitter.priority" . }}
{{- else if and (eq $object.kind "ClusterRole") $values.watchNamespaces }}{{ include "splitter.noNamespaces" . }}
{{- end }}
{{- include "splitter.yaml" $object }}
{{- end }}
{{- end }}

{{- define "splitter.yaml" }}
---
{{ toYaml . }}
{{- end }}

{{/* A ClusterRole or its binding, as a Role or RoleBinding in each namespace. */}}
{{- define "splitter.roles" -}}
{{- $object := .object }}
{{- $_ := set $object "kind" (trimPrefix "Cluster" $object.kind) }}
{{- if $object.roleRef }}{{ $_ := set $object.roleRef "kind" "Role" }}{{ end }}
{{- range .root.Values.watchNamespaces }}
{{- $_ := set $object.metadata "namespace" . }}
{{- include "splitter.yaml" $object }}
{{- end }}
{{- end }}

{{/* Namespaces cannot be read one by one: a namespaced install does without their defaults. */}}
{{- define "splitter.noNamespaces" -}}
{{- $kept := list }}
{{- range .object.rules }}
{{- if not (has "namespaces" .resources) }}{{ $kept = append $kept . }}{{ end }}
{{- end }}
{{- $_ := set .object "rules" $kept }}
{{- end }}

{{/* Deleting the CRD would delete all Splits: no uninstall does that. */}}
{{- define "splitter.crd" -}}
{{- $annotations := .object.metadata.annotations | default dict }}
{{- $_ := set .object.metadata "annotations" (set $annotations "helm.sh/resource-policy" "keep") }}
{{- end }}

{{/* The settings file. */}}
{{- define "splitter.settingsFile" -}}
{{- $settings := deepCopy .Values.settings }}
{{- if .Values.watchNamespaces }}{{ $_ := set $settings "watch_namespaces" .Values.watchNamespaces }}{{ end }}
{{- toYaml $settings }}
{{- end }}

{{- define "splitter.settings" -}}
{{- $_ := set .object.data "settings.yaml" (printf "%s\n" (include "splitter.settingsFile" .root)) }}
{{- end }}

{{/* The last rule is the one towards the API server, the first that of probes (manifests/network.yaml). */}}
{{- define "splitter.network" -}}
{{- $values := .root.Values.networkPolicy }}
{{- $to := list }}
{{- range $values.apiServerCidrs }}{{ $to = append $to (dict "ipBlock" (dict "cidr" .)) }}{{ end }}
{{- if $to }}{{ $_ := set (last .object.spec.egress) "to" $to }}{{ end }}
{{- if $values.probesFrom }}{{ $_ := set (first .object.spec.ingress) "from" $values.probesFrom }}{{ end }}
{{- if $values.metricsFrom }}{{ $_ := set (last .object.spec.ingress) "from" $values.metricsFrom }}{{ end }}
{{- end }}

{{/* The class of the pods, wherever the policy names it. */}}
{{- define "splitter.priority" -}}
{{- $name := .root.Values.priorityClass.name }}
{{- range .object.spec.matchConditions }}{{ $_ := set . "expression" (replace "\"splitter\"" (quote $name) .expression) }}{{ end }}
{{- end }}

{{- define "splitter.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "splitter.deployment" -}}
{{- $values := .root.Values }}
{{- $spec := .object.spec }}
{{- if ne (toString $values.replicas) "<nil>" }}{{ $_ := set $spec "replicas" $values.replicas }}{{ end }}
{{- $meta := $spec.template.metadata }}
{{- $annotations := merge (dict) $values.podAnnotations ($meta.annotations | default dict) }}
{{- if or $values.settings $values.watchNamespaces }}
{{- $_ := set $annotations "checksum/settings" (include "splitter.settingsFile" .root | sha256sum) }}
{{- end }}
{{- if $annotations }}{{ $_ := set $meta "annotations" $annotations }}{{ end }}
{{- $_ := set $meta "labels" (merge $meta.labels $values.podLabels) }}
{{- $pod := $spec.template.spec }}
{{- $container := first $pod.containers }}
{{- $_ := set $container "image" (include "splitter.image" .root) }}
{{- if $values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" $values.image.pullPolicy }}{{ end }}
{{- if $values.resources }}{{ $_ := set $container "resources" $values.resources }}{{ end }}
{{- if $values.priorityClass.name }}{{ $_ := set $pod "priorityClassName" $values.priorityClass.name }}
{{- else }}{{ $_ := unset $pod "priorityClassName" }}{{ end }}
{{- range $name := list "imagePullSecrets" "affinity" "nodeSelector" "tolerations" }}
{{- $value := get $values $name }}
{{- if $value }}{{ $_ := set $pod $name $value }}{{ end }}
{{- end }}
{{- end }}

{{/* Labels and annotations of what exists during `helm uninstall` only. Of: the weight. */}}
{{- define "splitter.hook" -}}
labels:
  app.kubernetes.io/name: splitter-uninstall
annotations:
  helm.sh/hook: pre-delete
  helm.sh/hook-weight: {{ . | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
