"""Limits how many workloads make voluntary moves at once (H10).

These are taking over, and dividing N otherwise because somebody changed the policy, of a whole namespace
perhaps. `onboard` and `steps` ask here before they begin one, the reconciler counts who is at it. What is
lost, covered, scaled or returning never waits, and neither do rolls: they come with the source's own
rollout, or when `splitter rollout` asks for them. Source: H10.
"""

from splitter.core.division import base_replicas
from splitter.core.model import Note, TwinView
from splitter.core.plan import Plan, PlanInput
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.rebalance import Cause, Decision


def not_yet(this: PlanInput, what: str) -> Note | None:
    """Return what a workload waits for that wants to do `what` now; None when it is its turn."""
    if not is_reached(this):
        return None
    limit, others = this.rules.max_concurrent_moves, this.observed.others_moving
    message = f"{what} waits: {others} others are being moved now, and max_concurrent_moves is {limit}"
    return Note(Reason.WAITING_FOR_TURN, message, cause=VerdictCause.TURN)


def is_reached(this: PlanInput) -> bool:
    """Whether as many others are being moved now as may be at once; a limit of 0 is none."""
    limit = this.rules.max_concurrent_moves
    return bool(limit) and this.observed.others_moving >= limit


def redivides(this: PlanInput, decision: Decision, on_demand: TwinView, spot: TwinView) -> bool:
    """Whether a decision begins to divide the same N otherwise, with nothing lost, leaving or short."""
    specs = on_demand.spec_replicas, spot.spec_replicas
    if (decision.on_demand, decision.spot) == specs or decision.state.lost:
        return False
    if any(pod.counts and pod.going for pod in (*on_demand.pods, *spot.pods)):
        return False  # a drain is no loss, and what it takes is replaced in the same step
    base = base_replicas(this.source.replicas, this.policy)
    # A move for another cause than the division is in a hurry.
    return decision.cause is Cause.DIVIDED and sum(specs) == this.source.replicas and specs[0] != base


def keeps_turn(plan: Plan, *, had: bool) -> bool:
    """Whether a workload is at such a move after this plan; `had` says whether it was before.

    Who cannot get on for a cause of its own, such as a bad image or a full quota, holds nobody up. Nor does
    one that soaks: that takes its time.
    """
    if plan.troubles and not plan.actions:
        return False
    if plan.state is State.TAKING_OVER or plan.voluntary:
        return True
    on_the_way = plan.verdict.cause is VerdictCause.ON_THE_WAY
    return had and plan.state in {State.MOVING, State.HELD} and on_the_way
