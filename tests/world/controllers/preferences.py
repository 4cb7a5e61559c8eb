"""What a scheduler prefers among the nodes that fit, and how even it has to spread.

Source: pkg/scheduler/framework/plugins/{nodeaffinity,interpodaffinity,podtopologyspread} of Kubernetes 1.36.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from world.kinds import Raw
from world.selectors import expressions, fit, selects

_WISHED = "preferredDuringSchedulingIgnoredDuringExecution"
_HOST = "kubernetes.io/hostname"


class Surroundings:
    """The nodes that a pod may be on by its selector and affinity, and the pods on each of them."""

    def __init__(self, nodes: Sequence[Raw], there: Mapping[str, Sequence[Raw]]) -> None:
        self._nodes = nodes
        self._there = there

    def spreads(self, pod: Raw, node: Raw) -> bool:
        """Whether a node keeps the constraints that a pod's template makes strict (filtering.go)."""
        for one in _constraints(pod, "DoNotSchedule"):
            counts = self._counts(pod, one)
            domain = (node["metadata"].get("labels") or {}).get(one["topologyKey"], "")
            if domain not in counts:
                return False
            least = 0 if len(counts) < one.get("minDomains", 1) else min(counts.values())
            itself = selects(one.get("labelSelector"), pod)
            if counts[domain] + itself - least > one["maxSkew"]:
                return False
        return True

    def dislikes(self, pod: Raw, node: Raw) -> tuple[int, int]:
        """Return how little a node is preferred: by the weights of affinities, and by how crowded it is."""
        labels = node["metadata"].get("labels") or {}
        affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        drawn = sum(
            one["weight"]
            for one in affinity.get(_WISHED) or ()
            if fit(expressions(one["preference"].get("matchExpressions")), labels)
        )
        on_it = self._there.get(node["metadata"]["name"], ())
        repelled = sum(_repels(one, pod) + _repels(pod, one) for one in on_it)
        crowd = sum(
            self._counts(pod, one).get(labels.get(one["topologyKey"], ""), 0)
            for one in _constraints(pod, "ScheduleAnyway")
        )
        return repelled - drawn, crowd

    def _counts(self, pod: Raw, constraint: Raw) -> Counter[str]:
        """Return how many pods that a constraint counts each domain holds."""
        counts: Counter[str] = Counter()
        for node in self._nodes:
            domain = (node["metadata"].get("labels") or {}).get(constraint["topologyKey"])
            if domain is not None:
                counts[domain] += sum(
                    _counts(constraint, pod, other) for other in self._there.get(node["metadata"]["name"], ())
                )
        return counts


def _constraints(pod: Raw, unless: str) -> list[Raw]:
    all_of_them = pod["spec"].get("topologySpreadConstraints") or ()
    return [one for one in all_of_them if one["whenUnsatisfiable"] == unless]


def _counts(constraint: Raw, pod: Raw, other: Raw) -> bool:
    """Whether a constraint of a pod counts another: it is selected, and does not end."""
    labels, others = pod["metadata"].get("labels") or {}, other["metadata"].get("labels") or {}
    alike = all(labels.get(key) == others.get(key) for key in constraint.get("matchLabelKeys") or ())
    same = other["metadata"]["namespace"] == pod["metadata"]["namespace"]
    ends = "deletionTimestamp" in other["metadata"]
    return same and alike and not ends and selects(constraint.get("labelSelector"), other)


def _repels(one: Raw, other: Raw) -> int:
    """Return by how much a pod prefers to be without another on its node."""
    affinity = (one["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    return sum(
        wish["weight"]
        for wish in affinity.get(_WISHED) or ()
        if wish["podAffinityTerm"]["topologyKey"] == _HOST
        and one["metadata"]["namespace"] == other["metadata"]["namespace"]
        and selects(wish["podAffinityTerm"].get("labelSelector"), other)
    )
