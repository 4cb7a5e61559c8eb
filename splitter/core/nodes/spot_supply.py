"""Whether spot can be had: what autoscalers say about their latest attempts to buy it.

`kube.observe` asks `spot_blocked` in each reconcile; the answer becomes `Observation.blocked`. Two signals
are understood: the groups that cluster-autoscaler has stopped asking for (its status ConfigMap, `Backoff`),
and the NodeClaims for which Karpenter found no machine (`InsufficientCapacityError`). A wrong yes costs
on-demand replicas for minutes, a wrong no costs the grace: when in doubt, spot is not blocked.
Source: R10; docs/adr/0014.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache

from splitter.core.nodes.facts import NodeState, Taint
from splitter.core.nodes.fit import MatchExpression, PodRequest, may_run_on
from splitter.core.nodes.signals import AHEAD, HINT_TAINTS, NOTICE_TAINTS

REFUSED_S = 195.0
"""Karpenter leaves an offering alone for 180 s after a refusal. The replica that stays pending makes it
ask again then: these seconds more let that answer arrive before all replicas are asked for."""
STATUS_STALE_S = 600.0
"""cluster-autoscaler renews its status in each loop (10 s; minutes in the largest clusters)."""
INSUFFICIENT_CAPACITY = frozenset({"InsufficientCapacityError", "InsufficientCapacity"})
CAPACITY_TYPE = "karpenter.sh/capacity-type"
NODEPOOL = "karpenter.sh/nodepool"

# Where providers write the name of the group that a node belongs to.
POOL_LABELS = (
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
)
_KIND_LABELS = (
    *POOL_LABELS,
    NODEPOOL,
    "topology.kubernetes.io/zone",
    "kubernetes.io/arch",
    "node.kubernetes.io/instance-type",
)
_PASSING_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A group of cluster-autoscaler's, by the name that it has there (of an ASG, a MIG, a scale set)."""

    name: str
    backoff: bool
    """The last attempts to grow failed; it is left alone for 5 to 30 minutes."""
    why: str = ""
    """The provider's error code, such as QUOTA_EXCEEDED."""


@dataclass(frozen=True, slots=True)
class AutoscalerStatus:
    """What cluster-autoscaler said last, and when. It says nothing any more when it has died since."""

    at: datetime
    groups: tuple[NodeGroup, ...]

    @property
    def stale_at(self) -> datetime:
        """From then on it says nothing any more."""
        return self.at + timedelta(seconds=STATUS_STALE_S)


