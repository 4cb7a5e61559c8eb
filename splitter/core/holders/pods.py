"""Counts pods: which serve, which a status admits, which find no place."""

from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter

from splitter.core.model import PodView

Among = Callable[[PodView], bool]  # which pods are counted
is_available: Among = attrgetter("available")  # ready on a node that stays
serves: Among = attrgetter("serves")  # clients would miss it: ready, on a doomed node or not

# Kubernetes leaves pods on a silent node for 300 s (the default tolerationSeconds); this is a bit more.
SILENT_S = 360.0


def floor_of(replicas: int, surge: int, unavailable: int) -> int:
    """Return F, the available replicas that no write of splitter goes below (promise 1)."""
    return max(0, replicas if surge >= 1 else replicas - unavailable)


def counting(pods: Sequence[PodView]) -> list[PodView]:
    """Return the pods that a ReplicaSet counts as its replicas."""
    return [pod for pod in pods if pod.counts]


def stuck(pods: Sequence[PodView]) -> int:
    """Count the replicas that the scheduler cannot place: they take no room from others."""
    return sum(pod.counts and pod.unschedulable_since is not None for pod in pods)


def doomed_or_lost(pods: Sequence[PodView]) -> int:
    """Count the replicas that are about to go or gone: each is replaced at once on on-demand."""
    return sum(pod.is_to_be_replaced for pod in pods)


def available_of(pods: Sequence[PodView], admitted: int) -> int:
    """Count the available among the pods that a status admits as such: those that are ready for longest.

    The status counts those on doomed nodes, and none before its `minReadySeconds`: a doomed one must not
    be counted in place of one that has just become ready.
    """
    return sum(map(is_available, admitted_of(pods, admitted)))


def admitted_of(pods: Sequence[PodView], admitted: int | None) -> list[PodView]:
    """Return the ready pods, but no more than a status admits, if one is given."""
    ready = [(pod.ready_since, pod.available, pod) for pod in pods if pod.counts and pod.ready_since]
    if admitted is not None and admitted < len(ready):
        ready = sorted(ready, key=itemgetter(0, 1))[: max(0, admitted)]
    return [pod for _, _, pod in ready]
