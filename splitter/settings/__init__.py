"""The settings of one installation: a YAML file (`--settings FILE`), and the environment over it.

Read once at start by every verb; whatever is wrong is found here, all at once and in words, never later. What
a workload's owner decides is an annotation. `docs/reference/settings.md` is written from here.
"""

import re
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from splitter.bundled import bundled_path
from splitter.core.labels_annotations.words import MAX_SOAK_S, RELIEF, nearest, quoted
from splitter.core.nodes.capacity import PRESETS, parse_selector

_TLS_FILES = ("metrics_tls", "metrics_client_ca", "estimator_tls", "estimator_client_ca")

Seconds = Annotated[float, Field(allow_inf_nan=False)]


class TuningSettings(BaseModel):
    """Timings that no page promises: they may change with any release."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    soak_max_s: Seconds = Field(
        default=3600, ge=1, description="The soak doubles up to here while spot flaps."
    )
    calm_s: Seconds = Field(
        default=3600, ge=0, description="Spot lost after less than this is flapping: the soak doubles."
    )
    reset_s: Seconds = Field(
        default=7200, ge=0, description="After so long without a loss the soak is the user's again."
    )
    burst_s: Seconds = Field(default=120, ge=0, description="Losses closer together than this count as one.")
    settle_s: Seconds = Field(
        default=10, ge=0, description="So long after a loss, free spot nodes are not believed."
    )
    fast_s: Seconds = Field(
        default=60, ge=0, description="The soak of one replica once spot as a whole has proven itself."
    )
    release_s: Seconds | None = Field(
        default=None,
        ge=0,
        description="Doomed replicas go when covered for so long; unset: 60 s or less. Below 6 s "
        "`kubectl drain`, which asks by name every 5 s, may ask for a StatefulSet's new pod of that name.",
    )
    step_interval_s: Seconds = Field(
        default=60, ge=0, description="At least so long between two steps that lower on-demand."
    )
    step_fraction: float = Field(
        default=0.25, gt=0, le=1, description="On-demand goes down by at most this share of N in one step."
    )
    first_window: int = Field(
        default=1, ge=1, le=1000, description="Replicas first asked of spot while nobody knows if it is back."
    )
    node_coalesce_s: Seconds = Field(
        default=0.05, ge=0, le=0.1, description="Node events within this time make one reconcile."
    )
    vanished_node_wait_s: Seconds = Field(
        default=40,
        ge=0,
        description="Pods of a StatefulSet on a Node deleted while Ready are removed after so long.",
    )
    relief_interval_s: Seconds = Field(
        default=60, ge=1, description="Seconds between two looks at real use, while a workload asks."
    )
    relief_cycle_s: Seconds = Field(
        default=600, ge=1, description="Bounds of relief count in this time; rests last three times as long."
    )


class Settings(BaseModel):
    """How one installation of splitter behaves; every field has a default that works."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    kubeconfig: Path | None = Field(
        default=None, description="Credentials to use; without it, those of the pod splitter runs in."
    )
    context: str | None = Field(
        default=None, min_length=1, description="Context within the kubeconfig; without it, the current one."
    )
    watch_namespaces: tuple[str, ...] = Field(
        default=(), description="Only these namespaces; Roles suffice then. Empty: all."
    )
    excluded_namespaces: tuple[str, ...] = Field(
        default=("kube-system", "kube-public", "kube-node-lease"),
        description="Namespaces whose workloads are refused, labelled or not, as in splitter's own. The "
        "policy on its account names them too (`admission/own-account.yaml`; the chart does it).",
    )
    grace_s: Seconds = Field(
        default=180, ge=0, description="Default of `splitter.io/grace`: how long a shortage of spot may last."
    )
    soak_s: Seconds = Field(
        default=600,
        ge=1,
        le=MAX_SOAK_S,
        description="Default of `splitter.io/soak`: how long spot must be ready before cover goes.",
    )
    workers: int = Field(default=8, ge=1, le=256, description="Workloads reconciled at the same time.")
    emergency_workers: int = Field(
        default=64, ge=1, le=1024, description="As many more, for workloads under which a node goes."
    )
    max_concurrent_moves: int = Field(
        default=10,
        ge=0,
        description="Workloads in a voluntary move at the same time; 0: no limit. Emergencies never wait.",
    )
    resync_s: Seconds = Field(
        default=300, ge=1, description="Every workload is looked at after so long, event or not."
    )
    look_again_s: Seconds = Field(
        default=60, ge=1, description="A refusal that something else mends is looked at again after this."
    )
    api_timeout_s: Seconds = Field(
        default=10, gt=0, le=600, description="How long one request to the API server may take."
    )
    delete_pods_of_vanished_nodes: bool = Field(
        default=True,
        description="Delete, gracefully, pods whose Node object is gone: replaced a minute sooner.",
    )
    member_restarts_per_hour: int = Field(
        default=4, ge=2, le=1000, description="Placement: splitter ends one member at most so often an hour."
    )
    available_condition: bool = Field(
        default=False,
        description="Keep the condition `splitter.io/Available` on every source with twins, and not only on "
        "those that [Karmada](../how-to/karmada.md) manages.",
    )
    relief: str = Field(
        default="",
        description="What `splitter.io/relief` is where neither workload nor Namespace says it; empty: off.",
    )
    relief_source: Literal["metrics-api", "prometheus", "off"] = Field(
        default="metrics-api",
        description="Where real use is read for `splitter.io/relief`; off: nothing is relieved.",
    )
    relief_prometheus: str = Field(
        default="",
        description="Address of a Prometheus, for `relief_source: prometheus`, http:// or https://.",
    )
    relief_node_cpu_query: str = Field(
        default="sum by (nodename) (rate(node_cpu_seconds_total"
        '{mode!="idle",mode!="iowait",mode!="steal"}[3m])'
        " * on (instance) group_left (nodename) node_uname_info)",
        description="Its query for the cores that nodes use, by `node` or `nodename`: node exporter's.",
    )
    relief_node_memory_query: str = Field(
        default="sum by (nodename) ((node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes)"
        " * on (instance) group_left (nodename) node_uname_info)",
        description="The same for bytes of memory.",
    )
    relief_pod_cpu_query: str = Field(
        default="sum by (namespace, pod) (rate(container_cpu_usage_seconds_total"
        '{container!="",pod!=""}[3m]))',
        description="Its query for the cores that pods use, by `namespace` and `pod`: cAdvisor's.",
    )
    relief_pod_memory_query: str = Field(
        default='sum by (namespace, pod) (container_memory_working_set_bytes{container!="",pod!=""})',
        description="The same for bytes of memory.",
    )
    placeholder_image: str = Field(
        default="registry.k8s.io/pause:3.10", description="Image of placeholders: sleeps, as its own user."
    )
    placeholder_pull_secrets: tuple[str, ...] = Field(
        default=(), description="Secrets to pull it with, by their names in the workload's namespace."
    )
    autoscaler_status: str = Field(
        default="kube-system/cluster-autoscaler-status",
        pattern=r"^([a-z0-9.-]+/[a-z0-9.-]+)?$",
        description="ConfigMap with cluster-autoscaler's status, namespace/name; empty: not looked at.",
    )
    hear_node_events: bool = Field(
        default=True, description="Believe Events: that a node ends, that Karpenter gets no machine."
    )
    spot_selectors: tuple[str, ...] = Field(
        default=(), description='Labels of your own spot nodes, "key=value" or "key"; before all presets.'
    )
    on_demand_selectors: tuple[str, ...] = Field(
        default=(), description="Labels of your own on-demand nodes, written and read like those."
    )
    provider_presets: tuple[str, ...] = Field(
        default=(),
        description="Providers whose labels and taints enter the twins' affinity and tolerations; none: all. "
        f"Known: {', '.join(preset.name for preset in PRESETS)}.",
    )
    templates_dir: Path = Field(
        default_factory=lambda: bundled_path("templates"),
        description="Folder of template sets; without it, the one that travels with splitter.",
    )
    own_namespace: str = Field(
        default="splitter-system",
        description="Namespace that splitter runs in: template sets in ConfigMaps are followed there, and "
        "nowhere else; empty: none are.",
    )
    leader_election: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Whether replicas elect the one that writes; auto: on in a pod, off with a kubeconfig.",
    )
    lease_duration_s: int = Field(
        default=12, ge=6, le=300, description="Seconds without a sign of life until a leader is replaced."
    )
    http_port: int = Field(default=8080, ge=0, le=65535, description="Port of /healthz, /readyz; 0: none.")
    metrics_port: int = Field(default=8081, ge=0, le=65535, description="Port of /metrics; 0: none.")
    listen_address: str = Field(
        default="",
        description="IP address of both ports; empty: 0.0.0.0 in a pod, 127.0.0.1 elsewhere."
        " If pods have IPv6 addresses only: `::`.",
    )
    metrics_tls: Path | None = Field(
        default=None, description="Folder with tls.crt and tls.key: metrics over TLS, read anew on change."
    )
    metrics_client_ca: Path | None = Field(
        default=None, description="File with an authority: metrics for clients with its certificate only."
    )
    estimator_cluster: str = Field(
        default="", description="`splitter estimator`: the name that Karmada has for this member cluster."
    )
    estimator_port: int = Field(
        default=10352, ge=1, le=65535, description="Its gRPC port, for Karmada's scheduler and descheduler."
    )
    estimator_tls: Path | None = Field(
        default=None, description="Folder with its tls.crt and tls.key, read again on change; unset: no TLS."
    )
    estimator_client_ca: Path | None = Field(
        default=None, description="File with an authority: it answers clients with its certificate only."
    )
    tuning: TuningSettings = Field(default=TuningSettings(), description="Timings that nothing promises.")
    log_format: Literal["text", "json"] = Field(default="text", description="One line each: text, or JSON.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least important lines that are written."
    )

    @field_validator(
        "watch_namespaces",
        "excluded_namespaces",
        "spot_selectors",
        "on_demand_selectors",
        "provider_presets",
        "placeholder_pull_secrets",
        mode="before",
    )
    @classmethod
    def _split_at_commas(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())

    @field_validator("kubeconfig", "templates_dir", *_TLS_FILES)
    @classmethod
    def _expand_home(cls, value: Path | None) -> Path | None:
        return value.expanduser() if value is not None else None

    @field_validator("own_namespace")
    @classmethod
    def _name_namespace(cls, value: str) -> str:
        if not re.fullmatch(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?", value):
            raise ValueError(f'{quoted(value)} names no namespace. Write for example "splitter-system"')
        return value

    @field_validator("listen_address")
    @classmethod
    def _is_ip_address(cls, value: str) -> str:
        try:
            return str(ip_address(value)) if value else ""
        except ValueError as error:
            raise ValueError(f'{quoted(value)} is no IP address. Write for example "127.0.0.1"') from error

    @field_validator("relief")
    @classmethod
    def _read_relief(cls, value: str) -> str:
        if value and RELIEF.read(value) is None:
            raise ValueError(f"{quoted(value)} is not {RELIEF.must_be}. {RELIEF.advice(value)[:-1]}")
        if value.endswith(",restarts"):
            raise ValueError(
                "restarts have to be asked for on each StatefulSet itself. Leave the word out here"
            )
        return value

    @field_validator("relief_prometheus")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#@\s]*)?", value):
            raise ValueError(
                'it is no address, or has credentials. Write for example "http://prometheus.monitoring:9090"'
            )
        return value

    @field_validator("spot_selectors", "on_demand_selectors")
    @classmethod
    def _read_selectors(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for selector in value:
            parse_selector(selector)
        return value

    @field_validator("provider_presets")
    @classmethod
    def _know_presets(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        known = tuple(preset.name for preset in PRESETS)
        for name in value:
            if name not in known:
                raise ValueError(f"{quoted(name)} is no preset; {hint(name, known)}")
        return value

    @model_validator(mode="after")
    def _agree(self) -> "Settings":
        longest_s = self.tuning.soak_max_s
        if self.soak_s > longest_s:
            raise ValueError(
                f"soak_s is {self.soak_s:g} and tuning.soak_max_s {longest_s:g}; "
                f"the first may not be the longer. Write soak_max_s: {self.soak_s:g} or more under tuning"
            )
        if self.metrics_client_ca and not self.metrics_tls:
            raise ValueError("metrics_client_ca is about metrics over TLS. Write metrics_tls too")
        if self.estimator_client_ca and not self.estimator_tls:
            raise ValueError("estimator_client_ca is about TLS. Write estimator_tls too")
        if self.relief_source == "prometheus" and not self.relief_prometheus:
            raise ValueError("relief_source is prometheus. Write its address too, as relief_prometheus")
        if both := sorted(set(self.watch_namespaces) & set(self.excluded_namespaces)):
            raise ValueError(
                f"watch_namespaces and excluded_namespaces both name {', '.join(both)}. "
                "Take it out of one of them"
            )
        if self.own_namespace and self.own_namespace in self.watch_namespaces:
            raise ValueError(
                f"watch_namespaces names {self.own_namespace}, splitter's own namespace, in which it splits "
                "nothing. Take it out, and let splitter run in a namespace of its own"
            )
        return self


def hint(name: str, known: tuple[str, ...], spelled: Callable[[str], str] = str) -> str:
    """Return what may have been meant by a name that is not known."""
    near = nearest(name, known)
    return f"did you mean {spelled(near)}?" if near else f"known are {', '.join(map(spelled, known))}."
