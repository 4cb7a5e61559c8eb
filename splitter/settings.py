"""The settings of one installation: a YAML file (`--settings FILE`), and the environment over it.

Read once at start by every verb; whatever is wrong is found here, all at once and in words, never later. What
a workload's owner decides is an annotation. `docs/reference/settings.md` is written from here.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from splitter.bundled import bundled_path
from splitter.core.errors import SplitterError
from splitter.core.labels_annotations.words import MAX_SOAK_S, nearest, parse_duration, quoted
from splitter.core.nodes.capacity import PRESETS, parse_selector
from splitter.core.reasons import Reason

ENVIRONMENT_PREFIX: Final = "SPLITTER_"

# What Kubernetes puts into a pod's environment for a Service whose name begins with "splitter"; the
# Service "splitter-http" makes SPLITTER_HTTP_PORT, which is why the value is looked at too.
_SERVICE_LINK: Final = re.compile(
    r"SPLITTER_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_\w+)?)?)"
)
_SERVICE_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://.*")

# Read by the tests and the sandbox; a shell that has them set may run the controller too.
_NOT_SETTINGS: Final = ("SPLITTER_DATA", "SPLITTER_REGENERATE", "SPLITTER_SANDBOX")

Seconds = Annotated[float, Field(allow_inf_nan=False)]


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
        description="Namespaces whose workloads are refused, labelled or not.",
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
        default=None, ge=0, description="Doomed replicas go when covered for so long; unset: 60 s or less."
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
    node_coalesce_s: Seconds = Field(
        default=0.05, ge=0, le=0.1, description="Node events within this time make one reconcile."
    )
    api_timeout_s: Seconds = Field(
        default=10, gt=0, le=600, description="How long one request to the API server may take."
    )
    delete_pods_of_vanished_nodes: bool = Field(
        default=True,
        description="Delete, gracefully, pods whose Node object is gone: replaced a minute sooner.",
    )
    vanished_node_wait_s: Seconds = Field(
        default=40,
        ge=0,
        description="Pods of a StatefulSet on a Node deleted while Ready are removed after so long.",
    )
    member_restarts_per_hour: int = Field(
        default=4, ge=2, le=1000, description="Placement: splitter ends one member at most so often an hour."
    )
    relief_source: Literal["metrics-api", "off"] = Field(
        default="metrics-api",
        description="Where real use is read for `splitter.io/relief`; off: nothing is relieved.",
    )
    relief_interval_s: Seconds = Field(
        default=60, ge=1, description="Seconds between two looks at real use, while a workload asks."
    )
    relief_cycle_s: Seconds = Field(
        default=600, ge=1, description="Bounds of relief count in this time; rests last three times as long."
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
    hear_node_events: bool = Field(default=True, description="Believe Events that announce a node's end.")
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
    metrics_tls: Path | None = Field(
        default=None, description="Folder with tls.crt and tls.key: metrics over TLS, read anew on change."
    )
    metrics_client_ca: Path | None = Field(
        default=None, description="File with an authority: metrics for clients with its certificate only."
    )
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

    @field_validator("kubeconfig", "templates_dir", "metrics_tls", "metrics_client_ca")
    @classmethod
    def _expand_home(cls, value: Path | None) -> Path | None:
        return value.expanduser() if value is not None else None

    @field_validator("own_namespace")
    @classmethod
    def _name_namespace(cls, value: str) -> str:
        if not re.fullmatch(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?", value):
            raise ValueError(f'{quoted(value)} names no namespace. Write for example "splitter-system"')
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
                raise ValueError(f"{quoted(name)} is no preset; {_hint(name, known)}")
        return value

    @model_validator(mode="after")
    def _agree(self) -> "Settings":
        if self.soak_s > self.soak_max_s:
            raise ValueError(
                f"soak_s is {self.soak_s:g} and soak_max_s {self.soak_max_s:g}; "
                f"the first may not be the longer. Write soak_max_s: {self.soak_s:g} or more"
            )
        if self.metrics_client_ca and not self.metrics_tls:
            raise ValueError("metrics_client_ca is about metrics over TLS. Write metrics_tls too")
        if both := sorted(set(self.watch_namespaces) & set(self.excluded_namespaces)):
            raise ValueError(
                f"watch_namespaces and excluded_namespaces both name {', '.join(both)}. "
                "Take it out of one of them"
            )
        return self


def load_settings(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings: defaults, over them the file's, over them the environment's.

    `environment` is the process's own unless given. Raises SplitterError with a sentence for each
    thing that is wrong, in the file and in the environment alike.

    >>> load_settings(environment={"SPLITTER_WORKERS": "4"}).workers
    4
    """
    variables = os.environ if environment is None else environment
    written, unknown_keys = _known(_from_file(file), lambda key: f"{key} in {file}", lambda name: name)
    given, unknown_variables = _known(_from_environment(variables), _variable, _variable)
    problems = [*unknown_keys, *unknown_variables]
    try:
        settings = Settings.model_validate({**written, **given})
    except ValidationError as error:
        named = {name: f"{name} in {file}" for name in written} | {name: _variable(name) for name in given}
        problems += _problems(error, named)
    if problems:
        raise SplitterError(_REASON, " ".join(problems))
    return settings


