"""The stages of a workload's life, each as the objects that an API server has then.

`test_requests` has an attacker forge some of them. What a stage is there for is claimed of it: the steps and
the actions of the planner that it reaches, with forged objects too. Together they reach all that there are.
All are of the namespace `shop`; `attacker.in_namespace` moves them. Both kinds of workloads are called `web`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fuzz import objects
from kube.raw import CREATED, Raw, condition, metadata, owner
from splitter.core import actions as acts
from splitter.core.handover import Step
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key

World = list[tuple[str, Raw]]
MARK = {"splitter.io/taken-over": json.dumps({"uid": "uid-web", "time": CREATED})}
SET_MARK = {"splitter.io/taken-over": json.dumps({"uid": "uid-web-set", "time": CREATED})}
# Nodes: on-demand, spot, spot that is about to go, and spot that was seen and is gone.
WELL, SPOT, DOOMED, GONE = "od-1", "spot-1", "spot-0", "spot-gone"
_UP = {"observedGeneration": 1}


def _counts(replicas: int) -> Raw:
    names = ("replicas", "availableReplicas", "updatedReplicas", "readyReplicas")
    return {**_UP, **dict.fromkeys(names, replicas)}


def set_owner(name: str = "web") -> Raw:
    """Return a reference to the StatefulSet, which has another UID than the Deployment of its name."""
    return {**owner(STATEFUL_SET, name), "uid": f"uid-{name}-set"}


def source(
    *,
    label: bool = True,
    mark: bool = True,
    paused: bool = True,
    seen: bool = True,
    karmada: bool = False,
    **spec: object,
) -> Raw:
    """Return the Deployment, at rest and ours unless said otherwise."""
    raw = objects.deployment()
    raw["metadata"] |= {
        "ownerReferences": [],
        "managedFields": [
            {"manager": "splitter", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}}
        ],
        "annotations": {"splitter.io/on-demand-base": "1", **(MARK if mark else {})},
        "labels": {"app": "web", **({"splitter.io/split": "enabled"} if label else {})},
    }
    if not seen:
        raw["metadata"]["generation"] = 2
    raw["spec"] |= {"paused": paused, "selector": {"matchLabels": {"app": "web"}}, **spec}
    raw["spec"]["template"]["spec"]["volumes"] = []
    raw["status"] = _counts(4)
    if karmada:
        raw["metadata"]["labels"]["karmada.io/managed"] = "true"
        raw["status"]["conditions"] = [
            {"type": "splitter.io/Available", "status": "True", "message": "4 of 4"}
        ]
    return raw


def stateful_set(
    replicas: int = 4, *, label: bool = True, annotations: Mapping[str, str] | None = None, **spec: object
) -> Raw:
    """Return the StatefulSet, at rest; nothing says whether it is split."""
    raw = objects.stateful_set()
    raw["metadata"] |= {
        "uid": "uid-web-set",
        "ownerReferences": [],
        "managedFields": [],
        "annotations": {"splitter.io/on-demand-base": "1", **(annotations or {})},
        "labels": {"app": "web", **({"splitter.io/split": "enabled"} if label else {})},
    }
    raw["spec"] |= {"replicas": replicas, **spec}
    raw["spec"]["template"]["spec"]["volumes"] = []
    raw["status"] = {**_counts(4), "currentRevision": "web-1", "updateRevision": "web-1"}
    return raw


def split(kind: str = DEPLOYMENT, *, taken: bool = True, its: bool = True, **spec: object) -> Raw:
    """Return a Split, of this source or of one before it."""
    raw = objects.split(kind)
    raw["metadata"]["ownerReferences"] = [set_owner() if kind == STATEFUL_SET else owner(kind, "web")]
    if not its:
        raw["metadata"]["ownerReferences"][0]["uid"] = "uid-before"
    named = {"kind": kind, "name": "web"}
    raw["spec"] = {"source": named, "takeOver": taken, **spec}
    raw["status"] |= {"conflict": False, "writeConflicts": [], "memory": {}}
    return raw


def replica_set(name: str = "web-1", replicas: int = 4, *, parked: bool = True, **fields: Any) -> Raw:  # noqa: ANN401
    """Return a ReplicaSet of the Deployment, or `of` a twin: parked or attached."""
    raw = objects.replica_set()
    of, image = fields.get("of", "web"), fields.get("image", "web:1")
    labels = {"pod-template-hash": "1", "splitter.io/split": "parked"} if parked else {"app": "web"}
    raw["metadata"] |= {
        "name": name,
        "uid": f"uid-{name}",
        "labels": labels,
        "annotations": fields.get("annotations", {}),
        "ownerReferences": [{**owner(DEPLOYMENT, of), "controller": not parked}],
    }
    raw["spec"]["replicas"] = replicas
    raw["spec"]["selector"] = {"matchLabels": {"app": "web", "pod-template-hash": name.rpartition("-")[2]}}
    raw["spec"]["template"]["spec"] |= {"volumes": []}
    raw["spec"]["template"]["spec"]["containers"][0]["image"] = image
    raw["status"] = _counts(fields.get("up", replicas))
    return raw


def pod(name: str, of: Raw, node: str | None = WELL, labels: Mapping[str, str] | None = None) -> Raw:
    """Return a pod of an object."""
    raw = objects.pod()
    kind, named = of["metadata"]["uid"], of["metadata"]["name"]
    raw["metadata"] |= {
        "name": name,
        "uid": f"uid-{name}",
        "labels": dict(labels or {}),
        "annotations": {},
        "ownerReferences": [{"kind": of["kind"], "name": named, "uid": kind, "controller": True}],
    }
    raw["spec"].pop("nodeName")
    if node is not None:
        raw["spec"]["nodeName"] = node
    bound = {} if node else {"reason": "Unschedulable", "message": "0/3 nodes are available"}
    raw["status"] = {
        "phase": "Running",
        "conditions": [
            condition("Ready", str(node is not None)),
            condition("PodScheduled", str(node is not None), **bound),
        ],
    }
    return raw


def pods(of: Raw, *places: str | None, pool: str = "") -> World:
    """Return pods of an object, one on each of these nodes; labelled for a pool, if one is named."""
    name = of["metadata"]["name"]
    labels = {"app": "web", "pod-template-hash": name.rpartition("-")[2]}
    labels |= {"splitter.io/pool": pool, "splitter.io/source": "web"} if pool else {}
    return [("pod", pod(f"{name}-{number}", of, node, labels)) for number, node in enumerate(places)]


def orphans(*places: str | None, pool: str = "on-demand") -> World:
    """Return pods that a ReplicaSet has let go, labelled for a pool."""
    result = pods(replica_set("web-1", 0), *places, pool=pool)
    for _, raw in result:
        del raw["metadata"]["ownerReferences"]
    return result


def finished(world: World) -> World:
    """Return these pods as a kubelet's shutdown leaves them."""
    for _, raw in world:
        raw["status"]["phase"] = "Failed"
    return world


