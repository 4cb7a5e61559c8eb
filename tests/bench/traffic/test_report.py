"""What the table, the targets and the picture say, checked on segments made by hand."""

from collections import Counter
from xml.etree import ElementTree as ET

import pytest

from lab.bench.traffic.report import Figures, markdown, misses, raw, svg
from lab.bench.traffic.stage import PLAIN, SPLITTER, N, Seen, Segment
from lab.sandbox import Between, Instant, Steps, Timeline
from lab.sandbox.real.traffic import Failure, Requests, Second

BEGAN = Instant(100.0, 1000.0)
ENDED = Instant(120.0, 1020.0)
EVENT = Instant(102.0, 1002.0)
WHOLE = Between(BEGAN, ENDED)


def seen(*failed_at: float, lowest: int = N) -> Seen:
    """Return 4,000 requests, failures so many seconds after the event, and a dip of 2 s."""
    failures = tuple(
        Failure(EVENT.wall_s + at, 2.0, "service", "10.96.0.1:80", "web-1", "no answer in time")
        for at in sorted(failed_at)
    )
    lost = Counter(int(failure.at) for failure in failures)
    seconds = tuple(
        Second(at, Counter(service=200), Counter(service=lost[at]), Counter({"web-1": 200 - lost[at]}))
        for at in range(1000, 1020)
    )
    steps = Steps((90.0, 104.0, 106.0), (N, lowest, N))
    return Seen(
        Requests(4000, failures, seconds), Timeline(WHOLE, steps, steps, steps), ((1003.0, "Covered"),)
    )


def segment(name: str, splitter: Seen, plain: Seen) -> Segment:
    """Return a segment of 20 s."""
    return Segment(name, EVENT, WHOLE, {SPLITTER: splitter, PLAIN: plain})


def many(count: int, until_s: float) -> list[float]:
    """Return so many moments, evenly spread."""
    return [until_s * (number + 1) / count for number in range(count)]


class TestFigures:
    """A system in a segment becomes a few numbers."""

    def test_count_from_the_event(self) -> None:
        """The first failure and the last are told in seconds since what caused them."""
        result = Figures.of(segment("drained", seen(0.5, 3.25, lowest=4), seen()), seen(0.5, 3.25, lowest=4))
        assert result == Figures(4000, 2, 0.5, 3.25, 4, 2.0)
        assert str(result) == "2 of 4000, 0.5 to 3.2 s; 4; 2.0 s"

    def test_nothing_failed(self) -> None:
        """Then there is no first and no last."""
        result = Figures.of(segment("drained", seen(), seen()), seen())
        assert (result.failed, result.first_s, result.last_s) == (0, None, None)

    def test_are_rows(self) -> None:
        """The table has a row a segment and a column a system."""
        *_, row = markdown([segment("drained", seen(), seen(1.0))]).splitlines()
        assert row == "| drained | 0 of 4000; 6; 0.0 s | 1 of 4000, 1.0 to 1.0 s; 6; 0.0 s |"


class TestTargets:
    """What is missed is named, and what is reached is not."""

    @pytest.mark.parametrize("name", ["labelled", "new image", "scaled", "given back", "return"])
    def test_of_peace(self, name: str) -> None:
        """No request fails, and there are never fewer than N."""
        assert misses([segment(name, seen(), seen(1.0, lowest=0))]) == []
        assert len(misses([segment(name, seen(1.0), seen())])) == 1
        assert len(misses([segment(name, seen(lowest=N - 1), seen())])) == 1

    @pytest.mark.parametrize("name", ["drained", "drained, with a budget", "notice, not drained"])
    def test_of_a_notice(self, name: str) -> None:
        """No request fails."""
        assert misses([segment(name, seen(), seen(1.0))]) == []
        assert misses([segment(name, seen(1.0), seen(1.0))]) == [f"{name}: 1 failed, to reach 0"]

    def test_of_deleted_nodes(self) -> None:
        """Few fail, and none that begins more than 2 s later."""
        name, theirs = "lost, Nodes deleted", seen(*many(500, 15))
        assert misses([segment(name, seen(*many(9, 2)), theirs)]) == []
        assert misses([segment(name, seen(*many(10, 2)), theirs)]) == [
            f"{name}: 10 failed, to reach 2 % of 500"
        ]
        assert misses([segment(name, seen(1.0, 2.1), theirs)]) == [
            f"{name}: 1 failed that began more than 2 s later"
        ]

    def test_of_silent_nodes(self) -> None:
        """None fails that begins more than 3 s after the Nodes turned Unknown."""
        name, theirs = "lost, Nodes left", seen(1.0)
        assert misses([segment(name, seen(-6.0, 3.0), theirs)]) == []
        assert len(misses([segment(name, seen(3.1), theirs)])) == 1

    def test_of_the_test_itself(self) -> None:
        """Where the plain Deployment loses nothing, nothing is proven."""
        [published] = misses([segment("lost, Nodes left", seen(), seen())])
        assert "proves nothing" in published


class TestPicture:
    """Everything is drawn, within the picture."""

    def test_is_whole(self) -> None:
        """It is XML, with answers, failures, replicas and what splitter said."""
        drawn = svg(segment("lost, Nodes <deleted>", seen(1.0, lowest=2), seen()))
        texts = [each.text for each in ET.fromstring(drawn).iter() if each.text]  # noqa: S314 (ours)
        assert {"lost, Nodes <deleted>", SPLITTER, PLAIN, "Covered"} <= set(texts)
        assert drawn.count("#d33") == 1
        assert drawn.count("<polyline") == 2

    def test_nothing_is_outside(self) -> None:
        """No bar is drawn beyond the edges."""
        root = ET.fromstring(svg(segment("drained", seen(), seen())))  # noqa: S314
        width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
        for bar in root.iter("{http://www.w3.org/2000/svg}rect"):
            assert float(bar.get("x", 0)) + float(bar.attrib["width"]) <= width
            assert 0 <= float(bar.get("y", 0)) <= height


def test_raw_has_the_reasons() -> None:
    """The JSON says how many failed by which way and why."""
    [values] = raw([segment("drained", seen(1.0, 2.0), seen())], {"cpus": 2})["segments"]
    assert values[SPLITTER]["reasons"] == {"no answer in time": 2}
    assert values[SPLITTER]["ways"] == {"service": 2}
    assert values[PLAIN]["failed"] == 0
