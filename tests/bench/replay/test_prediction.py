"""The arithmetic of the prediction: compressed alike, led in, counted from the trace's own beginning."""

import pytest

from bench.replay.prediction import Figures, compressed, predicted, spread, tuned
from bench.replay.stage import settings
from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import Tuning
from splitter.plugin.simulate.trace import Change, Trace
from splitter.settings.loading import load_settings

FOUR = tuple(Change(0.0, f"node{number}", added=True) for number in range(4))


def figures(trace: Trace, factor: float = 1.0, times: int = 1) -> list[Figures]:
    """Return what is predicted for a workload of two."""
    return predicted(trace, factor, replicas=2, surge=1, start_s=120.0 / factor, times=times, per_node=1)


class TestCompression:
    def test_of_a_trace(self) -> None:
        """Instants and length; who came and went stays."""
        trace = Trace("t", (*FOUR, Change(600.0, "node0", added=False)), 1200.0)
        short = compressed(trace, 60)
        assert short.duration_s == 20.0
        assert short.changes[-1] == Change(10.0, "node0", added=False)

    def test_of_the_policy(self) -> None:
        """Every duration, no share and no count."""
        policy, tuning = tuned(60)
        assert (policy.soak_s, policy.grace_s) == (Policy().soak_s / 60, Policy().grace_s / 60)
        assert tuning.soak_max_s == Tuning().soak_max_s / 60
        assert tuning.release_s == 1.0
        assert tuning.step_fraction == Tuning().step_fraction
        assert tuning.first_window == Tuning().first_window

    def test_is_what_the_controller_starts_with(self) -> None:
        """The environment of the real one holds the same times, and no name that is no setting."""
        played = load_settings(environment=settings(60.0))
        assert (played.soak_s, played.tuning.soak_max_s, played.tuning.step_fraction) == (10.0, 60.0, 0.25)

    def test_changes_no_prediction(self) -> None:
        """A trace at sixty times the speed costs a sixtieth of the replica-seconds, with the same moves."""
        trace = Trace("t", (*FOUR, *(Change(600.0, f"node{n}", added=False) for n in range(4))), 7200.0)
        (slow,) = figures(trace)
        (fast,) = figures(trace, 60)
        assert fast.lost == pytest.approx(slow.lost / 60)
        assert fast.moves == slow.moves


class TestFigures:
    def test_of_a_quiet_trace(self) -> None:
        """Everything stands on spot when the trace begins: nothing moves, nothing is lost."""
        (result,) = figures(Trace("t", FOUR, 3600.0))
        assert result == Figures(lost=0.0, moves=0, most_ready=2, on_spot=1.0)

    def test_of_a_loss(self) -> None:
        """Two replicas are gone for as long as a pod on on-demand needs to start."""
        (result,) = figures(
            Trace("t", (*FOUR, *(Change(600.0, f"node{n}", added=False) for n in range(4))), 3600.0)
        )
        assert result.lost == 2 * 120.0
        assert result.moves == 1
        assert result.on_spot == pytest.approx(600 / (3600 - 120))

    def test_of_chance(self) -> None:
        """Which of the nodes a replica stands on is drawn: losing one of four hits a half of the plays."""
        result = figures(Trace("t", (*FOUR, Change(600.0, "node0", added=False)), 3600.0), times=40)
        hit = sum(one.lost > 0 for one in result)
        assert 8 < hit < 32


def test_spread() -> None:
    """The mean, and the borders of the nine tenths in the middle."""
    assert spread([5.0]) == (5.0, 5.0, 5.0)
    assert spread(range(101)) == (50.0, 5, 95)
