"""What the probes say: whether going on makes sense (live), and whether this process could lead (ready).

`operator` asks about once a second. Not live is only what a new process would mend: a watch in which nothing
has happened for longer than any silence or time-out lasts, or passes that have stopped ending although the
API server answers. An API server that is away is no reason to restart: the new process would find it away
too, would come back with empty caches, and later each time (CrashLoopBackOff). Ready is whoever has full
caches, leading or standing by.
"""

from asyncio import Event
from collections.abc import Sequence
from typing import Protocol

from splitter.kube.client import ApiError
from splitter.report.health import Check

# Requests end after 10 s, and a pass makes some dozens at most.
_NO_PASS_S, _LONGEST_PASS_S = 300.0, 600.0
# Bookmarks come about once a minute to each watch.
_AWAY_S = 150.0


class Watch(Protocol):
    """What is known of a watch: a `kube.watch.Reflector`."""

    synced: Event
    error: ApiError | None

    @property
    def label(self) -> str:
        """What it follows."""

    @property
    def optional(self) -> bool:
        """Whether splitter does without it."""

    @property
    def stuck(self) -> bool:
        """Whether nothing has happened for longer than any silence or time-out lasts."""

    @property
    def silent_s(self) -> float:
        """For how long the server has said nothing."""


class Passes(Protocol):
    """What is known of the queue."""

    served: bool

    def __len__(self) -> int:
        """Return how many keys wait."""

    def stuck_s(self) -> float:
        """Return for how long work is there and none of it ended."""

    def longest_pass_s(self) -> float:
        """Return for how long the oldest pass has lasted."""


class Leadership(Protocol):
    """What is known of the election."""

    @property
    def answered(self) -> bool:
        """Whether the API server has ever answered about the lease."""

    @property
    def leading(self) -> bool:
        """Whether this process leads."""

    @property
    def leader(self) -> str:
        """Who does, as far as known; empty: nobody."""


def checks(
    reflectors: Sequence[Watch], queue: Passes, election: Leadership | None, *, stopping: bool
) -> list[Check]:
    """Return everything that was looked at."""
    needed = [reflector for reflector in reflectors if not reflector.optional]
    found = [_watch(reflector) for reflector in needed]
    found.append(_passes(queue, _is_away(needed)))
    found.append(_leadership(election))
    if stopping:
        found.append(Check("stop", "this process is leaving", ready=False))
    return found


def _is_away(needed: Sequence[Watch]) -> bool:
    return min((reflector.silent_s for reflector in needed), default=0.0) > _AWAY_S


def _watch(reflector: Watch) -> Check:
    name = f"watch {reflector.label}"
    if reflector.stuck:
        return Check(name, "is stuck: neither news nor failure", live=False, age_s=reflector.silent_s)
    if not reflector.synced.is_set():
        why = f": {reflector.error}" if reflector.error is not None else ""
        return Check(name, f"is not listed yet{why}", ready=False, age_s=reflector.silent_s)
    if reflector.error is not None:
        # Not unready: its cache is as full as any other's, and no restart brings the API server back.
        return Check(name, f"is interrupted: {reflector.error}", age_s=reflector.silent_s)
    return Check(name, "follows", age_s=reflector.silent_s)


def _passes(queue: Passes, away: bool) -> Check:  # noqa: FBT001 (read by its name at the only call)
    stuck_s, longest_s = queue.stuck_s(), queue.longest_pass_s()
    told = f"{len(queue)} workloads wait, no pass has ended for {stuck_s:.0f} s"
    if not queue.served:
        return Check("passes", "none here: this process does not lead")
    stuck = stuck_s > _NO_PASS_S or longest_s > _LONGEST_PASS_S
    if not stuck:
        return Check("passes", f"{len(queue)} workloads wait", age_s=stuck_s)
    if away:
        return Check("passes", f"{told}; the API server is away, a restart would not help", age_s=stuck_s)
    return Check("passes", f"{told}, one takes {longest_s:.0f} s", live=False, age_s=stuck_s)


def _leadership(election: Leadership | None) -> Check:
    if election is None:
        return Check("leader", "this process, without an election")
    if not election.answered:
        return Check("leader", "not known yet", ready=False)
    if election.leading:
        return Check("leader", "this process")
    return Check("leader", f"not this process, which stands by; last seen: {election.leader or 'nobody'}")
