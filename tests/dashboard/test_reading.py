"""What is made of Splits before it is rendered: odd statuses, odd clocks, many decisions."""

from datetime import UTC, datetime, timedelta

import pytest

from splitter.core.labels_annotations.policy import Policy
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.rebalance import Tuning
from splitter.core.split_status import PastDecision, PoolCounts, SplitStatus
from splitter.core.split_status.usage import begun
from splitter.dashboard import timeline
from splitter.dashboard.history import KEPT, Moment, Series
from splitter.dashboard.simulator import Simulator
from splitter.dashboard.timeline import Sort
from splitter.dashboard.workload_status import asked, counts_of, move_of, shown
from splitter.simulate.trace import Change, Trace

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
WEB = Key(DEPLOYMENT, "shop", "web")


def status(**fields: object) -> SplitStatus:
    """Return what is read of a status."""
    return shown(SplitStatus.from_json(fields))


def decision(minutes_ago: float, message: str, reason: str = "Scaled") -> PastDecision:
    """Return a decision."""
    return PastDecision(NOW - timedelta(minutes=minutes_ago), reason, message)


class TestStatus:
    """Whoever wrote it: numbers are numbers, and lists are bounded."""

    @pytest.mark.parametrize("odd", [None, "7", -1, True, [], {}, 1.5])
    def test_an_odd_number_is_none(self, odd: object) -> None:
        """It counts as 0; it is never negative."""
        result = status(desired=odd, ready=odd, onDemand={"ready": odd}, spot=odd)
        assert (result.desired, result.ready, result.on_demand.ready, result.spot.ready) == (0, 0, 0, 0)

    def test_a_huge_number_is_bounded(self) -> None:
        """More than an int32 of replicas there are not."""
        assert status(desired=10**30).desired == 2**31 - 1

    @pytest.mark.parametrize("odd", [None, "x", 3, {"a": 1}, [1, "x", None, {"time": 3}, {"time": "then"}]])
    def test_odd_lists_are_empty(self, odd: object) -> None:
        """What is no list of objects says nothing."""
        result = status(decisions=odd, nodes=odd, policy=odd, policyFrom=odd)
        assert (result.decisions, result.nodes) == ((), ())

    def test_lists_are_bounded(self) -> None:
        """The last 20 decisions and 10 nodes, each text at most 1,024 characters."""
        said = [
            {"time": "2026-01-05T10:00:00Z", "reason": str(number), "message": "x" * 5000}
            for number in range(99)
        ]
        result = status(decisions=said, nodes=[{"name": f"n{number}"} for number in range(99)])
        assert [one.reason for one in result.decisions] == [str(number) for number in range(79, 99)]
        assert len(result.decisions[0].message) == 1024
        assert len(result.nodes) == 10

    def test_nothing_is_reported_yet(self) -> None:
        """A Split without a status is shown, and without counters nothing is counted."""
        result = status()
        assert result.state == "Unreported"
        assert result.usage is None
        assert "is the controller running?" in result.message

    @pytest.mark.parametrize(
        ("message", "move"),
        [
            ("scale on-demand 4 -> 10 (+6): why", ("on-demand", 4, 10)),
            ("hold spot at 6, 12 wanted: why", None),
            ("scale other 4 -> 10 (+6): why", None),
            (f"scale spot 1 -> {'9' * 99} (+1): why", None),
        ],
    )
    def test_a_decision_says_what_it_scales(self, message: str, move: tuple[str, int, int] | None) -> None:
        """Its sentence begins with the move, if there is one."""
        assert move_of(decision(0, message)) == move

    def test_counts(self) -> None:
        """What is wanted, what is ready on each pool, and what is on nodes that go."""
        result = SplitStatus(
            desired=10, on_demand=PoolCounts(ready=4, doomed=1), spot=PoolCounts(ready=3, doomed=2)
        )
        assert counts_of(result) == (10, 4, 3, 3)


