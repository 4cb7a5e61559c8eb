"""Waiting for a condition: what it finds, and how it gives up."""

import pytest

from lab.sandbox import waiting
from lab.sandbox.errors import SandboxError
from lab.sandbox.waiting import LOOK_EVERY_S, LOOK_LATER_EVERY_S, wait_until


class Time:
    """A clock that goes on where somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """Return what it shows."""
        return self.now_s

    def sleep(self, seconds: float) -> None:
        """Let it go on."""
        self.slept.append(seconds)
        self.now_s += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """Return the clock of all waits."""
    clock = Time()
    monkeypatch.setattr(waiting, "time", clock)
    return clock


def test_what_is_there_is_not_waited_for(time: Time) -> None:
    """Anything but None and False is an answer: an empty list, a zero."""
    assert wait_until(lambda: 0, what="a number", deadline_s=1.0) == 0
    assert wait_until(list, what="a list", deadline_s=1.0) == []
    assert time.slept == []


def test_looks_ever_less_often(time: Time) -> None:
    """Ten times a second at first, and later by a tenth of what it has waited."""
    assert wait_until(lambda: time.now_s > 10 or None, what="ten seconds", deadline_s=60.0)
    assert time.slept[0] == LOOK_EVERY_S
    assert time.slept[-1] == LOOK_LATER_EVERY_S
    assert time.slept == sorted(time.slept)


def test_says_what_did_not_come(time: Time) -> None:
    """After one more look when the time is over."""
    looks: list[float] = []
    with pytest.raises(SandboxError, match=r"^waited 2 s for the moon; it did not come\.$"):
        wait_until(lambda: looks.append(time.now_s), what="the moon", deadline_s=2.0)
    assert looks[-1] >= 2.0


@pytest.mark.usefixtures("time")
def test_gives_up_early() -> None:
    """Where the process that it waits for has ended; what is there by then is found all the same."""

    def ended() -> None:
        raise SandboxError("it has ended")

    with pytest.raises(SandboxError, match="it has ended"):
        wait_until(lambda: None, what="the moon", deadline_s=2.0, check=ended)
    assert wait_until(lambda: "here", what="the moon", deadline_s=2.0, check=ended) == "here"
