"""Spot that goes while pods have no owner: `adoption.settle` asks here what to cover, and what to remember.

Nobody replaces a pod without an owner. That lasts a moment, or for as long as the API server takes no
ReplicaSet that would adopt it, or nobody leads.
"""

from dataclasses import replace

from splitter.core.actions import Action, DeletePod, HolderKind, Scale
from splitter.core.handover import waits_for_pods
from splitter.core.model import PodView, Pool
from splitter.core.plan import PlanInput
from splitter.core.split_status import RebalanceState


def orphans_of(this: PlanInput, pool: Pool) -> list[PodView]:
    """Return the pods without an owner that a twin is to adopt."""
    return [pod for pod in this.observed.orphans if pod.counts and pod.born is pool]


def ended(this: PlanInput) -> tuple[Action, ...]:
    """Return the removal of pods that have finished and that nothing owns: no ReplicaSet adopts them (H53).

    Their owner would have taken them along. Without one they would outlive the Deployment.
    """
    pods = (pod for pod in this.observed.orphans if pod.finished and pod.born is not None)
    return tuple(DeletePod(pod.name, pod.uid) for pod in pods)


def _missing_on_spot(this: PlanInput) -> int:
    """Count what the spot twin was to adopt and is not there: its count says how many were let go."""
    spot = this.observed.spot
    if spot is None or not waits_for_pods(spot):
        return 0
    return max(0, spot.spec_replicas - len(orphans_of(this, Pool.SPOT)))


def lost_meanwhile(this: PlanInput) -> RebalanceState | None:
    """Return what to remember of spot that went while its pods had no owner: nothing else will tell of it.

    Else the twin would ask for them as for any new replica, and they would be covered after the grace.
    """
    known = this.observed.rebalance
    if known.lost or not _missing_on_spot(this):
        return None
    window = this.rules.tuning.capacity_probe_replicas
    return replace(
        known,
        lost=True,
        last_loss=this.observed.now,
        proven=False,
        up_since=None,
        window=window,
        asked=window,
    )


def covering(this: PlanInput) -> list[Action]:
    """Return the raise of on-demand for spot that goes or has gone while its pods cannot be adopted."""
    twin, orphans = this.observed.on_demand, [pod for pod in this.observed.orphans if pod.counts]
    going = any(pod.going and not pod.voluntary for pod in orphans) or _missing_on_spot(this)
    if twin is None or not orphans or not going or this.policy.freeze:
        return []
    if orphans_of(this, Pool.ON_DEMAND) or not any(rs.spec_replicas for rs in twin.replica_sets):
        return []  # it has to be there first
    held = [rs.spec_replicas for rs in this.observed.replica_sets]
    held += [rs.spec_replicas for one in this.observed.twins for rs in one.replica_sets]
    wanted = twin.spec_replicas + this.source.replicas - sum(held) - sum(not pod.going for pod in orphans)
    if this.policy.on_demand_max is not None:
        wanted = min(wanted, this.policy.on_demand_max)
    if wanted <= twin.spec_replicas:
        return []
    return [Scale(HolderKind.DEPLOYMENT, twin.name, twin.spec_replicas, wanted, None)]
