"""One decision about a cluster: which replicas are to leave their hot nodes now.

It is called at each look at the metrics, and answers with moves to begin. Most answers are empty.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from splitter.core.model import seconds_between
from splitter.core.names import Key
from splitter.core.reasons import Reason
from splitter.core.relief.hint import drawing
from splitter.core.relief.model import (
    Amounts,
    Cluster,
    NodeLoad,
    PastMove,
    ReplicaLoad,
    Resource,
    Thresholds,
    Tuning,
    WorkloadLoad,
)
from splitter.core.relief.samples import (
    History,
    faults_of,
    hot_by,
    paused_by,
    remembered,
    sum_of,
    usable,
)


@dataclass(frozen=True, slots=True)
class WantedMove:
    """A replica that is to stand elsewhere, and why. Where is the scheduler's choice."""

    workload: Key
    pod: str
    pod_uid: str
    from_node: str
    why: str
    keep_off: tuple[str, ...] = ()
    """The nodes, by name, that a hint is to keep the new replica off."""


@dataclass(frozen=True, slots=True)
class Relief:
    """The moves to begin now, what to remember in memory, and what to tell."""

    moves: tuple[WantedMove, ...]
    history: History
    paused: str = ""
    """Why nothing is moved, whatever is hot."""
    hot: tuple[str, ...] = ()
    """The nodes that are hot for some workload, or being relieved, by name; the fullest first."""
    avoid: tuple[str, ...] = ()
    """The nodes on which a replica that was just moved may not stay: the hot, and those that gave one and are
    not measured anew yet. In no order."""
    left: tuple[str, ...] = ()
    """Of hot nodes: why none of their replicas moves now."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    workload: WorkloadLoad
    thresholds: Thresholds
    replica: ReplicaLoad
    used: Amounts
    hot: tuple[Resource, ...]
    """In which its node is hot, by its own thresholds."""
    waits: bool
    """It may not move now, but when its workload has moved another."""


@dataclass(slots=True)
class _Look:
    """One look at the cluster, and what would be so once the moves chosen so far are done."""

    cluster: Cluster
    history: History
    past: tuple[PastMove, ...]
    tuning: Tuning
    gave: frozenset[str]
    """The nodes that gave a replica lately, by UID: they count as hot until they are down by the margin."""
    avoid: tuple[str, ...] = ()
    hot_in: dict[tuple[object, ...], tuple[Resource, ...]] = field(default_factory=dict)
    """In what a node is hot, by its UID and the thresholds that are asked for."""
    used: dict[str, Amounts] = field(default_factory=dict)
    requested: dict[str, Amounts] = field(default_factory=dict)
    targets: set[str] = field(default_factory=set)
    moves: list[WantedMove] = field(default_factory=list)
    moved: set[Key] = field(default_factory=set)
    by_node: dict[str, list[tuple[WorkloadLoad, ReplicaLoad]]] = field(default_factory=dict)
    """The replicas that may ever move, by the name of their node."""
    waiting: set[Key] = field(default_factory=set)
    """The workloads that move a replica now, or have moved their share of this cycle."""
    without_room: dict[tuple[object, ...], list[tuple[Amounts, Amounts]]] = field(default_factory=dict)
    """By where replicas may stand: what those requested and used for which there was no room. Room only
    shrinks from move to move, so there is none for larger ones either."""
    lately: int = 0
    """The moves that were begun within the last cycle; of one workload no more count than its share."""

    @property
    def is_full(self) -> bool:
        """Whether no further move may be begun in this cycle."""
        return len(self.moves) + self.lately >= self.tuning.moves_per_cycle

    def is_lately(self, at: datetime, within_s: float) -> bool:
        """Whether something was not longer ago than this."""
        return seconds_between(at, self.cluster.now) < within_s


def relieve(
    cluster: Cluster,
    history: History,
    past: tuple[PastMove, ...],
    tuning: Tuning = Tuning(),  # noqa: B008 - frozen: one shared default is what is meant
) -> Relief:
    """Return the replicas that are to leave their hot nodes now. Never raises.

    `past` are the moves that were begun, as all Splits remember them. Of one workload one replica moves at a
    time. `past` and `busy` keep the bounds from call to call, also when splitter was restarted between two.
    Source: docs/adr/0059.
    """
    faults = faults_of(cluster, tuning)
    if paused := paused_by(cluster, faults):
        return Relief((), {}, paused=paused)
    history = remembered(history, cluster, past, faults, tuning)
    rests = [one for one in past if seconds_between(one.ended or cluster.now, cluster.now) < tuning.rest_s]
    gave = frozenset(one.from_node for one in rests if not one.taken_back)
    look = _Look(cluster, history, past, tuning, gave)
    hot = _hot_nodes(look)
    names = tuple(node.name for node in hot)
    look.avoid = _avoided(look, names)
    if cluster.alarm:
        return Relief((), history, paused=cluster.alarm, hot=names, avoid=look.avoid)
    _count_moves(look)
    _count(look, names)
    left = []
    for node in hot:
        before = len(look.moves)
        why = _relieve_node(look, node)
        if len(look.moves) == before:
            left.append(f"{node.name}: {why}")
    return Relief(tuple(look.moves), history, hot=names, avoid=look.avoid, left=tuple(left))


def _avoided(look: _Look, hot: tuple[str, ...]) -> tuple[str, ...]:
    unmeasured = (
        node.name
        for node in look.cluster.nodes
        if node.uid in look.gave and len(look.history.get(node.uid, ())) < look.tuning.samples
    )
    return (*hot, *unmeasured)


def _hot_nodes(look: _Look) -> list[NodeLoad]:
    """Return the nodes that are hot for some workload, the fullest first."""
    asked = list[Thresholds]()
    for workload in look.cluster.workloads:
        if workload.thresholds is not None and workload.thresholds not in asked:
            asked.append(workload.thresholds)  # most workloads ask for the same
    hot = [node for node in look.cluster.nodes if any(_hot_by(look, node, one) for one in asked)]
    return sorted(hot, key=lambda node: (-_fullness(node, look.history[node.uid][-1].used), node.name))


def _hot_by(look: _Look, node: NodeLoad, thresholds: Thresholds) -> tuple[Resource, ...]:
    """Return in what a node is hot. One that gave a replica lately is, until it is down by the margin."""
    asked = node.uid, *thresholds.percent.items()
    if asked not in look.hot_in:  # most workloads ask for the same
        below = look.tuning.margin if node.uid in look.gave else 0.0
        row = look.history.get(node.uid, ())
        look.hot_in[asked] = hot_by(node, row, thresholds, look.tuning.samples, below)
    return look.hot_in[asked]


def _fullness(node: NodeLoad, used: Amounts) -> float:
    return max(used.of(one) / node.allocatable.of(one) for one in Resource)


def _count_moves(look: _Look) -> None:
    """Count the moves of this cycle, and find the replicas that may ever move, by their nodes."""
    past_of = defaultdict[Key, list[PastMove]](list)
    for one in look.past:
        past_of[one.workload].append(one)
    cycle_s = look.tuning.cycle_s
    begun = {key: sum(look.is_lately(one.at, cycle_s) for one in own) for key, own in past_of.items()}
    for workload in look.cluster.workloads:
        own = past_of[workload.key]
        relieved = workload.busy == Reason.RELIEVING.value
        most = max(1, int(len(workload.replicas) * look.tuning.share_per_cycle))
        if workload.key in begun:
            begun[workload.key] = min(begun[workload.key], most)
        if workload.thresholds is None or (workload.busy and not relieved) or workload.restarts:
            continue
        if any(one.taken_back and look.is_lately(one.at, look.tuning.rest_s) for one in own):
            continue
        if relieved or begun.get(workload.key, 0) >= most or any(one.ended is None for one in own):
            look.waiting.add(workload.key)
        for replica in workload.replicas:
            look.by_node.setdefault(replica.node, []).append((workload, replica))
    look.lately = sum(begun.values())


def _count(look: _Look, hot: tuple[str, ...]) -> None:
    """Count what each node uses and is asked for, and which of them may receive a replica."""
    now, tuning = look.cluster.now, look.tuning
    resting = {one.from_node for one in look.past if look.is_lately(one.ended or now, tuning.rest_s)}
    resting |= {one.to_node for one in look.past if look.is_lately(one.ended or now, tuning.received_s)}
    for node in look.cluster.nodes:
        look.requested[node.name] = node.requested
        if row := look.history.get(node.uid):
            look.used[node.name] = row[-1].used
            if node.sound and node.uid not in resting and node.name not in hot:
                look.targets.add(node.name)


def _relieve_node(look: _Look, node: NodeLoad) -> str:
    """Choose the replicas that leave one node; return why no further one does."""
    most = f"{look.tuning.moves_per_cycle} moves in {look.tuning.cycle_s:.0f} s are the most"
    candidates = [] if look.is_full else list(_candidates(look, node))
    if all(one.waits for one in candidates):
        return most if look.is_full else "no replica on it may move now"
    if not _would_help(node, candidates, look.used[node.name]):
        return "what may move there would not bring it below its threshold"
    while not look.is_full:
        free = [one for one in candidates if not one.waits and one.workload.key not in look.moved]
        if not free:
            return "of a workload one replica moves at a time"
        due = [one for one in free if _excess(look, node, one)]
        options = ((one, _target_for(look, one)) for one in _in_order(look, node, due))
        first = next(((one, to) for one, to in options if to is not None), None)
        if first is None:
            return "no other node of the pool has room, by requests and by use"
        if _is_in_place_of_a_larger(look, node, first[0], candidates):
            return "larger replicas on it go first, one of a workload at a time"
        _take(look, node, *first)
    return most


def _candidates(look: _Look, node: NodeLoad) -> Iterator[_Candidate]:
    for workload, replica in look.by_node.get(node.name, ()):
        if (thresholds := workload.thresholds) is None:
            continue
        hot = _hot_by(look, node, thresholds)
        sample = usable(look.cluster, replica.uid, node, look.tuning) if hot else None
        since = replica.ready_since
        if sample is None or since is None or look.is_lately(since, look.tuning.rest_s):
            continue
        if any(
            sample.used.of(one) * 100 >= node.allocatable.of(one) * look.tuning.least_percent for one in hot
        ):
            waits = workload.key in look.waiting
            yield _Candidate(workload, thresholds, replica, sample.used, hot, waits)


def _is_in_place_of_a_larger(
    look: _Look, node: NodeLoad, chosen: _Candidate, candidates: list[_Candidate]
) -> bool:
    """Whether a larger replica that only waits for its workload would do more: else small ones go as well."""
    excess = _excess(look, node, chosen)
    if _is_enough(chosen, excess):
        return False
    rank = chosen.replica.priority, chosen.replica.qos
    return any(
        (one.replica.priority, one.replica.qos) <= rank
        and any(one.used.of(resource) > chosen.used.of(resource) for resource in excess)
        for one in candidates
        if one.waits or one.workload.key in look.moved
    )


def _would_help(node: NodeLoad, candidates: list[_Candidate], used: Amounts) -> bool:
    """Whether all that may move would bring the node below a threshold: else nothing is worth a move."""
    rest = used - sum_of(one.used for one in candidates)
    return any(
        rest.of(resource) <= node.allocatable.of(resource) * one.thresholds.percent[resource] / 100
        for one in candidates
        for resource in one.hot
    )


def _excess(look: _Look, node: NodeLoad, one: _Candidate) -> dict[Resource, float]:
    """Return by how much a node is over what it may use after a move, where it is hot."""
    used = look.used[node.name]
    return {
        resource: over
        for resource in one.hot
        if (over := used.of(resource) - _most(look, node, one, resource)) > 0
    }


def _is_enough(one: _Candidate, excess: Mapping[Resource, float]) -> bool:
    """Whether a node is down where it is to be when this replica alone has left."""
    return all(one.used.of(resource) >= over for resource, over in excess.items())


def _most(look: _Look, node: NodeLoad, one: _Candidate, resource: Resource) -> float:
    """Return what a node may use after a move, whether it gives or receives."""
    return node.allocatable.of(resource) * (one.thresholds.percent[resource] - look.tuning.margin) / 100


def _in_order(look: _Look, node: NodeLoad, due: list[_Candidate]) -> list[_Candidate]:
    """Sort by priority and QoS, the lowest first; then the smallest that is enough alone, or the largest."""

    def rank(one: _Candidate) -> tuple[int, int, bool, float, str]:
        excess = _excess(look, node, one)
        enough = _is_enough(one, excess)
        share = max(one.used.of(resource) / node.allocatable.of(resource) for resource in excess)
        replica = one.replica
        return replica.priority, replica.qos, not enough, share if enough else -share, replica.uid

    return sorted(due, key=rank)


def _target_for(look: _Look, one: _Candidate) -> NodeLoad | None:
    """Return the emptiest node that has room for a replica, by requests and by real use."""
    replica = one.replica
    where = (replica.pool, replica.may_run_on, *one.thresholds.percent.items())
    refused = look.without_room.setdefault(where, [])
    if any(requests.within(replica.requests) and used.within(one.used) for requests, used in refused):
        return None
    fitting = [
        node
        for node in look.cluster.nodes
        if node.name in look.targets
        and node.name in replica.may_run_on
        and node.pool is replica.pool
        and node.free_pods > 0
        and (look.requested[node.name] + replica.requests).within(node.allocatable)
        and all(
            (look.used[node.name] + one.used).of(resource) <= _most(look, node, one, resource)
            for resource in one.thresholds.percent
        )
    ]
    if not fitting:
        refused.append((replica.requests, one.used))
    return min(fitting, key=lambda node: (_fullness(node, look.used[node.name]), node.name), default=None)


def _take(look: _Look, node: NodeLoad, one: _Candidate, to: NodeLoad) -> None:
    why = ", ".join(_said_of(look, node, one, resource) for resource in one.hot)
    look.moves.append(
        WantedMove(
            one.workload.key,
            one.replica.pod,
            one.replica.uid,
            node.uid,
            f"{node.name} is hot: {why}",
            drawing(look.cluster, look.avoid, one.replica),
        )
    )
    look.moved.add(one.workload.key)
    look.targets.discard(to.name)  # one replica a node, then it rests
    look.used[node.name] -= one.used
    look.requested[node.name] -= one.replica.requests
    look.used[to.name] += one.used
    look.requested[to.name] += one.replica.requests


def _said_of(look: _Look, node: NodeLoad, one: _Candidate, resource: Resource) -> str:
    percent = look.history[node.uid][-1].used.of(resource) * 100 / node.allocatable.of(resource)
    most = one.thresholds.percent[resource]
    # A node that gave a replica lately is hot until it is down by the margin.
    bound = (
        f"{most:.0f} % are the most"
        if percent > most
        else f"on its way down to {most - look.tuning.margin:.0f} %"
    )
    return f"{resource} at {percent:.0f} %, {bound}"
