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
from splitter.core.holders import holder_of, holders_of, loses_volumes
from splitter.core.holders.holder import doomed_or_lost, floor_of, kept_by_source
from splitter.core.holders.shares import Share, break_, make, share_of, surge_headroom
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, Observation, ReplicaSetView, SourceView, TwinView
from splitter.core.replica import Replica

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
    on_spot = doomed_or_lost(holder_of(observed.spot).staying) if observed.spot is not None else 0
    going = doomed_or_lost(_pods(observed))
    short = _short_of(observed, policy.grace_s)
    on_demand = base + max(on_spot + short, cover) + going - on_spot
    on_demand = min(on_demand, source.replicas + going) if source.replicas else 0
    if policy.on_demand_max is not None:
        on_demand = min(on_demand, max(base, policy.on_demand_max))
    shares = _shares(observed, hand_back=None, parked=0, on_demand=on_demand, spot=source.replicas - base)
    # What replaces the pods of a vanished node on spot finds no node there, and must not take this room.
    vanished = sum(pod.counts and pod.vanished and not pod.is_to_be_replaced for pod in spot)
    return _batch(observed, source, shares, going + vanished)


def towards_source(observed: Observation, source: SourceView, grace_s: float) -> Transfer:
    """Move replicas from the twins of a StatefulSet to itself: it goes back at exactly N.

    A StatefulSet has one pod an ordinal: one that goes is made again, and no other stands in for it. Members
    of twins that have not been ready for the grace make room when nothing else can move (H77).
    """
    going = doomed_or_lost(_pods(observed))
    itself = next(iter(observed.attached_as(Attachment.PARKED)), None)
    shares = _shares(observed, itself, source.replicas, on_demand=0, spot=0)
    moved = _batch(observed, source, shares, going)
    return moved if moved.scales else _batch(observed, source, shares, going + _failing(observed, grace_s))


def drain(observed: Observation, source: SourceView) -> Transfer:
    """Shrink all of splitter's holders to 0 beside a source that runs its own replicas again.

    While its own rollout goes on, the source counts as a twin in a roll: the Deployment controller may take
    U away without asking us.
    """
    own = kept_by_source(source, observed.attached_as(Attachment.ATTACHED))
    shares = _shares(observed, hand_back=None, parked=0, on_demand=0, spot=0)
    floor = floor_of(source.replicas, source.max_surge, source.max_unavailable)
    return _transfer(observed, shares, break_(shares, floor, others_available=own))


def source_rolls(observed: Observation) -> bool:
    """Whether a StatefulSet that still holds replicas itself is in a roll, which takes one of them.

    One that is to have none rolls nobody, however long its last pods take to end.
    """
    return any(rs.rolls and rs.spec_replicas for rs in observed.attached_as(Attachment.PARKED))


def kind_of_twins(observed: Observation) -> HolderKind:
    """Return what the twins are: what their source is."""
    return HolderKind(observed.key.kind)


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
    return sum(share.available for share in _shares(observed, hand_back=None, parked=0, on_demand=0, spot=0))


def may_lower(observed: Observation, source: SourceView, wanted: Mapping[str, int], twin: TwinView) -> bool:
    """Whether a lowering that `decide` found safe is safe by what the twins surely keep, too.

    `wanted` is what each twin named there is to have, this one included: two lowerings of one reconcile share
    one surplus. `decide` takes unready replicas for free; of a rolling twin the Deployment controller may
    take serving ones instead.
    """
    holder = holder_of(twin)
    if not holder.may_lose(wanted.get(twin.name, twin.spec_replicas)):
        return True
    if holder.looks_free:
        return False
    kept = sum(
        one.surely_keeps(min(one.view.spec_replicas, wanted.get(one.view.name, one.view.spec_replicas)))
        for one in holders_of(observed)
    )
    return kept >= floor_of(source.replicas, source.max_surge, source.max_unavailable)


def lowest(observed: Observation, source: SourceView, wanted: Mapping[str, int], twin: TwinView) -> int:
    """Return what a twin may be lowered to by now: what is `wanted`, or its count as it is.

    In a roll as much of the way as is safe: one that makes no progress for days, for an image that cannot be
    pulled, would keep the whole step waiting.
    """
    least, most, holder = wanted[twin.name], twin.spec_replicas, holder_of(twin)
    if not holder.exchanging:
        most = min(most, least + 1)
    elif (held := holder.asked - twin.max_surge) >= least:
        # Between this and its count a lowering is no safer: rounding may cut some (`surely_keeps`).
        most = min(most, held + 1)

    def is_safe(count: int) -> bool:
        return may_lower(observed, source, {**wanted, twin.name: count}, twin)

    lowest_safe = least + bisect_left(range(least, most), x=True, key=is_safe)
    return lowest_safe if lowest_safe < most else twin.spec_replicas


