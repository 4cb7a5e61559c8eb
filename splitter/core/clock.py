"""Waits: which one ends first, how long one still lasts, and until when, as people read it."""

from datetime import UTC, datetime, timedelta


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
