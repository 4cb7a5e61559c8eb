"""Compares what a workload's replicas ask of nodes with both pools: whether each pool can ever take one.

`kube.pool_fit` calls `compare` with what each twin asks for, and with the nodes that there are; the answer
becomes `Observation.pools`. What contradicts a pool's own labels is certain, whatever nodes come. What only
fails on the nodes that there are is not: an autoscaler may bring others. It is never about free room.
Source: H19, H39; docs/adr/0099.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import Final

from splitter.core.nodes.facts import Health, NodeState
from splitter.core.nodes.fit import (
    MatchExpression,
    NodeTerm,
    PodRequest,
    SpreadConstraint,
    may_run_on,
)

# Comparing costs requirements times marks: 22,000 for a twin of the default templates.
_MOST_COMPARED: Final = 500_000
_NAMED: Final = 3
_SPOT_WORDS: Final = frozenset({"spot", "preemptible", "interruptible"})
_YES: Final = frozenset({"", "true", "yes", "1"})
NOTHING_LIKE_SPOT: Final = "no node has a label that looks like it"


@dataclass(frozen=True, slots=True)
class Barrier:
    """Why no node of a pool takes a replica."""

    why: str
    certain: bool = False
    """It holds whatever nodes come; otherwise it was judged by the nodes that there are."""
    room_for: int = 0
    """So many replicas find a node there all the same."""


@dataclass(frozen=True, slots=True)
class PoolFit:
    """What keeps a workload's replicas out of a pool; None if nothing is known to."""

    on_demand: Barrier | None = None
    spot: Barrier | None = None
    no_spot_node: str = ""
    """No node is recognised as spot: what looks like spot all the same. Empty: one is, or no node is seen."""

    @property
    def none_on_spot(self) -> bool:
        """Whether no replica at all can go to spot now."""
        return bool(self.no_spot_node) or (self.spot is not None and not self.spot.room_for)


