"""Everything that a tenant may write in one namespace, in its worst form, and an API server that records.

The attacker writes objects of every kind that splitter reads there. What the API server would refuse is left
out: an object has its own name, its namespace, a UID and a version. Every other field is the attacker's.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from hypothesis import strategies as st

from fuzz import objects
from fuzz.recording import PLANTED, Recording
from fuzz.stages import placement, set_owner
from kube.raw import Raw, metadata
from splitter.assembly import cache_of, rules_of
from splitter.core.names import Key
from splitter.kube.apply import Writer
from splitter.kube.client import ApiError, Client
from splitter.kube.observe import Observer
from splitter.reconciler import Reconciler
from splitter.reconciler.queue import WorkQueue
from splitter.settings import Settings, TuningSettings

EVIL, VICTIM = "evil", "shop"
SETTINGS = Settings(tuning=TuningSettings(vanished_node_wait_s=0), own_namespace="splitter-system")
# What leads elsewhere, when it is put into a path, a query, a selector or a sentence as it is.
LEADING = (
    f"../../{VICTIM}/deployments/web",
    f"../../../../../apis/apps/v1/namespaces/{VICTIM}/deployments/web",
    "../../../../../../api/v1/pods",
    "../../../../../../api/v1/pods?limit=100000&fieldSelector=x",
    "../../../../../../api/v1/secrets#",
    f"..%2F..%2F{VICTIM}%2Fdeployments%2Fweb",
    "web/scale",
    "web-spot/../web",
    ".",
    "..",
    "%2e%2e",
    "web\r\nHost: elsewhere",
    "http://elsewhere/",
    "//elsewhere/api/v1/pods",
    f"{VICTIM}/web",
    f"uid-{VICTIM}-web",
    "web,app!=x",
)
"""A tenant's texts. Owners' UIDs are among them: those of the other namespace's objects."""


def in_namespace(namespace: str, raw: Raw) -> Raw:
    """Return an object as one of a namespace's, with UIDs of its own."""
    text = orjson.dumps(raw).decode()
    text = text.replace('"uid-', f'"uid-{namespace}-').replace(
        '"namespace":"shop"', f'"namespace":"{namespace}"'
    )
    content: Raw = orjson.loads(text)
    return content


def claim_of_volume(name: str = "data") -> Raw:
    """Return a PersistentVolumeClaim that is bound."""
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(name),
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "volume-1"},
    }


def budget(name: str = "web-guard") -> Raw:
    """Return a PodDisruptionBudget, as ours or as a user's."""
    return {
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name, ownerReferences=[{"kind": "Split", "name": "web", "uid": "uid-web"}]),
        "spec": {
            "minAvailable": 1,
            "selector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["db"]}],
            },
        },
    }


def scaler(kind: str = "HorizontalPodAutoscaler", at: str = "scaleTargetRef") -> Raw:
    """Return an autoscaler of `web`."""
    return {
        "kind": kind,
        "metadata": metadata("scaler"),
        "spec": {
            at: {"kind": "Deployment", "name": "web"},
            "behavior": {"scaleUp": {"stabilizationWindowSeconds": 1}},
            "metrics": [{"external": {"target": {"averageValue": "1"}}}],
            "updatePolicy": {"updateMode": "Auto"},
        },
    }


def member() -> Raw:
    """Return a pod of the StatefulSet."""
    raw = objects.pod()
    raw["metadata"] |= {"name": "web-0", "uid": "uid-web-0", "ownerReferences": [set_owner()]}
    return raw


def _stateful_set() -> Raw:
    raw = objects.stateful_set()
    raw["metadata"]["uid"] = "uid-web-set"
    return raw


def _of_the_set(raw: Raw) -> Raw:
    """Return an object as the StatefulSet's own, which has another UID than the Deployment of its name."""
    raw["metadata"]["ownerReferences"] = [set_owner()]
    if raw["kind"] == "StatefulSet":
        raw["metadata"]["uid"] += "-set"
    return raw


def _free(raw: Raw) -> Raw:
    """Return a source that nothing keeps from being taken over."""
    raw["metadata"]["ownerReferences"] = []
    raw["metadata"]["annotations"] = {"splitter.io/on-demand-base": "1"}
    raw["metadata"]["managedFields"] = []
    raw["spec"]["paused"] = False
    return raw