class TestSeries:
    """Changes since the page was opened."""

    def test_keeps_changes_only(self) -> None:
        """The same counts again are no news."""
        series = Series()
        for minute, spot in enumerate((3, 3, 2, 2, 3)):
            series.saw(Moment(NOW + timedelta(minutes=minute), 4, 1, spot))
        assert [one.spot for one in series] == [3, 2, 3]

    def test_forgets_what_is_old(self) -> None:
        """The newest of the too old says how it stood when the kept time begins."""
        series = Series()
        for hour in range(10):
            series.saw(Moment(NOW + timedelta(hours=hour), 4, 1, hour))
        kept = list(series)
        assert kept[1].at > kept[-1].at - KEPT >= kept[0].at

    def test_is_bounded(self) -> None:
        """However much changes, so much is kept."""
        series = Series(5)
        for second in range(99):
            series.saw(Moment(NOW + timedelta(seconds=second), 4, 1, second))
        assert len(list(series)) == 5

    def test_a_clock_that_is_set_back(self) -> None:
        """Times never go back, so that a picture can be drawn."""
        series = Series()
        series.saw(Moment(NOW, 4, 1, 3))
        series.saw(Moment(NOW - timedelta(hours=2), 4, 1, 2))
        assert [one.at for one in series] == [NOW, NOW]


class TestTimeline:
    """Pictures of replicas and decisions."""

    def test_what_was_asked_for_follows_from_the_sentences(self) -> None:
        """Backwards from what is asked for now, to when the workload was split."""
        decisions = [
            decision(60, "scale on-demand 2 -> 5 (+3): notice"),
            decision(59, "scale spot 8 -> 5 (-3): lost"),
            decision(40, "hold spot at 5: waiting"),
            decision(20, "scale spot 5 -> 8 (+3): back"),
            decision(10, "scale on-demand 5 -> 2 (-3): covered"),
        ]
        reported = SplitStatus(
            on_demand=PoolCounts(spec=2),
            spot=PoolCounts(spec=8),
            decisions=tuple(decisions),
            usage=begun(NOW - timedelta(minutes=90)),
        )
        result = asked(reported)
        assert [(one.on_demand, one.spot) for one in result] == [(2, 8), (5, 8), (5, 5), (5, 8), (2, 8)]
        assert result[0].at == NOW - timedelta(minutes=90)

    def test_nothing_is_known_of_the_time_before(self) -> None:
        """Without counters and without decisions nobody knows since when it is split."""
        assert asked(SplitStatus(on_demand=PoolCounts(spec=2), spot=PoolCounts(spec=8))) == []

    def test_every_decision_has_a_mark_with_its_sentence(self) -> None:
        """Twenty in one second too: each has a number of its own, within the picture."""
        decisions = [decision(0, f"hold spot at {number}: <b>", "SpotLost") for number in range(20)]
        span = timeline.span_of(NOW - timedelta(hours=1), NOW)
        drawn = str(timeline.workload_picture(span, [], [], decisions))
        assert drawn.count('<path class="m loss"') == 20
        for number in range(20):
            assert f"{number + 1}. 12:00:00 SpotLost: hold spot at {number}: &lt;b&gt;" in drawn
        numbers = [float(part.split('"')[0]) for part in drawn.split('class="number" x="')[1:]]
        assert all(34 < x <= 960 for x in numbers)
        assert (
            len(
                {
                    (x, part.split('y="')[1].split('"')[0])
                    for x, part in zip(numbers, drawn.split('class="number" x="')[1:], strict=True)
                }
            )
            == 20
        )

    def test_a_clock_that_jumps_draws_all_the_same(self) -> None:
        """Decisions of the future stand at the end, and a span is never empty."""
        span = timeline.span_of(NOW + timedelta(hours=3), NOW)
        later = decision(-600, "scale spot 1 -> 2 (+1): why")
        seen = [Moment(NOW + timedelta(hours=2), 3, 1, 2)]
        assert "NaN" not in str(timeline.workload_picture(span, seen, [], [later]))
        assert "<svg" in str(timeline.fleet_picture(span, seen, [], [later]))

    def test_those_on_nodes_that_go_are_drawn_apart(self) -> None:
        """They serve until then: a notice is no hole in the picture."""
        span = timeline.span_of(NOW - timedelta(hours=1), NOW)
        calm = [Moment(NOW - timedelta(minutes=9), 10, 4, 6)]
        drawn = str(timeline.workload_picture(span, calm, [], []))
        assert 'class="going"' not in drawn
        noticed = [*calm, Moment(NOW - timedelta(minutes=5), 10, 4, 0, 6)]
        drawn = str(timeline.workload_picture(span, noticed, [], []))
        # 4, 0 and 6 reach as high as 4 and 6 did.
        top = drawn.split('class="spot" d="M')[1].split("H")[0].split()[1]
        assert f"V{top}" in drawn.split('class="going" d="')[1].split('"')[0]

    @pytest.mark.parametrize(
        ("reason", "sort"),
        [
            ("SpotLost", Sort.LOSS),
            ("Returning", Sort.MOVE),
            ("HandedOver", Sort.HANDOVER),
            ("Rolling", Sort.ROLL),
            ("ImagePullFailed", Sort.TROUBLE),
            ("OfALaterVersion", Sort.MOVE),
        ],
    )
    def test_a_decision_is_of_a_sort(self, reason: str, sort: Sort) -> None:
        """Shapes tell them apart; a reason that is not known has one too."""
        assert timeline.sort_of(decision(0, "", reason)) is sort

    def test_shapes_differ(self) -> None:
        """No two sorts have the same shape: colours only repeat them."""
        shapes = {str(timeline.key_picture(sort)).split(' d="')[1] for sort in Sort}
        assert len(shapes) == len(Sort)


