"""Splitter inside the story: the real planner, its writes one by one, and the status it persists.

What the reconciler and kube.apply do, without their network: observe, plan, write in order until a
precondition fails, then the Split's status. A crash forgets what is not written yet.
"""

import json
from collections import deque
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Protocol

from model import budgets
from model.cluster import APP, TEMPLATE_HASH, Cluster, Deployment, LostRaceError, ReplicaSet, Split
from model.promises import check_reported
from model.sight import observe
from splitter.core.actions import (
    Action,
    AdoptionAction,
    AdoptPods,
    ApplyTwin,
    CreatePlaceholder,
    DeletePlaceholder,
    DeletePod,
    DeleteReplicaSet,
    DeleteSplit,
    DeleteTwin,
    DeleteUnboundPod,
    DeleteVanishedPod,
    EnsureSplit,
    EvictPod,
    HideAvailable,
    HolderKind,
    KeepRevision,
    LabelPod,
    OrphanPods,
    Park,
    PauseTwin,
    PlaceOrdinals,
    Reattach,
    ReleaseSource,
    RestoreTemplate,
    RetryPods,
    SaveReplicas,
    Scale,
    SetBudget,
    SetDeletionCost,
    SetOwnershipMark,
    SetPaused,
    ShowReplicas,
    StripOwnershipMark,
)
from splitter.core.desired.compare import withdrawn
from splitter.core.labels_annotations import (
    ANNOTATION_REPLICAS,
    ANNOTATION_TAKEN_OVER,
    LABEL_SPLIT,
    SPLIT_PARKED,
)
from splitter.core.labels_annotations.policy import Policy
from splitter.core.labels_annotations.saved import saved_value
from splitter.core.model import Note, Observation, Pool, Rendered, seconds_between
from splitter.core.plan import Plan, PolicyInForce, Rules, lets_go, remembered
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.core.split_status import SplitStatus
from splitter.kube import payloads
from splitter.kube.client import Json
from splitter.report.status import build

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

RETRY_S = 5
BARE = Note(Reason.WRITE_DENIED, "no pods without an owner here", warning=True)
RESYNC_S = 300  # each workload is looked at again so often, as by the settings


def look_again_s(planned: Plan) -> int:
    """Return the whole seconds until splitter looks again although nothing happens; at least one."""
    again_s = RESYNC_S if planned.requeue_after_s is None else planned.requeue_after_s
    return max(1, ceil(min(RESYNC_S, again_s)))


def render(observed: Observation, policy: Policy) -> dict[Pool, Rendered]:
    """Render both twins: a word each, made of the source's template."""
    template = observed.source.template_hash if observed.source else ""
    restarted = f"@{policy.restarted_at}" if policy.restarted_at else ""
    words = {pool: f"{template}{restarted}|{pool.value}" for pool in Pool}
    return {pool: Rendered(json.dumps({"template": word}), word, word) for pool, word in words.items()}


class Judge(Protocol):
    """Looks at each write before it is done."""

    def __call__(self, action: Action, /) -> None:
        """Raise what must never happen."""


def _nobody(_: Action, /) -> None:
    pass


