"""Objects as an API server sends them, and what becomes of them in worse hands.

`whole` are complete ones, with every field that splitter reads. `spoiled` draws what any JSON value in their
place does: other types, null, nothing, texts that are no quantity and no time. UID and resourceVersion stay,
since they are the API server's own, as does the shape of an object: it has metadata.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from kube.raw import CREATED, READY, Raw, condition, metadata, owner

Path = tuple[str | int, ...]

# What the API server itself sets, and every object has.
_KEPT = (("metadata",), ("metadata", "uid"), ("metadata", "resourceVersion"))

# Texts that mean something to somebody: what stands in such a place is more often wrong than random.
WORDS = (
    *("", " ", "null", "true", "0", "-1", "1e3", "1e999999999", "9" * 5000, "NaN", "Infinity", "-Infinity"),
    *("0x10", "1_000", "100%", "-50%", "%", "5Gi", "1e-999999999", "\u0661", "\udcff", "\x00", "a" * 300),
    *("2026-01-05T09:00:00Z", "2026-01-05T09:00:00", "2026-13-45T99:00:00Z", "0001-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59-23:59", "2026-01-05", "10:00", "{", "[]", "{}", "[[[[", '{"replicas":-1}'),
    *("splitter.io/split", "twin", "parked", "enabled", "spot", "on-demand", "Deployment", "StatefulSet"),
    *(
        "Always",
        "OnDelete",
        "Recreate",
        "In",
        "Exists",
        "Gt",
        "web",
        "../../etc/passwd",
        "{{ 1 }}",
        "f:",
        "k:x",
    ),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def paths(value: object, here: Path = ()) -> Iterator[Path]:
    """Yield the way to each value within a value."""
    if here and here not in _KEPT:
        yield here
    match value:
        case dict():
            for key, below in value.items():
                yield from paths(below, (*here, key))
        case list():
            for index, below in enumerate(value):
                yield from paths(below, (*here, index))
        case _:
            pass


@st.composite
def spoiled(draw: st.DrawFn, good: Raw) -> Raw:
    """Return an object of which up to three values are others, or are not there."""
    raw = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(list(paths(raw))))
        at: Any = raw
        for step in way:
            at = at[step]
        match draw(st.sampled_from(("replace", "replace", "replace", "remove", "add"))):
            case "remove":
                del at[last]
            case "add" if isinstance(at, dict):
                at[draw(st.sampled_from(WORDS))] = draw(VALUES)
            case _:
                at[last] = draw(VALUES)
    return raw


def _template(**spec: Any) -> Raw:  # noqa: ANN401 (fields of a pod)
    resources = {"requests": {"cpu": "250m", "memory": "64Mi", "example.com/gpu": 1}, "limits": {"cpu": "1"}}
    ports = [{"containerPort": 80, "hostPort": 8080}]
    requirement = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    terms = [{"matchExpressions": [requirement], "matchFields": [requirement]}]
    anti = [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}]
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": {"note": "kept"}, "creationTimestamp": None},
        "spec": {
            "containers": [{"name": "web", "image": "web:1", "resources": resources, "ports": ports}],
            "initContainers": [
                {"name": "log", "restartPolicy": "Always", "resources": resources},
                {"name": "migrate", "resources": resources},
            ],
            "overhead": {"cpu": "10m"},
            "nodeSelector": {"disk": "ssd"},
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
                },
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": anti},
            },
            "tolerations": [{"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp"}],
            **spec,
        },
    }


def _managed(manager: str = "splitter") -> list[Raw]:
    key = 'k:{"name":"web"}'
    template = {"f:spec": {"f:containers": {key: {".": {}, "f:image": {}}}}, "f:metadata": {"f:labels": {}}}
    owned = {"f:spec": {"f:template": template, "f:replicas": {}, "f:paused": {}}}
    first = {"manager": manager, "operation": "Apply", "time": READY, "fieldsV1": owned}
    return [first, {"manager": "kubectl", "operation": "Apply", "time": READY, "fieldsV1": owned}]


APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": {"replicas": 3}})}
POLICY = {
    "splitter.io/on-demand-base": "1",
    "splitter.io/spot-percent": "80",
    "splitter.io/soak": "10m",
    "splitter.io/template": "default",
    "splitter.io/replicas": '{"replicas":5,"left":0}',
    "splitter.io/taken-over": '{"uid":"uid-web","time":"2026-01-31T12:00:00Z"}',
}
_CONDITIONS = [
    condition("Progressing", reason="ProgressDeadlineExceeded", message="m"),
    condition("ReplicaFailure", reason="FailedCreate", message="exceeded quota: q, requested: pods=1"),
]
_COUNTS = {"replicas": 4, "availableReplicas": 4, "updatedReplicas": 4, "readyReplicas": 4}
_STATUS = {**_COUNTS, "observedGeneration": 1, "conditions": _CONDITIONS}
_SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}],
}


def deployment(name: str = "web") -> Raw:
    """Return a labelled Deployment."""
    return {
        "kind": "Deployment",
        "metadata": metadata(
            name,
            labels={"app": "web", "splitter.io/split": "enabled"},
            annotations={**APPLIED, **POLICY},
            managedFields=_managed(),
            ownerReferences=[owner("App", "shop")],
        ),
        "spec": {
            "replicas": 4,
            "paused": True,
            "selector": _SELECTOR,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "revisionHistoryLimit": 10,
            "template": _template(),
        },
        "status": _STATUS,
    }


def stateful_set(name: str = "web") -> Raw:
    """Return a labelled StatefulSet."""
    raw = deployment(name)
    del raw["spec"]["strategy"]
    return {
        **raw,
        "kind": "StatefulSet",
        "spec": {
            **raw["spec"],
            "serviceName": "web",
            "podManagementPolicy": "Parallel",
            "ordinals": {"start": 0},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "ssd"}}],
        },
        "status": {**_STATUS, "currentRevision": "web-1", "updateRevision": "web-2"},
    }


def twin(kind: str = "Deployment", pool: str = "spot") -> Raw:
    """Return a twin."""
    raw = deployment(f"web-{pool}") if kind == "Deployment" else stateful_set(f"web-{pool}")
    raw["metadata"]["labels"] = {
        "splitter.io/split": "twin",
        "splitter.io/pool": pool,
        "splitter.io/source": "web",
    }
    raw["metadata"]["annotations"] = {"splitter.io/rendered-hash": "1", "splitter.io/made-of": "2"}
    raw["metadata"]["ownerReferences"] = [owner(kind, "web")]
    return raw


def replica_set() -> Raw:
    """Return a ReplicaSet of the Deployment."""
    labels = {"app": "web", "pod-template-hash": "1", "splitter.io/split": "parked"}
    return {
        "kind": "ReplicaSet",
        "metadata": metadata(
            "web-1",
            labels=labels,
            annotations={"splitter.io/source": "web", "splitter.io/taken-over": "x"},
            ownerReferences=[owner("Deployment", "web")],
        ),
        "spec": {"replicas": 3, "template": _template()},
        "status": _STATUS,
    }


def pod() -> Raw:
    """Return a pod that crashes."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    container = {
        "name": "web",
        "image": "web:1",
        "ready": False,
        "restartCount": 5,
        "state": waiting,
        "lastState": ended,
    }
    return {
        "kind": "Pod",
        "metadata": metadata(
            "web-1-a",
            labels={"app": "web", "splitter.io/pool": "spot", "controller-revision-hash": "web-1"},
            annotations={
                "controller.kubernetes.io/pod-deletion-cost": "-1000",
                "splitter.io/deletion-cost-before": "5",
                "splitter.io/held-for": "web-3",
            },
            ownerReferences=[owner("ReplicaSet", "web-1")],
        ),
        "spec": {"nodeName": "spot-0", **_template()["spec"]},
        "status": {
            "phase": "Running",
            "conditions": [condition("Ready", "False"), condition("PodScheduled")],
            "containerStatuses": [container],
            "initContainerStatuses": [container],
        },
    }


