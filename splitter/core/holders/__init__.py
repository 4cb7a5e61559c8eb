"""Holds what depends on the kind of an object that has replicas: `holder_of` gives a `Holder` to ask.

Rules ask a holder what it surely keeps, what it may lose and what its controller does next; they do not ask
whether it is a Deployment's or a StatefulSet. `shares` has the arithmetic of MAKE and BREAK over holders.
"""

from splitter.core.holders.deployment import Deployment
from splitter.core.holders.holder import Holder, ReplicaSet, may_roll
from splitter.core.holders.statefulset import StatefulSet
from splitter.core.model import Attachment, Observation, ReplicaSetView, TwinView


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
