"""Which kinds there are, where their objects are, and what the API server fills in that a client leaves out.

Source: pkg/apis/{apps,core,policy}/v1/defaults.go and plugin/pkg/admission/defaulttolerationseconds of
Kubernetes 1.36, as far as splitter and the controllers here read it.
"""

from typing import Any, Final, NamedTuple

Raw = dict[str, Any]

DEPLOYMENTS: Final = "/apis/apps/v1/deployments"
REPLICA_SETS: Final = "/apis/apps/v1/replicasets"
STATEFUL_SETS: Final = "/apis/apps/v1/statefulsets"
DAEMON_SETS: Final = "/apis/apps/v1/daemonsets"
PODS: Final = "/api/v1/pods"
NODES: Final = "/api/v1/nodes"
NAMESPACES: Final = "/api/v1/namespaces"
BUDGETS: Final = "/apis/policy/v1/poddisruptionbudgets"
SPLITS: Final = "/apis/splitter.io/v1alpha1/splits"
LEASES: Final = "/apis/coordination.k8s.io/v1/leases"
EVENTS: Final = "/apis/events.k8s.io/v1/events"
QUOTAS: Final = "/api/v1/resourcequotas"
CLAIMS: Final = "/api/v1/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"
PRIORITIES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
PLACEMENTS: Final = "/apis/splitter.io/v1alpha1/placements"
AUTOSCALERS: Final = "/apis/autoscaling/v2/horizontalpodautoscalers"

_NAMES: Final = {
    DEPLOYMENTS: "Deployment",
    REPLICA_SETS: "ReplicaSet",
    STATEFUL_SETS: "StatefulSet",
    "/apis/apps/v1/controllerrevisions": "ControllerRevision",
    DAEMON_SETS: "DaemonSet",
    PODS: "Pod",
    NODES: "Node",
    NAMESPACES: "Namespace",
    BUDGETS: "PodDisruptionBudget",
    SPLITS: "Split",
    PLACEMENTS: "Placement",
    LEASES: "Lease",
    EVENTS: "Event",
    QUOTAS: "ResourceQuota",
    CLAIMS: "PersistentVolumeClaim",
    VOLUMES: "PersistentVolume",
    PRIORITIES: "PriorityClass",
    "/api/v1/configmaps": "ConfigMap",
    AUTOSCALERS: "HorizontalPodAutoscaler",
    "/apis/karpenter.sh/v1/nodeclaims": "NodeClaim",
}
# Those whose controller writes /status: a write to the object leaves it alone.
WITH_STATUS: Final = frozenset(
    {DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, PODS, NODES, BUDGETS, SPLITS, QUOTAS, CLAIMS}
    | {AUTOSCALERS}
)
WITHOUT_GENERATION: Final = frozenset({NODES, NAMESPACES, LEASES, EVENTS})
_NOT_READY_S: Final = 300
_OURS: Final = "/apis/splitter.io/"
_CONTAINER: Final[Raw] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
_POD_SPEC: Final[Raw] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
_CHECKS: Final = ("readinessProbe", "livenessProbe", "startupProbe")
_CHECK: Final[Raw] = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


_FIELDS: Final = frozenset(
    {
        "apiVersion",
        "binaryData",
        "data",
        "deprecatedCount",
        "deprecatedFirstTimestamp",
        "deprecatedLastTimestamp",
        "description",
        "eventTime",
        "firstTimestamp",
        "globalDefault",
        "immutable",
        "involvedObject",
        "kind",
        "lastTimestamp",
        "message",
        "metadata",
        "note",
        "action",
        "preemptionPolicy",
        "reason",
        "regarding",
        "related",
        "reportingController",
        "reportingInstance",
        "revision",
        "roleRef",
        "rules",
        "series",
        "source",
        "spec",
        "status",
        "subjects",
        "type",
        "value",
    }
)
_SPEC_FIELDS: Final = frozenset(
    {
        "minReadySeconds",
        "ordinals",
        "paused",
        "persistentVolumeClaimRetentionPolicy",
        "podManagementPolicy",
        "progressDeadlineSeconds",
        "replicas",
        "revisionHistoryLimit",
        "selector",
        "serviceName",
        "strategy",
        "template",
        "updateStrategy",
        "volumeClaimTemplates",
    }
)


class Ref(NamedTuple):
    """Where one object is: its kind's collection, its namespace (empty: none), its name."""

    kind: str
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """Return it as it is asked for."""
        return path_of(self.kind, self.namespace, self.name)


def path_of(kind: str, namespace: str = "", name: str = "") -> str:
    """Return the path of a collection, of all namespaces or of one, or of an object."""
    api, _, plural = kind.rpartition("/")
    within = f"{api}/namespaces/{namespace}/{plural}" if namespace else kind
    return f"{within}/{name}" if name else within


def ref_of(path: str) -> Ref:
    """Read the path of an object.

    >>> ref_of("/apis/apps/v1/namespaces/shop/deployments/web")
    Ref(kind='/apis/apps/v1/deployments', namespace='shop', name='web')
    """
    collection, _, name = path.rpartition("/")
    api, within, rest = collection.partition("/namespaces/")
    if not within:
        return Ref(collection, "", name)
    namespace, _, plural = rest.partition("/")
    return Ref(f"{api}/{plural}", namespace, name)