class TestSimulator:
    """A policy by hand beside the one in force."""

    @pytest.fixture
    def simulator(self) -> Simulator:
        """Return a simulator with a trace of a file."""
        trace = Trace("lab", (Change(0.0, "a", added=True), Change(3600.0, "a", added=False)), 7200.0)
        return Simulator(Policy(), Tuning(), trace)

    async def test_more_on_on_demand_saves_less(self, simulator: Simulator) -> None:
        """Both are played on the same trace, and drawn."""
        in_force = status(desired=8, policy={"onDemandBase": 1, "grace": "180s"})
        result = await simulator.replay(in_force, {"replicas": "8", "on-demand-base": "4"})
        assert result["problem"] == ""
        first, second = result["results"]
        assert (first["name"], second["name"]) == ("in force", "by hand")
        assert int(first["saved"].split()[0]) > int(second["saved"].split()[0])
        assert str(result["drawn"]).startswith("<svg")

    async def test_without_a_workload_it_is_the_default(self, simulator: Simulator) -> None:
        """Nothing is changed, nothing is different."""
        result = await simulator.replay(None, {})
        first, second = result["results"]
        assert first["name"] == "default"
        assert {**first, "name": ""} == {**second, "name": ""}

    async def test_a_trace_of_a_file(self, simulator: Simulator) -> None:
        """The one that was named when the command was started."""
        result = await simulator.replay(None, {"trace": "file", "replicas": "1"})
        assert "trace lab" in str(result["drawn"])

    @pytest.mark.parametrize(
        ("query", "problem"),
        [
            ({"replicas": "0"}, "replicas is a whole number from 1 to 200"),
            ({"replicas": "1e3"}, "replicas is a whole number"),
            ({"replicas": "٣"}, "replicas is a whole number"),
            ({"days": "9999999999"}, "days is a whole number from 1 to 31"),
            ({"every": "soon"}, "every is a time such as 90s, 20m or 12h"),
            ({"every": "10m", "last": "10m"}, "an outage is shorter than the time to the next"),
            ({"every": "10m", "last": "1m", "days": "31", "replicas": "200"}, "more than 5000 changes"),
            ({"on-demand-base": "-1"}, "on-demand-base"),
            ({"on-demand-max": "1", "spot-max": "1"}, "hold fewer than the replicas"),
        ],
    )
    async def test_what_cannot_be_played_is_said(
        self, simulator: Simulator, query: dict[str, str], problem: str
    ) -> None:
        """In a sentence, in the place of the picture; nothing is played."""
        result = await simulator.replay(None, query)
        assert problem in result["problem"]
        assert "last good policy" not in result["problem"]
        assert result["results"] == []
