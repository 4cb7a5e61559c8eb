"""What depends on the kind of the source: how it is held, how it rolls, and what it loses."""

from collections.abc import Sequence

from splitter.core.holders.pods import floor_of
from splitter.core.model import PodView, SourceView


def is_held(source: SourceView) -> bool:
    """Whether the source makes no pods, since it is paused or its N is saved."""
    if source.stateful is None:
        return source.paused
    return source.stateful.saved is not None and not source.stateful.is_written_by_others


def floor_in_roll(source: SourceView) -> int:
    """Return what a roll keeps by the source's own strategy: a StatefulSet's takes a member."""
    surge = source.max_surge if source.stateful is None else 0
    return floor_of(source.replicas, surge, source.max_unavailable)


def loses_volumes(source: SourceView) -> bool:
    """Whether a lowering deletes its volumes: `whenScaled: Delete`."""
    return source.stateful is not None and source.stateful.deletes_claims


def partition(source: SourceView) -> int:
    """Return how many of its pods keep the old template, whatever is rolled."""
    return source.stateful.partition if source.stateful is not None else 0


def updated(source: SourceView, pods: Sequence[PodView]) -> Sequence[PodView] | None:
    """Return those of a StatefulSet's pods that are of its newest revision, or that its partition holds back.

    None: it is no StatefulSet.
    """
    stateful = source.stateful
    if stateful is None:
        return None
    kept = stateful.first_ordinal + stateful.partition
    return [
        pod
        for pod in pods
        if source.observed
        and (pod.revision == stateful.revision or (pod.ordinal is not None and pod.ordinal < kept))
    ]
