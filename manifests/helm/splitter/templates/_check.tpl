{{/* What the schema cannot say: values that do not go together. Each complaint begins with the path of the value. */}}
{{- define "splitter.check" -}}
{{- if and (not .Values.shared.install) (not .Values.watchNamespaces) }}
{{- fail "watchNamespaces: shared.install is false, so this is the second installation in the cluster, and it must say which namespaces are its own" }}
{{- end }}
{{- if has .Release.Namespace (.Values.watchNamespaces | default list) }}
{{- fail (printf "watchNamespaces: %s is the namespace of this release, in which splitter splits nothing; take it out, and install the release into a namespace of its own" .Release.Namespace) }}
{{- end }}
{{- if and .Values.metrics.tls.clientCertificates (not .Values.metrics.tls.secretName) }}
{{- fail "metrics.tls.secretName: metrics.tls.clientCertificates is true, and without TLS nobody shows a certificate" }}
{{- end }}
{{- $placeholder := .Values.settings.placeholder_image | default "" }}
{{- if and .Values.image.requireDigest (or .Values.admission.placement .Values.relief.enabled $placeholder) (not (regexMatch "@sha256:[0-9a-f]{64}$" $placeholder)) }}
{{- fail "settings.placeholder_image: image.requireDigest is true, and this image has none. Write <image>@sha256:<64 hex digits>" }}
{{- end }}
{{- end }}
