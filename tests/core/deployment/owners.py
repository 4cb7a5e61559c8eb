"""A workload on its way between its own ReplicaSet and the twins."""

from dataclasses import replace
from typing import Any

from builders import pod, replica_set, source
from splitter.core.model import Attachment, ReplicaSetView, SourceView
from splitter.core.replica import Pool, Replica

N = 5
OD, SPOT = Pool.ON_DEMAND, Pool.SPOT


def running(
    on_demand: int, spot: int, *, born: bool = False, template_hash: str = "h1"
) -> tuple[Replica, ...]:
    """Return ready pods on nodes of both kinds; labelled for their pools or not yet."""
    made = []
    for pool, count in ((OD, on_demand), (SPOT, spot)):
        for n in range(count):
            label = pool if born else None
            one = pod(f"{pool}-{n}", on_spot=pool is SPOT, born=label, revision=template_hash)
            made.append(one)
    return tuple(made)


def home(of: tuple[Replica, ...], **fields: Any) -> ReplicaSetView:  # noqa: ANN401
    """Return the source's own ReplicaSet."""
    return replace(replica_set("web-h1", of=of, attachment=Attachment.ATTACHED), **fields)


def labelled(**fields: Any) -> SourceView:  # noqa: ANN401
    """Return a paused source of N replicas."""
    return source(N, **fields)
