"""What a scheduler prefers among the nodes that fit a pod.

Source: pkg/scheduler/framework/plugins/{nodeaffinity,interpodaffinity,podtopologyspread} of Kubernetes 1.36.
"""

from collections.abc import Sequence
from typing import Final

from world.controllers.fitting import Placed, preference
from world.kinds import Raw
from world.selectors import selects

_HOST: Final = "kubernetes.io/hostname"


def dislikes(pod: Raw, node: Raw, placed: Sequence[Placed]) -> tuple[int, int]:
    """Return how little a node is preferred: by the weights of wishes, and by how crowded its domains are."""
    labels = node["metadata"].get("labels") or {}
    name = node["metadata"]["name"]
    here = [one.pod for one in placed if one.node["metadata"]["name"] == name]
    repelled = sum(_repels(one, pod) + _repels(pod, one) for one in here)
    crowd = sum(
        selects(spread.get("labelSelector"), other) and _is_in(at, spread["topologyKey"], labels)
        for spread in pod["spec"].get("topologySpreadConstraints") or ()
        if spread["whenUnsatisfiable"] == "ScheduleAnyway"
        for other, at in placed
        if "deletionTimestamp" not in other["metadata"]
    )
    return repelled - preference(pod, node), crowd


def _is_in(node: Raw, key: str, labels: dict[str, str]) -> bool:
    """Whether a node is in the domain of one with these labels."""
    return (node["metadata"].get("labels") or {}).get(key) == labels.get(key)


def _repels(one: Raw, other: Raw) -> int:
    """Return by how much a pod prefers to be without another on its node."""
    affinity = (one["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    return sum(
        wish["weight"]
        for wish in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        if wish["podAffinityTerm"]["topologyKey"] == _HOST
        and one["metadata"]["namespace"] == other["metadata"]["namespace"]
        and selects(wish["podAffinityTerm"].get("labelSelector"), other)
    )