def node() -> Raw:
    """Return a spot node that is about to go."""
    published = condition("PreemptionScheduled", message="Preempt Scheduled: NotBefore: 2026-01-05T10:00:00Z")
    return {
        "kind": "Node",
        "metadata": metadata(
            "spot-0",
            labels={"karpenter.sh/capacity-type": "spot", "eks.amazonaws.com/capacityType": "SPOT"},
            annotations={"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-05T10:00:00Z"},
        ),
        "spec": {
            "unschedulable": True,
            "providerID": "aws:///a/i-1",
            "taints": [{"key": "karpenter.sh/disrupted", "value": "x", "effect": "NoSchedule"}],
        },
        "status": {
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": [condition("Ready", reason="KubeletReady", message="m"), published],
        },
    }


def split(kind: str = "Deployment") -> Raw:
    """Return a Split with all that a status remembers."""
    return {
        "kind": "Split",
        "metadata": metadata(
            "web" if kind == "Deployment" else "web-sts", ownerReferences=[owner(kind, "web")]
        ),
        "spec": {
            "source": {"kind": kind, "name": "web"},
            "takeOver": True,
            "replicas": 5,
            "onDemandOrdinals": [0, 1, 2],
        },
        "status": {
            "state": "Steady",
            "reason": "Steady",
            "message": "m",
            "conflict": False,
            "writeConflicts": [READY, CREATED],
            "conflictingWriter": "kubectl",
            "memory": {
                "policyAnnotations": POLICY,
                "rebalance": {
                    "lost": ["uid-1"],
                    "lastLoss": READY,
                    "soakS": 600,
                    "spotUpSince": READY,
                    "lastStep": READY,
                    "failedMoves": {"count": 2},
                    "failedPlaceholders": {"count": 1, "last": READY},
                },
            },
            "desired": 5,
            "ready": 5,
        },
    }


