"""When a twin gets a new template, and with which rollout numbers (H60 to H66).

One twin at a time; never below N where surge is allowed. The numbers are absolute (two twins rolling
with the source's percentages made 14 of 13 allowed pods) and are written only with a template. The
planner asks `next_roll` only when there is no count to write.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from splitter.core.causes import over_quota
from splitter.core.clock import Waits
from splitter.core.desired.compare import withdrawn
from splitter.core.division import base_replicas
from splitter.core.holders import holder_of, partition
from splitter.core.holders.holder import SILENT_S, floor_of, is_rolling, stuck
from splitter.core.labels_annotations.policy import Policy, RolloutOrder
from splitter.core.model import Note, Rendered, ReplicaSetView, SourceView, TwinView
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.replica import Pool, ReplicaState


@dataclass(frozen=True, slots=True)
class Roll:
    """Write this template to this twin, with these absolute numbers of replicas."""

    pool: Pool
    max_surge: int
    max_unavailable: int
    note: Note


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What decides whether a roll may start (all counts: replicas)."""

    source: SourceView
    order: RolloutOrder
    available: int  # over both twins
    headroom: int
    waits: Waits
    grace_s: float
    needed: int  # available before a roll starts: N, or what a freeze holds
    placeless: int = 0  # replicas of both twins that no node, or no quota, has had room for within the grace
    leaving: bool = False  # surplus pods of a twin are still there, and take the room of a surge
    source_rolls: bool = False  # a StatefulSet that still holds replicas takes one of them itself
    partitions: Mapping[Pool, int] = field(default_factory=dict)  # of StatefulSets: see `partition_of`


def is_unfinished(twin: TwinView, waits: Waits) -> bool:
    """Whether not every placed replica is updated and available.

    Replicas that the scheduler cannot place, or a quota refuses, are left out: a twin that only waits for
    capacity is not in the middle of a roll and blocks nobody. So are members of a StatefulSet on nodes that
    say nothing any more: nobody comes in their place. A twin created with a bad template has one
    ReplicaSet and no roll, and is unfinished all the same.
    """
    if not twin.observed:
        return True
    if twin.spec_replicas == 0:
        return False
    waiting = stuck(twin.pods) + over_quota(twin) + holder_of(twin).dead(waits)
    running = [pod for pod in twin.pods if pod.counts and pod.node is not None]
    if not running and waiting:
        return False
    return is_rolling(twin) or _serving(twin) + waiting < twin.spec_replicas


def _serving(twin: TwinView) -> int:
    """Count the replicas that serve, by pods or by status: either may lag behind the other."""
    return max(twin.available_replicas, sum(pod.ready for pod in twin.pods))


