"""Pods of a twin that stand in the other pool: they are replaced one at a time, make before break.

A pod that a twin took over keeps the rules of its source, so it stands where it stood. Restored out of a
backup it is scheduled anew, anywhere; and a node may get another capacity type. Nobody ends such a pod by
itself. Source: R55, docs/adr/0083.
"""

from splitter.core.hot_nodes import Aim, LeavingReplica
from splitter.core.model import Pool, TwinView, seconds_between
from splitter.core.plan import PlanInput

_WHERE = {Pool.ON_DEMAND: "it stands on a spot node", Pool.SPOT: "it stands on an on-demand node"}


def misplaced(this: PlanInput) -> LeavingReplica | None:
    """Return a pod that stands where its twin starts none; None: there is none, or it has to wait."""
    for twin in this.observed.twins:  # on-demand first: who was to be safe is not
        pod = next((one for one in twin.pods if one.uid in twin.strays and one.available), None)
        has_room = twin.pool is Pool.ON_DEMAND or this.observed.fit_spot > 0
        if pod is not None and has_room and not _rests(this, twin):
            why = f"{_WHERE[twin.pool]}, where {twin.name} starts none"
            return LeavingReplica(pod.uid, why, aim=Aim.POOL)
    return None


def _rests(this: PlanInput, twin: TwinView) -> bool:
    """Whether a new replica was taken back a short while ago."""
    ended = [
        one.ended
        for one in this.observed.reported.relief.moves
        if one.aim is Aim.POOL and one.pool == twin.pool.value and one.taken_back and one.ended is not None
    ]
    return any(seconds_between(one, this.observed.now) < this.rules.relief.rest_s for one in ended)