def waiting(on_demand: int = 4, spot: int = 0) -> World:
    """Return both twins, paused and without any pod, and what keeps the template of the pods to come."""
    made: World = [("replicaset", replica_set("web-split1", 0))]
    for pool, replicas in (("on-demand", on_demand), ("spot", spot)):
        [(kind, raw), *_] = twin(pool, spec=replicas)
        raw["spec"]["paused"] = True
        made.append((kind, raw))
    return made


def paused(world: World) -> World:
    """Return twins as they are, paused."""
    for kind, raw in world:
        if kind == "twin":
            raw["spec"]["paused"] = True
    return world


def going(world: World) -> World:
    """Return ReplicaSets that are about to leave their pods."""
    for kind, raw in world:
        if kind == "replicaset":
            raw["metadata"] |= {"deletionTimestamp": "2026-01-05T09:59:59Z", "finalizers": ["orphan"]}
    return world


def twin(
    pool: str, *places: str | None, spec: int | None = None, image: str = "web:1", kind: str = DEPLOYMENT
) -> World:
    """Return a twin with a pod on each of these nodes."""
    replicas = len(places) if spec is None else spec
    raw = objects.twin(kind, pool)
    raw["metadata"]["managedFields"] = []
    raw["spec"] |= {"replicas": replicas, "paused": False}
    raw["spec"]["template"]["spec"]["volumes"] = []
    raw["spec"]["template"]["spec"]["containers"][0]["image"] = image
    raw["status"] = {**_counts(len(places)), "updateRevision": "new"}
    if kind == STATEFUL_SET:
        raw["metadata"] |= {"uid": f"uid-web-{pool}-set", "ownerReferences": [set_owner()]}
        first = 0 if pool == "on-demand" else 1000
        raw["spec"]["ordinals"] = {"start": first}
        members = [
            ("pod", pod(f"web-{pool}-{first + n}", raw, node, {"controller-revision-hash": "new"}))
            for n, node in enumerate(places)
        ]
        return [("twin", raw), *members]
    own = replica_set(f"web-{pool}-1", replicas, parked=False, of=f"web-{pool}", image=image, up=len(places))
    return [("twin", raw), ("replicaset", own), *pods(own, *places, pool=pool)]