def next_roll(
    on_demand: TwinView, spot: TwinView, rendered: Mapping[Pool, Rendered], where: Circumstances
) -> Roll | Note | None:
    """Return the roll to start now, a Note that says why one is held, or None when nothing is due (H61)."""
    pair = {Pool.ON_DEMAND: on_demand, Pool.SPOT: spot}
    order = [Pool.ON_DEMAND, Pool.SPOT]
    if where.order is RolloutOrder.SPOT_FIRST:
        order.reverse()
    moved = {pool for pool in order if pair[pool].partition != where.partitions.get(pool, 0)}
    outdated = [pool for pool in order if not pair[pool].bears(rendered[pool].hash) or pool in moved]
    if all(pool not in moved and _awaits_rollout(pair[pool], rendered[pool], where) for pool in outdated):
        # None is outdated, or all wait for a rollout that somebody else begins.
        waiting = _changed_set(pair[outdated[0]]) if outdated else None
        return _stuck_roll(pair, order, where) or _stalled(pair.values(), where.waits) or waiting
    # An unfinished twin first: only a newer template can mend a broken image. An empty one last: until
    # the other has come up with the new template, it keeps the one that an emergency can rely on.
    unfinished = {pool: is_unfinished(pair[pool], where.waits) for pool in order}
    pool = min(outdated, key=lambda pool: (pair[pool].spec_replicas == 0, not unfinished[pool]))
    other_pool = Pool.SPOT if pool is Pool.ON_DEMAND else Pool.ON_DEMAND
    twin, other = pair[pool], pair[other_pool]
    finishing = f"{other.name} is not finished yet" if unfinished[other_pool] else None
    if twin.spec_replicas == 0 and finishing is None:
        return _roll(pool, twin, 1, 0)
    if unfinished[pool]:
        waits_for = _coming_back(twin, rendered[pool])
        if other_pool not in outdated:
            waits_for = waits_for or finishing
        waits_for = waits_for or _exchanging(twin) or _unseen(twin)
    else:
        waits_for = finishing or _becoming_available(where) or _making_headroom(where)
        if twin is on_demand and spot.is_losing and _serving(twin) < twin.spec_replicas:
            # What took its template back would do so again at once (H65).
            waits_for = waits_for or _coming_back(twin, rendered[pool])
    if where.source_rolls and _serving(twin):
        waits_for = waits_for or "the source rolls its own pods first"
    if waits_for is not None:
        begun = [each for each in order if each not in outdated]  # the first of both may be stuck, too
        return _stuck_roll(pair, begun, where) or _stalled([other], where.waits) or _held(twin, waits_for)
    return _numbers(pool, twin, where) if not holder_of(twin).keeps_names else _roll(pool, twin, 0, 1)


def _awaits_rollout(twin: TwinView, rendered: Rendered, where: Circumstances) -> bool:
    """Whether only the template set has changed: the source's next rollout applies it, or a command (H66).

    Not for a twin whose last template was taken back or edited, or does not come up, nor for one that was
    robbed: that is mended now, or as soon as its last good template has come up.
    """
    taken_back = twin.rendered_hash in {"", withdrawn(twin.rendered_hash)}
    if taken_back or twin.robbed or is_unfinished(twin, where.waits):
        return False
    return bool(rendered.made_of) and twin.made_of == rendered.made_of


def _changed_set(twin: TwinView) -> Note:
    message = (
        f"the template set renders {twin.name} differently now; that is applied with the source's next"
        " rollout, or at once with `splitter rollout`"
    )
    return Note(Reason.TEMPLATE_SET_CHANGED, message, cause=VerdictCause.NEXT_ROLLOUT)


def _stalled(twins: Iterable[TwinView], waits: Waits) -> Note | None:
    """Say which roll has stopped; what is not rolled yet keeps the template that it has."""
    names = [twin.name for twin in twins if twin.stalled and is_unfinished(twin, waits)]
    if not names:
        return None
    message = (
        f"{' and '.join(names)} made no progress for progressDeadlineSeconds; what has the last template"
        " keeps it. Correct the pod template, and it is rolled again"
    )
    return Note(Reason.ROLLOUT_STALLED, message, warning=True)


def _coming_back(twin: TwinView, rendered: Rendered) -> str | None:
    """Return what a template waits for that was taken back: good replicas, whose place it would take."""
    if twin.rendered_hash != withdrawn(rendered.hash):
        return None
    return "its last good template comes up before the new one"


def _exchanging(twin: TwinView) -> str | None:
    """Return what a template waits for in mid-roll: replicas that the controller takes, or is about to take.

    It counts by statuses, which show those for a moment longer. A template that comes in that moment, put
    back or new, makes it take as many of the other replicas (docs/adr/0091). A status that comes after this
    look refuses the write: it has the `resourceVersion` of what was seen.
    """
    going = any(rs.status_replicas > rs.spec_replicas for rs in twin.replica_sets)
    available = max(twin.available_replicas, sum(rs.available_replicas for rs in twin.replica_sets))
    if holder_of(twin).exchanging and (
        going or available > max(0, twin.spec_replicas - twin.max_unavailable)
    ):
        return "replicas that its last roll replaces are still going"
    return None


