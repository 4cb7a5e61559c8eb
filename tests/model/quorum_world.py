"""A split StatefulSet in memory: its objects, the StatefulSet controller, scheduler, kubelets, and splitter.

As `cluster` and `controllers` for Deployments, and smaller: a StatefulSet holds its pods itself. The rules
are those of pkg/controller/statefulset of Kubernetes 1.36: one pod a name, highest ordinals first, one at a
time where it is OrderedReady, rolls from the top. Time is whole seconds; a template is a word.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from splitter.core.actions import (
    Action,
    ApplyTwin,
    DeleteSplit,
    DeleteTwin,
    DeleteVanishedPod,
    EnsureSplit,
    ReleaseSource,
    RestoreTemplate,
    SaveReplicas,
    Scale,
    SetOwnershipMark,
    ShowReplicas,
)
from splitter.core.desired.compare import withdrawn
from splitter.core.labels_annotations import (
    ANNOTATION_REPLICAS,
    ANNOTATION_TAKEN_OVER,
    LABEL_SPLIT,
    SPOT_ORDINALS,
)
from splitter.core.labels_annotations.policy import Policy
from splitter.core.labels_annotations.saved import parse_saved, saved_value
from splitter.core.model import (
    Attachment,
    NodeStatus,
    Observation,
    PodView,
    Pool,
    Rendered,
    ReplicaSetView,
    SourceView,
    Trouble,
    TwinView,
)
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.reasons import Reason
from splitter.core.stateful import StatefulView
from stories.cluster import START, LostRaceError, Node, Split, copied
from stories.sight import split_view

KEY = Key(STATEFUL_SET, "shop", "db")
START_S, STOP_S, COLLECTED_S = 5, 2, 60
SILENT_S = 300  # so long Kubernetes leaves pods on a node that says nothing
NEVER = 10**9
MAY_RUN_S = 40  # so long a kubelet whose Node object was deleted is given to show itself


@dataclass
class Member:
    """One pod."""

    owner: str  # the name of its StatefulSet
    ordinal: int
    uid: str
    template: str
    created: int
    pool: Pool | None = None
    node: str | None = None
    ready_since: int | None = None
    ready_due: int | None = None
    unschedulable_since: int | None = None
    ends: int | None = None
    asked: int | None = None  # when its end was asked for
    unready_since: int | None = None
    lost: int | None = None  # since when its node is gone

    @property
    def active(self) -> bool:
        """Whether it is not ending."""
        return self.ends is None


@dataclass
class StatefulSet:
    """The source or a twin."""

    name: str
    uid: str
    pool: Pool | None
    template: str
    replicas: int
    version: int
    ordered: bool = False
    first: int = 0
    partition: int = 0
    old_template: str = ""  # what a partition keeps
    generation: int = 1
    observed: int = 0
    status_replicas: int = 0
    status_available: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    rendered_hash: str = ""
    writer: str = ""


class Quorum:
    """All objects, and a clock."""

    def __init__(self, replicas: int, *, ordered: bool = False) -> None:
        self.now = 0
        self.versions = 0
        self.born = 0
        self.nodes: dict[str, Node] = {}
        self.seen_nodes: dict[str, Node] = {}
        self.missed: dict[str, int] = {}
        """When a node went that nothing was wrong with: its kubelet may run its members on."""
        self.members: dict[str, Member] = {}
        self.stop_s = STOP_S
        self.quota: int | None = None
        self.local_volumes = False
        """Whether each member has a volume on the node that it stood on first; it goes in a scale-down."""
        self.volumes: dict[tuple[str, int], str] = {}
        self.crashing: set[tuple[str, int]] = set()
        """Members that never become ready, by StatefulSet and ordinal."""
        self.tolerant = False
        """Whether pods tolerate a node that is not ready for ever: `tolerations: [{operator: Exists}]`."""
        self.twins: dict[Pool, StatefulSet] = {}
        self.split: Split | None = None
        self.source = StatefulSet("db", "uid-db", None, "v1", replicas, self.version(), ordered)

    def version(self) -> int:
        """Return the next resourceVersion."""
        self.versions += 1
        return self.versions

    @property
    def sets(self) -> list[StatefulSet]:
        """The source and its twins."""
        return [self.source, *self.twins.values()]

    @property
    def wanted(self) -> int:
        """N: what was saved, or what the source says."""
        saved = parse_saved(self.source.annotations.get(ANNOTATION_REPLICAS))
        return saved.replicas if saved is not None else self.source.replicas

    def instant(self, at: int) -> datetime:
        """Return a time of the story as an instant."""
        return START + timedelta(seconds=at)

    def of(self, owner: StatefulSet) -> list[Member]:
        """Return the pods of a StatefulSet, lowest ordinal first."""
        collected = [member for member in self.members.values() if member.owner == owner.name]
        return sorted(collected, key=lambda member: member.ordinal)

    def serves(self, member: Member) -> bool:
        """Whether it truly answers, doomed or not."""
        node = self.nodes.get(member.node or "")
        return member.active and member.ready_since is not None and node is not None and node.ready

    def available(self, member: Member) -> bool:
        """Whether it answers and is to stay."""
        return self.serves(member) and not self.nodes[member.node or ""].doomed

    def change(self, owner: StatefulSet, **changes: object) -> None:
        """Write a spec."""
        for name, value in changes.items():
            if not hasattr(owner, name):
                raise AttributeError(name)
            setattr(owner, name, value)
        owner.generation += 1
        owner.version = self.version()

    # What people and clouds do.

    def add_node(self, name: str, *, spot: bool, slots: int = 40) -> None:
        """Bring a node."""
        self.born += 1
        self.nodes[name] = self.seen_nodes[name] = Node(name, f"uid-{name}-{self.born}", spot, slots)

    def vanish(self, *names: str) -> None:
        """Take nodes away."""
        for name in names:
            node = self.nodes.pop(name)
            if node.ready and not node.doomed:
                self.missed[name] = self.now
        for member in self.members.values():
            if member.node in names and member.ends is not None:
                member.ends = self.now + COLLECTED_S

    def notice(self, *names: str) -> None:
        """Announce that nodes go."""
        for name in names:
            self.nodes[name].doomed = True

    def withdraw(self, *names: str) -> None:
        """Take a notice back, or uncordon."""
        for name in names:
            self.nodes[name].doomed = False

    def silence(self, *names: str) -> None:
        """Let nodes say nothing any more: their pods are not ready, and none of them ends."""
        for name in names:
            self.nodes[name].ready, self.nodes[name].unready_since = False, self.now
        for member in self.members.values():
            if member.node in names:
                member.ready_since, member.ready_due, member.unready_since = None, None, self.now
                member.ends = NEVER if member.ends is not None else None

    def speak(self, *names: str) -> None:
        """Let silent nodes come back: what was to end there ends, the others start."""
        for name in names:
            self.nodes[name].ready, self.nodes[name].unready_since = True, None
        for member in self.members.values():
            if member.node in names and not member.active:
                member.ends = self.now + self.stop_s
            elif member.node in names:
                member.ready_due = self.now + START_S

    def evict(self, *names: str) -> None:
        """Drain nodes: end all members there that can end."""
        for member in self.members.values():
            if member.active and member.node in names:
                self.terminate(member)

    def label(self, *, on: bool) -> None:
        """Set the label, or take it away."""
        if on:
            self.source.labels[LABEL_SPLIT] = "enabled"
        else:
            self.source.labels.pop(LABEL_SPLIT, None)
        self.source.version = self.version()

    def scale(self, replicas: int, writer: str = "kubectl") -> None:
        """Scale the source as `writer` does; the number that is there already changes nothing."""
        if self.source.replicas != replicas:
            self.change(self.source, replicas=replicas, writer=writer)

    def scale_split(self, replicas: int) -> None:
        """Scale the Split."""
        if self.split is not None:
            self.split.replicas = replicas

    def replaced(self, replicas: int) -> None:
        """Run `kubectl replace` with a manifest that knows nothing of splitter."""
        self.source.labels.clear()
        self.source.annotations.clear()
        self.change(self.source, replicas=replicas, writer="kubectl-replace")

    def delete_twin(self, pool: Pool) -> None:
        """Delete a twin: its pods go with it."""
        twin = self.twins.pop(pool)
        for member in self.of(twin):
            self.terminate(member)

    def terminate(self, member: Member) -> None:
        """Begin the end of a pod."""
        if member.ends is None:
            node, member.asked = self.nodes.get(member.node or ""), self.now
            if node is None:
                member.ends = self.now + (0 if member.node is None else COLLECTED_S)
            else:
                member.ends = self.now + self.stop_s if node.ready else NEVER
            member.ready_since = None


# What Kubernetes does.


def sync(quorum: Quorum, owner: StatefulSet) -> bool:
    """Do one step of the StatefulSet controller."""
    pods = quorum.of(owner)
    _delete_volumes(quorum, owner, pods)
    status = (len(pods), sum(pod.active and pod.ready_since is not None for pod in pods))
    if (owner.observed, owner.status_replicas, owner.status_available) != (owner.generation, *status):
        owner.observed, (owner.status_replicas, owner.status_available) = owner.generation, status
        owner.version = quorum.version()
        return True
    wanted = range(owner.first, owner.first + owner.replicas)
    there = {pod.ordinal: pod for pod in pods}
    changed = False
    for ordinal in wanted:
        pod = there.get(ordinal)
        if pod is None and (quorum.quota is None or len(quorum.members) < quorum.quota):
            _create(quorum, owner, ordinal)
            changed = True
        if owner.ordered and (pod is None or not pod.active or pod.ready_since is None):
            return changed
    for pod in reversed(pods):
        if pod.ordinal in wanted:
            continue
        if pod.active:
            quorum.terminate(pod)
            changed = True
        if owner.ordered:
            return changed
    if changed or any(ordinal not in there for ordinal in wanted):
        return changed
    return _roll(quorum, owner, [there[ordinal] for ordinal in wanted])


def _delete_volumes(quorum: Quorum, owner: StatefulSet, pods: list[Member]) -> None:
    """Delete the volumes of members that were scaled away and have ended: `whenScaled: Delete`."""
    if owner.pool is None:
        return
    kept = {*range(owner.first, owner.first + owner.replicas), *(pod.ordinal for pod in pods)}
    for name, ordinal in list(quorum.volumes):
        if name == owner.name and ordinal not in kept:
            del quorum.volumes[name, ordinal]


def _create(quorum: Quorum, owner: StatefulSet, ordinal: int) -> None:
    quorum.born += 1
    held_back = ordinal - owner.first < owner.partition and owner.old_template
    template = owner.old_template if held_back else owner.template
    uid = f"uid-{quorum.born}"
    quorum.members[uid] = Member(owner.name, ordinal, uid, template, quorum.now, owner.pool)


def _roll(quorum: Quorum, owner: StatefulSet, pods: list[Member]) -> bool:
    for pod in reversed(pods):
        if pod.ordinal - owner.first < owner.partition:
            return False
        if pod.active and pod.template != owner.template:
            quorum.terminate(pod)
            return True
        if not pod.active or pod.ready_since is None:
            return False
    return False


def schedule(quorum: Quorum) -> bool:
    """Bind every pod that finds a node; a source's own go to on-demand."""
    changed = False
    for pod in quorum.members.values():
        if pod.node is not None or not pod.active:
            continue
        fitting = sorted(
            node.name
            for node in quorum.nodes.values()
            if node.name == quorum.volumes.get((pod.owner, pod.ordinal), node.name)
            if (quorum.tolerant or (node.ready and not node.doomed)) and node.spot == (pod.pool is Pool.SPOT)
        )
        if fitting:
            used = [other.node for other in quorum.members.values()]
            pod.node = min(fitting, key=lambda name: (used.count(name), name))
            pod.unschedulable_since, pod.ready_due = None, quorum.now + START_S
            pod.unready_since = quorum.now
            if quorum.local_volumes:
                quorum.volumes.setdefault((pod.owner, pod.ordinal), pod.node)
            changed = True
        elif pod.unschedulable_since is None:
            pod.unschedulable_since, changed = quorum.now, True
    return changed


