"""One look at the cluster, and what would be so once the moves chosen so far are done.

What all kinds of moves share: their bounds, which nodes may receive a replica, and where one has room.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Final

from splitter.core.hot_nodes import Aim
from splitter.core.model import seconds_between
from splitter.core.names import Key
from splitter.core.reasons import Reason
from splitter.core.relief.model import VAIN_S, Amounts, Resource, Thresholds, Tuning
from splitter.relief.hint import drawing
from splitter.relief.loads import Cluster, NodeLoad, PastMove, ReplicaLoad, WorkloadLoad
from splitter.relief.samples import History, usable

Since = Mapping[Key, datetime]
"""Since when something has been so of a workload, at each look. In memory: after a restart it begins anew."""
VAIN: Final = "a move has not helped, and is tried again when they stand otherwise"


@dataclass(frozen=True, slots=True)
class WantedMove:
    """A replica that is to stand elsewhere, and why. Where is the scheduler's choice."""

    workload: Key
    pod: str
    pod_uid: str
    from_node: str
    why: str
    aim: Aim = Aim.COOL
    keep_off: tuple[str, ...] = ()
    """The nodes, by name, that a hint is to keep the new replica off."""
    crowded: frozenset[str] = frozenset()
    """The nodes, by name, on which it would be spread no better."""
    stand: str = ""
    """How replicas and nodes stand: where it is in vain, it is not tried again while they stand so."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A replica that stands badly, and what its move has to reckon with."""

    workload: WorkloadLoad
    thresholds: Thresholds
    replica: ReplicaLoad
    used: Amounts
    hot: tuple[Resource, ...]
    """In what its node is hot, by its own thresholds."""
    waits: bool
    """It may not move now, but when its workload has moved another."""


@dataclass(slots=True)
class Look:
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
    roomy: set[str] = field(default_factory=set)
    """The nodes, by name, that a replica could come to: sound, measured and not hot."""
    targets: set[str] = field(default_factory=set)
    """Those of them that do not rest from a move."""
    moves: list[WantedMove] = field(default_factory=list)
    moved: set[Key] = field(default_factory=set)
    by_node: dict[str, list[tuple[WorkloadLoad, ReplicaLoad]]] = field(default_factory=dict)
    """The replicas that may ever move, by the name of their node."""
    waiting: set[Key] = field(default_factory=set)
    """The workloads that move a replica now, or have moved their share of this cycle."""
    without_room: dict[tuple[object, ...], list[tuple[Amounts, Amounts]]] = field(default_factory=dict)
    """By where replicas may stand: what those requested and used for which there was no room. Room only
    shrinks from move to move, so there is none for larger ones either."""
    vain: dict[Key, set[str]] = field(default_factory=dict)
    """Of workloads with moves that were in vain within a day: how all stood then."""
    stands: dict[tuple[object, ...], str] = field(default_factory=dict)
    """How all stand, as it was found out so far."""
    lately: int = 0
    """The moves that were begun within the last cycle; of one workload no more count than its share."""

    @property
    def is_full(self) -> bool:
        """Whether no further move may be begun in this cycle."""
        return len(self.moves) + self.lately >= self.tuning.moves_per_cycle

    def is_lately(self, at: datetime, within_s: float) -> bool:
        """Whether something was not longer ago than this."""
        return seconds_between(at, self.cluster.now) < within_s

    def may_move(self, one: Candidate) -> bool:
        """Whether a replica is old enough, and its workload does not wait."""
        ready_since = one.replica.ready_since
        return not (ready_since is None or self.is_lately(ready_since, self.tuning.rest_s) or one.waits)


def count_moves(look: Look) -> None:
    """Count the moves of this cycle, and find the replicas that may ever move, by their nodes."""
    past_of = defaultdict[Key, list[PastMove]](list)
    for one in look.past:
        if one.aim is Aim.POOL:
            continue  # what stands in the wrong pool is replaced whatever is hot
        past_of[one.workload].append(one)
        if one.stand and look.is_lately(one.at, VAIN_S):
            look.vain.setdefault(one.workload, set()).add(one.stand)
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


def count(look: Look, hot: tuple[str, ...]) -> None:
    """Count what each node uses and is asked for, and which of them may receive a replica."""
    now, tuning = look.cluster.now, look.tuning
    resting = {one.from_node for one in look.past if look.is_lately(one.ended or now, tuning.rest_s)}
    resting |= {one.to_node for one in look.past if look.is_lately(one.ended or now, tuning.received_s)}
    for node in look.cluster.nodes:
        look.requested[node.name] = node.requested
        row = look.history.get(node.uid)
        if row is None:
            continue
        look.used[node.name] = row[-1].used if row else look.cluster.node_samples[node.name].used
        if node.sound and node.name not in hot:
            look.roomy.add(node.name)
            if row and node.uid not in resting:
                look.targets.add(node.name)


