"""Sorts the replicas of a workload by what a drain may expect of them: which serve, come or are ill.

`guard` asks in each reconcile. A replica that is in trouble of its own may stay so for ever, so no eviction
waits for it. Derived from what is there, and from when the first node went. Source: G3, G5, G7.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from splitter.core.causes import trouble_of
from splitter.core.clock import Waits
from splitter.core.model import TwinView
from splitter.core.reasons import Reason
from splitter.core.replica import Replica
from splitter.core.split_status.starts import StartTimes
from splitter.core.start_times import patience_s

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Awaited:
    """The replicas that stay when the doomed have gone."""

    before: int
    """How many serve, or come, and were there before the first sign."""
    since: int
    """How many were made since: for those that are doomed, for those that were and are gone, and ill ones."""
    serving: int
    """How many are ready, of either."""
    coming: tuple[str, ...]
    """Who is on its way, by name."""
    missing: int
    """How many are asked for, and are not there yet."""
    ill_before: tuple[str, ...]
    """Who has been in trouble since before the first sign; of those that have a node."""
    ill_since: tuple[str, ...]
    """Who was made later, or has no node, and does not come up within the time that starts take here."""
    is_all: bool
    """Whether none comes any more, for as long as a start may take since the first sign."""

    @property
    def expected(self) -> int:
        """Return how many there will be without those that are ill."""
        return self.serving + len(self.coming) + self.missing

    def explained(self, replicas: int, doomed: int, doomed_serving: int) -> int:
        """Return how many of `replicas` were missing before the first sign, since they were ill then.

        What served then: those from before, those that serve and are `doomed`, and as many as have gone. That
        is no more than were made since without being due for one of the doomed.
        """
        served = self.before + doomed_serving + max(0, self.since + self.missing - doomed)
        return min(len(self.ill_before), max(0, replicas - served))

    @property
    def sentence(self) -> str:
        """Say for whom evictions wait, and for whom they do not (G16)."""
        late = self.coming or self.missing
        waits = [*self.coming, *([f"{self.missing} to be created"] if self.missing else [])]
        waits = waits if late else list(self.ill_since)
        ill = [*self.ill_before, *(self.ill_since if late else ())]
        said = f"evictions wait for {_listed(waits)}" if waits else ""
        return said + (f"{', not' if said else 'evictions do not wait'} for {_listed(ill)}" if ill else "")


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more


@dataclass(frozen=True, slots=True)
class Moment:
    """What a replica is held against."""

    waits: Waits
    sign: datetime
    """When a node under the workload first went."""
    grace_s: float
    starts: StartTimes


def awaited(twins: Sequence[TwinView], asked: int, at: Moment) -> Awaited:
    """Sort the replicas that stay. `asked` is how many both twins are to have.

    A replica that was there before the sign is ill as soon as a kubelet says so. One that was made since may
    be in its first moments, and has the time that starts take.
    """
    before = made_since = serving = 0
    coming, ill_before, ill_since = list[str](), list[str](), list[str]()
    counted = [(twin, pod) for twin in twins for pod in twin.pods if pod.counts]
    for twin, pod in counted:
        if pod.going:
            continue
        is_newer = pod.created is not None and pod.created >= at.sign.replace(microsecond=0)
        made_since += is_newer
        if pod.ready:
            serving, before = serving + 1, before + (not is_newer)
            continue
        limit_s = patience_s(pod, at.grace_s, at.starts)
        had_its_time = pod.created is None or at.waits.past(pod.created, limit_s)
        why = _why(pod, twin, at.waits, limit_s)
        if why and not is_newer and pod.node is not None:
            ill_before.append(f"{pod.name} ({why})")
        elif why and had_its_time:
            ill_since.append(f"{pod.name} ({why})")
        else:
            coming.append(f"{pod.name} ({'starting' if pod.node is not None else 'no node yet'})")
            before += not is_newer
    refused = sum(rs.refused for twin in twins for rs in twin.replica_sets)
    missing = max(0, asked - len(counted) - refused)
    none_comes = not coming and not missing
    return Awaited(
        before=before,
        since=made_since,
        serving=serving,
        coming=tuple(coming),
        missing=missing,
        ill_before=tuple(ill_before),
        ill_since=tuple(ill_since),
        is_all=none_comes and (at.waits.past(at.sign, at.grace_s) or bool(ill_since)),
    )


def _why(pod: Replica, twin: TwinView, waits: Waits, patience_s: float) -> str:
    """Say what keeps a replica from serving; nothing while it may still come up by itself."""
    if (trouble := trouble_of(pod, twin.excluded, waits, patience_s)) is not None:
        return str(trouble.reason)
    if pod.is_stuck(waits, patience_s):
        return "no node"
    since = pod.unready_since or pod.created
    waited = pod.node is not None and waits.past(since, patience_s)
    return str(Reason.NOT_READY) if waited else ""
