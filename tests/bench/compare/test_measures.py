"""What the figures of the comparison mean, checked on step functions made by hand."""

import pytest

from lab.bench.compare import measures
from lab.sandbox import Between, Instant, Steps
from lab.sandbox.recording import NodeChange, NodeSeen, PodChange, PodSeen, Recording
from lab.sandbox.timeline import Timeline

N, SURGE = 20, 5


def at(second: float) -> Instant:
    """Return a moment."""
    return Instant(second, 1_000_000 + second)


def between(start: float, end: float) -> Between:
    """Return a stretch of time."""
    return Between(at(start), at(end))


def steps(**values: int) -> Steps:
    """Return a step function: `steps(s0=20, s5=4)` is 20 from second 0 on, 4 from second 5 on."""
    return Steps(tuple(float(name[1:]) for name in values), tuple(values.values()))


OUTAGE = steps(s0=20, s10=4, s15=18, s17=20)


class TestLost:
    """Lost is the area between N and what was available, in replica-seconds."""

    def test_counts_depth_and_duration(self) -> None:
        """16 missing for 5 s and 2 missing for 2 s are 84 replica-seconds."""
        assert measures.lost(OUTAGE, N, between(0, 60)) == 16 * 5 + 2 * 2

    def test_counts_within_the_stretch_only(self) -> None:
        """What was missing before and after is somebody else's."""
        assert measures.lost(OUTAGE, N, between(12, 16)) == 16 * 3 + 2 * 1

    def test_is_not_made_good_by_more(self) -> None:
        """A surplus later takes nothing back."""
        assert measures.lost(steps(s0=19, s10=36), N, between(0, 20)) == 10

    def test_is_nothing_when_nothing_is_missing(self) -> None:
        """Exactly N is enough."""
        assert measures.lost(steps(s0=20), N, between(0, 60)) == 0

    def test_counts_pods_of_a_vanished_node_from_that_moment(self) -> None:
        """Of a recording: what Kubernetes calls Ready for another minute is lost when its Node is gone."""
        node = NodeSeen("spot-0", "n1")
        pods = [
            PodSeen("shop", f"web-{number}", f"web-{number}", node="spot-0", ready=True, phase="Running")
            for number in range(2)
        ]
        seen = Recording(
            at(0),
            at(60),
            (
                NodeChange(at(0), node),
                *(PodChange(at(0), pod) for pod in pods),
                NodeChange(at(10), node, deleted=True),
                *(PodChange(at(50), pod, deleted=True) for pod in pods),
            ),
        )
        assert measures.lost(Timeline.of(seen, "shop").available, 2, between(10, 40)) == 2 * 30


class TestBackAfter:
    """Back is when N are available for good."""

    def test_is_the_end_of_the_last_gap(self) -> None:
        """Being back for a moment does not count."""
        assert measures.back_after_s(steps(s0=20, s10=4, s15=20, s16=19, s18=20), N, between(10, 60)) == 8

    def test_is_0_when_it_was_never_away(self) -> None:
        """Nothing lost, nothing to wait for."""
        assert measures.back_after_s(steps(s0=20, s10=36), N, between(10, 60)) == 0

    def test_is_never_when_some_are_still_missing(self) -> None:
        """The end of the recording is not a recovery."""
        assert measures.back_after_s(steps(s0=20, s10=4, s15=19), N, between(10, 60)) is None

    def test_counts_a_loss_seen_later_than_it_was_made(self) -> None:
        """The watch tells of the loss some milliseconds after the deed: N still stand at the beginning."""
        assert measures.back_after_s(steps(s0=20, s10=4, s15=20), N, between(9, 60)) == 6


class TestDips:
    """A dip is one stretch below N, however it is shaped."""

    @pytest.mark.parametrize(
        ("available", "expected"),
        [
            (steps(s0=20), 0),
            (OUTAGE, 1),
            (steps(s0=20, s10=19, s11=20, s12=19, s13=21), 2),
            (steps(s0=19), 1),
        ],
    )
    def test_are_counted_once_each(self, available: Steps, expected: int) -> None:
        """Several depths of one stretch are one dip; one that is there from the beginning counts."""
        assert measures.dips(available, N, between(0, 60)) == expected


class TestReturns:
    """A return is a gap between outages in which replicas left on-demand."""

    GAPS = (between(10, 20), between(30, 40))

    @pytest.mark.parametrize(
        ("on_demand", "expected"),
        [
            (steps(s0=4, s1=20), 0),
            (steps(s0=4, s1=20, s15=15, s21=20), 1),
            (steps(s0=4, s1=20, s15=15, s21=20, s35=15), 2),
            (steps(s0=4, s1=20, s15=15, s16=10), 1),
            (steps(s0=4, s1=15, s15=20), 0),
        ],
    )
    def test_are_counted_by_gap(self, on_demand: Steps, expected: int) -> None:
        """Steps within one gap are one return; a raise is none, nor is what happens during an outage."""
        assert measures.returns(on_demand, self.GAPS) == expected


class TestMostOver:
    """The bound N + max(S, starting) + doomed holds moment by moment."""

    NONE = steps(s0=0)

    def test_is_0_within_the_bound(self) -> None:
        """16 starting beside 16 doomed and 4: 36 pods, 52 allowed."""
        total, starting, doomed = steps(s0=20, s5=36), steps(s0=0, s5=16), steps(s0=16)
        assert measures.most_over(total, (starting, doomed), N, SURGE, between(0, 60)) == 0

    def test_is_the_worst_moment(self) -> None:
        """What is allowed at one moment excuses nothing at another."""
        total, starting = steps(s0=20, s5=36, s20=28), steps(s0=0, s5=16, s10=0)
        assert measures.most_over(total, (starting, self.NONE), N, SURGE, between(0, 60)) == 36 - 25

    def test_allows_the_surge_when_fewer_are_starting(self) -> None:
        """25 pods with 2 starting are allowed, 26 are one too many."""
        total = steps(s0=20, s5=25, s6=26)
        assert measures.most_over(total, (steps(s0=2), self.NONE), N, SURGE, between(0, 60)) == 1

    def test_looks_within_the_stretch_only(self) -> None:
        """What was before is somebody else's."""
        total = steps(s0=40, s5=20)
        assert measures.most_over(total, (self.NONE, self.NONE), N, SURGE, between(10, 60)) == 0
