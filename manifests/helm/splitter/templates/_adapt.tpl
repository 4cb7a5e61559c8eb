{{/*
The manifests of this chart are the files of `kubectl apply -k manifests`, in files/. Each object is read from
there, changed by the values, and written. Namespace, always: splitter-system becomes the release's. Names: what begins
with "splitter" begins with the full name instead (templates/_names.tpl).
*/}}

{{/* Writes every object of a file. Of: root, path. */}}
{{- define "splitter.file" -}}
{{- $text := .root.Files.Get .path -}}
{{- if not $text }}{{ fail (printf "%s is missing from the chart: package it with `helm package`, from a checkout with its links" .path) }}{{ end -}}
{{- /* Quoted: a namespace may be called 123, or null. */ -}}
{{- $text = regexReplaceAll "(: |\\[)splitter-system(\\]|\\n)" $text (printf "${1}%q${2}" .root.Release.Namespace) }}
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
{{- else if and (eq $object.kind "ServiceAccount") (not $values.serviceAccount.create) }}
{{- else if and (has $object.metadata.name (include "splitter.sharedNames" . | fromJsonArray)) (not $values.shared.install) }}
{{- /* The other installation in this cluster has it. */ -}}
{{- else if and (eq $object.metadata.name "splitter-keep-controller") (not $values.shared.install) }}
{{- /* It asks the CRD whether anything is split at all: while the other has splits, this one could never leave. */ -}}
{{- else if and (eq $object.kind "PriorityClass") (eq $object.metadata.name "splitter") }}
{{- if and $values.priorityClass.create (include "splitter.priorityClass" .root) }}
{{- $_ := set $object.metadata "name" (include "splitter.priorityClass" .root) }}
{{- include "splitter.labelled" . }}
{{- end }}
{{- else if and (eq $object.metadata.name "splitter-priority") (not (and $values.priorityClass.create (include "splitter.priorityClass" .root))) }}
{{- /* A class that is there already is not splitter's own, and none is nobody's. */ -}}
{{- else }}
{{- if eq $object.kind "CustomResourceDefinition" }}{{ include "splitter.crd" . }}
{{- else if eq $object.kind "ConfigMap" }}{{ include "splitter.settings" . }}
{{- else if eq $object.kind "NetworkPolicy" }}{{ include "splitter.network" . }}
{{- else if eq $object.kind "Deployment" }}{{ include "splitter.deployment" . }}
{{- else if eq $object.kind "ServiceAccount" }}{{ include "splitter.account" . }}
{{- else if eq $object.kind "PodDisruptionBudget" }}{{ include "splitter.budget" . }}
{{- else if eq $object.kind "PodMonitor" }}{{ include "splitter.podMonitor" . }}
{{- else if eq $object.kind "PrometheusRule" }}{{ include "splitter.prometheusRule" . }}
{{- else if eq $object.kind "PriorityLevelConfiguration" }}{{ include "splitter.priorityLevel" . }}
{{- else if eq $object.kind "FlowSchema" }}{{ include "splitter.flowSchema" . }}
{{- else if eq $object.metadata.name "splitter-own-account" }}{{ include "splitter.ownAccount" . }}
{{- else if eq $object.metadata.name "splitter-keep-paused" }}{{ include "splitter.keepPaused" . }}
{{- else if eq $object.metadata.name "splitter-keep-controller" }}{{ include "splitter.keepController" . }}
{{- else if and (eq $object.kind "ValidatingAdmissionPolicy") (eq $object.metadata.name "splitter-priority") }}{{ include "splitter.priority" . }}
{{- else if and (eq $object.kind "ClusterRole") $values.watchNamespaces }}{{ include "splitter.noNamespaces" . }}
{{- end }}
{{- include "splitter.labelled" (merge (dict "named" true) .) }}
{{- end }}
{{- end }}

{{/* Writes one object with the labels of all, and named as this installation names it. Of: root, object, named. */}}
{{- define "splitter.labelled" -}}
{{- if .named }}{{ include "splitter.rename" . }}{{ end }}
{{- $_ := set .object.metadata "labels" (merge (.object.metadata.labels | default dict) (include "splitter.labels" .root | fromYaml)) }}
{{- include "splitter.yaml" .object }}
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
{{- include "splitter.rename" . }}
{{- range .root.Values.watchNamespaces }}
{{- $_ := set $object.metadata "namespace" . }}
{{- include "splitter.labelled" (dict "root" $.root "object" $object) }}
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
{{- if .Values.metrics.tls.secretName }}{{ $_ := set $settings "metrics_tls" "/etc/splitter-metrics" }}{{ end }}
{{- if .Values.metrics.tls.clientCertificates }}{{ $_ := set $settings "metrics_client_ca" "/etc/splitter-metrics/ca.crt" }}{{ end }}
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
{{- $name := include "splitter.priorityClass" .root }}
{{- range .object.spec.matchConditions }}{{ $_ := set . "expression" (replace "\"splitter\"" (quote $name) .expression) }}{{ end }}
{{- end }}

{{/* Labels and annotations of what exists during `helm uninstall` only. Of: root, weight. */}}
{{- define "splitter.hook" -}}
labels:
  app.kubernetes.io/name: splitter-uninstall
  {{- include "splitter.labels" .root | nindent 2 }}
annotations:
  helm.sh/hook: pre-delete
  helm.sh/hook-weight: {{ .weight | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
