"""Writes the sentences about a decision: one for each move and each hold, with its numbers.

Called by `decide` after the counts are settled; it changes none of them, and `cause` has said why they
are so. Sentences name instants, not countdowns, so that the same state says the same thing in every
reconcile and one Event stays one Event.
"""

from collections.abc import Iterator
from datetime import UTC

from splitter.core.clock import clock
from splitter.core.model import Move, Note
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.rebalance.cause import Cause, of_on_demand, of_spot, shortage
from splitter.core.rebalance.model import RELEASE_S
from splitter.core.rebalance.steps import Figures, spot_cap, step_replicas
from splitter.core.replica import Pool

_ALARMING = frozenset(
    {
        Reason.SPOT_INTERRUPTED,
        Reason.SPOT_LOST,
        Reason.SPOT_SHORT,
        Reason.NODES_UNSUITABLE,
        Reason.VOLUME_ZONE_CONFLICT,
        Reason.ON_DEMAND_DOOMED,
    }
)


def explain(figures: Figures, on_demand: int, spot: int) -> tuple[Note, ...]:
    """Return the notes for these counts, moves first; there is always at least one."""
    observed = figures.observed
    if figures.policy.freeze:
        held = f"hold on-demand at {observed.on_demand_spec} and spot at {observed.spot_spec}"
        message = f"{held}: splitter.io/freeze is set"
        return (Note(Reason.FROZEN, message),)
    moves = [*_on_demand_move(figures, on_demand), *_spot_move(figures, spot)]
    holds = [*_on_demand_hold(figures, on_demand), *_spot_hold(figures, on_demand, spot), *_limits(figures)]
    if not moves and not holds:
        message = f"{on_demand} on on-demand and {spot} on spot, as {_divided(figures)}"
        return (Note(Reason.BALANCED, message),)
    return (*moves, *holds)


def _on_demand_move(figures: Figures, on_demand: int) -> Iterator[Note]:
    if (cause := of_on_demand(figures, on_demand)) is not None:
        move = Move(Pool.ON_DEMAND, figures.observed.on_demand_spec, on_demand)
        yield _noted(move, cause, *_said(figures, cause))


def _spot_move(figures: Figures, spot: int) -> Iterator[Note]:
    if (cause := of_spot(figures, spot)) is not None:
        reason, why = _said(figures, cause)
        if cause is Cause.WITHDRAWN or (cause is Cause.RELEASED and figures.probing):
            why = f"{why}; {_window(figures, spot)}"
        yield _noted(Move(Pool.SPOT, figures.observed.spot_spec, spot), cause, reason, why)


def _said(figures: Figures, cause: Cause) -> tuple[Reason, str]:
    """Return the reason word of a move's cause, and its sentence with the numbers."""
    observed = figures.observed
    match cause:
        case Cause.RETURNING:
            stood = f"{figures.soaked} of {figures.want} spot replicas have been ready for {_soaked(figures)}"
            return Reason.RETURNING, stood
        case Cause.ASKED_FOR:
            ready = f"{observed.spot_ready} of {figures.want} are ready"
            return Reason.PROBING, f"{ready}; spot is asked for more step by step"
        case Cause.REPLACED:
            stand = f"{figures.keep} of {observed.spot_spec} are on doomed nodes"
            return Reason.SPOT_INTERRUPTED, f"{stand} and are replaced on spot"
        case Cause.RELEASED:
            return Reason.COVERED, _released(figures)
        case Cause.WITHDRAWN | Cause.SPOT_BARREN | Cause.REMOVED:
            return _said_unasked(figures, cause)
        case _:
            return _said_of_shortage(figures, cause)


def _said_unasked(figures: Figures, cause: Cause) -> tuple[Reason, str]:
    if cause is Cause.REMOVED:
        dead = f"{figures.observed.spot_silent} of {figures.observed.spot_spec}"
        return Reason.SPOT_LOST, f"{dead} are on nodes that say nothing any more, and make room for others"
    if cause is Cause.WITHDRAWN:
        return Reason.PROBING, "no spot capacity is available now"
    return Reason.SPOT_UNPROFITABLE, _barren(figures)


def _said_of_shortage(figures: Figures, cause: Cause) -> tuple[Reason, str]:
    observed = figures.observed
    placed, ready, doomed = observed.spot_placed, observed.spot_ready, observed.spot_doomed
    match cause:
        case Cause.SPOT_DOOMED:
            stand = f"{doomed} of {ready + doomed} spot replicas are on doomed nodes"
            return Reason.SPOT_INTERRUPTED, f"{stand}{_let_go(figures)}"
        case Cause.AFTER_NOTICE | Cause.AFTER_LOSS:
            noticed = cause is Cause.AFTER_NOTICE
            reason, what = (Reason.SPOT_INTERRUPTED, "notice") if noticed else (Reason.SPOT_LOST, "loss")
            return reason, f"{ready} of {figures.want} spot replicas are ready after a {what}"
        case Cause.SPOT_BLOCKED:
            return Reason.SPOT_BLOCKED, f"spot has placed {placed} of {figures.want}; {observed.blocked}"
        case Cause.SPOT_UNPLACED:
            reason, why = _unplaced(figures)
            grace_s = _s(figures.policy.grace_s)
            return reason, f"spot has placed {placed} of {figures.want} after the grace of {grace_s}{why}"
        case Cause.ON_DEMAND_DOOMED:
            on_demand = f"{figures.on_demand_doomed} of {observed.on_demand_spec} on-demand replicas"
            held, what = observed.on_demand_held, "are on doomed nodes"
            if held:
                also = f"{what}, or " if held < figures.on_demand_doomed else ""
                what = f"{also}do not serve, and hold their names"
            return Reason.ON_DEMAND_DOOMED, f"{on_demand} {what}"
        case _:
            return Reason.SCALED, _divided(figures)


