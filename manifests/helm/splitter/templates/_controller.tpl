{{/* The controller's own pods, and what is around them. */}}

{{- define "splitter.deployment" -}}
{{- $values := .root.Values }}
{{- $spec := .object.spec }}
{{- range $name := list "replicas" "strategy" }}
{{- $value := get $values $name }}
{{- if and (hasKey $values $name) (not (kindIs "invalid" $value)) }}{{ $_ := set $spec $name $value }}{{ end }}
{{- end }}
{{- $meta := $spec.template.metadata }}
{{- $annotations := merge (dict) $values.podAnnotations ($meta.annotations | default dict) }}
{{- if or $values.settings $values.watchNamespaces $values.metrics.tls.secretName }}
{{- $_ := set $annotations "checksum/settings" (include "splitter.settingsFile" .root | sha256sum) }}
{{- end }}
{{- if $annotations }}{{ $_ := set $meta "annotations" $annotations }}{{ end }}
{{- $_ := set $meta "labels" (merge $meta.labels (include "splitter.labels" .root | fromYaml) $values.podLabels) }}
{{- include "splitter.pod" (dict "root" .root "pod" $spec.template.spec) }}
{{- $container := first $spec.template.spec.containers }}
{{- include "splitter.container" (dict "root" .root "container" $container) }}
{{- with $values.metrics.tls.secretName }}
{{- $mount := dict "name" "metrics-tls" "mountPath" "/etc/splitter-metrics" "readOnly" true }}
{{- $_ := set $container "volumeMounts" (append $container.volumeMounts $mount) }}
{{- $_ := set $spec.template.spec "volumes" (append $spec.template.spec.volumes (dict "name" "metrics-tls" "secret" (dict "secretName" .))) }}
{{- end }}
{{- end }}

{{/* Of: root, pod. */}}
{{- define "splitter.pod" -}}
{{- $values := .root.Values }}
{{- $pod := .pod }}
{{- $_ := set $pod "serviceAccountName" (include "splitter.accountName" .root) }}
{{- $class := include "splitter.priorityClass" .root }}
{{- if $class }}{{ $_ := set $pod "priorityClassName" $class }}{{ else }}{{ $_ := unset $pod "priorityClassName" }}{{ end }}
{{- range $name := list "imagePullSecrets" "affinity" "nodeSelector" "tolerations" }}
{{- $value := get $values $name }}
{{- if $value }}{{ $_ := set $pod $name $value }}{{ end }}
{{- end }}
{{- range $name := list "topologySpreadConstraints" "terminationGracePeriodSeconds" }}
{{- $value := get $values $name }}
{{- if and (hasKey $values $name) (not (kindIs "invalid" $value)) }}{{ $_ := set $pod $name $value }}{{ end }}
{{- end }}
{{- $_ := set $pod "securityContext" (mergeOverwrite $pod.securityContext (deepCopy $values.podSecurityContext)) }}
{{- $settings := printf "%s-settings" (include "splitter.fullname" .root) }}
{{- range $pod.volumes }}{{ if .configMap }}{{ $_ := set .configMap "name" $settings }}{{ end }}{{ end }}
{{- if $values.extraVolumes }}{{ $_ := set $pod "volumes" (concat $pod.volumes $values.extraVolumes) }}{{ end }}
{{- end }}