class Splitter:
    """One process of splitter; `cache` is what it sees, the cluster itself unless the story makes it lag."""

    def __init__(self, cluster: Cluster, rules: Rules) -> None:
        self.cluster = cluster
        self.rules = rules
        self.cache = cluster
        self.pending: deque[Action] = deque()
        self.wake_at: int | None = None
        self.last: tuple[Observation, Plan, PolicyInForce] | None = None
        self.lost_races = 0
        self.judge: Judge = _nobody
        self.refused_until = 0
        """Until then the API server takes no writes. (A status is kept in mind until it is written.)"""
        self.clock_off_s = 0
        """Its clock is wrong by so much; the API server's and the kubelets' are right."""
        self.loses_answer: Callable[[], bool] = lambda: False
        """Whether the answer to a write that was done does not come."""
        self.keeps_owners: Callable[[], bool] = lambda: False
        """Whether a policy refuses, in a rehearsal, that pods are let go."""
        self._refused: tuple[Note, datetime] | None = None

    def crash(self) -> None:
        """Forget everything that is not written."""
        self.pending.clear()
        self.last = None
        self._refused = None

    def begin(self) -> Plan:
        """Observe and plan; the writes come with `write_next`."""
        observed = observe(self.cache)
        observed = replace(observed, now=self.cluster.instant(self.cluster.now + self.clock_off_s))
        if self._refused and seconds_between(self._refused[1], observed.now) < self.rules.look_again_s:
            observed = replace(observed, letting_go_refused=self._refused[0])
        in_force = policy_in_force(observed, self.rules.defaults)
        planned = plan(observed, in_force, render(observed, in_force.policy), self.rules)
        if lets_go(planned, observed):
            self._refused = (BARE, observed.now) if self.keeps_owners() else None
            if self._refused:
                observed = replace(observed, letting_go_refused=BARE)
                planned = plan(observed, in_force, render(observed, in_force.policy), self.rules)
        check_reported(observed, planned)
        self.pending = deque(planned.actions)
        self.last = (observed, planned, in_force)
        self.wake_at = (
            self.cluster.now + max(1, round(planned.requeue_after_s)) if planned.requeue_after_s else None
        )
        if not self.pending:
            self._report()
        return planned

    def write_next(self) -> bool:
        """Do the next write of the reconcile; False when it lost a race and the rest was dropped."""
        action = self.pending.popleft()
        self.judge(action)
        if self.cluster.now < self.refused_until:
            self.pending.clear()
            self._remember(Reason.WRITE_DENIED.value)
            self.wake_at = min(self.refused_until, self.cluster.now + RETRY_S)
            return False
        try:
            _write(self.cluster, action, self.last[0] if self.last else None)
        except LostRaceError:
            self.pending.clear()
            self.lost_races += 1
            self._remember()
            return False
        if self.loses_answer():
            self.pending.clear()
            self._remember()
            return False
        if not self.pending:
            self._report()
        return True

    def _report(self) -> None:
        if self.last is not None:
            observed, result, in_force = self.last
            self._show(observed, build(observed, result, in_force, written=True))

    def _remember(self, reason: str = "") -> None:
        if self.last is not None:
            observed, result, _ = self.last
            status = remembered(result, observed)
            self._show(observed, replace(status, reason=reason) if reason else status)

    def _show(self, observed: Observation, status: SplitStatus) -> None:
        split = self.cluster.split
        seen = observed.split
        if split is None or seen is None or split.uid != seen.uid or status is seen.status:
            return  # gone, or nothing new
        split.status = status.to_json()


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise LostRaceError(message)


def _write(cluster: Cluster, action: Action, observed: Observation | None) -> None:  # noqa: C901, PLR0912, PLR0915 - one case a write
    source = cluster.source
    match action:
        case EnsureSplit():
            if cluster.split is None:
                cluster.split = Split(cluster.name("uid-split"), source.uid, action.takes_over)
            cluster.split.owner, cluster.split.takes_over = source.uid, action.takes_over
        case DeleteSplit():
            if observed and observed.split and cluster.split and cluster.split.uid == observed.split.uid:
                cluster.split = None
        case SetOwnershipMark():
            if action.value is None:
                source.annotations.pop(ANNOTATION_TAKEN_OVER, None)
            else:
                source.annotations[ANNOTATION_TAKEN_OVER] = action.value
            source.version = cluster.version()
        case SetBudget():
            if not budgets.write(cluster, action):  # stops nothing else
                cluster.budgets_refused_until = max(
                    cluster.budgets_refused_until or 0, cluster.now + budgets.RETRY_S
                )
        case SetPaused():
            _expect(action.resource_version == str(source.version), "source changed")
            cluster.change_spec(source, paused=action.paused, paused_by_us=action.paused)
        case SaveReplicas():
            _expect(action.resource_version == str(source.version), "source changed")
            source.annotations[ANNOTATION_REPLICAS] = saved_value(action.replicas, action.left)
            source.version = cluster.version()
        case ShowReplicas():
            if cluster.split is not None:
                cluster.split.replicas = action.replicas
        case ReleaseSource():
            source.annotations.pop(ANNOTATION_TAKEN_OVER, None)
            source.annotations.pop(ANNOTATION_REPLICAS, None)
            source.version = cluster.version()
        case Scale():
            _scale(cluster, action)
        case ApplyTwin():
            _apply_twin(cluster, action)
        case DeleteTwin():
            twin = next((twin for twin in cluster.twins.values() if twin.uid == action.uid), None)
            if twin is not None and twin.pool is not None:
                cluster.delete_twin(twin.pool)
        case DeleteUnboundPod():
            pod = cluster.pods.get(action.pod)
            if pod is not None:
                cluster.terminate(pod)
        case PlaceOrdinals() | EvictPod() | CreatePlaceholder() | DeletePlaceholder():
            raise AssertionError(f"no StatefulSet is placed in a story: {action}")
        case RestoreTemplate():
            _restore_template(cluster, action)
        case RetryPods() | HideAvailable():
            raise AssertionError(f"no part of what a plan decides: {action}")
        case StripOwnershipMark():
            _replica_set(cluster, action.name, None).marked = False
        case PauseTwin() | LabelPod() | KeepRevision() | OrphanPods() | AdoptPods() | DeletePod():
            _adopt(cluster, action, observed)
        case Park() | Reattach() | DeleteReplicaSet():
            _write_replica_set(cluster, action)
        case SetDeletionCost():
            pod = cluster.pods.get(action.pod)
            if pod is not None:
                pod.cost, pod.cost_before = action.cost, action.remember
                pod.cost_at = None if action.remember is None else cluster.now
        case DeleteVanishedPod():
            pod = cluster.pods.get(action.pod)
            if pod is not None and action.node not in cluster.nodes:
                cluster.terminate(pod)