@dataclass(frozen=True, slots=True)
class Asked:
    """What one twin's replicas ask for."""

    pod: PodRequest
    spreads: tuple[SpreadConstraint, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the pods."""
    node_name: str = ""
    """`spec.nodeName` of the template: the scheduler is passed over."""
    replicas: int = 0
    """How many the pool may have to take."""


def contradiction(asked: Asked, marks: Sequence[NodeTerm]) -> str:
    """Return what of a template contradicts all marks of a pool, for people; empty: nothing does.

    `marks` are terms, one of which each node of the pool matches. No marks: not known. A required affinity
    without any term that could match contradicts every pool.
    """
    pod = asked.pod
    if asked.node_name:
        return f"spec.nodeName {asked.node_name}"
    if pod.affinity and not any(term.expressions or term.fields for term in pod.affinity):
        return "a required node affinity of empty terms, which match no node"
    chosen = tuple(MatchExpression(key, "In", (value,)) for key, value in pod.node_selector.items())
    # An empty term matches no node, whatever is in the others.
    terms = [term.expressions for term in pod.affinity if term.expressions or term.fields] or [()]
    known = [mark.expressions for mark in marks]
    cost = (pod.requirements + len(terms) * (len(chosen) + 1)) * sum(map(len, known))
    if not known or cost > _MOST_COMPARED:
        return ""
    if any(_agree((*chosen, *term, *mark)) for term in terms for mark in known):
        return ""
    selected = [f"nodeSelector {one.key}={one.values[0]}" for one in chosen if not _suits(one, known)]
    once = dict.fromkeys(one for term in terms for one in term)
    required = [f"required affinity {_text(one)}" for one in once if not _suits(one, known)]
    return _listed(selected or required) or "a node selector and a required affinity that no such node has"


def compare(
    asked: Asked, marks: Sequence[NodeTerm], nodes: Iterable[NodeState], *, spot: bool
) -> Barrier | None:
    """Return why no node of a pool takes a replica, however empty; None: one does, or it is not known.

    The walk over the nodes ends at the first that would do, or after as many as such a pod is held against
    (`PodRequest.most_nodes`). Without a healthy node in the pool only what is certain is said.
    """
    if why := contradiction(asked, marks):
        return Barrier(why, certain=True)
    there, fitting = 0, list[NodeState]()
    for node in nodes:
        if node.is_spot is not spot or node.health is not Health.HEALTHY:
            continue
        there += 1
        if there > asked.pod.most_nodes:
            return None
        if may_run_on(asked.pod, node):
            fitting.append(node)
            if not asked.spreads and _is_large_enough(asked.pod, node):
                return None
    if not there or not fitting:
        return None  # `causes.of_nodes` says why
    pool = "spot" if spot else "on-demand"
    if not any(_is_large_enough(asked.pod, node) for node in fitting):
        return Barrier(f"no {pool} node is large enough for a replica, however empty ({_wanted(asked.pod)})")
    return _kept_by_spread(asked, fitting, pool)


def looks_like_spot(nodes: Iterable[NodeState]) -> str:
    """Return what of nodes that are not recognised looks like spot, for people; empty: nothing does.

    >>> from splitter.core.nodes.facts import CapacityClass, NodeState
    >>> looks_like_spot([NodeState("a", "1", CapacityClass.UNKNOWN, labels={"node-type": "spot"})])
    'node a has the label node-type=spot'
    """
    for node in nodes:
        if node.contradiction:
            return f"on node {node.name} {node.contradiction}"
        for key, value in sorted(node.labels.items()):
            words = set(key.lower().replace("/", "-").replace(".", "-").replace("_", "-").split("-"))
            if value.lower() in _SPOT_WORDS or (words & _SPOT_WORDS and value.lower() in _YES):
                return f"node {node.name} has the label {key}{f'={value}' if value else ''}"
    return ""


def _kept_by_spread(asked: Asked, fitting: Sequence[NodeState], pool: str) -> Barrier | None:
    """Return what a strict spread constraint keeps out of a pool: all replicas, or more than so many."""
    for one in (one for one in asked.spreads if one.strict):
        domains = {node.labels[one.key] for node in fitting if one.key in node.labels}
        if not domains:
            return Barrier(
                f"no {pool} node has the label {one.key}, which a topologySpreadConstraint asks for"
            )
        most = one.max_skew * len(domains)
        few = len(domains) < one.min_domains and one.counts(asked.labels, asked.labels)
        if few and most < asked.replicas:
            return Barrier(
                f"its {pool} nodes have {len(domains)} of the {one.min_domains} values of {one.key} that a"
                f" topologySpreadConstraint asks for (minDomains), so at most {most} of {asked.replicas}"
                " replicas find a node there",
                room_for=most,
            )
    return None


def _is_large_enough(pod: PodRequest, node: NodeState) -> bool:
    if not node.allocatable:
        return True
    # The first resource that a node lacks tells: a template may ask for thousands.
    wanted = chain(pod.requests.items(), [("pods", 1)])
    return all(node.allocatable.get(name, 0) >= amount for name, amount in wanted if amount > 0)


def _wanted(pod: PodRequest) -> str:
    return _listed([f"{name} {_amount(name, amount)}" for name, amount in sorted(pod.requests.items())])


def _amount(name: str, amount: int) -> str:
    return (
        f"{amount / 1000:g}"
        if name == "cpu"
        else f"{amount / 2**20:.0f}Mi"
        if name == "memory"
        else str(amount)
    )


def _suits(one: MatchExpression, known: Sequence[tuple[MatchExpression, ...]]) -> bool:
    return any(_agree((one, *mark)) for mark in known)


def _agree(expressions: Iterable[MatchExpression]) -> bool:
    """Say whether the labels of one node could satisfy all of these."""
    by_key = defaultdict[str, list[MatchExpression]](list)
    for one in expressions:
        by_key[one.key].append(one)
    return all(map(_has_a_value, by_key.values()))


def _has_a_value(about_one_key: Sequence[MatchExpression]) -> bool:
    """Say whether a label could be absent, or have a value, so that all of these match; in linear time."""
    if all(one.matches({}) for one in about_one_key):
        return True
    if any(one.operator == "DoesNotExist" for one in about_one_key):
        return False
    least, most = (_bounds(about_one_key, operator) for operator in ("Gt", "Lt"))
    if None in least or None in most:
        return False  # no value is greater than what is no whole number
    low = max((bound for bound in least if bound is not None), default=-inf)
    high = min((bound for bound in most if bound is not None), default=inf)
    named = [set(one.values) for one in about_one_key if one.operator == "In"]
    if not named:
        return high - low > 1  # and any other value than the excluded ones, of which there are a few
    excluded = {value for one in about_one_key if one.operator == "NotIn" for value in one.values}
    values = set.intersection(*named) - excluded
    if not least and not most:
        return bool(values)
    return any(low < number < high for number in map(_number, values) if number is not None)


def _bounds(about_one_key: Sequence[MatchExpression], operator: str) -> list[int | None]:
    return [_number(next(iter(one.values), "")) for one in about_one_key if one.operator == operator]


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _text(one: MatchExpression) -> str:
    return f"{one.key} {one.operator}{f' ({_listed(one.values)})' if one.values else ''}"


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more
