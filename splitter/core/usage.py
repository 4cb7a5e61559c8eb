"""Counts what a workload holds now: its pods by pool, what they request, and what of that is overhead."""

from collections.abc import Iterable

from splitter.core.labels_annotations import HELD_FOR_RELIEF
from splitter.core.model import Observation
from splitter.core.replica import NodeStatus, Replica
from splitter.core.split_status.usage import Amount, Amounts, Use

_MIB = 1024**2


def held(observed: Observation, wanted_on_demand: int | None) -> Amounts:
    """Return what a workload holds now.

    `wanted_on_demand` is how many its policy wants there; None while it is not divided, so that none stands
    in for spot. Terminating replicas cost money still, and so do placeholders that hold room, which are
    beyond what was asked for. Those of a lost node do not, and those without a node not yet.
    """
    held_by = (pod for rs in observed.holders for pod in rs.pods)
    holding = (pod for pod in observed.placeholders if not pod.held_for.startswith(HELD_FOR_RELIEF))
    pods = [*observed.orphans, *holding, *held_by]
    node_status = [
        pod
        for pod in pods
        if pod.node is not None and not pod.finished and pod.node_status is not NodeStatus.LOST
    ]
    spot = _amount(pod for pod in node_status if pod.on_spot)
    on_demand = _amount(pod for pod in node_status if not pod.on_spot)
    desired = observed.source.replicas if observed.source is not None else 0
    together = on_demand + spot
    surge = max(0, together.replicas - desired)
    wanted = on_demand.replicas if wanted_on_demand is None else wanted_on_demand
    covering = max(0, on_demand.replicas - wanted - surge)
    return {
        Use.ON_DEMAND: on_demand,
        Use.SPOT: spot,
        Use.COVER: on_demand.share(covering),
        Use.SURGE: together.share(surge),
        Use.DESIRED: together.share(min(desired, together.replicas)),
    }


def _amount(pods: Iterable[Replica]) -> Amount:
    total = Amount()
    for pod in pods:
        asked = dict(pod.requests)
        total += Amount(1, asked.get("cpu", 0), -(-asked.get("memory", 0) // _MIB))
    return total
