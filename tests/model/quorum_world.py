"""The abstract world of the StatefulSet explorer: its objects, the StatefulSet controller, the scheduler.

The rules are those of pkg/controller/statefulset of Kubernetes 1.36: one pod a name, highest ordinals first,
one at a time if it is OrderedReady, rolls from the top. Nodes stay and time stands still; a template is a
word. `quorum_process` is splitter in it.
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
    TwinView,
)
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.stateful import StatefulView
from stories.cluster import START, LostRaceError, Node, Split, copied
from stories.sight import split_view

KEY = Key(STATEFUL_SET, "shop", "db")


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
    unschedulable_since: int | None = None
    active: bool = True  # it is not ending


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
        self.members: dict[str, Member] = {}
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
        """Whether it answers."""
        return member.active and member.ready_since is not None and member.node is not None

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
        self.nodes[name] = Node(name, f"uid-{name}-{self.born}", spot, slots)

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
        member.active, member.ready_since = False, None


# What Kubernetes does.


def sync(quorum: Quorum, owner: StatefulSet) -> bool:
    """Do one step of the StatefulSet controller."""
    pods = quorum.of(owner)
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
        if pod is None:
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
        fitting = sorted(node.name for node in quorum.nodes.values() if node.spot == (pod.pool is Pool.SPOT))
        if fitting:
            used = [other.node for other in quorum.members.values()]
            pod.node = min(fitting, key=lambda name: (used.count(name), name))
            pod.unschedulable_since, changed = None, True
        elif pod.unschedulable_since is None:
            pod.unschedulable_since, changed = quorum.now, True
    return changed


def is_startable(quorum: Quorum, pod: Member) -> bool:
    """Whether it may become ready."""
    return pod.active and pod.ready_since is None and pod.node in quorum.nodes


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
        fit_spot=sum(10 for node in quorum.nodes.values() if node.spot),
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
    node = quorum.nodes.get(member.node or "")

    def at(when: int | None) -> datetime | None:
        return quorum.instant(when) if when is not None else None

    return PodView(
        name=f"{member.owner}-{member.ordinal}",
        uid=member.uid,
        node_status=NodeStatus.UNBOUND if node is None else NodeStatus.SOUND,
        node=member.node,
        node_uid=node.uid if node else None,
        on_spot=node is not None and node.spot,
        ready_since=at(member.ready_since),
        unready_since=at(member.created) if node is not None and member.ready_since is None else None,
        created=at(member.created),
        ordinal=member.ordinal,
        terminating=not member.active,
        terminating_since=None if member.active else quorum.instant(quorum.now),
        unschedulable_since=at(member.unschedulable_since),
    )


def render(observed: Observation, _: Policy) -> dict[Pool, Rendered]:
    """Render both twins: a word each, made of the source's template."""
    template = observed.source.template_hash if observed.source else ""
    return {
        pool: Rendered(json.dumps({"template": f"{template}|{pool.value}"}), f"{template}|{pool.value}")
        for pool in Pool
    }


# What splitter writes.


def write(quorum: Quorum, action: Action, observed: Observation) -> None:  # noqa: C901, PLR0912 - one case a write
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
    other.members = {uid: copied(member) for uid, member in quorum.members.items()}
    other.twins = {pool: copied(twin) for pool, twin in quorum.twins.items()}
    other.source = copied(quorum.source)
    other.source.labels = dict(quorum.source.labels)
    other.source.annotations = dict(quorum.source.annotations)
    other.split = None if quorum.split is None else copied(quorum.split)
    return other
