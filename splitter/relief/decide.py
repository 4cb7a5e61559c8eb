"""One decision about a cluster: which replicas are to leave their nodes now, the hot nodes first.

It is called at each look at the metrics, and answers with moves to begin. Most answers are empty.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from splitter.core.hot_nodes import Aim
from splitter.core.model import seconds_between
from splitter.core.names import Key
from splitter.core.relief.model import Amounts, Resource, Thresholds, Tuning
from splitter.relief import samples
from splitter.relief.loads import Cluster, NodeLoad, PastMove
from splitter.relief.look import (
    VAIN,
    Candidate,
    Look,
    Since,
    WantedMove,
    count,
    count_moves,
    fullness,
    is_vain,
    most_of,
    take,
    target_for,
)
from splitter.relief.spread import Crowding, spread_out
from splitter.relief.to_spot import bring_to_spot


@dataclass(frozen=True, slots=True)
class Relief:
    """The moves to begin now, what to remember in memory, and what to tell."""

    moves: tuple[WantedMove, ...] = ()
    history: samples.History = field(default_factory=dict)
    paused: str = ""
    """Why nothing is moved, whatever is hot."""
    hot: tuple[str, ...] = ()
    """The nodes that are hot for some workload, or being relieved, by name; the fullest first."""
    avoid: tuple[str, ...] = ()
    """The nodes on which a replica that was just moved may not stay: the hot, and those that gave one and are
    not measured anew yet. In no order."""
    left: tuple[str, ...] = ()
    """Of hot nodes: why none of their replicas moves now."""
    spot_room: Since = field(default_factory=dict)
    """Since when spot has had room for replicas that prefer it, and stand on on-demand."""
    crowding: Crowding = field(default_factory=Crowding)
    """What to remember of replicas that violate their spread constraints."""
    badly_placed: Mapping[Key, str] = field(default_factory=dict)
    """Of workloads that have such replicas: how that stands."""


def relieve(
    cluster: Cluster,
    last: Relief,
    past: tuple[PastMove, ...],
    tuning: Tuning = Tuning(),  # noqa: B008 - frozen: one shared default is what is meant
) -> Relief:
    """Return the replicas that are to leave their hot nodes now, or to stand better. Never raises.

    `past` are the moves that were begun, as all Splits remember them. Of one workload one replica moves at a
    time. `past` and `busy` keep the bounds from call to call, also when splitter was restarted between two.
    `last` is what the last call returned. Source: docs/adr/0059, docs/adr/0072, docs/adr/0078.
    """
    faults = samples.faults_of(cluster, tuning)
    if paused := samples.paused_by(cluster, faults):
        return Relief(paused=paused)
    history = samples.remembered(last.history, cluster, past, faults, tuning)
    rests = [one for one in past if seconds_between(one.ended or cluster.now, cluster.now) < tuning.rest_s]
    gave = frozenset(one.from_node for one in rests if not one.taken_back and one.aim is Aim.COOL)
    look = Look(cluster, history, past, tuning, gave)
    hot = _hot_nodes(look)
    names = tuple(node.name for node in hot)
    look.avoid = _avoided(look, names)
    if cluster.alarm:
        return Relief(history=history, paused=cluster.alarm, hot=names, avoid=look.avoid)
    count_moves(look)
    count(look, names)
    left = []
    for node in hot:
        before = len(look.moves)
        why = _relieve_node(look, node)
        if len(look.moves) == before:
            left.append(f"{node.name}: {why}")
    spot_room, off_spot = bring_to_spot(look, last.spot_room, hot=bool(hot))
    crowding, crowded = spread_out(look, last.crowding, hot=bool(hot))
    moves = tuple(look.moves)
    return Relief(
        moves,
        history,
        hot=names,
        avoid=look.avoid,
        left=tuple(left),
        spot_room=spot_room,
        crowding=crowding,
        badly_placed=_joined(off_spot, crowded),
    )


def _joined(*said: Mapping[Key, str]) -> dict[Key, str]:
    keys = {key for one in said for key in one}
    return {key: "; ".join(one[key] for one in said if key in one) for key in keys}


def _avoided(look: Look, hot: tuple[str, ...]) -> tuple[str, ...]:
    unmeasured = (
        node.name
        for node in look.cluster.nodes
        if node.uid in look.gave and len(look.history.get(node.uid, ())) < look.tuning.samples
    )
    return (*hot, *unmeasured)


def _hot_nodes(look: Look) -> list[NodeLoad]:
    """Return the nodes that are hot for some workload, the fullest first."""
    asked = list[Thresholds]()
    for workload in look.cluster.workloads:
        if workload.thresholds is not None and workload.thresholds not in asked:
            asked.append(workload.thresholds)  # most workloads ask for the same
    hot = [node for node in look.cluster.nodes if any(_hot_by(look, node, one) for one in asked)]
    return sorted(hot, key=lambda node: (-fullness(node, look.history[node.uid][-1].used), node.name))


def _hot_by(look: Look, node: NodeLoad, thresholds: Thresholds) -> tuple[Resource, ...]:
    """Return in what a node is hot. One that gave a replica lately is, until it is down by the margin."""
    asked = node.uid, *thresholds.percent.items()
    if asked not in look.hot_in:  # most workloads ask for the same
        below = look.tuning.margin if node.uid in look.gave else 0.0
        row = look.history.get(node.uid, ())
        look.hot_in[asked] = samples.hot_by(node, row, thresholds, look.tuning.samples, below)
    return look.hot_in[asked]


def _relieve_node(look: Look, node: NodeLoad) -> str:
    """Choose the replicas that leave one node; return why no further one does."""
    most = f"{look.tuning.moves_per_cycle} moves in {look.tuning.cycle_s:.0f} s are the most"
    due = [] if look.is_full else list(_candidates(look, node))
    candidates = [one for one in due if not is_vain(look, Aim.COOL, one)]
    if all(one.waits for one in candidates):
        nothing = VAIN if len(candidates) < len(due) else "no replica on it may move now"
        return most if look.is_full else nothing
    if not _would_help(node, candidates, look.used[node.name]):
        return "what may move there would not bring it below its threshold"
    while not look.is_full:
        free = [one for one in candidates if not one.waits and one.workload.key not in look.moved]
        if not free:
            return "of a workload one replica moves at a time"
        due = [one for one in free if _excess(look, node, one)]
        options = ((one, target_for(look, one)) for one in _in_order(look, node, due))
        first = next(((one, to) for one, to in options if to is not None), None)
        if first is None:
            return "no other node of the pool has room, by requests and by use"
        if _is_in_place_of_a_larger(look, node, first[0], candidates):
            return "larger replicas on it go first, one of a workload at a time"
        why = ", ".join(_said_of(look, node, first[0], resource) for resource in first[0].hot)
        take(look, node, *first, f"{node.name} is hot: {why}")
    return most


def _candidates(look: Look, node: NodeLoad) -> Iterator[Candidate]:
    for workload, replica in look.by_node.get(node.name, ()):
        if (thresholds := workload.thresholds) is None:
            continue
        hot = _hot_by(look, node, thresholds)
        sample = samples.usable(look.cluster, replica.uid, node, look.tuning) if hot else None
        since = replica.ready_since
        if sample is None or since is None or look.is_lately(since, look.tuning.rest_s):
            continue
        if any(
            sample.used.of(one) * 100 >= node.allocatable.of(one) * look.tuning.least_percent for one in hot
        ):
            waits = workload.key in look.waiting
            yield Candidate(workload, thresholds, replica, sample.used, hot, waits)


def _is_in_place_of_a_larger(
    look: Look, node: NodeLoad, chosen: Candidate, candidates: list[Candidate]
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


def _would_help(node: NodeLoad, candidates: list[Candidate], used: Amounts) -> bool:
    """Whether all that may move would bring the node below a threshold: else nothing is worth a move."""
    rest = used - samples.sum_of(one.used for one in candidates)
    return any(
        rest.of(resource) <= node.allocatable.of(resource) * one.thresholds.percent[resource] / 100
        for one in candidates
        for resource in one.hot
    )


def _excess(look: Look, node: NodeLoad, one: Candidate) -> dict[Resource, float]:
    """Return by how much a node is over what it may use after a move, where it is hot."""
    used = look.used[node.name]
    return {
        resource: over
        for resource in one.hot
        if (over := used.of(resource) - most_of(look, node, one, resource)) > 0
    }


def _is_enough(one: Candidate, excess: Mapping[Resource, float]) -> bool:
    """Whether a node is down where it is to be when this replica alone has left."""
    return all(one.used.of(resource) >= over for resource, over in excess.items())


def _in_order(look: Look, node: NodeLoad, due: list[Candidate]) -> list[Candidate]:
    """Sort by priority and QoS, the lowest first; then the smallest that is enough alone, or the largest."""

    def rank(one: Candidate) -> tuple[int, int, bool, float, str]:
        excess = _excess(look, node, one)
        enough = _is_enough(one, excess)
        share = max(one.used.of(resource) / node.allocatable.of(resource) for resource in excess)
        replica = one.replica
        return replica.priority, replica.qos, not enough, share if enough else -share, replica.uid

    return sorted(due, key=rank)


def _said_of(look: Look, node: NodeLoad, one: Candidate, resource: Resource) -> str:
    percent = look.history[node.uid][-1].used.of(resource) * 100 / node.allocatable.of(resource)
    most = one.thresholds.percent[resource]
    # A node that gave a replica lately is hot until it is down by the margin.
    bound = (
        f"{most:.0f} % are the most"
        if percent > most
        else f"on its way down to {most - look.tuning.margin:.0f} %"
    )
    return f"{resource} at {percent:.0f} %, {bound}"
