"""Samples made by hand, and what the judge says of them."""

import random
from collections.abc import Callable

import pytest

from lab.soak.flat import BOUNDS, LEAST, Finding, Gauge, Sample, TooShortError, judge, theil_sen, thinned

MINUTES_20 = 1200


def judged(value: Callable[[int], float], gauge: Gauge = Gauge.MEMORY, seconds: int = MINUTES_20) -> Finding:
    """Judge a run sampled every two seconds."""
    return judge(gauge, [Sample(at_s, value(at_s)) for at_s in range(0, seconds, 2)])


class TestFlat:
    def test_constant(self) -> None:
        """What does not change does not grow."""
        result = judged(lambda _: 80)
        assert (result.second, result.last, result.growth, result.flat) == (80, 80, 0, True)

    def test_noise(self) -> None:
        """Breath of two MiB is no growth."""
        dice = random.Random(7)
        assert judged(lambda _: 80 + dice.uniform(-2, 2)).flat

    def test_a_warm_up(self) -> None:
        """What grows in the first fifth only is not held against it."""
        assert judged(lambda at_s: min(80, 40 + at_s / 6)).growth == pytest.approx(0)

    def test_peaks(self) -> None:
        """A fifth of the samples may be anything, wherever they are."""
        dice = random.Random(7)
        result = judged(lambda _: 300 if dice.random() < 0.2 else 80)
        assert result.growth == pytest.approx(0)

    def test_what_shrinks(self) -> None:
        """Less is flat too."""
        assert judged(lambda at_s: 80 - at_s / 60).flat

    def test_longer_is_no_excuse(self) -> None:
        """A leak that is too slow for 20 minutes is found in hours."""

        def leak(at_s: int) -> float:
            return 80 + at_s / 600

        assert judged(leak).flat
        assert not judged(leak, seconds=6 * 3600).flat


class TestGrowth:
    def test_a_leak(self) -> None:
        """A MiB in a minute is found, under noise and peaks."""
        dice = random.Random(7)

        def leak(at_s: int) -> float:
            return 80 + at_s / 60 + dice.uniform(-2, 2) + (100 if dice.random() < 0.1 else 0)

        result = judged(leak)
        assert not result.flat
        assert result.an_hour == pytest.approx(60, rel=0.05)
        assert result.growth == pytest.approx(16, rel=0.15)

    def test_a_late_step(self) -> None:
        """What comes in the last fifth only moves no slope, and is found all the same."""
        result = judged(lambda at_s: 90 if at_s > 0.81 * MINUTES_20 else 80)
        assert result.an_hour == 0
        assert (result.growth, result.flat) == (10, False)

    @pytest.mark.parametrize("gauge", Gauge)
    def test_each_has_a_bound(self, gauge: Gauge) -> None:
        """Twice the bound is too much."""
        grown = 2 * BOUNDS[gauge]
        assert not judged(lambda at_s: 10 + grown * at_s / MINUTES_20, gauge).flat


def test_too_few() -> None:
    """Of a run of seconds nothing is said."""
    with pytest.raises(TooShortError, match="49 samples; at least 50"):
        judge(Gauge.FILES, [Sample(at_s, 1) for at_s in range(LEAST - 1)])


def test_slope() -> None:
    """The median slope is that of most pairs."""
    line = [Sample(at_s, 2 * at_s) for at_s in range(4)]
    assert theil_sen([*line, Sample(4, 1000)]) == 2
    assert theil_sen([Sample(0, 1), Sample(0, 9), Sample(2, 1)]) == pytest.approx(-2)


def test_hours_are_thinned() -> None:
    """So that pairs do not grow with the square of hours; no sample is left out of its bin."""
    samples = thinned([Sample(at_s, at_s) for at_s in range(10_000)])
    assert 200 <= len(samples) <= 400
    assert samples[0].value == pytest.approx(12, abs=1)
