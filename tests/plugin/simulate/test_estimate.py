"""What a policy is expected to save and to lose."""

import pytest

from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import Tuning
from splitter.plugin.simulate.contenders import Rebalancing
from splitter.plugin.simulate.estimate import MONTH_S, Estimator
from splitter.plugin.simulate.outage import outage_trace, parse_outage
from splitter.plugin.simulate.replay import Assumptions, simulate
from splitter.plugin.simulate.spot_history import DAYS, EVERY_S, LAST_S, NO_HISTORY, OUTAGE


def estimator(notice_s: float = 30.0) -> Estimator:
    """Return one at the simulator's own price."""
    return Estimator(NO_HISTORY, notice_s, Tuning(), 0.3)


class TestAnEstimate:
    def test_is_the_simulators(self) -> None:
        """The trace that is named to people is the one that is played; a month has 30 of its days."""
        trace = parse_outage(f"{OUTAGE},nodes=6")
        assert trace == outage_trace(EVERY_S, LAST_S, 6, DAYS)
        policy = Policy(on_demand_base=2)
        given = Assumptions(6, 2, 1, on_demand_start_s=60, spot_start_s=60, notice_s=30)
        played = simulate(trace, Rebalancing("it", policy), given)
        result = estimator().of(6, 2, 1, policy, 60.0)
        assert result.saving == pytest.approx(1 - played.cost)
        assert result.lost_s == pytest.approx((1 - played.availability) * 6 * MONTH_S)

    def test_counts_the_gap_of_each_loss(self) -> None:
        """Four on spot miss 30 s of a start of 60 s, 30 times a month; with a notice of 60 s nothing."""
        assert estimator().of(6, 2, 0, Policy(on_demand_base=2), 60.0).lost_s == pytest.approx(3600, rel=0.01)
        assert estimator(60.0).of(6, 2, 0, Policy(on_demand_base=2), 60.0).lost_s == 0

    def test_of_more_on_demand_saves_and_loses_less(self) -> None:
        """Both, with each replica of the base."""
        collected = [estimator().of(6, 2, 0, Policy(on_demand_base=base), 90.0) for base in range(7)]
        assert sorted(collected, key=lambda one: -one.saving) == collected
        assert sorted(collected, key=lambda one: -one.lost_s) == collected
        assert (collected[-1].saving, collected[-1].lost_s) == (0.0, 0.0)

    def test_of_many_is_that_of_few_scaled_up(self) -> None:
        """The same share is saved, and ten times as much lost by ten times as many."""
        few = estimator().of(50, 13, 0, Policy(on_demand_base=10), 60.0)
        many = estimator().of(500, 125, 0, Policy(on_demand_base=100), 60.0)
        assert many.saving == few.saving
        assert many.lost_s == pytest.approx(10 * few.lost_s)

    def test_of_a_start_that_nobody_has_seen_is_the_default(self) -> None:
        """120 s, as the simulator assumes."""
        policy = Policy(on_demand_base=2)
        assert estimator().of(6, 2, 0, policy, None) == estimator().of(6, 2, 0, policy, 120.0)

    def test_of_nothing_is_nothing(self) -> None:
        """A workload at 0 replicas."""
        assert estimator().of(0, 1, 0, Policy(), 10.0).saving == 0


def test_what_is_alike_is_played_once() -> None:
    """A start of 41 s is played as one of 45 s; another base, or another count, is another play."""
    one = estimator()
    assert one.of(6, 2, 0, Policy(), 41.0) == one.of(6, 2, 0, Policy(template_set="lean"), 45.0)
    assert one.played == 1
    one.of(6, 2, 0, Policy(spot_percent=50), 45.0)
    one.of(7, 2, 0, Policy(), 45.0)
    assert one.played == 3