# What is there of each kind: how it is made, and on which indexer it lies. None: it is only asked for.
KINDS: Mapping[str, tuple[Any, Any]] = {
    "deployment": (objects.deployment, lambda cache: cache.sources),
    "free-deployment": (lambda: _free(objects.deployment()), lambda cache: cache.sources),
    "statefulset": (_stateful_set, lambda cache: cache.sources),
    "free-statefulset": (lambda: _free(_stateful_set()), lambda cache: cache.sources),
    "twin": (objects.twin, lambda cache: cache.twins),
    "other-twin": (lambda: objects.twin(pool="on-demand"), lambda cache: cache.twins),
    "statefulset-twin": (lambda: _of_the_set(objects.twin("StatefulSet")), lambda cache: cache.twins),
    "replicaset": (objects.replica_set, lambda cache: cache.replica_sets),
    "pod": (objects.pod, lambda cache: cache.pods),
    "member": (member, lambda cache: cache.pods),
    "split": (objects.split, lambda cache: cache.splits),
    "statefulset-split": (lambda: _of_the_set(objects.split("StatefulSet")), lambda cache: cache.splits),
    "placement": (placement, lambda cache: cache.placements._indexer),  # noqa: SLF001 (what its watch fills)
    "budget": (budget, lambda cache: cache.budgets.indexer),
    "claim": (claim_of_volume, None),
    "hpa": (scaler, None),
    "keda": (lambda: scaler("ScaledObject"), None),
    "vpa": (lambda: scaler("VerticalPodAutoscaler", "targetRef"), None),
}
_APIS = {
    **dict.fromkeys(("deployments", "statefulsets", "replicasets"), "/apis/apps/v1"),
    **dict.fromkeys(("splits", "placements"), "/apis/splitter.io/v1alpha1"),
    "poddisruptionbudgets": "/apis/policy/v1",
    "pods": "/api/v1",
}
# The API server's own word, whoever writes the object.
_ITS_OWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation")

# Texts that the API server reads as something else: a quantity, a time, a percentage, one of a few words.
_CHECKED = frozenset(
    {
        "cpu",
        "memory",
        "example.com/gpu",
        "lastTransitionTime",
        "time",
        "maxSurge",
        "operator",
        "status",
        "effect",
    }
)
TEXTS = st.sampled_from((*LEADING, *objects.WORDS)) | st.text(max_size=40)


@st.composite
def forged(draw: st.DrawFn, kind: str, raw: Raw) -> Raw:
    """Draw an object of the attacker's: texts that lead elsewhere, or any JSON in a field's place."""
    raw = copy.deepcopy(raw)
    its_own, its_kind = {name: raw["metadata"][name] for name in _ITS_OWN}, raw["kind"]
    # The API server has types for all but custom resources: there any JSON may stand, elsewhere any text.
    if kind in {"keda", "vpa"} and draw(st.booleans()):
        raw = draw(objects.spoiled(raw))
    else:
        places = [path for path in objects.paths(raw) if isinstance(_at(raw, path), str)]
        for path in draw(st.lists(st.sampled_from(places), min_size=1, max_size=4)):
            if path[-1] not in _CHECKED:
                _at(raw, path[:-1])[path[-1]] = draw(TEXTS)
    raw["metadata"] |= its_own
    raw["kind"] = its_kind
    # Half of a pair of surrogates is no text: the API server puts another character there.
    content: Raw = json.loads(json.dumps(raw, ensure_ascii=False).encode("utf-8", "replace"))
    return content


def plant(raw: Raw) -> Raw:
    """Return an object with secrets in the places where users have theirs."""
    raw["metadata"].setdefault("annotations", {})["example.com/planted"] = PLANTED
    pod = raw["spec"].get("template", raw).get("spec", {}) if raw["kind"] != "Split" else {}
    for container in pod.get("containers", ()):
        container["env"] = [{"name": "SECRET", "value": PLANTED}]
        container["args"] = [f"--password={PLANTED}"]
    return raw


