"""The autoscaler's arithmetic, by the rules of its source for pods that are not measured or not ready."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from splitter.kube.client import ApiError
from world import clock
from world.controllers.autoscaler import by_average, by_utilization

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
PERCENT = 50


@pytest.fixture
def one_clock() -> None:
    """Leave the clock alone: arithmetic takes no time."""


def pod(name: str, *, phase: str = "Running", ready_s: float | None = 3600.0, **more: str) -> dict[str, Any]:
    """Return a pod that requests 100 m, and has been ready for so long; None: it is not."""
    since = clock.stamp(NOW - timedelta(seconds=ready_s or 0.0))
    ready = {"type": "Ready", "status": "False" if ready_s is None else "True", "lastTransitionTime": since}
    status = {"phase": phase, "startTime": since, "conditions": [ready]}
    spec = {"containers": [{"resources": {"requests": {"cpu": "100m"}}}]}
    return {"metadata": {"name": name, **more}, "spec": spec, "status": status}


FOUR = [pod(name) for name in "abcd"]


def asked(names: str, each: int, pods: list[dict[str, Any]]) -> int:
    """Return what is asked for beside 4 replicas, where those of these names use so much."""
    samples = {name: {"cpu_m": each, "at": NOW, "window_s": 1} for name in names}
    return by_utilization(pods, samples, PERCENT, 4, NOW)


@pytest.mark.parametrize(("each", "wanted"), [(50, 4), (55, 4), (56, 5), (45, 4), (25, 2), (100, 8)])
def test_a_tenth_is_tolerated(each: int, wanted: int) -> None:
    """And replicas are rounded up."""
    assert asked("abcd", each, FOUR) == wanted


def test_what_is_not_ready_is_idle_on_the_way_out() -> None:
    """1.6 of the target on three is 1.2 on four: five. On the way in it does not count at all."""
    starting = [*FOUR[:3], pod("d", phase="Pending", ready_s=None)]
    assert asked("abc", 80, starting) == 5
    assert asked("abc", 30, starting) == 2
    young = [*FOUR[:3], pod("d", ready_s=0.0)]
    assert asked("abcd", 80, young) == 5  # its sample began before it was ready


def test_what_is_not_measured_is_busy_on_the_way_in() -> None:
    """And idle on the way out. What goes does not count."""
    assert asked("abc", 20, FOUR) == 4  # 160 of 400 with the fourth at its request: 0.8 of four
    assert asked("abc", 80, FOUR) == 5
    going = [*FOUR[:3], pod("d", deletionTimestamp="2026-01-05T10:00:00Z")]
    assert asked("abc", 20, going) == 2


def test_without_any_sample_nothing_is_asked_for() -> None:
    """An error, and no count."""
    with pytest.raises(ApiError):
        asked("", 0, FOUR)


def test_a_queue_is_tolerated_by_replicas_that_are_there() -> None:
    """Of 0, as `status.replicas` of a split source has it, each step is followed."""
    assert [by_average(length, 10, 8) for length in (84, 88, 89)] == [8, 8, 9]
    assert by_average(84, 10, 0) == 9