def _unplaced(figures: Figures) -> tuple[Reason, str]:
    """Say what keeps spot replicas from nodes: that there are none, or what those that there are ask for."""
    trouble = figures.observed.spot_unplaceable
    return (Reason.SPOT_SHORT, "") if trouble is None else (trouble.reason, f": {trouble.detail}")


def _is_unplaced(figures: Figures) -> bool:
    """Say whether somebody has looked for a node for a spot replica and found none."""
    return figures.observed.spot_pending_since is not None or figures.observed.spot_unplaceable is not None


def _on_demand_hold(figures: Figures, on_demand: int) -> Iterator[Note]:
    observed, state, doomed = figures.observed, figures.state, figures.on_demand_doomed
    hold = f"hold on-demand at {on_demand}"
    if observed.view_broken:
        yield Note(
            Reason.CONTROL_PLANE_VIEW,
            f"{hold} or more and spot at {observed.spot_spec}: more than half of the on-demand nodes are"
            " NotReady too, so our view of the cluster is broken, not spot",
            warning=True,
        )
    elif on_demand < figures.need_up + doomed:
        yield waiting(
            f"{hold}, {figures.need_up + doomed} wanted: {observed.desired} + surge {observed.max_surge}"
            " leaves room only as spot replicas go",
        )
    elif on_demand > figures.need_down + doomed:
        yield _stepping(figures, f"{hold}, {figures.need_down + doomed} wanted")
    elif on_demand > figures.need_up + doomed and figures.soaked >= observed.spot_ready:
        ready = f"{observed.spot_ready} of {figures.want} spot replicas are ready"
        yield waiting(f"{hold}, {figures.need_up + doomed} needed: {ready}")
    elif on_demand > figures.need_up + doomed:
        yield _soaking(figures, f"{hold}, {figures.need_up + doomed} needed")
    elif on_demand == observed.on_demand_spec and figures.need_up > figures.base:
        reason, why = _said(figures, shortage(figures))
        yield Note(reason, f"{hold}, {figures.base + doomed} wanted: {why}")
    elif on_demand == observed.on_demand_spec and doomed:
        reason, why = _said(figures, shortage(figures))
        yield Note(reason, f"{hold}, {figures.base} wanted: {why}", warning=True)
    waits = observed.cover and not figures.short and not figures.probing
    # Who is being created or scheduled is no shortage of spot.
    if waits and state.short_since is not None and _is_unplaced(figures):
        reason, why = _unplaced(figures)
        yield Note(
            reason,
            f"{hold}: spot has placed {observed.spot_placed} of {figures.want}{why}; on-demand covers what is"
            f" missing at {clock(state.short_since, figures.policy.grace_s)}",
        )


def _spot_hold(figures: Figures, on_demand: int, spot: int) -> Iterator[Note]:
    observed = figures.observed
    wanted = figures.top
    if observed.spot_dead and spot == observed.spot_spec == wanted:
        dead = f"{observed.spot_dead} of {spot} spot replicas hold their names and cannot run"
        causes = "their nodes say nothing any more, or no node reaches their volumes"
        why = f"hold spot at {spot}, {figures.want} wanted: {dead}: {causes}"
        yield Note(Reason.SPOT_LOST, why)
    if observed.view_broken or spot != observed.spot_spec or spot == wanted:
        return
    hold = f"hold spot at {spot}, {wanted} wanted"
    if spot > wanted:
        yield waiting(
            f"{hold}: {observed.spot_ready} spot and {observed.on_demand_ready} on-demand replicas are ready,"
            f" {observed.floor} must stay",
        )
    elif spot >= spot_cap(figures, on_demand):
        yield Note(
            Reason.RETURNING,
            f"{hold}: {on_demand} on on-demand and {observed.desired} + surge"
            f" {max(1, observed.max_surge)} leave no room for more",
        )
    elif figures.tried_again is not None:
        yield Note(Reason.SPOT_UNPROFITABLE, f"{hold}: {_barren(figures)}")
    else:
        yield Note(Reason.PROBING, f"{hold}: {_window(figures, spot)}")


