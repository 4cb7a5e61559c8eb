"""Forecasts how many running pods stay where they are when a workload is split, and how many move.

`onboard.consider` tells it in the Event of the take-over, and `splitter plan` to whoever asks. It is no
promise: nodes may go, and pods may take long to start.
"""

from math import ceil

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, Observation, SourceView
from splitter.core.rebalance import Tuning
from splitter.core.rebalance.steps import step_replicas

_MINUTES_FROM_S = 120


def forecast(observed: Observation, source: SourceView, policy: Policy, tuning: Tuning) -> str:
    """Return how many running pods stay, how many move afterwards, where to, and in about which time."""
    sets = observed.attached_as(Attachment.ATTACHED)
    pods = [pod for rs in sets for pod in rs.pods if pod.counts and pod.node is not None]
    spot = sum(pod.on_spot for pod in pods)
    wanted = source.replicas - base_replicas(source.replicas, policy)
    moving = abs(wanted - spot)
    if not pods or not moving or policy.freeze:
        return f"{len(pods)} of {len(pods)} running pods stay where they are"
    pools, to_spot = observed.pools, wanted > spot
    if to_spot and pools is not None and pools.none_on_spot:
        stay = f"all {len(pods)} running pods stay where they are"
        return f"{stay}; {wanted} are wanted on spot, none can go yet"
    where = "to spot" if to_spot else "to on-demand"
    # A step to spot: as many as there is room for beside the others, and they stand for a while.
    at_once = max(1, min(source.max_surge, step_replicas(source.replicas, tuning)))
    seconds = ceil(moving / at_once) * tuning.fast_s
    about = f"{seconds:.0f} s" if seconds < _MINUTES_FROM_S else f"{seconds / 60:.0f} min"
    staying = f"{max(0, len(pods) - moving)} of {len(pods)} running pods stay where they are"
    return f"{staying}; moved {where} afterwards: {moving}, in about {about}"