def run_kubelets(quorum: Quorum) -> bool:
    """Let pods become ready and end where it is time."""
    changed = False
    for pod in list(quorum.members.values()):
        if pod.ends is not None and quorum.now >= pod.ends:
            del quorum.members[pod.uid]
            changed = True
        elif pod.active and pod.node is not None and pod.node not in quorum.nodes:
            # The garbage collector comes where splitter does not.
            if pod.lost is None:
                pod.lost = quorum.now
            elif quorum.now >= pod.lost + COLLECTED_S:
                del quorum.members[pod.uid]
                changed = True
        elif _is_to_leave(quorum, pod):
            quorum.terminate(pod)
            changed = True
        elif is_startable(quorum, pod) and pod.ready_due is not None and quorum.now >= pod.ready_due:
            pod.ready_since, pod.unready_since, changed = quorum.now, None, True
    return changed


def _is_to_leave(quorum: Quorum, pod: Member) -> bool:
    """Whether Kubernetes asks for its end, since its node has said nothing for long."""
    node = quorum.nodes.get(pod.node or "")
    silent_since = node.unready_since if node is not None else None
    if quorum.tolerant or not pod.active or silent_since is None:
        return False
    return quorum.now >= silent_since + SILENT_S


def is_startable(quorum: Quorum, pod: Member) -> bool:
    """Whether it may become ready."""
    here = pod.node in quorum.nodes and quorum.nodes[pod.node].ready
    fails = "broken" in pod.template or (pod.owner, pod.ordinal) in quorum.crashing
    return pod.active and pod.ready_since is None and here and not fails


