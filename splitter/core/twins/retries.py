"""When to have a ReplicaSet try again that a quota, a policy or another refusal keeps from its pods.

The planner calls `retried` on each plan. Kubernetes itself tries again after twice the time each time, up to
1000 s, whether there is room meanwhile or not; any write to the ReplicaSet has it try at once.
Source: rule R50, docs/adr/0052.
"""

from dataclasses import replace
from datetime import datetime

from splitter.core.actions import RetryPods
from splitter.core.handover import Step
from splitter.core.model import Observation, ReplicaSetView, seconds_between
from splitter.core.plan import Plan

# Between two tries: a quarter of the time for which there has been a reason to try, within these.
_SHORTEST_S = 5.0
_LONGEST_S = 120.0
_PART = 4


def retried(observed: Observation, planned: Plan) -> Plan:
    """Return the plan with a try of each twin's ReplicaSet that is due, or a wait until one is.

    Tries come often after a refusal and after a loss, when room comes back in seconds, and seldom later.
    """
    if planned.step is not Step.RUN:
        return planned
    loss = planned.rebalance.last_loss if planned.rebalance is not None else None
    refused = [rs for twin in observed.twins for rs in twin.replica_sets if rs.refused]
    if not refused:
        return planned
    left = {rs.name: _left_s(rs, loss, observed.now) for rs in refused}
    due = tuple(RetryPods(rs.name, rs.uid, observed.now) for rs in refused if left[rs.name] <= 0)
    again_s = min(_SHORTEST_S if one <= 0 else one for one in left.values())
    observed.waits.look_in(again_s)
    return replace(planned, retries=due)


def _left_s(rs: ReplicaSetView, loss: datetime | None, now: datetime) -> float:
    """Return how long until a ReplicaSet is to try again."""
    known = [at for at in (rs.refused_since, loss) if at is not None and at <= now]
    since = max(known, default=rs.created)
    last = rs.retried if rs.retried is not None and since <= rs.retried <= now else since
    wait_s = min(_LONGEST_S, max(_SHORTEST_S, seconds_between(since, last) / _PART))
    return wait_s - seconds_between(last, now)