def _replica_set(cluster: Cluster, name: str, version: str | None) -> ReplicaSet:
    rs = next((rs for rs in cluster.replica_sets.values() if rs.name == name), None)
    if rs is None or version not in {None, str(rs.version)}:
        raise LostRaceError(name)
    return rs


def _scale(cluster: Cluster, action: Scale) -> None:
    if action.kind is HolderKind.REPLICA_SET:
        rs = _replica_set(cluster, action.name, action.resource_version)
        rs.spec, rs.version = action.replicas, cluster.version()
        return
    twin = next((twin for twin in cluster.twins.values() if twin.name == action.name), None)
    if twin is None or action.resource_version not in {None, str(twin.version)}:
        raise LostRaceError(action.name)
    cluster.change_spec(twin, replicas=action.replicas)


def _apply_twin(cluster: Cluster, action: ApplyTwin) -> None:
    template = json.loads(action.manifest_json)["template"]
    twin = cluster.twins.get(action.pool)
    if twin is None:
        _expect(action.resource_version is None, "twin is gone")
        name = f"{cluster.source.name}-{action.pool.value}"
        twin = Deployment(
            name,
            cluster.name(f"uid-{name}"),
            action.pool,
            template,
            0,
            0,
            0,
            0,
            generation=0,
            history_limit=2,
        )
        cluster.twins[action.pool] = twin
    else:
        _expect(action.resource_version in {None, str(twin.version)}, "twin changed")
    cluster.change_spec(
        twin,
        template=template,
        rendered_hash=action.hash,
        made_of=action.hash,
        edited=False,
        robbed=False,
        paused=action.paused,
        replicas=action.replicas,
        max_surge=action.max_surge,
        max_unavailable=action.max_unavailable,
    )


def _restore_template(cluster: Cluster, action: RestoreTemplate) -> None:
    twin = next((twin for twin in cluster.twins.values() if twin.name == action.twin), None)
    good = _replica_set(cluster, action.replica_set, None)
    if twin is None or action.resource_version != str(twin.version):
        raise LostRaceError(action.twin)
    restored = withdrawn(twin.rendered_hash if action.tried else "")
    cluster.change_spec(twin, template=good.template, rendered_hash=restored, edited=False)


