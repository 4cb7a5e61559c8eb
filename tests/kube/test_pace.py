"""How soon to try again: almost at once, then ever later; and so many at once, then one at a time."""

from clock import Clock
from splitter.kube.pace import Backoff, Spacing


class TestBackoff:
    def test_doubles_to_its_longest(self) -> None:
        """The first in a row is tried again at once."""
        backoff = Backoff(1.0, 5.0, 60.0)
        assert [backoff.ended_s(0.0) for _ in range(6)] == [0.0, 1.0, 2.0, 4.0, 5.0, 5.0]

    def test_begins_anew_after_what_held(self) -> None:
        """As long as is asked for, and no shorter."""
        backoff = Backoff(1.0, 5.0, 60.0)
        assert [backoff.ended_s(lasted_s) for lasted_s in (0.0, 0.0, 59.9, 60.0, 0.0)] == [
            0.0,
            1.0,
            2.0,
            0.0,
            1.0,
        ]

    def test_of_a_failure_is_never_nothing(self) -> None:
        """Else a server that refuses at once would be asked without an end."""
        backoff = Backoff(1.0, 5.0, 60.0)
        assert [backoff.failed_s() for _ in range(4)] == [1.0, 1.0, 2.0, 4.0]
        assert backoff.failed_s(60.0) == 1.0


class TestSpacing:
    def test_lets_a_burst_through_then_one_at_a_time(self) -> None:
        """Three at once, then one each two seconds."""
        clock = Clock()
        spacing = Spacing(2.0, 3, clock)
        for _ in range(3):
            assert spacing.due_s() == 0.0
            spacing.take()
        assert spacing.due_s() == 2.0
        clock.now_s += 1.5
        assert spacing.due_s() == 0.5
        clock.now_s += 0.5
        assert spacing.due_s() == 0.0
        spacing.take()
        assert spacing.due_s() == 2.0, "it has not rested: no other burst"

    def test_has_another_burst_after_a_rest(self) -> None:
        """When as much time has passed as the burst takes one by one."""
        clock = Clock()
        spacing = Spacing(2.0, 3, clock)
        for _ in range(3):
            spacing.take()
        clock.now_s += 6.0
        for _ in range(3):
            assert spacing.due_s() == 0.0
            spacing.take()
        assert spacing.due_s() == 2.0