def twins(on_demand: Iterable[str | None] = (WELL,), spot: Iterable[str | None] = (SPOT,) * 3) -> World:
    """Return both twins."""
    return [*twin("on-demand", *on_demand), *twin("spot", *spot)]


def members(*places: str | None, born: Mapping[int, str] | None = None) -> World:
    """Return the StatefulSet's own pods, and what for they were born."""
    of, born = stateful_set(), born or {}
    named = {n: {"splitter.io/pool": born[n]} if n in born else {} for n in range(len(places))}
    revision = {"controller-revision-hash": "web-1"}
    return [("member", pod(f"web-{n}", of, node, {**named[n], **revision})) for n, node in enumerate(places)]


def placement(*ordinals: int) -> Raw:
    """Return what the admission policy is told of the StatefulSet."""
    published = [{"first": ordinal, "last": ordinal} for ordinal in ordinals or (0,)]
    labels = ["eks.amazonaws.com/capacityType", "karpenter.sh/capacity-type"]
    sets = {"uid-web-set": {"name": "web", "onDemandOrdinals": published}}
    return {
        "kind": "Placement",
        "metadata": metadata("splitter-placement"),
        "spec": {"spotLabels": labels, "statefulSets": sets},
    }


def placed(
    *places: str | None,
    born: Mapping[int, str] | None = None,
    label: bool = True,
    ordinals: tuple[int, ...] = (0,),
) -> World:
    """Return the StatefulSet in placement mode, with these ordinals in force on on-demand."""
    return [
        ("statefulset", stateful_set(len(places), label=label)),
        ("statefulset-split", split(STATEFUL_SET, onDemandOrdinals=list(ordinals))),
        ("placement", placement(*ordinals)),
        *members(*places, born=born),
    ]


def placeholder(held_for: str, node: str = SPOT) -> Raw:
    """Return the pod that holds room for a move."""
    raw = pod("web-placeholder", split(STATEFUL_SET), node)
    raw["metadata"]["annotations"] = {"splitter.io/held-for": held_for}
    raw["metadata"]["labels"] = {"splitter.io/placeholder": held_for.partition("/")[0]}
    return raw


def _hint() -> tuple[str, Raw]:
    """Return a placeholder that keeps replicas off a node, of a move that is over."""
    raw = pod("web-placeholder-1", split(), SPOT)
    raw["metadata"]["annotations"] = {"splitter.io/held-for": f"relief/{SPOT}"}
    raw["metadata"]["labels"] = {"splitter.io/placeholder": "spot"}
    return "pod", raw


def in_twins(replicas: int = 0, saved: int = 4, left: int = 0, *, label: bool = True, **fields: Any) -> World:  # noqa: ANN401
    """Return the StatefulSet as twins; `shown` is what its Split says."""
    published = {"splitter.io/replicas": json.dumps({"replicas": saved, "left": left})} if saved else {}
    published |= SET_MARK if fields.get("marked", True) else {}
    shown = {} if fields.get("shown", saved) is None else {"replicas": fields.get("shown", saved)}
    spot = fields.get("spot", (SPOT,))
    return [
        (
            "statefulset",
            stateful_set(replicas, label=label, annotations={"splitter.io/mode": "twins", **published}),
        ),
        ("statefulset-split", split(STATEFUL_SET, **shown)),
        *twin("on-demand", *fields.get("on_demand", (WELL,) * 3), kind=STATEFUL_SET),
        *twin("spot", *spot, kind=STATEFUL_SET),
    ]