# What splitter sees.


def observe(quorum: Quorum) -> Observation:
    """Return everything that one reconcile may know."""
    source, split = quorum.source, quorum.split
    return Observation(
        unguardable="nobody may write budgets here",
        key=KEY,
        now=quorum.instant(quorum.now),
        source=_source(quorum),
        split=split_view(split),
        replica_sets=(_itself(quorum),),
        on_demand=_twin(quorum, quorum.twins.get(Pool.ON_DEMAND)),
        spot=_twin(quorum, quorum.twins.get(Pool.SPOT)),
        fit_spot=sum(10 for node in quorum.nodes.values() if node.spot and node.ready and not node.doomed),
        namespace_annotations={} if source.uid else None,
    )


def _source(quorum: Quorum) -> SourceView:
    source = quorum.source
    saved = parse_saved(source.annotations.get(ANNOTATION_REPLICAS))
    observed = source.observed >= source.generation
    return SourceView(
        key=KEY,
        uid=source.uid,
        resource_version=str(source.version),
        generation=source.generation,
        replicas=saved.replicas if saved else source.replicas,
        max_surge=1,
        max_unavailable=1,
        paused=False,
        observed=observed,
        template_hash=source.template,
        labels=dict(source.labels),
        annotations={**source.annotations, "splitter.io/mode": "twins"},
        selector_keys=("app",),
        manifest_json=json.dumps({"template": source.template}),
        rollout_complete=observed,
        all_available=source.status_available == source.replicas,
        stateful=StatefulView(
            spec_replicas=source.replicas,
            status_replicas=source.status_replicas,
            available_replicas=source.status_available,
            created=quorum.instant(0),
            saved=saved.replicas if saved else None,
            left=saved.left if saved else 0,
            writer=source.writer,
            partition=source.partition,
            service="db",
        ),
    )


