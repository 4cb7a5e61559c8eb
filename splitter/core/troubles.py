"""Describes why replicas do not run, where the workload itself is the cause.

The planner calls `with_troubles` on each plan. Nothing here moves a replica: what may is decided by the
counts (`rebalance.inputs`), and said by the steps. A sentence keeps its words while nothing but a number
changes, so that one trouble is one Event.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from splitter.core.causes import trouble_of
from splitter.core.clock import Waits
from splitter.core.model import Attachment, Note, Observation, ReplicaSetView
from splitter.core.plan import Plan, looked_at_again
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.replica import Replica, Trouble
from splitter.core.split_status.starts import NOTHING_LEARNED, StartTimes
from splitter.core.start_times import patience_s

# What replicas do, and what to do about it. In the order in which the gravest is named first.
_SAID: Mapping[Reason, tuple[str, str]] = {
    Reason.QUOTA_EXCEEDED: (
        "are refused by a quota",
        "Raise it: a move needs room for maxSurge replicas more, one at least",
    ),
    Reason.PODS_REFUSED: ("are refused by the API server", "Change the pod template or the policy"),
    Reason.IMAGE_PULL_FAILED: (
        "cannot pull an image",
        "Correct its name, or the pull secret; where it is right, look at the registry",
    ),
    Reason.CONTAINER_CONFIG_INVALID: (
        "cannot start a container",
        "Create or correct what it names: a ConfigMap, a Secret, a command",
    ),
    Reason.CRASH_LOOPING: ("crash again and again", "Look at `kubectl logs --previous` of the pod"),
    Reason.VOLUME_UNAVAILABLE: ("wait for a volume", "Create the claim, or what provides it"),
    Reason.SCHEDULING_GATED: ("are not to be scheduled yet", "Whoever set the gate has to remove it"),
    Reason.NODES_UNSUITABLE: (
        "find no node",
        "Change the pod template's node selector, affinity or tolerations, or bring nodes that match",
    ),
    Reason.VOLUME_ZONE_CONFLICT: ("find no node", "Bring nodes where the volume is"),
    Reason.NOT_READY: (
        "have a node, but are not ready",
        "Look at the Events, the readiness probe and the logs of the pod",
    ),
}
_RANK = {reason: rank for rank, reason in enumerate(_SAID)}

# Verdicts that, with nothing to write, only say that splitter rests or waits: what it waits for goes first.
_OUTRANKED = frozenset(
    {
        Reason.BALANCED,
        Reason.WAITING_FOR_REPLICAS,
        Reason.SOAKING,
        Reason.RETURNING,
        Reason.PROBING,
        Reason.COVERED,
        Reason.ROLLING,
        Reason.SPOT_SHORT,
        Reason.SPOT_BLOCKED,
        Reason.SPOT_UNPROFITABLE,
        Reason.SPOT_LOST,
        Reason.SPOT_INTERRUPTED,
    }
)


def with_troubles(
    observed: Observation, plan: Plan, grace_s: float, starts: StartTimes = NOTHING_LEARNED
) -> Plan:
    """Return the plan with what is wrong with the replicas; a verdict that writes nothing says so as well.

    Who has a node is not called stuck before it takes longer than any replica there that was seen to start.
    """
    notes = troubles(observed, grace_s, starts, at_home=plan.state is not State.REFUSED)
    plan = replace(plan, troubles=notes)
    if not notes or plan.actions or plan.verdict.reason is notes[0].reason:
        return plan
    first = notes[0]
    if not _is_outranked(plan.verdict):
        both = f"{plan.verdict.message}. {first.message}"
        return replace(plan, verdict=replace(plan.verdict, message=both))
    verdict = Note(first.reason, f"{first.message} ({plan.verdict.message})", first.warning)
    state = State.HELD if plan.state is State.STEADY else plan.state
    return replace(plan, verdict=verdict, state=state)


def with_barriers(
    plan: Plan, barred: Sequence[Note], look_again_s: float, unseen: Note | None = None
) -> Plan:
    """Return the plan with what keeps replicas out of a pool; a verdict that writes nothing says it first.

    `unseen` says that no node is spot: it goes first while a replica waits for one. What else was judged by
    the nodes that there are is a warning beside the verdict. No event tells that other nodes have come.
    """
    notes = (*((unseen,) if unseen is not None else ()), *barred)
    plan = replace(plan, barred=notes)
    if not notes:
        return plan
    plan = looked_at_again(plan, look_again_s)
    certain = (one for one in notes if one.cause is not VerdictCause.BY_NODES)
    first = next(certain, unseen if plan.state is State.HELD else None)
    if first is None or plan.actions or not _is_outranked(plan.verdict):
        return plan
    verdict = replace(first, message=f"{first.message} ({plan.verdict.message})")
    return replace(plan, verdict=verdict, state=State.HELD if plan.state is State.STEADY else plan.state)


def _is_outranked(verdict: Note) -> bool:
    return verdict.reason in _OUTRANKED


@dataclass(frozen=True, slots=True)
class _Limits:
    """How long a replica may wait before that is a trouble."""

    grace_s: float
    starts: StartTimes

    def of(self, pod: Replica) -> float:
        """Return the seconds."""
        return patience_s(pod, self.grace_s, self.starts)


def troubles(
    observed: Observation, grace_s: float, starts: StartTimes = NOTHING_LEARNED, *, at_home: bool = True
) -> tuple[Note, ...]:
    """Return one sentence a holder and cause, the gravest first; empty when only nodes are missing.

    `at_home`: also of pods that the source still owns.
    """
    limits = _Limits(grace_s, starts)
    notes: list[tuple[int, Note]] = []
    for twin in observed.twins:
        notes += _of_holder(twin.name, twin.replica_sets, twin.excluded, observed.waits, limits)
    for own in observed.replica_sets:
        if own.attachment is Attachment.PARKED or at_home:
            notes += _of_holder(own.name, [own], None, observed.waits, limits)
    return tuple(note for _, note in sorted(notes, key=lambda one: one[0]))


def _of_holder(
    name: str, sets: Sequence[ReplicaSetView], excluded: Trouble | None, waits: Waits, limits: _Limits
) -> Iterator[tuple[int, Note]]:
    pods = [pod for rs in sets for pod in rs.pods if pod.counts]
    refused = sum(rs.refused for rs in sets)
    total = len(pods) + refused
    for rs in sets:
        if rs.refused and rs.refusal is not None:
            yield _rank(rs.refusal), _note(name, rs.refusal, f"{refused} of {total}", "")
    ill = [
        (trouble, pod.name) for pod in pods if (trouble := trouble_of(pod, excluded, waits, limits.of(pod)))
    ]
    ill.sort(key=lambda one: (_rank(one[0]), one[1]))
    for _, group in groupby(ill, key=lambda one: one[0].reason):
        same = list(group)
        trouble, example = same[0]
        yield _rank(trouble), _note(name, trouble, f"{len(same)} of {total}", f" (pod {example})")


def _rank(trouble: Trouble) -> int:
    return _RANK[trouble.reason]


def _note(holder: str, trouble: Trouble, count: str, example: str) -> Note:
    does, remedy = _SAID[trouble.reason]
    message = f"{count} replicas of {holder} {does}: {trouble.detail}{example}. {remedy}."
    return Note(trouble.reason, message, warning=True, about=f"{holder}: {trouble.detail}")
