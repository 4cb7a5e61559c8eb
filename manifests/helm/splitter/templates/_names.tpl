{{/* How this installation is called, what its objects are labelled with, and where one names another. */}}

{{/* What all names begin with. With the release "splitter": "splitter", as in the kustomization. */}}
{{- define "splitter.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "splitter.accountName" -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "serviceAccount.name: say which account, or let it be made with serviceAccount.create=true" }}
{{- end }}
{{- .Values.serviceAccount.name | default (include "splitter.fullname" .) }}
{{- end }}

{{/* The class of the pods, or nothing. */}}
{{- define "splitter.priorityClass" -}}
{{- if eq (toString .Values.priorityClass.name) "<nil>" }}
{{- if .Values.priorityClass.create }}{{ include "splitter.fullname" . }}{{ end }}
{{- else }}{{ .Values.priorityClass.name }}
{{- end }}
{{- end }}

{{- define "splitter.image" -}}
{{- $image := .Values.image }}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}
{{- else if $image.requireDigest }}{{ fail "image.digest: image.requireDigest is true, and there is none. Write sha256:<64 hex digits>" }}
{{- else }}{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* Of every object. What selects pods is app.kubernetes.io/name alone: there is one installation in a namespace. */}}
{{- define "splitter.labels" -}}
{{- $labels := dict "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/managed-by" .Release.Service }}
{{- $_ := set $labels "app.kubernetes.io/version" (.Values.image.tag | default .Chart.AppVersion | trunc 63 | trimSuffix "-" | trimSuffix "." | trimSuffix "_") }}
{{- toYaml (merge $labels .Values.commonLabels) }}
{{- end }}

{{/* What a cluster has once, whoever installed it: its names are fixed, and the second installation goes without. */}}
{{- define "splitter.sharedNames" -}}
["splits.splitter.io", "placements.splitter.io", "splitter-placeholder", "splitter-placement", "splitter-wrong-values", "splitter-ignored-keys", "splitter-notices", "splitter-keep-crd", "splitter-view", "splitter-edit"]
{{- end }}

{{/*
A name of the manifests, as this installation has it. The Role and binding of the Lease keep theirs: the Lease itself is
called "splitter", so Helm refuses a second installation in one namespace, of which one would stand by for ever.
Of: root, name, kind.
*/}}
{{- define "splitter.named" -}}
{{- $fixed := include "splitter.sharedNames" . | fromJsonArray }}
{{- if or (has .name $fixed) (and (eq .name "splitter-lease") (hasPrefix "Role" .kind)) (not (hasPrefix "splitter" .name)) }}{{ .name }}
{{- else }}{{ include "splitter.fullname" .root }}{{ trimPrefix "splitter" .name }}
{{- end }}
{{- end }}

{{/* Names an object, and what it refers to, as this installation does. Of: root, object. */}}
{{- define "splitter.rename" -}}
{{- $object := .object }}
{{- $root := .root }}
{{- if not (eq $object.kind "ServiceAccount") }}
{{- $_ := set $object.metadata "name" (include "splitter.named" (dict "root" $root "name" $object.metadata.name "kind" $object.kind)) }}
{{- end }}
{{- with $object.roleRef }}
{{- $_ := set . "name" (include "splitter.named" (dict "root" $root "name" .name "kind" .kind)) }}
{{- end }}
{{- range $object.subjects }}
{{- if eq .kind "ServiceAccount" }}{{ $_ := set . "name" (include "splitter.accountName" $root) }}{{ end }}
{{- end }}
{{- with ($object.spec | default dict).policyName }}
{{- $_ := set $object.spec "policyName" (include "splitter.named" (dict "root" $root "name" . "kind" $object.kind)) }}
{{- end }}
{{- end }}

{{- define "splitter.account" -}}
{{- $_ := set .object.metadata "name" (include "splitter.accountName" .root) }}
{{- with .root.Values.serviceAccount.annotations }}{{ $_ := set $.object.metadata "annotations" . }}{{ end }}
{{- end }}

{{/* The one account that the policy judges, and the system's namespaces that the settings leave alone. Not what else they
leave alone: what was split there before has to be given back. */}}
{{- define "splitter.ownAccount" -}}
{{- $by := printf ":%s\"" (include "splitter.accountName" .root) }}
{{- range .object.spec.matchConditions }}{{ $_ := set . "expression" (replace ":splitter\"" $by .expression) }}{{ end }}
{{- if hasKey .root.Values.settings "excluded_namespaces" }}
{{- $names := list }}
{{- range list "kube-system" "kube-public" "kube-node-lease" }}
{{- if has . ($.root.Values.settings.excluded_namespaces | default list) }}{{ $names = append $names . }}{{ end }}
{{- end }}
{{- range .object.spec.validations }}{{ $_ := set . "expression" (replace "[\"kube-system\", \"kube-public\", \"kube-node-lease\"]" (toJson $names) .expression) }}{{ end }}
{{- end }}
{{- end }}

{{/* The account that the policy does not judge, and only where this installation splits: another one has another account. */}}
{{- define "splitter.keepPaused" -}}
{{- include "splitter.ownAccount" . }}
{{- if and .object.spec.policyName .root.Values.watchNamespaces }}
{{- $here := dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" .root.Values.watchNamespaces }}
{{- $_ := set .object.spec "matchResources" (dict "namespaceSelector" (dict "matchExpressions" (list $here))) }}
{{- end }}
{{- end }}

{{/* What is kept until all is given back, by its names. */}}
{{- define "splitter.keepController" -}}
{{- $full := include "splitter.fullname" .root }}
{{- $account := include "splitter.accountName" .root }}
{{- if not (and (eq $full "splitter") (eq $account "splitter")) }}
{{- $begin := printf "[%q, %q, %q].exists(start, oldObject.metadata.name.startsWith(start))" $full $account "splitter-lease" }}
{{- range .object.spec.matchConditions }}
{{- $text := replace "oldObject.metadata.name.startsWith(\"splitter\")" $begin .expression }}
{{- $text = replace "[\"splitter\", \"splitter-events\", \"splitter-autoscaler-status\"]" (printf "[%q, %q, %q]" $full (printf "%s-events" $full) (printf "%s-autoscaler-status" $full)) $text }}
{{- $_ := set . "expression" $text }}
{{- end }}
{{- end }}
{{- end }}