def namespace() -> Raw:
    """Return the namespace, with defaults of the policy."""
    return {"kind": "Namespace", "metadata": metadata("shop", annotations=dict(POLICY))}


def template_set() -> Raw:
    """Return a ConfigMap with templates."""
    text = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {{ source.spec.template }}}\n"
    return {
        "kind": "ConfigMap",
        "metadata": metadata(
            "own",
            namespace="splitter-system",
            labels={"splitter.io/template-set": "enabled"},
            annotations={"splitter.io/namespaces": "shop, team-*"},
        ),
        "data": {"deployment.spot.yaml.j2": text, "deployment.on-demand.yaml.j2": text},
        "binaryData": {},
    }


def node_event() -> Raw:
    """Return an Event about a node."""
    return {
        "kind": "Event",
        "metadata": metadata("e", namespace="default"),
        "reason": "SpotInterruption",
        "message": "m",
        "involvedObject": {"kind": "Node", "name": "spot-0", "uid": "uid-spot-0"},
        "series": {"lastObservedTime": READY, "count": 2},
        "lastTimestamp": READY,
        "eventTime": READY,
        "firstTimestamp": READY,
    }


def claim() -> Raw:
    """Return a NodeClaim."""
    return {
        "kind": "NodeClaim",
        "metadata": metadata(
            "c", annotations={"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-05T10:00:00Z"}
        ),
        "spec": {
            "requirements": [{"key": "zone", "operator": "In", "values": ["a"]}],
            "taints": [{"key": "spot", "value": "x", "effect": "NoSchedule"}],
        },
        "status": {"nodeName": "spot-0", "conditions": [condition("DisruptionReason")]},
    }


def autoscaler() -> Raw:
    """Return the status of cluster-autoscaler."""
    status = (
        "time: 2026-01-05 10:00:00.1 +0000 UTC\nnodeGroups:\n- name: spot-a\n"
        "  scaleUp: {status: Backoff, backoffInfo: {errorCode: OutOfCapacity}}\n"
    )
    return {
        "kind": "ConfigMap",
        "metadata": metadata("ca", namespace="kube-system"),
        "data": {"status": status},
    }
