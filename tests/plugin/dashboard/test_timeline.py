"""What is drawn of a workload's past: odd clocks, many decisions."""

from datetime import UTC, datetime, timedelta

import pytest

from splitter.core.names import DEPLOYMENT, Key
from splitter.core.split_status import PastDecision, PoolCounts, SplitStatus
from splitter.core.split_status.usage import begun
from splitter.plugin.dashboard import timeline
from splitter.plugin.dashboard.history import Moment
from splitter.plugin.dashboard.timeline import Sort
from splitter.plugin.dashboard.workload_status import asked

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
WEB = Key(DEPLOYMENT, "shop", "web")


def decision(minutes_ago: float, message: str, reason: str = "Scaled") -> PastDecision:
    """Return a decision."""
    return PastDecision(NOW - timedelta(minutes=minutes_ago), reason, message)


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
            ("TakenOver", Sort.HANDOVER),
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