def kind_of(api_version: str, name: str) -> str:
    """Return the collection of a kind that a reference names; empty where there is none."""
    roots = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
    there = (kind for kind, one in _NAMES.items() if one == name and kind.rpartition("/")[0] == roots)
    return next(there, "")


def is_custom(kind: str) -> bool:
    """Whether a kind is defined by a CustomResourceDefinition: an item of its list bears its kind."""
    return kind.startswith(_OURS)


def typed(kind: str, raw: Raw) -> Raw:
    """Return an object with its kind and version."""
    group = kind.rpartition("/")[0].removeprefix("/apis/").removeprefix("/api/")
    return {"kind": _NAMES.get(kind, kind.rpartition("/")[2]), "apiVersion": group} | raw


def defaulted(kind: str, raw: Raw) -> Raw:
    """Return an object with what its writer left out."""
    spec: Any = raw.get("spec")
    if not isinstance(spec, dict):
        return raw
    if spec.get("minReadySeconds") == 0:  # left out where it is 0
        spec = {name: value for name, value in spec.items() if name != "minReadySeconds"}
    if kind in {DEPLOYMENTS, REPLICA_SETS}:
        spec = {"replicas": 1} | spec | {"template": _template(spec.get("template") or {})}
    if kind == DEPLOYMENTS:
        spec = {"revisionHistoryLimit": 10, "progressDeadlineSeconds": 600} | spec
        spec["strategy"] = _strategy(spec.get("strategy") or {})
    if kind == STATEFUL_SETS:
        spec = {"replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10} | spec
        spec["template"] = _template(spec.get("template") or {})
        strategy: Raw = {"type": "RollingUpdate"} | (spec.get("updateStrategy") or {})
        if strategy["type"] == "RollingUpdate":
            strategy["rollingUpdate"] = {"partition": 0} | (strategy.get("rollingUpdate") or {})
        spec["updateStrategy"] = strategy
        kept: Raw = {"whenDeleted": "Retain", "whenScaled": "Retain"}
        spec["persistentVolumeClaimRetentionPolicy"] = kept | (
            spec.get("persistentVolumeClaimRetentionPolicy") or {}
        )
    if kind == DAEMON_SETS:
        spec = {**spec, "template": _template(spec.get("template") or {})}
    if kind == PODS:
        spec = _tolerating(_pod_spec(spec))
    return {**raw, "spec": spec}


def pruned(kind: str, raw: Raw) -> Raw:
    """Return an object without fields that its kind has not, as far as they are known here."""
    if is_custom(kind):
        return raw
    kept = {name: value for name, value in raw.items() if name in _FIELDS}
    if kind in {DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS} and isinstance(kept.get("spec"), dict):
        kept["spec"] = {name: value for name, value in kept["spec"].items() if name in _SPEC_FIELDS}
        strategy = kept["spec"].get("updateStrategy") or {}
        if "maxUnavailable" in (strategy.get("rollingUpdate") or {}):  # MaxUnavailableStatefulSet is off
            rolling = {k: v for k, v in strategy["rollingUpdate"].items() if k != "maxUnavailable"}
            kept["spec"]["updateStrategy"] = {**strategy, "rollingUpdate": rolling}
    return kept


def _strategy(strategy: Raw) -> Raw:
    named: Raw = {"type": "RollingUpdate"}
    strategy = named | strategy
    if strategy["type"] == "RollingUpdate":
        numbers: Raw = {"maxSurge": "25%", "maxUnavailable": "25%"} | (strategy.get("rollingUpdate") or {})
        strategy["rollingUpdate"] = numbers
    return strategy


def _template(template: Raw) -> Raw:
    return {**template, "spec": _pod_spec(template.get("spec") or {})}


def _pod_spec(spec: Raw) -> Raw:
    made = _POD_SPEC | spec
    for field in ("containers", "initContainers"):
        if field in spec:
            made[field] = [_container(one) for one in spec[field]]
    return made


def _container(container: Raw) -> Raw:
    image = container.get("image", "")
    tag = image.rpartition("/")[2].partition(":")[2]
    pulled = "IfNotPresent" if tag not in {"", "latest"} or "@" in image else "Always"
    made = _CONTAINER | {"imagePullPolicy": pulled} | container
    if "ports" in made:
        made["ports"] = [{"protocol": "TCP"} | port for port in made["ports"]]
    for field in _CHECKS:
        if field in made:
            check = _CHECK | made[field]
            if "httpGet" in check:
                check["httpGet"] = {"scheme": "HTTP", "path": "/"} | check["httpGet"]
            made[field] = check
    return made


def _tolerating(spec: Raw) -> Raw:
    """Return a pod that stays for five minutes where its node is not ready or cannot be reached."""
    there = spec.get("tolerations") or []
    broad = [one.get("key") or "" for one in there if one.get("effect") in {"NoExecute", None, ""}]
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _NOT_READY_S}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if not {key, ""}.intersection(broad)
    ]
    return {**spec, "tolerations": [*there, *added]}