def _at(raw: Any, path: objects.Path) -> Any:  # noqa: ANN401 (any JSON)
    for step in path:
        raw = raw[step]
    return raw


class Attacked:
    """splitter's parts, joined as they run, before a recording server; one tenant there is the attacker."""

    def __init__(self, client: Client, server: Recording, renderer: Any) -> None:  # noqa: ANN401
        self.server = server
        self.woken: dict[Key, None] = {}
        self.cache = cache_of(SETTINGS, self._enqueue)
        rules = rules_of(SETTINGS)
        self.reconciler = Reconciler(
            WorkQueue(0.05, 0.0),
            Observer(client, self.cache, rules.reservations),
            Writer(client, self.cache),
            renderer,
            rules=rules,
            resync_s=300,
        )

    def _enqueue(self, key: Key, *, urgent: bool) -> None:
        del urgent
        self.woken[key] = None

    def put(self, kind: str, raw: Raw) -> None:
        """Have an object there, as the watches tell of it and as it is read."""
        indexer = KINDS[kind][1]
        name, namespace = raw["metadata"]["name"], raw["metadata"]["namespace"]
        if indexer is not None:
            indexer(self.cache).upsert(raw)
        if kind in {"hpa", "keda", "vpa"}:
            plural = {
                "hpa": "horizontalpodautoscalers",
                "keda": "scaledobjects",
                "vpa": "verticalpodautoscalers",
            }
            for api in ("autoscaling/v2", "keda.sh/v1alpha1", "autoscaling.k8s.io/v1"):
                self.server.lists[f"/apis/{api}/namespaces/{namespace}/{plural[kind]}"] = [raw]
        elif kind == "claim":
            claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
            for called in (name, *(f"{name}-web-{number}" for number in range(4))):
                self.server.objects[f"{claims}/{called}"] = {
                    **raw,
                    "metadata": {**raw["metadata"], "name": called},
                }
        else:
            plural_of = f"{raw['kind'].lower()}s"
            self.server.objects[f"{_APIS[plural_of]}/namespaces/{namespace}/{plural_of}/{name}"] = raw

    async def passed(self, key: Key) -> None:
        """Do one reconcile as a worker does. Raises what is no answer of the API server's."""
        try:
            await self.reconciler._reconcile(key)  # noqa: SLF001 (what a worker does)
        except ApiError as error:
            # Refused by the server, and shown where people look; what is wrong with an object is a reason.
            assert error.status != 0, error  # noqa: PT017 (any other error is fine)
            self.reconciler._failed(key, error)  # noqa: SLF001 (as a worker does)

    async def said(self) -> None:
        """Write the statuses and the Events that are due."""
        await self.reconciler._status_writer.flush()  # noqa: SLF001 (what ends a process)
        await self.reconciler._recorder.flush()  # noqa: SLF001


def fill(attacked: Attacked, namespace: str) -> None:
    """Have an honest tenant's objects there."""
    for kind, (make, _) in KINDS.items():
        if not kind.startswith("free-"):
            attacked.put(kind, in_namespace(namespace, make()))


def allow_placement(server: Recording) -> None:
    """Have the policy that places pods, and its binding, there."""
    for plural in ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"):
        path = f"/apis/admissionregistration.k8s.io/v1/{plural}/splitter-placement"
        server.objects[path] = {"kind": "Policy", "metadata": {"name": "splitter-placement"}}


def nodes(count: int = 3) -> Iterator[Raw]:
    """Yield the machines: two that are well, one of spot that goes, and more of spot."""
    yield objects.node()
    more = ((f"spot-{number}", "spot") for number in range(2, count - 1))
    for name, capacity in (("od-1", "on-demand"), ("spot-1", "spot"), *more):
        raw = objects.node()
        raw["metadata"] = metadata(name, namespace="", labels={"karpenter.sh/capacity-type": capacity})
        raw["spec"] = {}
        raw["status"]["conditions"] = raw["status"]["conditions"][:1]
        yield raw


def vanished() -> Raw:
    """Return a spot node that is seen, and gone in the next moment."""
    *_, raw = nodes()
    raw["metadata"] |= {"name": "spot-gone", "uid": "uid-spot-gone"}
    return raw