@dataclass(frozen=True, slots=True)
class Stage:
    """The objects, and what of the planner they reach."""

    world: Callable[[], World]
    steps: frozenset[Step]
    actions: frozenset[type]
    kind: str = DEPLOYMENT

    @property
    def workload(self) -> Key:
        """The workload, in the attacker's namespace."""
        return Key(self.kind, "evil", "web")


def _of(kind: str, world: Callable[[], World], *reached: Step | type) -> Stage:
    steps = frozenset(one for one in reached if isinstance(one, Step))
    return Stage(world, steps, frozenset(one for one in reached if isinstance(one, type)), kind)


def _on(reached: Step | type, *more: Step | type, **world: Any) -> Stage:  # noqa: ANN401
    return _of(DEPLOYMENT, lambda: _life(**world), reached, *more)


def _life(
    src: Mapping[str, Any] | None = None,
    spl: Mapping[str, Any] | None = None,
    *,
    without: str = "",
    also: Callable[[], World] | None = None,
) -> World:
    collected: World = [("deployment", source(**(src or {})))]
    if without != "split":
        collected.append(("split", split(**(spl or {}))))
    return [*collected, *(also() if also is not None else ())]


def _parked(*places: str | None) -> World:
    raw = replica_set("web-1", len(places))
    return [("replicaset", raw), *pods(raw, *places)]


def _attached(*places: str | None, pool: str = "", **fields: Any) -> World:  # noqa: ANN401
    raw = replica_set("web-1", len(places), parked=False, **fields)
    return [("replicaset", raw), *pods(raw, *places, pool=pool)]


_FREE = {"mark": False, "paused": False}
_BACK = {"label": False}
_FOUR = (WELL,) * 4
_S = STATEFUL_SET


def _refused() -> World:
    """Return twins of which one is refused a pod since a while."""
    refusal = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "exceeded quota: small",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    world = twins((WELL,) * 3, _FOUR)
    [replica_set] = [
        raw for kind, raw in world if kind == "replicaset" and "on-demand" in raw["metadata"]["name"]
    ]
    replica_set["spec"]["replicas"] += 1
    replica_set["status"]["conditions"] = [refusal]
    return world