def _itself(quorum: Quorum) -> ReplicaSetView:
    source, pods = quorum.source, _pods(quorum, quorum.source)
    counted = sum(pod.counts for pod in pods)
    seen = source.observed >= source.generation
    return ReplicaSetView(
        name=source.name,
        uid=source.uid,
        resource_version=str(source.version),
        template_hash=source.template,
        spec_replicas=source.replicas,
        status_replicas=counted if seen else max(counted, source.status_replicas),
        available_replicas=source.status_available,
        created=quorum.instant(0),
        attachment=Attachment.PARKED,
        first_ordinal=source.first,
        rolls=not seen
        or any(
            pod.active and pod.template != source.template and pod.ordinal >= source.partition
            for pod in quorum.of(source)
        ),
        pods=pods,
    )


def _twin(quorum: Quorum, twin: StatefulSet | None) -> TwinView | None:
    if twin is None or twin.pool is None:
        return None
    seen = twin.observed >= twin.generation
    templates = {member.uid: member.template for member in quorum.of(twin)}
    old: dict[str, list[PodView]] = {}
    new: list[PodView] = []
    for pod in _pods(quorum, twin):
        held_back = (pod.ordinal or 0) - twin.first < twin.partition
        is_new = seen and (held_back or templates[pod.uid] == twin.template)
        (new if is_new else old.setdefault(f"revision-{templates[pod.uid]}", [])).append(pod)
    older = [
        _revision(quorum, twin, name, sum(pod.counts for pod in pods), pods) for name, pods in old.items()
    ]
    left = max(0, twin.replicas - sum(rs.spec_replicas for rs in older))
    sets = (_revision(quorum, twin, twin.template, left, new), *older)
    counted = sum(rs.status_replicas for rs in sets)
    return TwinView(
        pool=twin.pool,
        name=twin.name,
        uid=twin.uid,
        resource_version=str(twin.version),
        rendered_hash=twin.rendered_hash,
        template_hash=twin.template,
        spec_replicas=twin.replicas,
        status_replicas=counted if seen else max(counted, twin.status_replicas),
        available_replicas=twin.status_available,
        updated_replicas=sets[0].status_replicas,
        observed=seen,
        max_surge=0,
        max_unavailable=1,
        first_ordinal=twin.first,
        partition=twin.partition,
        replica_sets=sets,
    )


