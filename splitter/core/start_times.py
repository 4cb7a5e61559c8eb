"""Learns how long a workload's pods take to start, on each pool, and what that means for a loss of all spot.

`planner.policy_in_force` asks `learned` in each reconcile; `report.status` keeps the answer in the Split, so
that it survives restarts. It is the last few times themselves, in whole seconds: old ones make room for new
ones, and people can read them. Each pod counts once, by the time at which it was bound. Source: R28;
docs/adr/0055.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from typing import Any

from splitter.core.labels_annotations import (
    ANNOTATION_GRACE,
    ANNOTATION_ON_DEMAND_BASE,
    ANNOTATION_SOAK,
)
from splitter.core.labels_annotations.policy import Level
from splitter.core.model import NodeStatus, Note, Observation, PodView, Policy, seconds_between
from splitter.core.nodes.signals import SHORTEST_NOTICE_S
from splitter.core.packed import unpacked
from splitter.core.reasons import Reason

LONGEST_START_S = 3600.0
"""A pod that was Ready later than this had become unready in between: that is no start."""
LONGEST_GRACE_S = 600.0
"""A spot node that comes later than this was not being bought: there was none. No grace grows beyond it."""
LONGEST_SOAK_S = 3600.0
"""Where the doubling of the soak ends by default: what is learned does not go beyond either."""
KEPT = 20
"""Times remembered for each pool."""
ENOUGH = 3
"""So many times must be known before a default follows them."""
_SKEW_S = -5.0  # the clocks of API server, scheduler and kubelet differ a little
_MOST = 0.9  # a start that nine in ten do not exceed
_NODES_GRACE, _STARTS_SOAK = 1.5, 3.0
_GRACE_STEP_S, _SOAK_STEP_S = 30, 60  # a default that changed with each second would be a write for each pod


@dataclass(frozen=True, slots=True)
class PoolStarts:
    """The last times of one pool, in whole seconds, the newest last."""

    start_s: tuple[int, ...] = ()
    """From scheduled to Ready."""
    node_s: tuple[int, ...] = ()
    """From created to scheduled: 0 where there was room, else until a node was bought."""

    def with_pod(self, pod: PodView) -> "PoolStarts":
        """Return the same with a pod that is Ready; a time that cannot be is left out."""
        start_s = _elapsed_s(pod.bound_since, pod.ready_since, LONGEST_START_S)
        node_s = _elapsed_s(pod.created, pod.bound_since, LONGEST_GRACE_S)
        return PoolStarts((*self.start_s, *start_s)[-KEPT:], (*self.node_s, *node_s)[-KEPT:])

    def to_json(self) -> dict[str, Any]:
        """Return what is known, in JSON's own types."""
        values = {"startSeconds": list(self.start_s), "nodeSeconds": list(self.node_s)}
        return {field: value for field, value in values.items() if value}

    @classmethod
    def from_json(cls, raw: object) -> "PoolStarts":
        """Read what `to_json` wrote; what is no time is left out."""
        if not isinstance(raw, Mapping):
            return cls()
        return cls(
            _times(raw.get("startSeconds"), LONGEST_START_S), _times(raw.get("nodeSeconds"), LONGEST_GRACE_S)
        )


