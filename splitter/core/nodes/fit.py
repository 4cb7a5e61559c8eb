"""How many more replicas the healthy spot nodes have room for, node by node.

The observer calls `count_headroom` with what each node holds; the result is `RebalanceInput.fit_spot`, which
opens the window in which spot is asked for replicas after a loss. It is counted per node, never as a
cluster-wide sum: 16 nodes with half a replica of room each have room for none. It does not know about
anti-affinity, topology spread, host ports or volumes, so it may be too high: such a replica stays
Pending, which costs nothing. Source: R11.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal

from splitter.core.nodes.facts import Health, NodeState, Taint

# A twin of the default templates has 69 requirements, so 14,000 nodes are looked at.
_MOST_COMPARED: Final = 1_000_000

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


@dataclass(frozen=True, slots=True)
class MatchExpression:
    """One expression of a nodeSelectorTerm."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether labels satisfy it, as the scheduler reads it (an absent label passes NotIn)."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        try:
            actual, bound = int(value or ""), int(self.values[0])
        except (ValueError, IndexError):
            return False  # what is no whole number never matches
        return actual > bound if self.operator == "Gt" else actual < bound


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One nodeSelectorTerm: all its expressions must match; an empty term matches nothing."""

    expressions: tuple[MatchExpression, ...] = ()
    fields: tuple[MatchExpression, ...] = ()
    """matchFields; Kubernetes knows only `metadata.name`."""

    def matches(self, node: NodeState) -> bool:
        """Say whether a node satisfies it."""
        if not self.expressions and not self.fields:
            return False
        return all(expression.matches(node.labels) for expression in self.expressions) and all(
            expression.matches({"metadata.name": node.name}) for expression in self.fields
        )


@dataclass(frozen=True, slots=True)
class Toleration:
    """One toleration; no key tolerates every key, no effect every effect."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Say whether this taint is tolerated."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.value == taint.value


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """One topologySpreadConstraint of a pod, as the scheduler reads it."""

    key: str
    max_skew: int
    strict: bool
    """DoNotSchedule: a pod that would violate it stays Pending."""
    selector: tuple[MatchExpression, ...] | None = None
    """The labels of the pods that it counts; None, and an empty one without `label_keys`: it counts none."""
    label_keys: tuple[str, ...] = ()
    """matchLabelKeys: where the pod that is placed bears these labels, it counts only pods alike."""
    min_domains: int = 1
    """With fewer domains the least count is taken for 0."""
    honors_affinity: bool = True
    """It counts only on nodes that the pod's own selector and affinity admit."""
    honors_taints: bool = False
    """It counts only on nodes whose taints the pod tolerates."""

    def counts(self, labels: Mapping[str, str], own: Mapping[str, str]) -> bool:
        """Whether it counts a pod with these labels, on a pod that bears its `own`."""
        keys = [key for key in self.label_keys if key in own]
        # One that asks for nothing matches every pod, and the scheduler counts none by it.
        return (
            self.selector is not None
            and bool(self.selector or keys)
            and all(expression.matches(labels) for expression in self.selector)
            and all(labels.get(key) == own[key] for key in keys)
        )


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What one replica asks of a node: resources in the units of `NodeFacts.allocatable`, and where."""

    requests: Mapping[str, int] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[NodeTerm, ...] = ()
    """Required node affinity: ORed; none = anywhere."""
    tolerations: tuple[Toleration, ...] = ()
    requirements: int = 1
    """How many there are, with values and tolerations: what it takes to hold one node against them."""

    @property
    def most_nodes(self) -> int:
        """Of how many nodes it is asked whether they would do, so that no pod takes others' time.

        Each node is compared with its requirements and with each resource that the pod requests.
        """
        return _MOST_COMPARED // max(1, self.requirements + len(self.requests))


@dataclass(frozen=True, slots=True)
class NodeHeadroom:
    """A node and what is promised on it already: the sum of its pods' requests, and `pods` itself."""

    node: NodeState
    used: Mapping[str, int] = field(default_factory=dict)


def count_headroom(
    pod: PodRequest, nodes: Iterable[NodeHeadroom], reserved: int = 0, enough: int | None = None
) -> int:
    """Return how many more such replicas the healthy spot nodes can hold.

    `reserved` is what other workloads were given in the last seconds and is not bound yet: two workloads
    that see the same hole must not both jump into it. The walk over the rooms ends when `enough` fit, or
    after `most_nodes`: then there may be more room than it says. Never negative, never raises.

    Example: two nodes with 1 CPU free each have 2 CPU in sum, and room for no replica of 1.5 CPU.
    """
    fits = -reserved
    healthy = (one for one in nodes if one.node.is_spot and one.node.health is Health.HEALTHY)
    for one in islice(healthy, pod.most_nodes):
        if may_run_on(pod, one.node):
            fits += count_headroom_on(pod, one)
            if enough is not None and fits >= enough:
                break
    return max(0, fits)


def count_headroom_on(pod: PodRequest, one: NodeHeadroom) -> int:
    """Return how many such replicas one node's free resources hold; the pod slots are one of them."""
    wanted = {**{name: amount for name, amount in pod.requests.items() if amount > 0}, "pods": 1}
    free = {name: one.node.allocatable.get(name, 0) - one.used.get(name, 0) for name in wanted}
    return max(0, min(free[name] // amount for name, amount in wanted.items()))


def asks_for(pod: PodRequest, node: NodeState) -> bool:
    """Say whether selector and required affinity let such a replica onto a node, whatever its taints."""
    return all(node.labels.get(key) == value for key, value in pod.node_selector.items()) and (
        not pod.affinity or any(term.matches(node) for term in pod.affinity)
    )


def may_run_on(pod: PodRequest, node: NodeState) -> bool:
    """Say whether selector, affinity and taints let such a replica onto a node."""
    return asks_for(pod, node) and not any(repels(taint, pod) for taint in node.taints)


def repels(taint: Taint, pod: PodRequest) -> bool:
    """Say whether a taint keeps such a replica off; PreferNoSchedule only weighs."""
    return taint.effect in {"NoSchedule", "NoExecute"} and not any(
        toleration.tolerates(taint) for toleration in pod.tolerations
    )