def _revision(
    quorum: Quorum, twin: StatefulSet, template: str, spec: int, pods: list[PodView]
) -> ReplicaSetView:
    return ReplicaSetView(
        name=template,
        uid=f"{twin.uid}/{template}",
        resource_version=str(twin.version),
        template_hash=template,
        spec_replicas=spec,
        status_replicas=sum(pod.counts for pod in pods),
        available_replicas=sum(pod.counts and pod.ready_since is not None for pod in pods),
        created=quorum.instant(0),
        pods=tuple(pods),
    )


def _pods(quorum: Quorum, owner: StatefulSet) -> tuple[PodView, ...]:
    return tuple(_pod(quorum, member) for member in quorum.of(owner))


def _pod(quorum: Quorum, member: Member) -> PodView:
    ever = quorum.seen_nodes.get(member.node or "")

    def at(when: int | None) -> datetime | None:
        return quorum.instant(when) if when is not None else None

    return PodView(
        name=f"{member.owner}-{member.ordinal}",
        uid=member.uid,
        node_status=_node_status(quorum, member),
        node=member.node,
        node_uid=ever.uid if ever else None,
        on_spot=ever is not None and ever.spot,
        vanished=member.node is not None and member.node not in quorum.nodes,
        vanished_since=at(quorum.missed.get(member.node or "")),
        ready_since=at(member.ready_since),
        unready_since=at(member.unready_since),
        created=at(member.created),
        ordinal=member.ordinal,
        terminating=not member.active,
        terminating_since=at(member.asked),
        unschedulable_since=at(member.unschedulable_since),
        trouble=_trouble(quorum, member),
    )


