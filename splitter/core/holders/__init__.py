"""Holds what depends on the kind of an object that has replicas: `holder_of` gives a `Holder` to ask.

Rules ask a holder what it surely keeps, what it may lose and what its controller does next; they do not ask
whether it is a Deployment or a StatefulSet. `shares` has the arithmetic of MAKE and BREAK over holders. What
depends on the kind of the source itself is here.
"""

from collections.abc import Sequence

from splitter.core.holders.holder import Deployment, Holder, ReplicaSet, floor_of, may_roll
from splitter.core.holders.statefulset import StatefulSet
from splitter.core.model import Attachment, Observation, ReplicaSetView, SourceView, TwinView
from splitter.core.replica import Replica


def holder_of(view: ReplicaSetView | TwinView) -> Holder:
    """Return what can be asked of a parked ReplicaSet, of a StatefulSet that is the source, or of a twin."""
    first = view.first_ordinal
    if isinstance(view, ReplicaSetView):
        return ReplicaSet(view) if first is None else StatefulSet(view, first, view.rolls)
    if first is None:
        return Deployment(view)
    return StatefulSet(view, first, may_roll(view), view.observed)


def holders_of(observed: Observation) -> tuple[Holder, ...]:
    """Return what splitter scales: what is parked, and the twins."""
    parked = observed.attached_as(Attachment.PARKED)
    return (*map(holder_of, parked), *map(holder_of, observed.twins))


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


def updated_members(source: SourceView, pods: Sequence[Replica]) -> Sequence[Replica] | None:
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