def _half_rolled() -> World:
    """Return twins of which the on-demand one has got a template that never comes up, and spot goes."""
    new = replica_set("web-on-demand-2", 1, parked=False, of="web-on-demand", image="web:2", up=0)
    [(_, raw), *old] = twin("on-demand", WELL)
    raw["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2"
    return [("twin", raw), *old, ("replicaset", new), *twin("spot", *(DOOMED,) * 3)]


STAGES: Mapping[str, Stage] = {
    "consider": _on(
        Step.CONSIDER,
        acts.EnsureSplit,
        acts.SetOwnershipMark,
        src=_FREE,
        without="split",
        also=lambda: _attached(*_FOUR),
    ),
    "nothing": _on(Step.NOTHING, src={**_FREE, **_BACK}, without="split", also=lambda: _attached(*_FOUR)),
    "adopt": _on(Step.ADOPT, acts.SetOwnershipMark, src={"mark": False}, also=twins),
    "without a split": _on(
        Step.CREATE_SPLIT,
        acts.EnsureSplit,
        acts.Scale,
        without="split",
        also=lambda: twins((WELL,), (DOOMED,) * 3),
    ),
    "claim": _on(Step.CLAIM, acts.EnsureSplit, spl={"its": False}, also=twins),
    "pause": _on(Step.PAUSE, acts.SetPaused, src={"paused": False}, also=twins),
    "wait": _on(Step.WAIT_CONTROLLER, src={"seen": False}, also=lambda: _attached(*_FOUR)),
    "idle ones first": _on(
        Step.ADOPT_PODS,
        acts.Park,
        also=lambda: [
            *_attached(*_FOUR),
            ("replicaset", replica_set("web-0", 0, parked=False, image="web:0")),
        ],
    ),
    "keep the template": _on(Step.ADOPT_PODS, acts.KeepRevision, also=lambda: _attached(*_FOUR)),
    "make paused twins": _on(
        Step.ADOPT_PODS, acts.ApplyTwin, also=lambda: [*_attached(*_FOUR), *waiting()[:1]]
    ),
    "size the twins": _on(Step.ADOPT_PODS, acts.Scale, also=lambda: [*_attached(*_FOUR), *waiting(2, 2)]),
    "label the pods": _on(Step.ADOPT_PODS, acts.LabelPod, also=lambda: [*_attached(*_FOUR), *waiting()]),
    "let go": _on(
        Step.ADOPT_PODS, acts.OrphanPods, also=lambda: [*_attached(*_FOUR, pool="on-demand"), *waiting()]
    ),
    "not calm": _on(
        Step.ADOPT_PODS, also=lambda: [*_attached(*_FOUR[1:], DOOMED, pool="on-demand"), *waiting()]
    ),
    "leaving": _on(
        Step.CUT_OFF, acts.Park, also=lambda: [*going(_attached(*_FOUR, pool="on-demand")), *waiting()]
    ),
    "finished": _on(Step.RUN, acts.DeletePod, also=lambda: [*finished(orphans(WELL)), *twins(_FOUR, _FOUR)]),
    "adopt the pods": _on(Step.SETTLE, acts.AdoptPods, also=lambda: [*orphans(*_FOUR), *waiting()]),
    "pods with no twin": _on(Step.SETTLE, acts.ApplyTwin, also=lambda: [*orphans(*_FOUR), *waiting()[:1]]),
    "resume the twins": _on(Step.SETTLE, acts.PauseTwin, also=lambda: paused(twins())),
    "source rolls": _on(
        Step.WAIT_ROLLOUT,
        src={"paused": False},
        also=lambda: [
            *_attached(*_FOUR),
            ("replicaset", replica_set("web-2", 1, parked=False, image="web:2", up=0)),
        ],
    ),
    "park": _on(Step.PARK, acts.Park, also=lambda: [*_attached(*_FOUR), *twins()]),
    "make twins": _on(Step.RUN, acts.ApplyTwin, also=lambda: _parked(*_FOUR)),
    "hand over": _on(Step.RUN, acts.Scale, also=lambda: [*_parked(*_FOUR), *twins((), ())]),
    "guard": _on(Step.RUN, acts.SetBudget, src={"karmada": True}, also=lambda: twins(_FOUR, _FOUR)),
    "emergency": _on(Step.RUN, acts.Scale, also=lambda: twins((WELL,), (DOOMED,) * 3)),
    "covered": _on(Step.RUN, acts.SetDeletionCost, also=lambda: twins(_FOUR, (DOOMED,) * 3)),
    "vanished": _on(Step.RUN, acts.DeleteVanishedPod, also=lambda: twins(_FOUR, (GONE,) * 3)),
    "let hints go": _on(Step.RUN, acts.DeletePlaceholder, also=lambda: [*twins(_FOUR, _FOUR), _hint()]),
    "refused": _on(Step.RUN, acts.RetryPods, also=_refused),
    "roll": _on(Step.RUN, acts.ApplyTwin, also=twins),
    "bad template": _on(Step.RUN, acts.RestoreTemplate, also=_half_rolled),
    "pause the twins": _on(Step.OFFBOARD, acts.PauseTwin, src=_BACK, also=twins),
    "let go again": _on(Step.OFFBOARD, acts.OrphanPods, src=_BACK, also=lambda: paused(twins())),
    "cover first": _on(Step.OFFBOARD, acts.Scale, src=_BACK, also=lambda: twins((WELL,), (DOOMED,) * 3)),
    "bring home": _on(
        Step.BRING_HOME, acts.AdoptPods, src=_BACK, also=lambda: [*orphans(*_FOUR), *waiting()]
    ),
    "unbound ones": _on(
        Step.BRING_HOME, acts.DeleteUnboundPod, src=_BACK, also=lambda: [*orphans(*_FOUR, None), *waiting()]
    ),
    "reattach": _on(Step.REATTACH, acts.Reattach, src=_BACK, also=lambda: _parked(*_FOUR)),
    "unpause": _on(Step.UNPAUSE, acts.SetPaused, src=_BACK, also=lambda: [*_attached(*_FOUR), *twins()]),
    "shrink": _on(
        Step.SHRINK_OURS,
        acts.Scale,
        src={**_BACK, "paused": False},
        also=lambda: [*_attached(*_FOUR), *twins()],
    ),
    "clean up": _on(
        Step.CLEAN_UP,
        acts.DeleteTwin,
        acts.SetOwnershipMark,
        acts.HideAvailable,
        src={**_BACK, "paused": False, "karmada": True},
        also=lambda: [*_attached(*_FOUR), *twins((), ())],
    ),
    "old revisions": _on(
        Step.CLEAN_UP,
        acts.Reattach,
        acts.DeleteReplicaSet,
        src={**_BACK, "paused": False},
        also=lambda: [
            *_attached(*_FOUR),
            ("replicaset", replica_set("web-0", 0)),
            ("replicaset", replica_set("web-9", 0, image="web:9")),
            *twins((), ()),
        ],
    ),
    "last traces": _on(
        Step.CLEAN_UP,
        acts.StripOwnershipMark,
        acts.DeleteSplit,
        src={**_BACK, **_FREE},
        also=lambda: _attached(*_FOUR, annotations=MARK),
    ),
    "save": _of(_S, lambda: in_twins(4, saved=0, on_demand=(), spot=()), Step.SAVE, acts.SaveReplicas),
    "follow": _of(_S, lambda: in_twins(9), Step.FOLLOW, acts.SaveReplicas, acts.ShowReplicas),
    "follow the split": _of(_S, lambda: in_twins(shown=9), Step.FOLLOW_SPLIT, acts.SaveReplicas),
    "show": _of(_S, lambda: in_twins(shown=None), Step.SHOW, acts.ShowReplicas),
    "members lost": _of(_S, lambda: in_twins(spot=(DOOMED,)), Step.RUN, acts.Scale),
    "release": _of(
        _S,
        lambda: in_twins(4, left=4, label=False, on_demand=(), spot=()),
        Step.RELEASE,
        acts.ReleaseSource,
        acts.DeleteTwin,
    ),
    "members go home": _of(_S, lambda: in_twins(label=False), Step.HAND_BACK, acts.Scale),
    "wait for a count": _of(_S, lambda: in_twins(saved=0, marked=False, label=False), Step.WAIT_COUNT),
    "place": _of(
        _S, lambda: [("statefulset", stateful_set()), *members(*_FOUR)], Step.CONSIDER, acts.PlaceOrdinals
    ),
    "evict": _of(_S, lambda: placed(WELL, WELL, SPOT, DOOMED), Step.PLACE, acts.PlaceOrdinals),
    "hold room": _of(_S, lambda: placed(WELL, WELL, SPOT, SPOT), Step.PLACE, acts.CreatePlaceholder),
    "let room go": _of(
        _S,
        lambda: [*placed(WELL, WELL, SPOT, SPOT), ("pod", placeholder("on-demand/1/x"))],
        Step.PLACE,
        acts.DeletePlaceholder,
    ),
    "evict now": _of(
        _S, lambda: placed(WELL, SPOT, SPOT, DOOMED, ordinals=(0, 3)), Step.PLACE, acts.EvictPod
    ),
    "members vanished": _of(_S, lambda: placed(GONE, WELL, SPOT, SPOT), Step.PLACE, acts.DeleteVanishedPod),
    "misborn": _of(
        _S, lambda: placed(WELL, SPOT, SPOT, None, born={3: "on-demand"}), Step.PLACE, acts.DeleteUnboundPod
    ),
    "unplace": _of(
        _S,
        lambda: [*placed(WELL, SPOT, SPOT, SPOT, label=False), ("pod", placeholder("spot/3/x"))],
        Step.UNPLACE,
        acts.DeletePlaceholder,
        acts.DeleteSplit,
    ),
}
