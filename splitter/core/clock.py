"""Conditions with a clock: whether one holds, when time alone changes that, and how people read the instant.

`Waits` answers both questions in one call, so a condition cannot be read without the next look being due when
it changes. `plan` takes the soonest of all into `Plan.requeue_after_s`. Pure: `now` is observed, not read.
"""

from datetime import UTC, datetime, timedelta


class Waits:
    """Says of one moment what has lasted how long, and remembers when the first of the answers changes.

    Not part of any value: two observations that differ in it alone are equal.
    """

    __slots__ = ("next_due_s", "now")

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.next_due_s: float | None = None
        """Seconds until time alone changes an answer that was given; None: it changes none."""

    def past(self, since: datetime | None, after_s: float) -> bool:
        """Whether `after_s` seconds have passed since an instant; False when nothing has begun.

        >>> waits = Waits(datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
        >>> begun = datetime(2026, 1, 1, tzinfo=UTC)
        >>> waits.past(begun, 60.0), waits.past(begun, 90.0), waits.past(None, 0.0), waits.next_due_s
        (True, False, False, 30.0)
        """
        if since is None:
            return False
        remaining_s = after_s - (self.now - since).total_seconds()
        if remaining_s <= 0:
            return True
        self.look_in(remaining_s)
        return False

    def until_s(self, at: datetime) -> float:
        """Return the seconds until an instant; 0 when it has come."""
        remaining_s = max(0.0, (at - self.now).total_seconds())
        if remaining_s:
            self.look_in(remaining_s)
        return remaining_s

    def left_s(self, since: datetime | None, after_s: float) -> float:
        """Return the seconds until `after_s` have passed, as `left_s` below; 0 when they have."""
        if remaining_s := left_s(self.now, since, after_s):
            self.look_in(remaining_s)
        return remaining_s

    def look_in(self, seconds: float | None) -> None:
        """Look again after so many seconds, if nothing is due sooner; None: no look is due."""
        self.next_due_s = soonest_s(self.next_due_s, seconds)


def waits_of(waits: Waits, now: datetime) -> Waits:
    """Return these waits, or new ones if they are of another moment: an observation is changed by copies."""
    return waits if waits.now == now else Waits(now)


ANOTHER_MOMENT = Waits(datetime.min.replace(tzinfo=UTC))
"""In place of waits that are made with the moment they belong to."""


def soonest_s(*after_s: float | None) -> float | None:
    """Return the shortest of some waits, in seconds; None is a wait of which no end is known.

    >>> soonest_s(3.0, None, 1.5)
    1.5
    """
    return min((one for one in after_s if one is not None), default=None)


def left_s(now: datetime, since: datetime | None, after_s: float) -> float:
    """Return the seconds until `after_s` have passed; 0 when they have, or when nothing began.

    What another clock says is ahead of ours began now.
    """
    if since is None:
        return 0.0
    return max(0.0, after_s - max(0.0, (now - since).total_seconds()))


def clock(since: datetime | None, after_s: float = 0.0) -> str:
    """Return an instant as people read it, in UTC."""
    if since is None:
        return "now"
    return f"{(since + timedelta(seconds=after_s)).astimezone(UTC):%H:%M:%SZ}"
