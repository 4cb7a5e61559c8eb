"""Finds why a replica is not running, other than missing node capacity.

`kube.parse` and `kube.observe` call one function a source of knowledge (kubelet, scheduler, ReplicaSet
controller, our own view of the nodes); each returns a `Trouble`, or None when nothing but nodes is
missing. Missing nodes are what rebalancing is for; all else is the application's problem or its
namespace's, and `rebalance.inputs` keeps it out of the counts that move replicas (docs/adr/0013). `troubles`
makes the sentences; `without_a_node` counts the replicas that want nothing but a node. Never reads a cluster;
a detail names no pod and no time that changes from try to try.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC

from splitter.core.clock import Waits
from splitter.core.model import TwinView
from splitter.core.nodes.facts import Health, NodeState
from splitter.core.nodes.fit import NodeTerm, PodRequest, asks_for, may_run_on, repels
from splitter.core.nodes.spot_supply import lasts
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Replica, ReplicaState, Trouble

_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_CONFIG = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "PostStartHookError",
        "RunContainerError",
        "StartError",
    }
)
# A first restart may be an accident at start-up; from the second on the kubelet backs off.
_RESTARTS = 2

# What the kubelet puts before the registry's own words while it backs off.
_BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*"(?::\s*(?:ErrImagePull:\s*)?)?')
# What differs with each try, or each pod of a template: the port that a question was asked from, a pod's name
# and UID, the id of an attempt. Seen with containerd 2.3.
_EACH_TIME = (
    (re.compile(r"(\d|\]):\d+->"), r"\1->"),
    (re.compile(r' Pod "[^"]*\([0-9a-f-]{36}\)"'), " Pod"),
    (re.compile(r' exec "[0-9a-f]{64}"'), " exec"),
)
# How a container ends that has never begun; the kubelet says RunContainerError or CrashLoopBackOff in turn.
_NEVER_BEGAN = frozenset({"StartError", "ContainerCannotRun"})
# What the API server puts before its reason: the name of the pod, another one with each try.
_REFUSED_POD = re.compile(r'^pods? "[^"]*" is (?:forbidden|invalid): ', re.IGNORECASE)
_NO_VOLUME = re.compile(
    r'persistentvolumeclaim "[^"]+" (?:not found|is being deleted|bound to non-existent persistentvolume)'
    r"|unbound immediate PersistentVolumeClaims"
    r'|storageclass\S* "[^"]+" not found',
    re.IGNORECASE,
)
_VOLUME_ELSEWHERE = re.compile(
    r"\d+ node\(s\) (?:had volume node affinity conflict|didn't match PersistentVolume's node affinity"
    r"|had no available volume zone|didn't find available persistent volumes to bind)"
)
# What another node would cure: then the volume alone is not to blame.
_NO_HEADROOM = re.compile(
    r"Insufficient |Too many pods|free ports|max volume count|anti-affinity|topology spread constraints"
)
_NAMED = 3


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """What a container's status says: why it waits, how it ended last."""

    name: str
    image: str = ""
    waiting: str = ""
    message: str = ""
    restarts: int = 0
    exit_code: int = 0
    ended: str = ""
    """Why it ended last: `Error`, `OOMKilled`."""
    last_words: str = ""
    """What was said of that end: by the runtime where it never began, else by the application itself."""


def of_containers(containers: Iterable[ContainerFacts]) -> Trouble | None:
    """Return what the kubelet says about the first container of an unready pod that cannot run.

    >>> of_containers([ContainerFacts("web", restarts=3, exit_code=137, ended="OOMKilled")]).detail
    'container web ends with exit code 137 (OOMKilled)'
    """
    return next((trouble for trouble in map(_of_container, containers) if trouble is not None), None)


