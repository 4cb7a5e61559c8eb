"""Replicas that prefer spot and stand on on-demand: they come to spot when it has had room for their soak.

A spot twin with `splitter.io/spot-affinity: preferred` takes on-demand nodes while spot has no room, and the
scheduler never looks again. The bounds are those of hot nodes, which come first. Source: docs/adr/0072.
"""

from collections import defaultdict
from dataclasses import replace

from splitter.core.hot_nodes import Aim
from splitter.core.model import seconds_between
from splitter.core.names import Key
from splitter.core.relief.model import Amounts
from splitter.core.replica import Pool
from splitter.relief.loads import NodeLoad
from splitter.relief.look import (
    VAIN,
    Candidate,
    Look,
    Since,
    has_room,
    is_vain,
    measured_on,
    most_moves,
    take,
    target_for,
)
from splitter.relief.spread import let_in

_Stray = tuple[NodeLoad, Candidate]


def bring_to_spot(look: Look, before: Since, *, hot: bool) -> tuple[Since, dict[Key, str]]:
    """Choose the replicas that come to spot; return since when it has room, and why others do not come."""
    now = look.cluster.now
    strays = _strays(look)
    since = {key: min(before.get(key, now), now) for key, own in strays.items() if _may_come(look, own)}
    due, said = list[_Stray](), dict[Key, str]()
    for key, own in strays.items():
        workload = own[0][1].workload
        soak_s = workload.spot_soak_s or 0.0
        if key not in since:
            why = "no spot node has room, by requests and by use"
        elif seconds_between(since[key], now) < soak_s:
            why = f"spot has room, and is to have it for {soak_s:.0f} s first"
        elif not (coming := [each for each in own if not is_vain(look, Aim.SPOT, each[1])]):
            why = VAIN
        else:
            due += coming
            why = "they come one at a time, as the bounds allow"
        said[key] = f"{len(own)} of its replicas prefer spot and stand on on-demand: {why}"
    admitted = dict[tuple[object, ...], frozenset[str]]()
    most = most_moves(look, hot=hot)
    for node, one in sorted(due, key=_rank):
        if len(look.moves) + look.lately >= most:
            break
        if one.workload.key in look.moved or not look.may_move(one):
            continue
        # Where the scheduler would not let it in it would come to on-demand again, each half an hour.
        replica, bears = one.replica, [one.replica.uid in each.pods for each in one.workload.spreads]
        alike = one.workload.key, replica.may_run_on, *bears
        if alike not in admitted:
            admitted[alike] = let_in(one)
        to = target_for(look, replace(one, replica=replace(replica, may_run_on=admitted[alike])))
        if to is None:
            continue
        soak_s = one.workload.spot_soak_s or 0.0
        why = f"{node.name} is on-demand, and spot has had room for {soak_s:.0f} s"
        take(look, node, one, to, why, aim=Aim.SPOT)
    return since, said


def _strays(look: Look) -> dict[Key, list[_Stray]]:
    """Return the ready replicas that prefer spot and stand on on-demand, with their nodes, by workload."""
    strays = defaultdict[Key, list[_Stray]](list)
    for node in look.cluster.nodes:
        if node.pool is Pool.ON_DEMAND and node.name in look.used:
            for one in measured_on(look, node):
                if one.replica.pool is Pool.SPOT and one.workload.spot_soak_s is not None:
                    strays[one.workload.key].append((node, one))
    return strays


def _may_come(look: Look, own: list[_Stray]) -> bool:
    """Whether a spot node has room for the one of them that needs least; the twin's pods request the same."""
    least = min((one for _, one in own), key=lambda one: (_sum(one.replica.requests), _sum(one.used)))
    return has_room(look, least)


def _sum(amounts: Amounts) -> tuple[float, float]:
    return amounts.cpu, amounts.memory


def _rank(stray: _Stray) -> tuple[int, int, str]:
    """Sort as on hot nodes: by priority and QoS, the lowest first."""
    replica = stray[1].replica
    return replica.priority, replica.qos, replica.uid