def _adopt(cluster: Cluster, action: AdoptionAction, observed: Observation | None) -> None:
    match action:
        case PauseTwin():
            twin = next((twin for twin in cluster.twins.values() if twin.name == action.name), None)
            if twin is None or action.resource_version != str(twin.version):
                raise LostRaceError(action.name)
            cluster.change_spec(twin, paused=action.paused)
        case LabelPod():
            pod = cluster.pods.get(action.pod)
            if pod is not None:
                pod.label = action.pool
                # By its own labels it is one again that answers its users; not if its hash is another.
                pod.taken_out = pod.taken_out and (action.pool is None or pod.hash == "debug")
        case DeletePod():
            pod = cluster.pods.get(action.pod)
            if pod is not None:
                cluster.terminate(pod)
        case KeepRevision():
            _keep(cluster, action, observed)
        case OrphanPods():
            rs = _replica_set(cluster, action.name, action.resource_version)
            rs.deleting, rs.deleted, rs.version = True, cluster.now, cluster.version()
        case AdoptPods():
            _take(cluster, action, observed)


def _take(cluster: Cluster, action: AdoptPods, observed: Observation | None) -> None:
    """Create the ReplicaSet that adopts pods, with the counts that the real payload has."""
    owner = cluster.source if action.pool is None else cluster.twins.get(action.pool)
    source = observed.source if observed else None
    if owner is None or source is None:
        raise LostRaceError(action.name)
    _expect(owner.paused, f"{owner.name} was resumed")
    _free(cluster, action.name)
    template = owner.template
    if action.template_of is not None:
        template = _replica_set(cluster, action.template_of, None).template
    live = _live(owner)
    body = payloads.adopting(source, action, live, live)
    made = cluster.adopting(owner, action.name, template, body["spec"]["replicas"], action.hashes)
    _remember(made, body)


def _live(owner: Deployment) -> Json:
    """Return a Deployment as far as the payloads of splitter's writes look at one."""
    rolling = {"maxSurge": owner.max_surge, "maxUnavailable": owner.max_unavailable}
    labels = {"metadata": {"labels": {APP: "web"}}}
    spec = {
        "replicas": owner.replicas,
        "strategy": {"rollingUpdate": rolling},
        "selector": {},
        "template": labels,
    }
    return {"metadata": {"name": owner.name, "uid": owner.uid}, "spec": spec}


def _remember(rs: ReplicaSet, body: Json) -> None:
    """Let a ReplicaSet bear the counts of its Deployment that a payload has, if it has any."""
    annotations = body["metadata"]["annotations"]
    if payloads.DESIRED in annotations:
        rs.desired_replicas = int(annotations[payloads.DESIRED])
        rs.max_replicas = int(annotations[payloads.MOST])


def _keep(cluster: Cluster, action: KeepRevision, observed: Observation | None) -> None:
    if action.replica_set is None:
        template = observed.source.template_hash if observed and observed.source else ""
    else:
        template = _replica_set(cluster, action.replica_set, None).template
    _free(cluster, action.name)
    kept = action.name.rpartition("-")[2]
    made = cluster.adopting(cluster.source, action.name, template, 0, (kept,))
    made.controlled, made.desired_replicas = False, None
    made.labels = {TEMPLATE_HASH: kept, LABEL_SPLIT: SPLIT_PARKED}


def _free(cluster: Cluster, name: str) -> None:
    _expect(all(rs.name != name for rs in cluster.replica_sets.values()), f"{name} exists")


def _write_replica_set(cluster: Cluster, action: Park | Reattach | DeleteReplicaSet) -> None:
    match action:
        case Park():
            rs = _replica_set(cluster, action.name, action.resource_version)
            for key in action.strip:
                rs.labels.pop(key, None)
            rs.labels[LABEL_SPLIT] = SPLIT_PARKED
            rs.owner, rs.controlled = cluster.source.uid, False
            rs.version = cluster.version()
        case Reattach():
            rs = _replica_set(cluster, action.name, action.resource_version)
            _expect(cluster.source.paused or not action.active, f"{cluster.source.name} was resumed")
            rs.labels |= dict(action.labels)
            rs.labels.pop(LABEL_SPLIT, None)
            _remember(rs, payloads.reattaching(action, _live(cluster.source)))
            rs.marked = False
            rs.version = cluster.version()
        case DeleteReplicaSet():
            rs = _replica_set(cluster, action.name, action.resource_version)
            cluster.remove_replica_set(rs)