_REASON: Final = Reason.INVALID_SETTINGS


def _variable(name: str) -> str:
    return f"{ENVIRONMENT_PREFIX}{name.upper()}"


def _from_file(file: Path | None) -> dict[str, object]:
    """Return what the file says, key by key."""
    if file is None:
        return {}
    try:
        content: object = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise SplitterError(
            _REASON, f"the settings {file} cannot be read: {why}. Mend the file, or name another."
        ) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SplitterError(_REASON, f'the settings {file} are no mapping. Write lines such as "workers: 8".')
    return {str(key): value for key, value in content.items()}


def _from_environment(variables: Mapping[str, str]) -> dict[str, object]:
    """Return what the environment says, by the names of settings, without what is not meant for us."""
    return {
        name.removeprefix(ENVIRONMENT_PREFIX).lower(): value
        for name, value in sorted(variables.items())
        if name.startswith(ENVIRONMENT_PREFIX) and not _is_foreign(name, value)
    }


def _is_foreign(name: str, value: str) -> bool:
    if name.startswith(_NOT_SETTINGS):
        return True
    ours = name.removeprefix(ENVIRONMENT_PREFIX).lower() in Settings.model_fields
    return bool(_SERVICE_ADDRESS.fullmatch(value) if ours else _SERVICE_LINK.fullmatch(name))


def _known(
    values: Mapping[str, object], where: Callable[[str], str], spelled: Callable[[str], str]
) -> tuple[dict[str, object], list[str]]:
    """Return the values of known settings, and a sentence for each unknown one."""
    names = tuple(Settings.model_fields)
    problems = [
        f"{where(name)} is no setting; {_hint(name, names, spelled)}" for name in values if name not in names
    ]
    return {name: value for name, value in values.items() if name in names}, problems


def _hint(name: str, known: tuple[str, ...], spelled: Callable[[str], str] = str) -> str:
    near = nearest(name, known)
    return f"did you mean {spelled(near)}?" if near else f"known are {', '.join(map(spelled, known))}."


def _problems(error: ValidationError, named: Mapping[str, str]) -> list[str]:
    """Return one sentence for each setting that is wrong."""
    problems: dict[str, str] = {}
    for fault in error.errors(include_url=False):
        name = str(fault["loc"][0]) if fault["loc"] else ""
        if fault["type"] == "value_error":
            message = str(fault.get("ctx", {}).get("error", fault["msg"]))
            ended = message if message.endswith(("?", ".")) else f"{message}."
            problems.setdefault(name, f"{named.get(name, name)}: {ended}" if name else ended)
        else:
            problems.setdefault(name, _problem(name, named.get(name, name), fault["input"]))
    return list(problems.values())


def _problem(name: str, where: str, value: object) -> str:
    seconds = parse_duration(value) if isinstance(value, str) and name.endswith("_s") else None
    default = default_of(name)
    example = f"Write for example {quoted(default)}." if default else "Leave it out for the default."
    advice = f'Write "{seconds}".' if seconds else example
    return f"{where} is {quoted(str(value))}; it must be {must_be(name)}. {advice}"


def must_be(name: str) -> str:
    """Return what a setting's value may be, from its field, as in "a whole number, 0 or more"."""
    schema = Settings.model_json_schema()["properties"][name]
    schema = {**schema, **next((part for part in schema.get("anyOf", ()) if part.get("type") != "null"), {})}
    lowest, above, highest = (schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    low = f"{lowest:g} or more" if lowest is not None else f"more than {above:g}" if above is not None else ""
    if lowest is not None and highest is not None:
        low = f"{lowest:g}..{highest:g}"
    elif highest is not None:
        low = f"{low}, at most {highest:g}".removeprefix(", ")
    match schema.get("type"):
        case "number":
            unit = "a number of seconds" if name.endswith("_s") else "a number"
        case "integer":
            unit = "a whole number"
        case "boolean":
            return "true or false"
        case "array":
            return "a list of texts (in the environment: with commas between them)"
        case _ if "enum" in schema:
            return "one of " + ", ".join(f'"{word}"' for word in schema["enum"])
        case _:
            return "a path" if schema.get("format") == "path" else "a text"
    return f"{unit}, {low}" if low else unit


def default_of(name: str) -> str:
    """Return a default as one writes it, "" where there is none to write."""
    match Settings.model_fields[name].default:
        case bool() as switch:
            return str(switch).lower()
        case int() | float() as number:
            return f"{number:g}"
        case str() as text:
            return text
        case tuple() as texts:
            return ", ".join(texts)
        case _:
            return ""
