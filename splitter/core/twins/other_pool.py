"""Pods of a twin that stand in the other pool: they are replaced one at a time, make before break.

A pod that a twin took over keeps the rules of its source, so it stands where it stood. Restored out of a
backup it is scheduled anew, anywhere; and a node may get another capacity type. Nobody ends such a pod by
itself. Source: R55, docs/adr/0083.
"""

from collections.abc import Iterator

from splitter.core.hot_nodes import Aim, LeavingReplica
from splitter.core.model import Pool, TwinView, seconds_between
from splitter.core.plan import PlanInput
from splitter.core.twins import move_limit

_WHERE = {Pool.ON_DEMAND: "it stands on a spot node", Pool.SPOT: "it stands on an on-demand node"}


def in_other_pool(this: PlanInput) -> Iterator[LeavingReplica]:
    """Yield the pods that stand where their twin starts none.

    Those of on-demand first: who was to be safe is not. None while too many other workloads are moved, of a
    twin that rests, of spot while no spot node has room; nor one that could not leave within the last day.
    """
    if move_limit.is_reached(this):
        return
    for twin in this.observed.twins:
        vain = _in_vain(this, twin)
        has_room = twin.pool is Pool.ON_DEMAND or this.observed.fit_spot > 0
        if vain is None or not has_room:
            continue
        why = f"{_WHERE[twin.pool]}, where {twin.name} starts none"
        for pod in twin.pods:
            if pod.uid in twin.strays and pod.available and pod.uid not in vain:
                yield LeavingReplica(pod.uid, why, aim=Aim.POOL, stand=pod.uid)


def _in_vain(this: PlanInput, twin: TwinView) -> set[str] | None:
    """Return whose replacement was taken back within a day; None: the last one was a short while ago."""
    now, rest_s = this.observed.now, this.rules.relief.rest_s
    vain = {
        one.stand: one.ended
        for one in this.observed.reported.relief.moves
        if one.aim is Aim.POOL and one.pool == twin.pool.value and one.taken_back and one.ended is not None
    }
    return None if any(seconds_between(at, now) < rest_s for at in vain.values()) else set(vain)
