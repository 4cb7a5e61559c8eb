"""Health checks: liveness fails only when a restart would help, readiness when it could not lead.

`operator` asks about once a second. Not live is only what a new process would mend: a watch in which nothing
has happened for longer than any silence or time-out lasts, or reconciles that have stopped ending although
the API server answers. An API server that is away is no reason to restart: the new process would find it away
too, would come back with empty caches, and later each time (CrashLoopBackOff). Ready is whoever has full
caches, leading or standing by.
"""

from collections.abc import Sequence

from splitter.kube.lease import Election
from splitter.kube.watch import Reflector
from splitter.reconciler.queue import WorkQueue
from splitter.report.health import Check

# Requests end after 10 s, and a reconcile makes some dozens at most.
_NO_RECONCILE_S, _LONGEST_RECONCILE_S = 300.0, 600.0
# A new leader lists what it writes, and waits for what was cut off.
_WAITING_S = 30.0
# Bookmarks come about once a minute to each watch.
_AWAY_S = 150.0


def checks(
    reflectors: Sequence[Reflector],
    queue: WorkQueue,
    election: Election | None,
    *,
    stopping: bool,
    waiting_s: float = 0.0,
) -> list[Check]:
    """Return everything that was looked at. `waiting_s`: for how long a leader has not seen what it needs."""
    needed = [reflector for reflector in reflectors if not reflector.optional]
    unseen = {reflector.namespace for reflector in needed if not reflector.synced.is_set()}
    others_seen = bool({reflector.namespace for reflector in needed} - unseen - {""})
    results = [_watch(reflector, alone=bool(reflector.namespace) and others_seen) for reflector in needed]
    away = min((reflector.silent_s for reflector in needed), default=0.0) > _AWAY_S
    results.append(_reconciles(queue, away, waiting_s))
    results.append(_leadership(election))
    if stopping:
        results.append(Check("stop", "this process is leaving", ready=False))
    return results


def _watch(reflector: Reflector, *, alone: bool) -> Check:
    """`alone`: only its namespace needs it, and there are others to look after."""
    name = f"watch {reflector.label}"
    if reflector.stuck:
        return Check(name, "is stuck: neither news nor failure", live=False, age_s=reflector.silent_s)
    if not reflector.synced.is_set():
        why = f": {reflector.error}" if reflector.error is not None else ""
        until = f"; nothing is done in {reflector.namespace} until it is" if alone else ""
        return Check(name, f"is not listed yet{why}{until}", ready=alone, age_s=reflector.silent_s)
    if reflector.error is not None:
        # Not unready: its cache is as full as any other's, and no restart brings the API server back.
        return Check(name, f"is interrupted: {reflector.error}", age_s=reflector.silent_s)
    return Check(name, "follows", age_s=reflector.silent_s)


def _reconciles(queue: WorkQueue, away: bool, waiting_s: float) -> Check:  # noqa: FBT001 (by its name at the only call)
    stuck_s, longest_s = queue.stuck_s(), queue.longest_reconcile_s()
    message = f"{len(queue)} workloads wait, no reconcile has ended for {stuck_s:.0f} s"
    if waiting_s:
        message = f"this process leads, and has waited for {waiting_s:.0f} s to see what all workloads need"
        return Check("passes", message, ready=waiting_s <= _WAITING_S)
    if not queue.served:
        return Check("passes", "none here: this process does not lead")
    stuck = stuck_s > _NO_RECONCILE_S or longest_s > _LONGEST_RECONCILE_S
    if not stuck:
        return Check("passes", f"{len(queue)} workloads wait", age_s=stuck_s)
    if away:
        return Check("passes", f"{message}; the API server is away, a restart would not help", age_s=stuck_s)
    return Check("passes", f"{message}, one takes {longest_s:.0f} s", live=False, age_s=stuck_s)


def _leadership(election: Election | None) -> Check:
    if election is None:
        return Check("leader", "this process, without an election")
    if not election.answered:
        return Check("leader", "not known yet", ready=False)
    if election.leading:
        return Check("leader", "this process")
    return Check("leader", f"not this process, which stands by; last seen: {election.leader or 'nobody'}")
