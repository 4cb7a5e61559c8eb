"""What goes down in one step of a return."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import Decision, RebalanceInput, decide
from splitter.core.split_status import RebalanceState

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


class TestTogether:
    """Replicas of one step become ready one after the other, and are lowered together (R34)."""

    def ready_for(self, *spot_s: float, on_demand: int = 10, **fields: object) -> RebalanceInput:
        """Return 10 replicas on on-demand, and some on spot that have been ready for so many seconds."""
        since = tuple(START - timedelta(seconds=seconds) for seconds in spot_s)
        made = RebalanceInput(
            now=START,
            desired=10,
            max_surge=3,
            max_unavailable=2,
            on_demand_spec=on_demand,
            on_demand_ready=on_demand,
            spot_spec=len(spot_s),
            spot_ready_since=since,
        )
        return replace(made, **fields)  # type: ignore[arg-type]

    def decided(self, observed: RebalanceInput) -> Decision:
        """Decide after a loss, with two replicas wanted on on-demand."""
        state = RebalanceState(last_loss=START - timedelta(hours=1), lost=True)
        return decide(observed, Policy(on_demand_base=2, soak_s=60.0), state)

    def test_the_first_waits_for_the_next(self) -> None:
        """No step is spent on one replica when another earns a return in a moment."""
        decision = self.decided(self.ready_for(61, 57, 57))
        assert decision.on_demand == 10
        assert decision.requeue_after_s == 3
        assert self.decided(self.ready_for(64, 60, 60)).on_demand == 7

    def test_not_for_long(self) -> None:
        """Nor for one that has to stand for longer, nor for a fourth when a step takes three."""
        assert self.decided(self.ready_for(61, 54, 54)).on_demand == 9
        assert self.decided(self.ready_for(61, 61, 61, 57)).on_demand == 7

    def test_what_is_above_the_surge_goes_at_once(self) -> None:
        """More than N + S is held for no moment."""
        assert self.decided(self.ready_for(61, 57, 57, 57)).on_demand == 9