def _trouble(quorum: Quorum, member: Member) -> Trouble | None:
    """Return what the scheduler says where there are nodes of its pool, and its volume is on none of them."""
    bound = (member.owner, member.ordinal) in quorum.volumes
    there = any(node.spot == (member.pool is Pool.SPOT) for node in quorum.nodes.values())
    if member.unschedulable_since is None or not bound or not there:
        return None
    return Trouble(Reason.VOLUME_ZONE_CONFLICT, "the nodes that would do cannot reach its volume")


def _node_status(quorum: Quorum, member: Member) -> NodeStatus:
    if member.node is None:
        return NodeStatus.UNBOUND
    node = quorum.nodes.get(member.node)
    if node is None or not node.ready:
        return NodeStatus.LOST
    return NodeStatus.DOOMED if node.doomed else NodeStatus.SOUND


def render(observed: Observation, _: Policy) -> dict[Pool, Rendered]:
    """Render both twins: a word each, made of the source's template."""
    template = observed.source.template_hash if observed.source else ""
    return {
        pool: Rendered(json.dumps({"template": f"{template}|{pool.value}"}), f"{template}|{pool.value}")
        for pool in Pool
    }


# What splitter writes.


def write(quorum: Quorum, action: Action, observed: Observation) -> None:  # noqa: C901, PLR0912, PLR0915 - one case a write
    """Do one write, or raise LostRaceError."""
    source, split = quorum.source, quorum.split
    ours = {ANNOTATION_TAKEN_OVER, ANNOTATION_REPLICAS} & source.annotations.keys()
    on_source = isinstance(action, SetOwnershipMark | SaveReplicas | ReleaseSource) or (
        isinstance(action, Scale) and action.name == source.name
    )
    if on_source and not ours and LABEL_SPLIT not in source.labels:
        raise LostRaceError("the policy on splitter's account refuses it; for ever, and there is no rest")
    match action:
        case EnsureSplit():
            if split is None:
                quorum.born += 1
                split = quorum.split = Split(f"uid-split-{quorum.born}", source.uid, action.takes_over)
            split.owner, split.takes_over = source.uid, action.takes_over
        case DeleteSplit():
            if observed.split is not None and split is not None and split.uid == observed.split.uid:
                quorum.split = None
        case ShowReplicas():
            if split is None:
                raise LostRaceError("the Split is gone")
            split.replicas = action.replicas
        case SetOwnershipMark():
            source.annotations[ANNOTATION_TAKEN_OVER] = action.value or ""
            source.version = quorum.version()
        case SaveReplicas():
            _expect_version(source, action.resource_version)
            source.annotations[ANNOTATION_REPLICAS] = saved_value(action.replicas, action.left)
            source.version = quorum.version()
        case ReleaseSource():
            source.annotations.pop(ANNOTATION_TAKEN_OVER, None)
            source.annotations.pop(ANNOTATION_REPLICAS, None)
            source.version = quorum.version()
        case Scale():
            _scale(quorum, action, observed)
        case ApplyTwin():
            _apply_twin(quorum, action)
        case DeleteTwin():
            for pool in [twin.pool for twin in quorum.twins.values() if twin.uid == action.uid and twin.pool]:
                quorum.delete_twin(pool)
        case RestoreTemplate():
            twin = next((twin for twin in quorum.twins.values() if twin.name == action.twin), None)
            if twin is None:
                raise LostRaceError(f"{action.twin} is gone")
            _expect_version(twin, action.resource_version)
            good = action.replica_set.removeprefix("revision-")
            quorum.change(twin, template=good, rendered_hash=withdrawn(twin.rendered_hash))
        case DeleteVanishedPod():
            member = quorum.members.get(action.uid)
            if member is not None and action.node not in quorum.nodes:
                if not action.at_once:
                    raise AssertionError("a StatefulSet would wait for this pod for ever")
                if quorum.now < quorum.missed.get(action.node, -MAY_RUN_S) + MAY_RUN_S:
                    raise AssertionError(f"{action.pod} may still run where it was, beside its successor")
                del quorum.members[action.uid]
        case _:
            raise AssertionError(f"{action} is not for StatefulSets")


