"""How many replicas the ReplicaSets of a workload were asked for together, at every moment."""

import pytest

from lab.sandbox.asked import Asked
from lab.sandbox.errors import SandboxError
from lab.sandbox.instants import Instant


def at(seconds: float) -> Instant:
    """Return an instant."""
    return Instant(seconds, seconds)


def seen(*changes: tuple[float, str, int]) -> Asked:
    """Return what has seen these counts; -1: it was deleted."""
    asked = Asked()
    for seconds, name, replicas in changes:
        raw = {"metadata": {"name": name}, "spec": {"replicas": max(0, replicas)}}
        asked.see(at(seconds), raw, replicas < 0)
    return asked


ROLL = ((1, "web-old", 10), (2, "web-new", 3), (3, "web-old", 8), (4, "web-new", 5), (5, "web-old", -1))


@pytest.mark.parametrize(
    ("since", "until", "highest"),
    [(0, None, 13), (2.5, None, 13), (3.5, None, 13), (4, None, 13), (5, None, 5)],
)
def test_all_together_count(since: float, until: float | None, highest: int) -> None:
    """From what stood at the beginning on; one that is deleted asks for none."""
    assert until is None
    assert seen(*ROLL).highest("web", at(since)) == highest


def test_what_comes_later_does_not_count() -> None:
    """After the end of what is looked at."""
    assert seen(*ROLL).highest("web", at(0), at(1.5)) == 10
    assert seen(*ROLL).highest("web", at(3), at(3.5)) == 11


def test_another_workload_is_none_of_it() -> None:
    """Nor is one whose name only begins like it; of one that nobody saw nothing is known."""
    asked = seen((1, "web-a", 2), (2, "website-a", 9), (3, "api-a", 9))
    assert asked.highest("web", at(0)) == 2
    with pytest.raises(SandboxError, match="no ReplicaSet of cart was seen"):
        asked.highest("cart", at(0))
