"""What a policy is expected to save, and to lose: one replay, remembered for all workloads alike.

`splitter suggest` asks about each workload of a cluster, most of which differ in nothing that the replay
looks at. What it is played on is a `SpotHistory`. The answer compares policies, and predicts no particular
month.
"""

from dataclasses import dataclass, replace
from math import ceil

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import Tuning
from splitter.plugin.simulate.contenders import Rebalancing
from splitter.plugin.simulate.replay import DAY_S, Assumptions, simulate
from splitter.plugin.simulate.spot_history import SpotHistory

MONTH_S = 30.0 * DAY_S
REPLICAS_MAX = 50
"""More are played as so many, and what is lost is scaled up: the shares are the same."""
UNKNOWN_START_S = 120.0
"""Where no pod shows how long it takes: the simulator's own default."""
START_STEPS_S = (5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 600.0, 1200.0)
"""A start is played as the next of these: what differs less is not known better."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected cost and losses of one policy."""

    saving: float
    """The share of the cost of all replicas on on-demand; negative when it costs more."""
    lost_s: float
    """Replica-seconds a month in which a wanted replica was not ready."""


class Estimator:
    """Estimates policies under one history of spot, one notice and one tuning."""

    def __init__(self, history: SpotHistory, notice_s: float, tuning: Tuning, spot_price: float) -> None:
        """`spot_price`: of a spot replica, where one on on-demand costs 1."""
        self._history = history
        self._notice_s = notice_s
        self._tuning = tuning
        self._spot_price = spot_price
        self._known: dict[tuple[Policy, Assumptions], Estimate] = {}

    @property
    def played(self) -> int:
        """Count the replays that were needed."""
        return len(self._known)

    def of(
        self, replicas: int, surge: int, unavailable: int, policy: Policy, start_s: float | None
    ) -> Estimate:
        """Return the estimate of a policy for so many replicas.

        `surge` and `unavailable` are the workload's own; `start_s`: of a pod, None where nothing is seen.
        """
        base = base_replicas(replicas, policy)
        if replicas < 1 or base == replicas:
            return Estimate(0.0, 0.0)
        scale = max(1.0, replicas / REPLICAS_MAX)
        desired = ceil(replicas / scale)
        given = Assumptions(
            desired=desired,
            max_surge=ceil(surge / scale),
            max_unavailable=ceil(unavailable / scale),
            on_demand_start_s=_step(start_s),
            spot_start_s=_step(start_s),
            notice_s=self._notice_s,
            spot_price=self._spot_price,
        )
        # How many stay on on-demand, whoever asked for it: the caps and percentages are in it.
        asked = Policy(
            on_demand_base=min(desired - 1, ceil(base / scale)), grace_s=policy.grace_s, soak_s=policy.soak_s
        )
        key = asked, given
        if key not in self._known:
            self._known[key] = self._play(asked, given)
        one = self._known[key]
        return replace(one, lost_s=one.lost_s * scale)

    def _play(self, policy: Policy, given: Assumptions) -> Estimate:
        trace, slots = self._history.of(given.desired)
        result = simulate(
            trace, Rebalancing("proposed", policy, self._tuning), replace(given, slots_per_node=slots)
        )
        # Sums of floats: nothing lost is to be 0.
        missing = max(0.0, round(1 - result.availability, 12))
        return Estimate(1 - result.cost, missing * given.desired * MONTH_S)


def _step(start_s: float | None) -> float:
    seconds = UNKNOWN_START_S if start_s is None else start_s
    return next((step for step in START_STEPS_S if seconds <= step), seconds)