def _limits(figures: Figures) -> Iterator[Note]:
    """Say what keeps on-demand from doing its part."""
    observed, cap = figures.observed, figures.policy.on_demand_max
    if observed.on_demand_stuck:
        yield Note(
            Reason.ON_DEMAND_SHORT,
            f"{observed.on_demand_stuck} of {observed.on_demand_spec} on-demand replicas find no node; spot"
            f" {_in_its_place(figures)}. Add on-demand capacity, or a higher quota",
            warning=True,
        )
    uncovered = observed.desired - figures.up - figures.need_up
    if cap is not None and figures.need_up >= cap and uncovered > 0:
        yield Note(
            Reason.ON_DEMAND_CAPPED,
            f"{uncovered} of {observed.desired} replicas are missing: splitter.io/on-demand-max is {cap}."
            " Raise it to have them covered",
            warning=True,
        )


def _in_its_place(figures: Figures) -> str:
    """Say what spot does for on-demand that finds no node: never more than its own share."""
    if figures.observed.spot_ready < figures.want:
        return "is asked for all it can hold"
    return f"has all of its {figures.want} and takes no on-demand replica's place"


def _noted(move: Move, cause: Cause, reason: Reason, why: str) -> Note:
    alarms = move.replicas > move.was and reason in _ALARMING
    on_the_way = VerdictCause.ON_THE_WAY if cause is Cause.DIVIDED else None
    return Note(reason, f"{move}: {why}", warning=alarms, move=move, cause=on_the_way)


def waiting(message: str) -> Note:
    """Say what a move waits for that has begun."""
    return Note(Reason.WAITING_FOR_REPLICAS, message, cause=VerdictCause.ON_THE_WAY)


def _divided(figures: Figures) -> str:
    desired = figures.observed.desired
    return f"{desired} replicas are divided into {figures.base} on-demand and {figures.want} spot"


def _released(figures: Figures) -> str:
    """Say why the doomed are let go now."""
    if figures.tuning.release_s is not None or figures.release_s >= RELEASE_S:
        return f"cover has been available for {_s(figures.release_s)}, the doomed may go"
    return (
        "cover is available, and the doomed need the rest of their notice to end"
        " (terminationGracePeriodSeconds), so they may go"
    )


def _let_go(figures: Figures) -> str:
    """Say when the doomed are let go; nothing while they are not covered."""
    since = figures.state.cover_since
    if since is None or figures.covered:
        return ""
    return f", covered since {clock(since)} and let go {_s(round(figures.release_s))} after that"


def _window(figures: Figures, spot: int) -> str:
    observed = figures.observed
    asked = max(0, spot - observed.spot_ready - figures.keep)
    if not asked and (doomed := 0 if figures.covered else observed.spot_doomed):
        return f"{observed.spot_ready} ready; spot is probed again when the {doomed} doomed are gone"
    if not asked and observed.on_demand_over_quota:
        return f"{observed.spot_ready} ready; spot is probed again when the quota lets on-demand cover"
    return f"{observed.spot_ready} ready and {asked} more pending to probe for capacity"


def _barren(figures: Figures) -> str:
    """Say why spot rests, and until when: a day ahead at most, so the day is told too."""
    state, again = figures.state, figures.tried_again or figures.observed.now
    return (
        f"spot was lost {state.barren} times in a row before it had earned anything (soak"
        f" {_s(state.soak(figures.policy.soak_s))}): it costs more than it saves, and is tried again at"
        f" {again.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    )


def _soaked(figures: Figures) -> str:
    """Say how long a replica has to stand: less than the soak once one of them has stood for that."""
    soak_s = figures.state.soak(figures.policy.soak_s)
    proven = f" (one for the soak of {_s(soak_s)})" if figures.soak_s < soak_s else ""
    return f"{_s(figures.soak_s)}{proven}"


def _stepping(figures: Figures, hold: str) -> Note:
    """Say what the next step down waits for."""
    observed, last = figures.observed, figures.state.last_step
    interval_s = figures.tuning.step_interval_s
    if last is not None and not observed.waits.past(last, interval_s):
        step = step_replicas(observed.desired, figures.tuning)
        return Note(
            Reason.RETURNING, f"{hold}: the next step of at most {step} comes at {clock(last, interval_s)}"
        )
    if figures.more_soak_soon:
        return _soaking(figures, hold)
    ready = f"{observed.spot_ready} spot and {observed.on_demand_ready} on-demand replicas are ready"
    return waiting(f"{hold}: {ready}, {observed.desired} are needed")


def _soaking(figures: Figures, hold: str) -> Note:
    ready = f"{figures.soaked} of {figures.observed.spot_ready} ready spot replicas have been ready"
    return Note(Reason.SOAKING, f"{hold}: {ready} for {_s(figures.soak_s)}{_next_soaked(figures)}")


def _next_soaked(figures: Figures) -> str:
    left_s = figures.next_soaked_s
    return f", the next at {clock(figures.observed.now, left_s)}" if left_s is not None else ""


def _s(seconds: float) -> str:
    return f"{seconds:g} s"