{{/* Of: root, container. */}}
{{- define "splitter.container" -}}
{{- $values := .root.Values }}
{{- $container := .container }}
{{- $_ := set $container "image" (include "splitter.image" .root) }}
{{- if $values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" $values.image.pullPolicy }}{{ end }}
{{- if $values.resources }}{{ $_ := set $container "resources" $values.resources }}{{ end }}
{{- $_ := set $container "securityContext" (mergeOverwrite $container.securityContext (deepCopy $values.securityContext)) }}
{{- if $values.extraArgs }}{{ $_ := set $container "args" (concat $container.args $values.extraArgs) }}{{ end }}
{{- if $values.extraEnv }}{{ $_ := set $container "env" (concat $container.env $values.extraEnv) }}{{ end }}
{{- if $values.extraVolumeMounts }}{{ $_ := set $container "volumeMounts" (concat $container.volumeMounts $values.extraVolumeMounts) }}{{ end }}
{{- end }}

{{- define "splitter.budget" -}}
{{- $values := .root.Values.podDisruptionBudget }}
{{- $isMost := ne (toString $values.maxUnavailable) "<nil>" }}
{{- if ne (toString $values.minAvailable) "<nil>" }}
{{- if $isMost }}{{ fail "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable: write one of them" }}{{ end }}
{{- $_ := unset .object.spec "maxUnavailable" }}
{{- $_ := set .object.spec "minAvailable" $values.minAvailable }}
{{- else if $isMost }}{{ $_ := set .object.spec "maxUnavailable" $values.maxUnavailable }}
{{- end }}
{{- end }}

{{- define "splitter.podMonitor" -}}
{{- $values := .root.Values.monitoring.podMonitor }}
{{- $_ := set .object.metadata "labels" (merge .object.metadata.labels $values.labels) }}
{{- $endpoint := first .object.spec.podMetricsEndpoints }}
{{- if $values.interval }}{{ $_ := set $endpoint "interval" $values.interval }}{{ end }}
{{- if $values.scrapeTimeout }}{{ $_ := set $endpoint "scrapeTimeout" $values.scrapeTimeout }}{{ end }}
{{- if .root.Values.metrics.tls.secretName }}{{ $_ := set $endpoint "scheme" "https" }}{{ end }}
{{- if $values.tlsConfig }}{{ $_ := set $endpoint "tlsConfig" $values.tlsConfig }}{{ end }}
{{- end }}

{{- define "splitter.prometheusRule" -}}
{{- $values := .root.Values.monitoring.prometheusRule }}
{{- $_ := set .object.metadata "labels" (merge .object.metadata.labels $values.labels) }}
{{- range .object.spec.groups }}{{ range .rules }}
{{- if and .annotations $values.runbookUrlPrefix }}{{ $_ := set .annotations "runbook_url" (printf "%s%s" $values.runbookUrlPrefix .annotations.runbook_url) }}{{ end }}
{{- end }}{{ end }}
{{- end }}

{{/* Not labelled as the rest: a policy keeps ConfigMaps with that label, and a dashboard may go at any time. */}}
{{- define "splitter.dashboard" -}}
{{- $labels := merge (dict "app.kubernetes.io/name" "splitter-dashboard") (include "splitter.labels" . | fromYaml) .Values.monitoring.dashboard.labels }}
{{- $meta := dict "name" (printf "%s-dashboard" (include "splitter.fullname" .)) "namespace" .Release.Namespace "labels" $labels }}
{{- with .Values.monitoring.dashboard.annotations }}{{ $_ := set $meta "annotations" . }}{{ end }}
{{- $data := dict "dashboard.json" (.Files.Get "files/monitoring/dashboard.json") }}
{{- include "splitter.yaml" (dict "apiVersion" "v1" "kind" "ConfigMap" "metadata" $meta "data" $data) }}
{{- end }}

{{- define "splitter.priorityLevel" -}}
{{- $values := .root.Values.flowSchema }}
{{- $_ := set .object.spec.limited "nominalConcurrencyShares" $values.nominalConcurrencyShares }}
{{- end }}

{{/* Whose requests, and in which level: the one of splitter is called as this installation. */}}
{{- define "splitter.flowSchema" -}}
{{- $root := .root }}
{{- $level := .object.spec.priorityLevelConfiguration }}
{{- if eq $level.name "splitter" }}
{{- $_ := set $level "name" (include "splitter.fullname" $root) }}
{{- $_ := set .object.spec "matchingPrecedence" $root.Values.flowSchema.matchingPrecedence }}
{{- end }}
{{- range .object.spec.rules }}{{ range .subjects }}{{ $_ := set .serviceAccount "name" (include "splitter.accountName" $root) }}{{ end }}{{ end }}
{{- end }}
