"""Pods of a twin that stand in the other pool: they are replaced one at a time, make before break.

A pod that a twin took over keeps the rules of its source, so it stands where it stood. Restored out of a
backup it is scheduled anew, anywhere; and a node may get another capacity type. Nobody ends such a pod by
itself. Source: R55, docs/adr/0083.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from splitter.core.hot_nodes import Aim, LeavingReplica
from splitter.core.model import TwinView, seconds_between
from splitter.core.plan import PlanInput
from splitter.core.relief.model import SKEW_S, VAIN_S
from splitter.core.replica import Pool, Replica
from splitter.core.twins import move_limit
from splitter.core.twins.write_order import is_low

_WHERE = {Pool.ON_DEMAND: "it stands on a spot node", Pool.SPOT: "it stands on an on-demand node"}


def in_other_pool(this: PlanInput) -> Iterator[tuple[TwinView, list[Replica], str]]:
    """Yield the ready pods that stand where their twin starts none, with what they wait for, if they do.

    Those of on-demand first: who was to be safe is not. Of one twin whoever bears a deletion cost
    as low as ours comes first: beside it no other could leave.
    """
    turn = "they wait for their turn (max_concurrent_moves)" if move_limit.is_reached(this) else ""
    for twin in this.observed.twins:
        if not twin.strays:
            continue
        strays, tried = defaultdict[str, list[Replica]](list), _tried(this, twin)
        for pod in twin.pods:
            if pod.uid in twin.strays and pod.available:
                strays[turn or _waits(this, twin, pod.uid, tried)].append(pod)
        for waits, pods in strays.items():
            yield twin, sorted(pods, key=lambda pod: not is_low(pod.deletion_cost)), waits


def leaving(twin: TwinView, pod: Replica) -> LeavingReplica:
    """Return a pod of these as one that is to leave."""
    why = f"{_WHERE[twin.pool]}, where {twin.name} starts none"
    return LeavingReplica(pod.uid, why, aim=Aim.POOL, stand=pod.uid)


def _tried(this: PlanInput, twin: TwinView) -> dict[str, datetime]:
    """Return when the tries that were taken back ended, by pod. None is believed that ended in the future."""
    return {
        one.stand: one.ended
        for one in this.observed.reported.relief.moves
        if one.aim is Aim.POOL and one.pool == twin.pool.value and one.taken_back
        if one.ended is not None and seconds_between(one.ended, this.observed.now) >= -SKEW_S
    }


def _waits(this: PlanInput, twin: TwinView, uid: str, tried: Mapping[str, datetime]) -> str:
    """Return what a pod waits for: spot that has room, or an end of the rest after what was in vain."""
    if twin.pool is Pool.SPOT and not this.observed.fit_spot:
        return "no spot node has room for them"
    now = this.observed.now
    rests = {ended + timedelta(seconds=this.rules.relief.rest_s) for ended in tried.values()}
    rests |= {tried[uid] + timedelta(seconds=VAIN_S)} if uid in tried else set()
    again = max(rests, default=now)
    undone = (
        f"the last try was taken back (ReliefUndone), and the next is made from {again:%Y-%m-%d %H:%MZ} on"
    )
    return undone if again > now else ""