@dataclass(frozen=True, slots=True)
class StartTimes:
    """What is known of one workload's starts."""

    until: datetime | None = None
    """Pods that were bound until then have been counted."""
    notice_s: int | None = None
    """How long the notice of the spot nodes lasts on which it stood last; None: it never stood on any."""
    on_demand: PoolStarts = PoolStarts()
    spot: PoolStarts = PoolStarts()

    @property
    def warned_s(self) -> float:
        """Return the seconds from a notice to the end of a spot node; the shortest where nobody says."""
        return SHORTEST_NOTICE_S if self.notice_s is None else float(self.notice_s)

    @property
    def cover_s(self) -> int | None:
        """Return the seconds in which an on-demand replica is there when it is asked for; None: not known.

        A start that nine in ten do not exceed, after a node as it usually comes.
        """
        starts = self.on_demand.start_s or self.spot.start_s
        return quantile(starts, _MOST) + quantile(self.on_demand.node_s or (0,), 0.5) if starts else None

    def slowest_s(self, *, on_spot: bool) -> float:
        """Return the longest start that was seen on a pool: who takes longer is stuck. 0: none was seen."""
        return float(max((self.spot if on_spot else self.on_demand).start_s, default=0))

    def with_pods(self, pods: Sequence[PodView], now: datetime) -> "StartTimes":
        """Return the same with the pods that became Ready.

        They are counted in the order in which they were bound: who is still starting holds up those after it,
        for an hour at most. So one instant tells who was counted. When a clock is set back, pods of the time
        that comes twice may count twice.
        """
        bound = sorted(
            ((since.replace(microsecond=0), pod) for pod in pods if (since := pod.bound_since) is not None),
            key=lambda one: one[0],
        )
        until = min(self.until, now) if self.until is not None else None
        open_since = min((since for since, pod in bound if _is_starting(pod, now)), default=now)
        due = [
            (since, pod) for since, pod in bound if (until is None or since > until) and since < open_since
        ]
        pools = {True: self.spot, False: self.on_demand}
        for _, pod in due:
            if pod.ready_since is not None:
                pools[pod.on_spot] = pools[pod.on_spot].with_pod(pod)
        return StartTimes(
            until=due[-1][0] if due else until,
            notice_s=_notice_s(pods) or self.notice_s,
            on_demand=pools[False],
            spot=pools[True],
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as a Split keeps it: at most 80 small numbers. Empty while nothing is known."""
        if self.until is None:
            return {}
        values = {
            "until": f"{self.until.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z",
            "noticeSeconds": self.notice_s,
            "onDemand": self.on_demand.to_json(),
            "spot": self.spot.to_json(),
        }
        return {field: value for field, value in values.items() if value}

    @classmethod
    def from_json(cls, raw: object) -> "StartTimes":
        """Read what `to_json` wrote; nothing is known where it cannot be read.

        Never raises: anybody may have edited it.
        """
        if not isinstance(raw, Mapping) or (until := _instant(raw.get("until"))) is None:
            return cls()
        notice = _times([raw.get("noticeSeconds")], LONGEST_START_S)
        return cls(
            until,
            notice[0] if notice and notice[0] else None,
            PoolStarts.from_json(raw.get("onDemand")),
            PoolStarts.from_json(raw.get("spot")),
        )


NOTHING_LEARNED = StartTimes()


def learned(observed: Observation) -> StartTimes:
    """Return what the Split remembers, and what the pods of this moment add to it."""
    kept = unpacked(observed.split.status).get("starts") if observed.split is not None else None
    pods = [*observed.orphans, *(pod for rs in observed.holders for pod in rs.pods)]
    return StartTimes.from_json(kept).with_pods(pods, observed.now)


def with_learned(
    policy: Policy, levels: Mapping[str, Level], starts: StartTimes
) -> tuple[Policy, Mapping[str, Level]]:
    """Return the policy with defaults that follow what was learned, where nobody has said any.

    The grace lasts until a spot node usually comes, and half as long again. The soak is three times a start:
    spot is worth moving to where it lives for several. Both are only ever longer than splitter's own
    defaults. Who has set others in the settings has said how long it is to be.
    """
    grace_s, soak_s = policy.grace_s, policy.soak_s
    own = Policy()
    unsaid = {name for name, level in levels.items() if level is Level.DEFAULT}
    if ANNOTATION_GRACE in unsaid and grace_s == own.grace_s and len(starts.spot.node_s) >= ENOUGH:
        usual_s = _NODES_GRACE * quantile(starts.spot.node_s, 0.5)
        grace_s = max(grace_s, min(LONGEST_GRACE_S, _stepped(usual_s, _GRACE_STEP_S)))
    if ANNOTATION_SOAK in unsaid and soak_s == own.soak_s and len(starts.spot.start_s) >= ENOUGH:
        lives_s = _STARTS_SOAK * quantile(starts.spot.start_s, _MOST)
        soak_s = max(soak_s, min(LONGEST_SOAK_S, _stepped(lives_s, _SOAK_STEP_S)))
    longer = {ANNOTATION_GRACE: grace_s > policy.grace_s, ANNOTATION_SOAK: soak_s > policy.soak_s}
    grown = {name: Level.LEARNED for name, is_longer in longer.items() if is_longer}
    return replace(policy, grace_s=grace_s, soak_s=soak_s), {**levels, **grown}


def gap_note(replicas: int, on_demand: int, starts: StartTimes) -> Note | None:
    """Return what a loss of all spot leaves where a start outlasts the notice; None where enough is left.

    `on_demand`: the replicas that are always there.
    """
    cover_s, notice_s = starts.cover_s, starts.warned_s
    if cover_s is None or on_demand >= (base := gap_base(replicas, cover_s, notice_s)):
        return None
    message = (
        f"pods need {cover_s} s, the notice is {notice_s:.0f} s: a loss of all spot leaves {on_demand} of"
        f" {replicas} for {cover_s - notice_s:.0f} s; {ANNOTATION_ON_DEMAND_BASE} {base} would leave {base}"
    )
    return Note(Reason.NOTICE_TOO_SHORT, message, about="gap")


def gap_base(replicas: int, start_s: float, notice_s: float) -> int:
    """Return how many replicas on on-demand cover what the notice does not: its share of a start.

    Never more than a majority: beyond that spot is hardly worth having.

    >>> gap_base(6, 60.0, 30.0), gap_base(6, 30.0, 30.0), gap_base(6, 600.0, 30.0)
    (3, 0, 4)
    """
    if start_s <= notice_s:
        return 0
    return min(replicas // 2 + 1, ceil(replicas * (start_s - notice_s) / start_s))


def quantile(times: Sequence[int], share: float) -> int:
    """Return the least time that such a share of them does not exceed. There must be one.

    >>> quantile([30, 10, 20], 0.5), quantile([30, 10, 20], 0.9), quantile([7], 0.5)
    (20, 30, 7)
    """
    return sorted(times)[ceil(share * len(times)) - 1]


def _is_starting(pod: PodView, now: datetime) -> bool:
    """Whether it has a node, and may yet become Ready there, or tell on what kind of node."""
    if pod.bound_since is None or not 0 <= seconds_between(pod.bound_since, now) <= LONGEST_START_S:
        return False
    if pod.node_status is NodeStatus.UNSEEN:
        return True
    return pod.counts and pod.ready_since is None and not pod.going


def _notice_s(pods: Iterable[PodView]) -> int | None:
    """Return the shortest notice of the spot nodes under these pods."""
    return min((int(pod.usual_notice_s) for pod in pods if pod.on_spot and pod.usual_notice_s), default=None)


def _elapsed_s(begin: datetime | None, end: datetime | None, longest_s: float) -> tuple[int, ...]:
    """Return the whole seconds between two instants, if that is a time that can be."""
    if begin is None or end is None:
        return ()
    elapsed_s = seconds_between(begin, end)
    return (round(max(0.0, elapsed_s)),) if _SKEW_S <= elapsed_s <= longest_s else ()


def _stepped(seconds: float, step_s: int) -> float:
    return float(ceil(seconds / step_s) * step_s)


def _times(raw: object, longest_s: float) -> tuple[int, ...]:
    """Return the last of the whole seconds of a list that can be times."""
    if not isinstance(raw, list):
        return ()
    read = (one for one in raw[-KEPT:] if isinstance(one, int) and not isinstance(one, bool))
    return tuple(one for one in read if 0 <= one <= longest_s)


def _instant(raw: object) -> datetime | None:
    if not isinstance(raw, str):
        return None
    try:
        instant = datetime.fromisoformat(raw)
        return instant.astimezone(UTC) if instant.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
