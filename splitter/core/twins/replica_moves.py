"""Moves replicas between holders: their target counts, and one batch of growing or shrinking.

The planner calls `towards_twins` while anything parked has pods, `towards_source` once the label is
gone, and `drain` when the source runs its own replicas again. Each returns Scale actions: raises
without a precondition, lowerings with the resourceVersion they were computed from. It never touches
anything but counts. Source: H55, H56, H57, H58.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from splitter.core.actions import HolderKind, Scale
from splitter.core.causes import over_quota, without_a_node
from splitter.core.division import base_replicas
from splitter.core.floor import (
    available_of,
    floor_of,
    is_rolling,
    kept_by_replica_set,
    kept_by_source,
    kept_by_twin,
    most_lost,
    staying_pods,
)
from splitter.core.handover import (
    Holder,
    break_,
    doomed_or_lost,
    holder_of_replica_set,
    holder_of_twin,
    make,
    surge_headroom,
)
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import (
    Attachment,
    Observation,
    PodView,
    ReplicaSetView,
    SourceView,
    TwinView,
)
from splitter.core.names import STATEFUL_SET

# BREAK takes parked ReplicaSets first, oldest first, then spot, then on-demand.
_RANK_SPOT, _RANK_ON_DEMAND = 1_000, 1_001


@dataclass(frozen=True, slots=True)
class Transfer:
    """One batch of scale writes, and where the hand-over stands, in a sentence."""

    scales: tuple[Scale, ...]
    message: str


def towards_twins(observed: Observation, source: SourceView, policy: Policy, cover: int) -> Transfer:
    """Move replicas from the parked ReplicaSets to the twins, whose wanted counts are base(N) and the rest.

    Doomed or lost replicas of any holder are replaced at once on on-demand. `cover` replicas stand there for
    spot that was lost, also when no pod tells of it any more. Spot that stays short for longer than the grace
    has its missing share covered there too, so that on-boarding always ends (H58).
    """
    base = base_replicas(source.replicas, policy)
    spot = observed.spot.pods if observed.spot is not None else ()
    on_spot = (
        doomed_or_lost(staying_pods(spot, observed.spot.spec_replicas, observed.spot.first_ordinal))
        if observed.spot is not None
        else 0
    )
    going = doomed_or_lost(_pods(observed))
    short = _short_of(observed, policy.grace_s)
    on_demand = base + max(on_spot + short, cover) + going - on_spot
    on_demand = min(on_demand, source.replicas + going) if source.replicas else 0
    if policy.on_demand_max is not None:
        on_demand = min(on_demand, max(base, policy.on_demand_max))
    holders = _holders(observed, hand_back=None, parked=0, on_demand=on_demand, spot=source.replicas - base)
    # What replaces the pods of a vanished node on spot finds no node there, and must not take this room.
    vanished = sum(pod.counts and pod.vanished and not pod.is_to_be_replaced for pod in spot)
    return _batch(observed, source, holders, going + vanished)


def towards_source(observed: Observation, source: SourceView, grace_s: float) -> Transfer:
    """Move replicas from the twins of a StatefulSet to itself: it goes back at exactly N.

    A StatefulSet has one pod an ordinal: one that goes is made again, and no other stands in for it. Members
    of twins that have not been ready for the grace make room when nothing else can move (H77).
    """
    going = doomed_or_lost(_pods(observed))
    itself = next(iter(observed.attached_as(Attachment.PARKED)), None)
    holders = _holders(observed, itself, source.replicas, on_demand=0, spot=0)
    moved = _batch(observed, source, holders, going)
    return moved if moved.scales else _batch(observed, source, holders, going + _failing(observed, grace_s))


def drain(observed: Observation, source: SourceView) -> Transfer:
    """Shrink all of splitter's holders to 0 beside a source that runs its own replicas again.

    While its own rollout goes on, the source counts as a twin in a roll: the Deployment controller may take
    U away without asking us.
    """
    own = kept_by_source(source, observed.attached_as(Attachment.ATTACHED))
    holders = _holders(observed, hand_back=None, parked=0, on_demand=0, spot=0)
    floor = floor_of(source.replicas, source.max_surge, source.max_unavailable)
    return _transfer(observed, holders, break_(holders, floor, others_available=own))


def source_rolls(observed: Observation) -> bool:
    """Whether a StatefulSet that still holds replicas itself is in a roll, which takes one of them.

    One that is to have none rolls nobody, however long its last pods take to end.
    """
    return any(rs.rolls and rs.spec_replicas for rs in observed.attached_as(Attachment.PARKED))


def kind_of_twins(observed: Observation) -> HolderKind:
    """Return what the twins are: what their source is."""
    return HolderKind.STATEFUL_SET if observed.key.kind == STATEFUL_SET else HolderKind.DEPLOYMENT


def at_zero(twins: Sequence[TwinView], replica_sets: Sequence[ReplicaSetView]) -> bool:
    """Whether these hold no replica, neither in spec nor in status."""
    everything = (*replica_sets, *(rs for twin in twins for rs in twin.replica_sets))
    # A paused twin without a ReplicaSet makes no pod, whatever number it bears.
    asking = [twin for twin in twins if not (twin.paused and not twin.replica_sets)]
    return not any(rs.spec_replicas or rs.status_replicas for rs in everything) and not any(
        twin.spec_replicas or twin.status_replicas for twin in asking
    )


def total_available(observed: Observation) -> int:
    """Count the available replicas of everything of ours."""
    return sum(
        holder.available for holder in _holders(observed, hand_back=None, parked=0, on_demand=0, spot=0)
    )


def lags(twin: TwinView) -> bool:
    """Whether a lowering of this twin has not reached its ReplicaSets and their pods yet.

    Only a Deployment surges in a roll. While the controller of a StatefulSet has not seen the last write, all
    pods look as if they were in a roll.
    """
    held = max(_pods_left(twin), sum(rs.spec_replicas for rs in twin.replica_sets))
    surge = twin.max_surge if is_rolling(twin) and twin.first_ordinal is None else 0
    return held > twin.spec_replicas + surge


def _pods_left(twin: TwinView) -> int:
    """Return how many pods a twin has by its status, which two controllers write one after the other.

    Where they are busy that is seconds behind: pods of a Deployment that are seen to end are left out. A
    StatefulSet waits for each of them.
    """
    if twin.first_ordinal is not None:
        return twin.status_replicas
    counted = sum(pod.counts for pod in twin.pods)
    ending = sum(pod.terminating for pod in twin.pods)
    return max(counted, twin.status_replicas - ending)


def may_lower(observed: Observation, source: SourceView, wanted: Mapping[str, int], twin: TwinView) -> bool:
    """Whether a lowering that `decide` found safe is safe by what the twins surely keep, too.

    `wanted` is what each twin named there is to have, this one included: two lowerings of one reconcile share
    one surplus. `decide` takes unready replicas for free; of a rolling twin the Deployment controller may
    take serving ones instead.
    """
    if not most_lost(twin, wanted.get(twin.name, twin.spec_replicas)):
        return True
    if twin.first_ordinal is None and not is_rolling(twin):
        # What is ready and not in the status yet looks free to go, and serves.
        admitted = available_of(twin.pods, twin.available_replicas)
        counted = min(admitted, sum(rs.spec_replicas for rs in twin.replica_sets))
        if sum(pod.available for pod in twin.pods) > counted:
            return False
    kept = sum(
        kept_by_twin(one, min(one.spec_replicas, wanted.get(one.name, one.spec_replicas)))
        for one in observed.twins
    )
    parked = sum(kept_by_replica_set(rs, rs.spec_replicas) for rs in observed.attached_as(Attachment.PARKED))
    return kept + parked >= floor_of(source.replicas, source.max_surge, source.max_unavailable)


def lowest(observed: Observation, source: SourceView, wanted: Mapping[str, int], twin: TwinView) -> int:
    """Return what a twin may be lowered to by now: what is `wanted`, or its count as it is.

    In a roll of a Deployment as much of the way as is safe: one that stands still for days, for an image
    that cannot be pulled, would keep the whole step waiting.
    """
    least, most = wanted[twin.name], twin.spec_replicas
    if twin.first_ordinal is not None or not is_rolling(twin):
        most = min(most, least + 1)
    else:  # between this and its count a lowering is no safer: rounding may cut some (`kept_by_twin`)
        held = sum(rs.spec_replicas for rs in twin.replica_sets) - twin.max_surge
        most = min(most, held + 1) if held >= least else most

    def is_safe(count: int) -> bool:
        return may_lower(observed, source, {**wanted, twin.name: count}, twin)

    lowest_safe = least + bisect_left(range(least, most), x=True, key=is_safe)
    return lowest_safe if lowest_safe < most else twin.spec_replicas


def surge_headroom_beside(observed: Observation, source: SourceView) -> int:
    """Return the room for surge replicas in a roll, beside what is held now (N + S - held)."""
    holders = _holders(observed, hand_back=None, parked=0, on_demand=0, spot=0)
    return surge_headroom(holders, source.replicas, source.max_surge, going=0)


def placeless(observed: Observation, grace_s: float) -> int:
    """Count the replicas of both twins that no node, or no quota, has had room for within the grace."""
    pods = [pod for twin in observed.twins for pod in twin.pods]
    return without_a_node(pods, observed.waits, grace_s) + sum(map(over_quota, observed.twins))


def _pods(observed: Observation) -> tuple[PodView, ...]:
    """Return the pods of all holders; of a StatefulSet those that it is to keep."""
    holders: tuple[ReplicaSetView | TwinView, ...] = (
        *observed.attached_as(Attachment.PARKED),
        *observed.twins,
    )
    return tuple(
        pod for one in holders for pod in staying_pods(one.pods, one.spec_replicas, one.first_ordinal)
    )


def _failing(observed: Observation, grace_s: float) -> int:
    """Count the members of twins that have not been ready for the grace, on nodes that stay."""
    kept = (staying_pods(one.pods, one.spec_replicas, one.first_ordinal) for one in observed.twins)
    unready = (pod.unready_since for pods in kept for pod in pods if pod.counts and not pod.going)
    return sum(observed.waits.past(one, grace_s) for one in unready)


def _short_of(observed: Observation, grace_s: float) -> int:
    """Count spot replicas that are not there though asked for longer ago than the grace."""
    pods = observed.spot.pods if observed.spot is not None else ()
    return without_a_node(pods, observed.waits, grace_s)


def _holders(
    observed: Observation, hand_back: ReplicaSetView | None, parked: int, on_demand: int, spot: int
) -> list[Holder]:
    """Count every holder of ours; `parked` is the target of the hand-back, all other parked ones go to 0."""
    by_age = sorted(observed.attached_as(Attachment.PARKED), key=lambda rs: (rs.created, rs.name))
    holders = [
        holder_of_replica_set(rs, parked if hand_back is not None and rs.uid == hand_back.uid else 0, rank)
        for rank, rs in enumerate(by_age)
    ]
    if observed.spot is not None:
        holders.append(holder_of_twin(observed.spot, spot, _RANK_SPOT, on_demand=False))
    if observed.on_demand is not None:
        holders.append(holder_of_twin(observed.on_demand, on_demand, _RANK_ON_DEMAND, on_demand=True))
    return holders


def _batch(observed: Observation, source: SourceView, holders: list[Holder], going: int) -> Transfer:
    space = surge_headroom(holders, source.replicas, source.max_surge, going)
    changed = make(holders, space)
    if not changed:
        floor = floor_of(source.replicas, source.max_surge, source.max_unavailable)
        changed = break_(holders, floor)
    return _transfer(observed, holders, changed)


def _transfer(observed: Observation, holders: list[Holder], changed: dict[str, int]) -> Transfer:
    twins = {twin.name for twin in observed.twins}
    kind = kind_of_twins(observed)
    scales = tuple(
        Scale(
            kind=kind if holder.name in twins or kind is HolderKind.STATEFUL_SET else HolderKind.REPLICA_SET,
            name=holder.name,
            was=holder.spec,
            replicas=changed[holder.name],
            # Whoever has scaled the source meanwhile has said another N.
            resource_version=holder.resource_version
            if changed[holder.name] < holder.spec or holder.name == observed.key.name
            else None,
        )
        for holder in holders
        if holder.name in changed
    )
    return Transfer(
        scales, ", ".join(f"{holder.name} {holder.available}/{holder.target}" for holder in holders)
    )