def measured_on(look: Look, node: NodeLoad) -> Iterator[Candidate]:
    """Yield the ready replicas of a node that may ever move, and whose real use is known."""
    for workload, replica in look.by_node.get(node.name, ()):
        if (one := measured(look, node, workload, replica)) is not None:
            yield one


def measured(look: Look, node: NodeLoad, workload: WorkloadLoad, replica: ReplicaLoad) -> Candidate | None:
    """Return a replica that is ready, if its real use is known, and its node's."""
    sample = usable(look.cluster, replica.uid, node, look.tuning) if node.name in look.used else None
    if sample is None or workload.thresholds is None or replica.ready_since is None:
        return None
    waits = workload.key in look.waiting
    return Candidate(workload, workload.thresholds, replica, sample.used, (), waits)


def most_moves(look: Look, *, hot: bool) -> int:
    """Return how many moves a cycle may have. While a node is hot, half are kept for what leaves it next."""
    return look.tuning.moves_per_cycle // 2 if hot else look.tuning.moves_per_cycle


def stand_of(look: Look, aim: Aim, one: Candidate) -> str:
    """Return how a workload stands, in short: where its replicas of the pool are, and where one may stay.

    A new one is placed without regard to which is to leave: of twenty alike the next is in vain, too.
    """
    workload, replica = one.workload, one.replica
    asked = aim, workload.key, replica.pool, replica.may_run_on
    if asked not in look.stands:
        off = look.avoid if aim is Aim.COOL else ()
        may_stay = {
            node.name
            for node in look.cluster.nodes
            if node.sound and node.pool is replica.pool and node.name in replica.may_run_on
        }.difference(off)
        held = sorted(each.node for each in workload.replicas if each.pool is replica.pool)
        look.stands[asked] = shortened(aim.value, replica.pool.value, held, sorted(may_stay))
    return look.stands[asked]


def shortened(*facts: object) -> str:
    """Return what tells these facts from others; the same after a restart."""
    return sha256(repr(facts).encode()).hexdigest()[:16]


def is_vain(look: Look, aim: Aim, one: Candidate) -> bool:
    """Whether a move was in vain within a day, with all as it stands now."""
    known = look.vain.get(one.workload.key)
    return known is not None and stand_of(look, aim, one) in known


def has_room(look: Look, one: Candidate) -> bool:
    """Whether a node has room for a replica, also if it rests from a move and receives nothing now."""
    return any(True for _ in _fitting(look, one, rested=False))


def target_for(look: Look, one: Candidate) -> NodeLoad | None:
    """Return the emptiest node that has room for a replica, by requests and by real use."""
    fitting = _fitting(look, one, rested=True)
    return min(fitting, key=lambda node: (fullness(node, look.used[node.name]), node.name), default=None)


def _fitting(look: Look, one: Candidate, *, rested: bool) -> Iterator[NodeLoad]:
    replica, names = one.replica, look.targets if rested else look.roomy
    where = (rested, replica.pool, replica.may_run_on, *one.thresholds.percent.items())
    refused = look.without_room.setdefault(where, [])
    if any(requests.within(replica.requests) and used.within(one.used) for requests, used in refused):
        return
    fits = False
    for node in look.cluster.nodes:
        if (
            node.name in names
            and node.name in replica.may_run_on
            and node.pool is replica.pool
            and node.free_pods > 0
            and (look.requested[node.name] + replica.requests).within(node.allocatable)
            and all(
                (look.used[node.name] + one.used).of(resource) <= most_of(look, node, one, resource)
                for resource in one.thresholds.percent
            )
        ):
            fits = True
            yield node
    if not fits:
        refused.append((replica.requests, one.used))


def take(
    look: Look,
    node: NodeLoad,
    one: Candidate,
    to: NodeLoad,
    why: str,
    *,
    aim: Aim = Aim.COOL,
    crowded: frozenset[str] = frozenset(),
    stand: str = "",
) -> None:
    """Choose the move of a replica off its node; `to` is where there is room for it, which then rests.

    `stand`: as `stand_of`, where its aim has no other way to tell.
    """
    look.moves.append(
        WantedMove(
            one.workload.key,
            one.replica.pod,
            one.replica.uid,
            node.uid,
            why,
            aim,
            drawing(look.cluster, look.avoid, one.replica),
            crowded,
            stand or stand_of(look, aim, one),
        )
    )
    look.moved.add(one.workload.key)
    look.targets.discard(to.name)  # one replica a node, then it rests
    look.used[node.name] -= one.used
    look.requested[node.name] -= one.replica.requests
    look.used[to.name] += one.used
    look.requested[to.name] += one.replica.requests


def most_of(look: Look, node: NodeLoad, one: Candidate, resource: Resource) -> float:
    """Return what a node may use after a move, whether it gives or receives."""
    return node.allocatable.of(resource) * (one.thresholds.percent[resource] - look.tuning.margin) / 100


def fullness(node: NodeLoad, used: Amounts) -> float:
    """Return which part of a node is used, of what it has least of."""
    return max(used.of(one) / node.allocatable.of(one) for one in Resource)