def spared(source: SourceView, scales: Sequence[Scale]) -> tuple[Scale, ...]:
    """Leave out what would lower a source whose volumes go with its pods: `whenScaled: Delete`, set since."""
    if not loses_volumes(source):
        return tuple(scales)
    return tuple(one for one in scales if one.name != source.key.name or one.replicas > one.was)


def with_own_volumes(observed: Observation, twin: TwinView, wanted: int) -> int:
    """Raise no twin to a member that would mount a foreign claim, and delete it when it goes (H74)."""
    below, _ = observed.related.taken_claims.get(twin.pool, (wanted, ""))
    return min(wanted, max(below, twin.spec_replicas))


def surge_headroom_beside(observed: Observation, source: SourceView) -> int:
    """Return the room for surge replicas in a roll, beside what is held now (N + S - held)."""
    shares = _shares(observed, hand_back=None, parked=0, on_demand=0, spot=0)
    return surge_headroom(shares, source.replicas, source.max_surge, going=0)


def placeless(observed: Observation, grace_s: float) -> int:
    """Count the replicas of both twins that no node, or no quota, has had room for within the grace."""
    pods = [pod for twin in observed.twins for pod in twin.pods]
    return without_a_node(pods, observed.waits, grace_s) + sum(map(over_quota, observed.twins))


def _pods(observed: Observation) -> tuple[Replica, ...]:
    """Return the pods that the holders keep."""
    return tuple(pod for one in holders_of(observed) for pod in one.staying)


def _failing(observed: Observation, grace_s: float) -> int:
    """Count the members of twins that have not been ready for the grace, on nodes that stay."""
    kept = (pod for twin in observed.twins for pod in holder_of(twin).staying)
    unready = (pod.unready_since for pod in kept if pod.counts and not pod.going)
    return sum(observed.waits.past(one, grace_s) for one in unready)


def _short_of(observed: Observation, grace_s: float) -> int:
    """Count spot replicas that are not there though asked for longer ago than the grace."""
    pods = observed.spot.pods if observed.spot is not None else ()
    return without_a_node(pods, observed.waits, grace_s)


def _shares(
    observed: Observation, hand_back: ReplicaSetView | None, parked: int, on_demand: int, spot: int
) -> list[Share]:
    """Count every holder of ours; `parked` is the target of the hand-back, all other parked ones go to 0."""
    by_age = sorted(observed.attached_as(Attachment.PARKED), key=lambda rs: (rs.created, rs.name))
    shares = [
        share_of(holder_of(rs), parked if hand_back is not None and rs.uid == hand_back.uid else 0, rank)
        for rank, rs in enumerate(by_age)
    ]
    if observed.spot is not None:
        shares.append(share_of(holder_of(observed.spot), spot, _RANK_SPOT))
    if observed.on_demand is not None:
        shares.append(share_of(holder_of(observed.on_demand), on_demand, _RANK_ON_DEMAND, on_demand=True))
    return shares


def _batch(observed: Observation, source: SourceView, shares: list[Share], going: int) -> Transfer:
    space = surge_headroom(shares, source.replicas, source.max_surge, going)
    changed = make(shares, space)
    if not changed:
        floor = floor_of(source.replicas, source.max_surge, source.max_unavailable)
        changed = break_(shares, floor)
    return _transfer(observed, shares, changed)


def _transfer(observed: Observation, shares: list[Share], changed: dict[str, int]) -> Transfer:
    scales = tuple(
        Scale(
            kind=HolderKind(share.kind),
            name=share.name,
            was=share.spec,
            replicas=changed[share.name],
            # Whoever has scaled the source meanwhile has said another N.
            resource_version=share.resource_version
            if changed[share.name] < share.spec or share.name == observed.key.name
            else None,
        )
        for share in shares
        if share.name in changed
    )
    return Transfer(scales, ", ".join(f"{share.name} {share.available}/{share.target}" for share in shares))