def _expect_version(owner: StatefulSet, version: str | None) -> None:
    if version != str(owner.version):
        raise LostRaceError(owner.name)


def _scale(quorum: Quorum, action: Scale, observed: Observation) -> None:
    if action.name == quorum.source.name and observed.source is not None:
        _expect_version(quorum.source, action.resource_version)
        quorum.source.annotations[ANNOTATION_REPLICAS] = saved_value(
            observed.source.replicas, action.replicas
        )
        quorum.change(quorum.source, replicas=action.replicas, writer="")
        return
    twin = next((twin for twin in quorum.twins.values() if twin.name == action.name), None)
    if twin is None:
        raise LostRaceError(action.name)
    if action.resource_version is not None:
        _expect_version(twin, action.resource_version)
    quorum.change(twin, replicas=action.replicas)


def _apply_twin(quorum: Quorum, action: ApplyTwin) -> None:
    template, twin = json.loads(action.manifest_json)["template"], quorum.twins.get(action.pool)
    if twin is None:
        if action.resource_version is not None:
            raise LostRaceError("the twin is gone")
        quorum.born += 1
        name, first = f"db-{action.pool.value}", SPOT_ORDINALS if action.pool is Pool.SPOT else 0
        uid = f"uid-{name}-{quorum.born}"
        twin = StatefulSet(name, uid, action.pool, template, 0, quorum.version(), first=first, generation=0)
        quorum.twins[action.pool] = twin
    elif action.resource_version is None:
        raise LostRaceError("the twin exists")
    else:
        _expect_version(twin, action.resource_version)
    if twin.template != template:
        twin.old_template = twin.template
    quorum.change(
        twin,
        template=template,
        rendered_hash=action.hash,
        replicas=action.replicas,
        partition=action.partition,
    )


# What must never happen.


class BrokenPromiseError(AssertionError):
    """Something that must never happen has happened."""


def remaining(quorum: Quorum, counted: Mapping[str, bool]) -> int:
    """Count the pods that are left of those counted, once every controller has done what is written now."""
    left = 0
    for owner in quorum.sets:
        kept = range(owner.first, owner.first + owner.replicas)
        pods = [pod for pod in quorum.of(owner) if pod.ordinal in kept and counted.get(pod.uid)]
        rolls = any(
            pod.template != owner.template and pod.ordinal - owner.first >= owner.partition for pod in pods
        )
        left += min(len(pods), owner.replicas - 1) if rolls and pods else len(pods)
    return left


def lowered(action: Action) -> bool:
    """Whether a write lowers a count, which needs a precondition."""
    return isinstance(action, Scale) and action.replicas < action.was


def leftovers(quorum: Quorum) -> Iterator[str]:
    """Name everything of splitter's that is still there."""
    yield from (twin.name for twin in quorum.twins.values())
    yield from (f"pod of {pod.owner}" for pod in quorum.members.values() if pod.pool and pod.active)
    if quorum.split is not None:
        yield "Split"
    yield from (
        key for key in (ANNOTATION_TAKEN_OVER, ANNOTATION_REPLICAS) if key in quorum.source.annotations
    )


def unshared(quorum: Quorum) -> Quorum:
    """Return a copy that shares nothing that changes."""
    other = copied(quorum)
    other.nodes = {name: copied(node) for name, node in quorum.nodes.items()}
    other.seen_nodes = dict(quorum.seen_nodes)
    other.members = {uid: copied(member) for uid, member in quorum.members.items()}
    other.volumes, other.crashing = dict(quorum.volumes), set(quorum.crashing)
    other.twins = {pool: copied(twin) for pool, twin in quorum.twins.items()}
    other.source = copied(quorum.source)
    other.source.labels = dict(quorum.source.labels)
    other.source.annotations = dict(quorum.source.annotations)
    other.split = None if quorum.split is None else copied(quorum.split)
    return other
