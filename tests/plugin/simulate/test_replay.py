"""The replay: arithmetic that can be checked by hand, and the claims of docs/replay.md on public traces."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from plugin.simulate.policies import SpotOnly, contenders
from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import RebalanceInput, Tuning
from splitter.plugin.simulate.contenders import Rebalancing
from splitter.plugin.simulate.outage import outage_trace
from splitter.plugin.simulate.replay import Assumptions, SimulationResult, simulate
from splitter.plugin.simulate.trace import Trace, from_counts, parse_trace, read_trace

TRACES = [read_trace(path) for path in sorted((Path(__file__).parent / "traces").glob("*.csv"))]
HOUR_S = 3600.0


def outage(after_s: int, length_s: int, total_s: int, nodes: int = 16) -> Trace:
    """Make a trace in which all nodes go at once and come back."""
    counts = [nodes] * after_s + [0] * length_s + [nodes] * (total_s - after_s - length_s)
    return from_counts(counts, 1.0, "outage")


class NoMachines(Rebalancing):
    """splitter, while an autoscaler says all the time that no more spot machines can be had."""

    def answer(self, observed: RebalanceInput) -> tuple[int, int, float | None]:
        """Ask `decide`; the room on the nodes that there are is still seen."""
        return super().answer(replace(observed, blocked="no more spot nodes"))


class TestArithmetic:
    """Small worlds with known answers."""

    def test_no_spot_at_all_costs_as_much_as_on_demand(self) -> None:
        """Nothing changes, nothing is missing, nothing is saved."""
        result = simulate(from_counts([0, 0], HOUR_S), Rebalancing("splitter"))
        assert (result.cost, result.availability, result.on_demand_changes_per_day) == (1.0, 1.0, 0.0)

    def test_spot_that_stays_ends_at_its_price(self) -> None:
        """After a year of calm the cost is the spot price, but for the first soak."""
        result = simulate(from_counts([16], 365 * 24 * HOUR_S), Rebalancing("splitter"))
        assert result.cost == pytest.approx(0.30, abs=0.001)
        assert result.availability == 1.0
        assert result.most_ready == 20

    def test_a_sudden_loss_of_all_spot_is_missing_for_the_start_of_on_demand(self) -> None:
        """16 replicas for 120 s: 1,920 replica-seconds of a day."""
        result = simulate(outage(7200, 3600, 86_400), Rebalancing("splitter"))
        assert result.availability == pytest.approx(1 - 16 * 120 / (16 * 86_400))
        assert result.seconds_short == 120
        assert result.least_ready == 0

    @pytest.mark.parametrize(("notice_s", "short_s"), [(0.0, 120.0), (30.0, 90.0), (120.0, 0.0)])
    def test_a_notice_shortens_the_gap_by_its_length(self, notice_s: float, short_s: float) -> None:
        """30 s of notice leave 90 s, 120 s leave nothing."""
        given = Assumptions(notice_s=notice_s)
        assert simulate(outage(7200, 3600, 86_400), Rebalancing("splitter"), given).seconds_short == short_s

    @pytest.mark.parametrize(("notice_s", "kept_s"), [(30.0, 0.0), (60.0, 20.0), (120.0, 60.0)])
    def test_the_doomed_end_before_their_nodes_do(self, notice_s: float, kept_s: float) -> None:
        """On-demand covers them in 10 s; they are let go while 30 s are left to end, or after a minute."""
        given = Assumptions(notice_s=notice_s, on_demand_start_s=10)
        result = simulate(outage(7200, 3600, 86_400), Rebalancing("splitter"), given)
        covered_s = 7200 - notice_s + 10
        gone_s = next(one.at_s for one in result.samples if one.at_s >= covered_s and not one.spot_ready)
        assert gone_s == covered_s + kept_s
        assert result.seconds_short == 0

    def test_warm_on_demand_keeps_the_base_up(self) -> None:
        """on-demand-base 4: four replicas answer all through a sudden loss."""
        contender = Rebalancing("base 4", Policy(on_demand_base=4))
        assert simulate(outage(7200, 3600, 86_400), contender).least_ready == 4

    def test_spot_only_is_as_available_as_spot(self) -> None:
        """Half the time no nodes, and 90 s to start when they come."""
        result = simulate(from_counts([0, 16], HOUR_S), SpotOnly())
        assert result.availability == pytest.approx((HOUR_S - 90) / (2 * HOUR_S))

    def test_several_slots_on_a_node_are_lost_together(self) -> None:
        """Four nodes with four slots hold all sixteen, and one of them takes four."""
        trace = from_counts([4] * 4 + [3] * 4, HOUR_S)
        result = simulate(trace, Rebalancing("splitter"), Assumptions(slots_per_node=4))
        assert result.least_ready == 12

    def test_the_same_trace_gives_the_same_numbers(self) -> None:
        """A contender forgets between two replays."""
        contender = Rebalancing("splitter")
        assert simulate(TRACES[0], contender) == simulate(TRACES[0], contender)

    @pytest.mark.parametrize("desired", [0, -1])
    def test_needs_something_to_simulate(self, desired: int) -> None:
        """No replicas: a sentence instead of a division by zero."""
        with pytest.raises(ValueError, match="nothing to simulate"):
            simulate(TRACES[0], SpotOnly(), Assumptions(desired=desired))

    def test_survives_a_node_that_goes_as_it_comes(self) -> None:
        """A notice never comes before the node."""
        trace = parse_trace(["0,add,a", "50000,remove,a", "60000,add,b"])
        assert simulate(trace, SpotOnly(), Assumptions(notice_s=120)).duration_s == 60


@pytest.mark.slow
class TestPublicTraces:
    """What docs/design/rebalancing.md claims, on traces of AWS in which nodes go every few minutes."""

    GIVEN = Assumptions()

    @classmethod
    @cache
    def results(cls, trace: Trace) -> list[SimulationResult]:
        """Play each contender once for all tests."""
        return [simulate(trace, contender, cls.GIVEN) for contender in contenders(16)]

    @pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
    @pytest.mark.parametrize("stays", [True, False])
    def test_two_minutes_of_notice_lose_nothing(self, trace: Trace, stays: bool) -> None:
        """With 120 s of notice and 120 s to start, no replica is ever missing."""
        for contender in contenders(16)[2:6]:
            result = simulate(trace, contender, Assumptions(notice_s=120, standing_nodes=stays))
            assert result.availability == 1.0
            assert result.cost < 0.85

    @pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
    def test_never_holds_more_than_the_surge(self, trace: Trace) -> None:
        """Without notices nothing is doomed: at most N + S ready; the others pay up to 2 N."""
        hedge, soak, *ours, _ = (result.most_ready for result in self.results(trace))
        assert max(ours) <= 20
        assert max(hedge, soak) > 20

    @pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
    def test_is_more_available_and_calmer_than_hedging(self, trace: Trace) -> None:
        """Fewer replica-seconds lost than with SpotHedge, with less than half the changes."""
        hedge, _, ours, *_ = self.results(trace)
        assert 1 - ours.availability < 0.5 * (1 - hedge.availability)
        assert ours.on_demand_changes_per_day < 0.5 * hedge.on_demand_changes_per_day

    def test_more_on_demand_is_dearer_and_more_available(self) -> None:
        """Base 4 and majority trade cost for availability, in this order."""
        results = [self.results(TRACES[0])[number] for number in (2, 4, 5)]
        assert [result.cost for result in results] == sorted(result.cost for result in results)
        assert [result.availability for result in results] == sorted(r.availability for r in results)

    @pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
    def test_keeps_no_replica_waiting_for_ever(self, trace: Trace) -> None:
        """A calm day after the trace ends with everything on spot."""
        nodes = {change.node for change in trace.changes if change.added}
        nodes -= {change.node for change in trace.changes if not change.added}
        calm = replace(trace, duration_s=trace.duration_s + 86_400)
        last = simulate(calm, Rebalancing("splitter"), self.GIVEN).samples[-1]
        assert last.on_demand == max(0, 16 - len(nodes))

    @pytest.mark.parametrize(("notice_s", "floor"), [(0, 0.992), (120, 0.995)])
    def test_uses_the_spot_room_that_is_left(self, notice_s: float, floor: float) -> None:
        """No machine can be had, and 2 on on-demand at most: what nobody covers takes all free spot room."""
        [trace] = [one for one in TRACES if one.name == "bamboo-p3"]
        given = Assumptions(desired=16, max_surge=4, notice_s=notice_s)
        result = simulate(trace, NoMachines("splitter", Policy(on_demand_max=2)), given)
        assert result.availability > floor


@pytest.mark.slow
class TestSpotThatEarnsNothing:
    """What R27 is worth."""

    @pytest.mark.parametrize("last_s", [10, 600])
    def test_costs_no_more_than_on_demand(self, last_s: int) -> None:
        """All of spot gone every hour for 17 days: 1.00 of all on-demand; 1.07 by probing on and on."""
        trace = outage_trace(3600, last_s, 16, 17)
        without = Rebalancing("probes on", tuning=Tuning(barren_losses=1_000_000))
        results = [simulate(trace, one) for one in (Rebalancing("splitter"), without)]
        assert results[0].cost < 1.001
        assert results[1].cost > 1.05
        assert results[0].availability == results[1].availability

    @pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
    def test_changes_nothing_where_spot_earns(self, trace: Trace) -> None:
        """Not on a real trace."""
        without = Rebalancing("splitter", tuning=Tuning(barren_losses=1_000_000))
        assert simulate(trace, Rebalancing("splitter")) == simulate(trace, without)