def _of_container(container: ContainerFacts) -> Trouble | None:
    if container.waiting in _IMAGE:
        said = _lasting(_BACK_OFF.sub("", container.message)).strip()
        return Trouble(Reason.IMAGE_PULL_FAILED, f'"{container.image}"{": " if said else ""}{said}')
    if container.waiting in _CONFIG:
        said = container.message or container.waiting
        return Trouble(Reason.CONTAINER_CONFIG_INVALID, f"container {container.name}: {_lasting(said)}")
    if container.waiting == "CrashLoopBackOff" and container.ended in _NEVER_BEGAN:
        said = container.last_words or container.ended
        return Trouble(Reason.CONTAINER_CONFIG_INVALID, f"container {container.name}: {_lasting(said)}")
    crashes = container.restarts >= _RESTARTS and container.exit_code != 0
    if container.waiting == "CrashLoopBackOff" or crashes:
        why = f" ({container.ended})" if container.ended else ""
        detail = f"container {container.name} ends with exit code {container.exit_code}{why}"
        return Trouble(Reason.CRASH_LOOPING, detail)
    return None


def _lasting(said: str) -> str:
    for pattern, rest in _EACH_TIME:
        said = pattern.sub(rest, said)
    return said


def of_scheduling(reason: str, message: str) -> Trouble | None:
    """Return what keeps a pod from every node, or its volume from the nodes that are left.

    `reason` and `message` are those of the condition PodScheduled=False. None: nodes are missing, or
    taints and affinity keep them away, which the message does not tell (`of_nodes` does).
    """
    if reason == "SchedulingGated":
        return Trouble(Reason.SCHEDULING_GATED, "spec.schedulingGates is not empty")
    if (missing := _NO_VOLUME.search(message)) is not None:
        return Trouble(Reason.VOLUME_UNAVAILABLE, missing.group())
    if _VOLUME_ELSEWHERE.search(message) and not _NO_HEADROOM.search(message):
        return Trouble(Reason.VOLUME_ZONE_CONFLICT, "the nodes that would do cannot reach its volume")
    return None


def of_refusal(message: str) -> Trouble:
    """Return why the API server takes no pod of a ReplicaSet; `message` is that of its ReplicaFailure.

    >>> of_refusal('pods "web-x2v" is forbidden: exceeded quota: small, requested: pods=1').detail
    'exceeded quota: small, requested: pods=1'
    """
    said = _REFUSED_POD.sub("", message)
    reason = Reason.QUOTA_EXCEEDED if "exceeded quota" in said else Reason.PODS_REFUSED
    return Trouble(reason, said)


def of_nodes(pod: PodRequest, nodes: Iterable[NodeState], *, spot: bool) -> Trouble | None:
    """Return why none of a pool's healthy nodes takes such a pod, however empty they are.

    None when one would, or when no node of the pool is healthy: then capacity is what is missing. And when
    there are more nodes than such a pod is held against (`PodRequest.most_nodes`): then nobody knows. The
    scheduler's message cannot tell: it counts the other pool's nodes and those that are going as well,
    and (1.36) names no taint.
    """
    kinds: dict[object, NodeState] = {}  # one node of each kind tells as much as all of them
    count: Counter[object] = Counter()
    labels, by_name = _labels_asked_for(pod), any(term.fields for term in pod.affinity)
    for node in nodes:
        if node.is_spot is not spot or node.health is not Health.HEALTHY or not all(map(lasts, node.taints)):
            continue  # a node that has just registered is Ready before its taints are gone
        kind = (node.taints, *map(node.labels.get, labels), node.name if by_name else "")
        if kind not in kinds:
            if may_run_on(pod, node):
                return None
            kinds[kind] = node
        count[kind] += 1
        if count.total() > pod.most_nodes:
            return None
    if not kinds:
        return None
    there = f"{count.total()} healthy {'spot' if spot else 'on-demand'} nodes"
    matching = {kind: node for kind, node in kinds.items() if asks_for(pod, node)}
    if matching:
        taints = {str(taint) for node in matching.values() for taint in node.taints if repels(taint, pod)}
        match_and = "match its affinity and " if len(matching) < len(kinds) else ""
        tainted = f"{sum(count[kind] for kind in matching)} of {there} {match_and}have a taint"
        detail = f"{tainted} that it does not tolerate: {_listed(sorted(taints))}"
        return Trouble(Reason.NODES_UNSUITABLE, detail)
    unmet = _unmet(pod, list(kinds.values()))
    asked = f"have {_listed(unmet)}" if unmet else "match its node selector and affinity"
    return Trouble(Reason.NODES_UNSUITABLE, f"0 of {there} {asked}")