@dataclass(frozen=True, slots=True)
class Claim:
    """What one of Karpenter's NodeClaims asks for."""

    requirements: tuple[MatchExpression, ...] = ()
    taints: tuple[Taint, ...] = ()

    @property
    def for_spot(self) -> bool:
        """Say whether nothing but spot would do."""
        return any(
            wanted.key == CAPACITY_TYPE and wanted.operator == "In" and set(wanted.values) == {"spot"}
            for wanted in self.requirements
        )

    def would_suit(self, pod: PodRequest) -> bool:
        """Say whether the machine could have held such a replica, as far as selector and taints tell."""
        chosen = all(
            wanted.matches({wanted.key: pod.node_selector[wanted.key]})
            for wanted in self.requirements
            if wanted.key in pod.node_selector
        )
        return chosen and all(
            any(toleration.tolerates(taint) for toleration in pod.tolerations)
            for taint in self.taints
            if taint.effect != "PreferNoSchedule"
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Karpenter found no machine for a NodeClaim."""

    at: datetime
    claim: Claim

    @property
    def stale_at(self) -> datetime:
        """From then on it says nothing any more."""
        return self.at + timedelta(seconds=REFUSED_S)

    def concerns(self, pod: PodRequest) -> bool:
        """Say whether it was spot for such a replica that could not be had."""
        return self.claim.for_spot and self.claim.would_suit(pod)


@dataclass(frozen=True, slots=True)
class Blocked:
    """Spot cannot be had: why, for people, and until when that holds if nobody says more."""

    why: str
    until: datetime


def kind_of(node: NodeState) -> tuple[str | None, ...]:
    """Return what nodes have in common that an autoscaler buys alike: pool, zone, machine, spot or not.

    One node of each kind tells as much as all 5,000 of them.
    """
    return (node.capacity, *(node.labels.get(label) for label in _KIND_LABELS))


def spot_blocked(
    pod: PodRequest,
    nodes: Iterable[NodeState],
    status: AutoscalerStatus | None,
    refusals: Iterable[Refusal],
    now: datetime,
) -> Blocked | None:
    """Return why no spot machine can be had for such a replica now; None when there may be one.

    `nodes` are one of each kind that is known (`kind_of`): their labels tell which groups are spot, and which
    could host it. Where both autoscalers buy spot for it, both have to say no.
    """
    refused = [
        one for one in refusals if one.at - AHEAD <= now < one.stale_at and one.concerns(pod)
    ]  # one of the future was written by nobody who saw it happen
    backed_off = (
        status is not None and now < status.stale_at and any(group.backoff for group in status.groups)
    )
    if not refused and not backed_off:
        return None
    known = list(nodes)
    groups = _spot_groups(pod, known, status.groups) if status and now < status.stale_at else []
    if not all(group.backoff for group in groups):
        return None
    if refused:
        last = max(refusal.stale_at for refusal in refused)
        return Blocked("Karpenter finds no spot machine (InsufficientCapacityError)", last)
    karpenter = any(node.is_spot and NODEPOOL in node.labels and _could_host(pod, node) for node in known)
    if status is None or not groups or karpenter:
        return None
    named = [f"{group.name} ({group.why})" if group.why else group.name for group in groups[:2]]
    if len(groups) > len(named):
        named.append(f"{len(groups) - len(named)} more")
    return Blocked(f"cluster-autoscaler backs off from {', '.join(named)}", status.stale_at)


def lasts(taint: Taint) -> bool:
    """Say whether a taint is somebody's wish, and not the state a node is in: that passes, or ends the node.

    >>> lasts(Taint("team", "data")), lasts(Taint("node.kubernetes.io/not-ready"))
    (True, False)
    """
    passing: Mapping[str, object] = NOTICE_TAINTS
    return not (taint.key in passing or taint.key in HINT_TAINTS or taint.key.startswith(_PASSING_TAINTS))


def _spot_groups(
    pod: PodRequest, nodes: Iterable[NodeState], groups: tuple[NodeGroup, ...]
) -> list[NodeGroup]:
    """Return the groups that buy spot and could host such a replica.

    A group is known by a node of its pool; one without nodes by "spot" in its name, and might host it.
    """
    pools: dict[str, list[NodeState]] = defaultdict(list)
    for node in nodes:
        for label in POOL_LABELS:
            if (pool := node.labels.get(label)) is not None:
                pools[pool].append(node)
    spot_groups = []
    for group in groups:
        members = [node for pool in pools if _is_pool_of(pool, group.name) for node in pools[pool]]
        if members:
            suits = any(node.is_spot and _could_host(pod, node) for node in members)
        else:
            suits = "spot" in group.name.lower()
        if suits:
            spot_groups.append(group)
    return spot_groups


@lru_cache(maxsize=4096)  # 60 pools and as many groups, asked for in each reconcile while one is in backoff
def _is_pool_of(pool: str, group: str) -> bool:
    """Say whether a group's name has the pool's in it as whole words: "a" is in "eks-a-7", not in "spark".

    >>> _is_pool_of("spot-workers", "eks-spot-workers-4ac1"), _is_pool_of("pot", "eks-spot-workers-4ac1")
    (True, False)
    """
    return re.search(rf"(?<![0-9A-Za-z]){re.escape(pool)}(?![0-9A-Za-z])", group) is not None


def _could_host(pod: PodRequest, node: NodeState) -> bool:
    """Say whether a new machine like this one could hold such a replica: what is wrong with it will pass."""
    return may_run_on(pod, replace(node, taints=tuple(filter(lasts, node.taints))))
