"""Replicas that crowd a node or zone against their own topology spread constraints: they are spread out.

The scheduler heeds a constraint when it places a pod, and never looks again: what came later stays empty.
The bounds are those of hot nodes, which come first. Source: docs/adr/0078.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from splitter.core.hot_nodes import Aim
from splitter.core.model import seconds_between
from splitter.core.names import Key
from splitter.relief.loads import NodeLoad, ReplicaLoad, SpreadLoad, WorkloadLoad
from splitter.relief.look import (
    VAIN,
    Candidate,
    Look,
    Since,
    measured,
    most_moves,
    shortened,
    take,
    target_for,
)

_MOVING: Final = "they move one at a time, as the bounds allow"
_STUCK: Final = "nothing that may move now could stand better"


@dataclass(frozen=True, slots=True)
class _Spread:
    """One constraint, and how many replicas it counts in each domain."""

    load: SpreadLoad
    replicas: Counter[str]
    """By domain; without those that are empty."""
    least: int
    most: int

    @property
    def is_violated(self) -> bool:
        """Whether replicas stand where it would let none of them come now."""
        return self.most - self.least > self.load.constraint.max_skew

    def beside(self, node: str) -> int:
        """Return how many there are on a node, or in its zone; 0 where it does not count."""
        domain = self.load.domains.of_node.get(node)
        return self.replicas[domain] if domain is not None else 0

    def crowds(self, node: str) -> bool:
        """Whether there are too many on a node, or in its zone."""
        return self.beside(node) - self.least > self.load.constraint.max_skew

    def alike(self, node: str) -> str | int | None:
        """Return what nodes share from which a replica may go to the same nodes: their zone, or the count."""
        domains = self.load.domains
        is_of_nodes = len(domains.all) == len(domains.of_node)
        return self.beside(node) if is_of_nodes else domains.of_node.get(node)

    def lets_in(self, node: str) -> bool:
        """Whether one more may come to a node: the scheduler still counts the one that is to leave."""
        is_counted = node in self.load.domains.of_node
        return is_counted and self.beside(node) + 1 - self.least <= self.load.constraint.max_skew

    def admits(self, from_node: str, to_node: str) -> bool:
        """Whether a replica may go from one node to another: it stays kept, or is violated less."""
        left, entered = self.load.domains.of_node.get(from_node), self.load.domains.of_node.get(to_node)
        if entered is None:
            return False
        before, after = self.beside(from_node), self.replicas[entered] + 1
        skew = self.load.constraint.max_skew
        if self.load.constraint.strict and not self.lets_in(to_node):
            return False
        if left == entered:
            return True
        least = self.least if left is None else min(self.least, before - 1)
        keeps = not self.is_violated and max(self.most, after) - least <= skew
        return keeps or (left is not None and after < before)

    def is_one_domain(self, from_node: str, to_node: str) -> bool:
        """Whether two nodes are in the same zone, or the same."""
        return self.load.domains.of_node.get(from_node) == self.load.domains.of_node.get(to_node)

    def __str__(self) -> str:
        """Say where it is violated worst."""
        constraint = self.load.constraint
        fullest = max(domain for domain, count in self.replicas.items() if count == self.most)
        fewest = min(self.load.domains.all, key=lambda domain: (self.replicas[domain], domain))
        said = f"{fullest} holds {self.most} of its replicas and {fewest} {self.replicas[fewest]}"
        least = f", minDomains {constraint.min_domains}" if constraint.min_domains > 1 else ""
        return f"{said} ({constraint.key}, maxSkew {constraint.max_skew}{least})"


_Crowded = tuple[NodeLoad, Candidate]


@dataclass(frozen=True, slots=True)
class Crowding:
    """What is remembered of replicas that crowd, by workload. In memory: after a restart it begins anew."""

    since: Since = field(default_factory=dict)
    chosen: Since = field(default_factory=dict)
    """When a move of theirs was chosen last."""
    stuck: frozenset[Key] = frozenset()
    """Those that had no move when one was last looked for."""


def spread_out(look: Look, before: Crowding, *, hot: bool) -> tuple[Crowding, dict[Key, str]]:
    """Choose the replicas that are to be spread; return what to remember, and why others do not move.

    A constraint has to be violated at each look of a whole cycle first: nodes come and go.
    """
    now, cycle_s = look.cluster.now, look.tuning.cycle_s
    counted = ((one.key, list(_counted(one))) for one in look.cluster.workloads if one.spreads)
    violated = {key: own for key, own in counted if any(one.is_violated for one in own)}
    crowding = _crowding(look, violated)
    since = {key: min(before.since.get(key, now), now) for key in crowding}
    chosen = {key: at for key, at in before.chosen.items() if key in crowding}
    said, stuck, most = dict[Key, str](), set[Key](), most_moves(look, hot=hot)
    # Whose move was chosen longest ago is first: some never begin, and would take the places of all others.
    for key in sorted(crowding, key=lambda key: chosen[key].timestamp() if key in chosen else 0.0):
        own, spreads = crowding[key], violated[key]
        how = next(str(one) for one in spreads if one.is_violated)
        if seconds_between(since[key], now) < cycle_s:
            said[key] = f"{how}: it is to be so for {cycle_s:.0f} s before one moves"
            continue
        stand = _stand(spreads)
        if stand in look.vain.get(key, ()):
            said[key] = f"{how}: {VAIN}"
            continue
        if not own or key in look.moved or len(look.moves) + look.lately >= most:
            # As it was said last: moves of others are no news here, nor is a sample that does not come.
            stuck |= {key} & before.stuck
            said[key] = f"{how}: {_STUCK if key in stuck else _MOVING}"
            continue
        move = next(_moves(look, spreads, own), None)
        if move is None:
            stuck.add(key)
            said[key] = f"{how}: {_STUCK}"
            continue
        said[key] = f"{how}: {_MOVING}"
        node, one, to, crowded = move
        take(look, node, one, to, how, aim=Aim.SPREAD, crowded=crowded, stand=stand)
        chosen[key] = now
    return Crowding(since, chosen, frozenset(stuck)), said


def let_in(one: Candidate) -> frozenset[str]:
    """Return the nodes onto which strict constraints of a replica would let a new one like it."""
    strict = [each for each in _bearing(_counted(one.workload), one.replica) if each.load.constraint.strict]
    names = one.replica.may_run_on
    return (
        frozenset(name for name in names if all(each.lets_in(name) for each in strict)) if strict else names
    )


def _stand(spreads: list[_Spread]) -> str:
    """Return how they stand, in short: of each constraint how many domains there are, and what each holds."""
    counted = ((one.load.constraint.key, len(one.load.domains.all), one.replicas) for one in spreads)
    # Sorted: in which order the twins are found may change with a restart.
    held = sorted((key, domains, sorted(replicas.items())) for key, domains, replicas in counted)
    return shortened(Aim.SPREAD.value, held)


def _counted(workload: WorkloadLoad) -> Iterator[_Spread]:
    nodes = {one.uid: one.node for one in workload.replicas}
    for load in workload.spreads:
        of_node, constraint = load.domains.of_node, load.constraint
        stood_on = (nodes[uid] for uid in load.counted if uid in nodes)
        replicas = Counter(of_node[node] for node in stood_on if node in of_node)
        # Without the empty domains: a workload has few replicas, and a cluster many nodes.
        is_full = len(load.domains.all) == len(replicas) >= constraint.min_domains
        least = min(replicas.values(), default=0) if is_full else 0
        yield _Spread(load, replicas, least, max(replicas.values(), default=0))


def _crowding(look: Look, violated: Mapping[Key, list[_Spread]]) -> dict[Key, list[_Crowded]]:
    """Return the workloads with replicas where there are too many, on nodes of their own pool.

    And which of these are ready and measured: where one sample does not come, it is violated all the same.
    """
    crowding = dict[Key, list[_Crowded]]()
    for node in look.cluster.nodes if violated else ():
        for workload, replica in look.by_node.get(node.name, ()):
            spreads = violated.get(workload.key, [])
            if replica.pool is node.pool and any(
                each.crowds(node.name) for each in _bearing(spreads, replica)
            ):
                own = crowding.setdefault(workload.key, [])
                if (one := measured(look, node, workload, replica)) is not None:
                    own.append((node, one))
    return crowding


def _bearing(spreads: Iterable[_Spread], replica: ReplicaLoad) -> Iterator[_Spread]:
    """Yield the constraints of a replica that count it itself: others change by no move of it."""
    uid = replica.uid
    return (spread for spread in spreads if uid in spread.load.pods and uid in spread.load.counted)


def _moves(
    look: Look, spreads: list[_Spread], own: list[_Crowded]
) -> Iterator[tuple[NodeLoad, Candidate, NodeLoad, frozenset[str]]]:
    """Yield the moves that help: what leaves which node, where there is room, and where it may not stay."""

    def rank(crowded: _Crowded) -> tuple[int, int, int, str]:
        node, one = crowded
        crowd = max(spread.beside(node.name) for spread in _bearing(spreads, one.replica))
        return -crowd, one.replica.priority, one.replica.qos, one.replica.uid

    pools = {node.name: node.pool for node in look.cluster.nodes}
    # By what counts of where they stand: many replicas that nothing helps would take long one by one.
    better_of = dict[tuple[object, ...], frozenset[str]]()
    for node, one in sorted((each for each in own if look.may_move(each[1])), key=rank):
        bearing, may_run_on = list(_bearing(spreads, one.replica)), one.replica.may_run_on
        alike = (node.pool, may_run_on, *((id(spread), spread.alike(node.name)) for spread in bearing))
        if alike not in better_of:
            better_of[alike] = frozenset(
                name
                for name in may_run_on
                if pools.get(name) is node.pool
                and all(spread.admits(node.name, name) for spread in bearing)
                and any(
                    spread.crowds(node.name) and not spread.is_one_domain(node.name, name)
                    for spread in bearing
                )
            )
        better = better_of[alike]
        to = (
            target_for(look, replace(one, replica=replace(one.replica, may_run_on=better)))
            if better
            else None
        )
        if to is not None:
            yield node, one, to, frozenset(pools) - better