def _labels_asked_for(pod: PodRequest) -> tuple[str, ...]:
    expressions = (expression for term in pod.affinity for expression in term.expressions)
    return tuple({*pod.node_selector, *(expression.key for expression in expressions)})


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more


def _unmet(pod: PodRequest, nodes: Sequence[NodeState]) -> list[str]:
    """Return what the pod asks for in each of its terms and no node has: the user's wish, not our pool's."""
    unmet = [
        f"{key}={value}"
        for key, value in pod.node_selector.items()
        if all(node.labels.get(key) != value for node in nodes)
    ]
    every = [dict.fromkeys(term.expressions) for term in pod.affinity]
    for one in (one for one in every[0] if all(one in expressions for expressions in every)) if every else ():
        if not any(NodeTerm((one,)).matches(node) for node in nodes):
            values = f" ({_listed(one.values)})" if one.values else ""
            unmet.append(f"{one.key} {one.operator}{values}")
    return sorted(unmet)


def trouble_of(pod: Replica, excluded: Trouble | None, waits: Waits, limit_s: float) -> Trouble | None:
    """Return what is wrong with one replica: what the kubelet says at once, what may pass after the limit.

    `excluded`: why no node of its twin's pool takes it.
    """
    if pod.node_status is NodeStatus.SOUND and pod.ready_since is None:
        if pod.trouble is not None:
            return pod.trouble
        since = pod.unready_since
        if since is not None and waits.past(since, limit_s):
            return Trouble(Reason.NOT_READY, f"since {since.astimezone(UTC):%H:%M:%SZ}")
    if pod.node_status is NodeStatus.UNBOUND:
        waits_since = pod.unschedulable_since or (pod.created if pod.state is ReplicaState.HINDERED else None)
        if waits.past(waits_since, limit_s):
            return pod.trouble or excluded
    return None


def why_unready(pod: Replica, waits: Waits, grace_s: float) -> str:
    """Return what holds up a pod that is not ready; empty: it may be ready in a moment.

    What kubelet or scheduler say of it counts at once, the lack of a node or of readiness after the grace.
    """
    if pod.trouble is not None:
        return pod.trouble.detail
    unbound_since = pod.unschedulable_since or pod.created
    if pod.node is None and waits.past(unbound_since, grace_s):
        return "it finds no node"
    if pod.unready_since is not None and waits.past(pod.unready_since, grace_s):
        return f"it has a node, and is not ready since {pod.unready_since.astimezone(UTC):%H:%M:%SZ}"
    return ""


def without_a_node(pods: Iterable[Replica], waits: Waits, grace_s: float) -> int:
    """Count the pods that no node has had room for within the grace, and that another node would help."""
    return sum(pod.state is not ReplicaState.HINDERED and pod.is_stuck(waits, grace_s) for pod in pods)


def hindered(twin: TwinView) -> int:
    """Count a twin's replicas that moving would not help: refused, or waiting for something of their own."""
    return sum(rs.refused for rs in twin.replica_sets) + sum(
        pod.state is ReplicaState.HINDERED for pod in twin.pods
    )


def over_quota(twin: TwinView) -> int:
    """Count a twin's replicas that a quota keeps from being created: any place in it would let one run."""
    sets = (rs for rs in twin.replica_sets if rs.refusal and rs.refusal.reason is Reason.QUOTA_EXCEEDED)
    return sum(rs.refused for rs in sets)


def unplaceable(twin: TwinView) -> Trouble | None:
    """Return why the nodes that are there do not take a twin's pods; None: they are only too few, or full."""
    if twin.excluded is not None:
        return twin.excluded
    waiting = [pod for pod in twin.pods if pod.counts and pod.unschedulable_since is not None]
    troubles = [pod.trouble for pod in waiting if pod.state is not ReplicaState.HINDERED]
    return next((one for one in troubles if one is not None), None)