def _unseen(twin: TwinView) -> str | None:
    """Return what a twin waits for of which all replicas serve: to be mended is no reason to take one."""
    if twin.observed or _serving(twin) < twin.spec_replicas:
        return None
    return "its controller has not seen its last change"


def _becoming_available(where: Circumstances) -> str | None:
    """Return what a roll waits for before it begins: not for replicas without a place."""
    if where.available + where.placeless >= where.needed:
        return None
    return f"{where.available} of {where.needed} replicas are available"


def _making_headroom(where: Circumstances) -> str | None:
    """Return what a roll waits for that would keep the few surge replicas it could begin with."""
    return "surplus pods of the last roll are still going" if where.leaving else None


def _numbers(pool: Pool, twin: TwinView, where: Circumstances) -> Roll | Note:
    source = where.source
    if not (_serving(twin) or any(pod.counts and pod.node is not None for pod in twin.pods)):
        # None is there to be missed, by the status either: what shows the pods may be behind. One by one, the
        # pods that wait for a node would keep the old template.
        return _roll(pool, twin, 0, max(1, twin.spec_replicas))
    kept_surge, kept_unavailable = kept_numbers(twin)
    if is_rolling(twin) and (kept_surge or kept_unavailable):
        return _roll(pool, twin, kept_surge, kept_unavailable)
    unavailable = max(0, twin.spec_replicas - _serving(twin))
    if source.max_surge == 0:  # H63
        share = max(1, source.max_unavailable * twin.spec_replicas // max(1, source.replicas))
        spare = where.available - floor_of(source.replicas, 0, source.max_unavailable)
        # Those that are missing count among the unavailable (H64), and are none of those that serve.
        allowed = max(min(share, unavailable), min(share, spare) + unavailable)
        if allowed > 0:
            return _roll(pool, twin, 0, allowed)
    surge = min(source.max_surge, where.headroom)
    if surge > 0:  # H62
        return _roll(pool, twin, surge, 0)
    # While spot soaks after an outage its cover fills the room; what serves beyond N is free to be replaced.
    allowed = max(unavailable, min(twin.spec_replicas, where.available - source.replicas))
    if allowed > 0:
        return _roll(pool, twin, 0, allowed)
    return _held(twin, f"no room for a surge replica beside {source.replicas}")


def _held(twin: TwinView, waits_for: str) -> Note:
    return Note(Reason.WAITING_FOR_REPLICAS, f"{twin.name} waits: {waits_for}", cause=VerdictCause.HELD_ROLL)


def last_available(twin: TwinView) -> ReplicaSetView | None:
    """Return the ReplicaSet whose template to put back before an emergency raises this twin, if any (H65).

    The new template has never become available, and an older one still serves: raised as it is, the
    Deployment controller would spread the raise over both (seen: 0 of 20 came up). Of a StatefulSet whose
    controller has not seen the last write nothing says which pods are old.
    """
    if holder_of(twin).hides_templates:
        return None
    older = [
        rs
        for rs in twin.replica_sets
        if rs.template_hash != twin.template_hash and any(pod.available for pod in rs.pods)
    ]
    newest = [rs for rs in twin.replica_sets if rs.template_hash == twin.template_hash]
    if not older or not newest or any(pod.available for rs in newest for pod in rs.pods):
        return None
    return max(older, key=lambda rs: (rs.available_replicas, rs.created))


def kept_numbers(twin: TwinView) -> tuple[int, int]:
    """Return the numbers for a newer template in mid-roll: as they are, but what serves by now stays.

    A roll that began with all replicas unavailable may take them all; after some have come up it must not.
    """
    return twin.max_surge, min(twin.max_unavailable, max(0, twin.spec_replicas - _serving(twin)))


def _stuck_roll(pair: Mapping[Pool, TwinView], order: list[Pool], where: Circumstances) -> Roll | Note | None:
    """Fall back to what the source's own strategy allows when surge pods cannot be placed, or made (H64).

    Kubernetes counts the replicas that are missing already among its `maxUnavailable`, so they are added to
    what may go. If they come up in the middle of the roll, as many more may go: then as many more serve.
    """
    source = where.source
    spare = where.available - (source.replicas - source.max_unavailable)
    for pool in order:
        twin = pair[pool]
        # A twin of few has as many surge replicas as it is to have: those of the old template tell.
        mid_roll = any(rs.spec_replicas for rs in twin.replica_sets if rs.template_hash != twin.template_hash)
        why = _without_place(twin, where) if mid_roll and holder_of(twin).exchanging else ""
        if not why or _is_coming_up(twin):
            continue
        share = max(1, source.max_unavailable * twin.spec_replicas // max(1, source.replicas))
        share = min(share, spare, max(source.max_unavailable, where.available - source.replicas))
        allowed = share + max(0, twin.spec_replicas - _serving(twin))
        if share > 0 and allowed > twin.max_unavailable:
            message = (
                f"{twin.name}: {why};"
                f" going on with maxUnavailable {allowed}, as the source's own strategy allows"
            )
            return Roll(pool, twin.max_surge, allowed, Note(Reason.ROLLING, message, warning=True))
        if share <= 0:
            return _held(
                twin,
                f"{why}, and none of the {where.available} available replicas may go, since the source's"
                f" maxUnavailable {source.max_unavailable} keeps {source.replicas - source.max_unavailable}."
                f" It goes on when {pool} has room for one more, or with a larger maxUnavailable",
            )
    return None


def _is_coming_up(twin: TwinView) -> bool:
    """Whether a replica of the new template has a node and is not ready: it is the next to serve."""
    new = (rs.pods for rs in twin.replica_sets if rs.template_hash == twin.template_hash)
    return any(pod.state is ReplicaState.STARTING and not pod.ready for pods in new for pod in pods)


def _without_place(twin: TwinView, where: Circumstances) -> str:
    """Say which replicas have had no place for the grace, where an old one makes room by going.

    What keeps them from every node stays as it is. The dead stand in the place of others (docs/adr/0086): a
    Deployment of its own would count them among its maxUnavailable.
    """
    if (refused := over_quota(twin)) and all(
        where.waits.past(rs.refused_since or rs.created, where.grace_s)
        for rs in twin.replica_sets
        if rs.refused
    ):
        return f"{refused} surge replicas were refused by a quota for {where.grace_s:.0f} s"
    waiting = [pod for pod in twin.pods if pod.trouble is None and pod.is_stuck(where.waits, where.grace_s)]
    if waiting and twin.excluded is None:
        return f"{len(waiting)} surge replicas found no node for {where.grace_s:.0f} s"
    new = (rs.pods for rs in twin.replica_sets if rs.template_hash == twin.template_hash)
    # Their nodes are silent for longer than Kubernetes leaves pods on one: nothing removes them.
    dead = sum(pod.counts and where.waits.past(pod.silent_since, SILENT_S) for pods in new for pod in pods)
    return f"{dead} surge replicas are on nodes that say nothing for {SILENT_S:.0f} s" if dead else ""


def partition_of(source: SourceView, policy: Policy, pool: Pool) -> int:
    """Return how many members of a twin keep the old template while the source's partition is above 0.

    The source's members are numbered over both twins, on-demand first: of 5 members, 3 of them on
    on-demand, a partition of 4 gives the last one on spot the new template.
    """
    kept = partition(source)
    return kept if pool is Pool.ON_DEMAND else max(0, kept - base_replicas(source.replicas, policy))


def _roll(pool: Pool, twin: TwinView, surge: int, unavailable: int) -> Roll:
    surge, unavailable, how = holder_of(twin).roll_numbers(surge, unavailable)
    return Roll(pool, surge, unavailable, Note(Reason.ROLLING, f"{twin.name} gets its new template, {how}"))
