"""Reads from a node's taints, conditions, labels and Events whether it is about to go.

`kube.observe` calls `assess` for each Node that changed. The truth is in taints and conditions; Events
only make it faster. Nothing here waits for kube-controller-manager: Ready turns Unknown after 40..50 s,
and a notice is worth most in its first second. Source: R4 to R8.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from splitter.core.nodes.capacity import PRESETS, Preset, classify, contradiction, spot_labels
from splitter.core.nodes.facts import CapacityClass, Condition, Health, NodeEvent, NodeFacts, NodeState, Tier

NOTICE_S: Mapping[str, float] = {"aws": 120.0, "gce": 30.0, "azure": 30.0}
"""Seconds from the notice to the end of the machine, by the scheme of `spec.providerID`.

Sources: AWS, "Spot Instance interruption notices" (two minutes); Google Cloud, "Spot VMs", preemption process
(30 s at best); Azure, "Use Azure Spot Virtual Machines", eviction (30 s at least).
"""
SHORTEST_NOTICE_S = min(NOTICE_S.values())
"""What is counted on where nobody says whose machine it is."""
NOTICE_STALE_S = 300.0
"""A node that outlives an announced end by this much was not interrupted: Events live for an hour."""
AHEAD = timedelta(seconds=60)
"""An Event of a time further ahead than clocks differ was written by nobody who saw it happen."""
HINT_STALE_S = 600.0
"""A hint by Event holds up returns for so long; one that matters is repeated, or becomes a notice."""

TERMINATION_ANNOTATION = "karpenter.sh/nodeclaim-termination-timestamp"
NOTICE_EVENTS = frozenset({"SpotInterrupted", "SpotInterruption", "TerminatingOnInterruption"})
HINT_EVENTS = frozenset(
    {"RebalanceRecommendation", "SpotRebalanceRecommendation", "InstanceSpotRebalanceRecommendation"}
)

KARPENTER_TAINT = "karpenter.sh/disrupted"
KARPENTER_LABEL = "karpenter.sh/nodepool"

# Taint key -> the values that mean it; none = any. True: a reclaim, whatever else is going on.
NOTICE_TAINTS: Mapping[str, tuple[frozenset[str], bool]] = {
    "aws-node-termination-handler/spot-itn": (frozenset(), True),
    "aws-node-termination-handler/asg-lifecycle-termination": (frozenset(), True),
    KARPENTER_TAINT: (frozenset(), False),
    "karpenter.sh/disruption": (frozenset({"disrupting"}), False),  # Karpenter before 1.0
    "ToBeDeletedByClusterAutoscaler": (frozenset(), False),
    "cloud.google.com/impending-node-termination": (frozenset(), True),
    "cloudprovider.azure.microsoft.com/draining": (frozenset({"spot-eviction"}), True),
    "remediator.kubernetes.azure.com/unschedulable": (frozenset(), True),
    "remediator.aks.microsoft.com/unschedulable": (frozenset(), True),
    "node.kubernetes.io/out-of-service": (frozenset(), True),
    "node.cloudprovider.kubernetes.io/shutdown": (frozenset(), True),
}
HINT_TAINTS = frozenset(
    {"aws-node-termination-handler/rebalance-recommendation", "DeletionCandidateOfClusterAutoscaler"}
)
NOTICE_CONDITIONS = frozenset({"Terminating", "InstanceExpired", "GracefulNodeShutdownInProgress"})
# Set by whoever maintains nodes (KEP-5683): being emptied is as good as a cordon, planned has no time to it.
CORDON_CONDITIONS = frozenset({"DrainInProgress", "Drained", "MaintenanceInProgress"})
HINT_CONDITIONS = frozenset({"MaintenancePlanned"})
NOTICE_LABELS: Mapping[str, frozenset[str]] = {
    "autoscaling.cast.ai/draining": frozenset({"spot-interruption", "spot-prediction"}),
}
ENDING_VM_EVENTS = re.compile(r"preempt|terminat|redeploy", re.IGNORECASE)  # not Freeze, not Reboot
SHUTTING_DOWN = "node is shutting down"  # the kubelet's own words (graceful node shutdown)


@dataclass(frozen=True, slots=True)
class _Signal:
    tier: Tier
    text: str
    deadline: datetime | None = None
    reclaim: bool = False


_HEALTH = {
    Tier.GONE: Health.GONE,
    Tier.NOTICE: Health.DOOMED,
    Tier.CORDON: Health.DOOMED,
    Tier.HINT: Health.HINTED,
}


_SIGNALLED_BY_CONDITION = (
    NOTICE_CONDITIONS
    | CORDON_CONDITIONS
    | HINT_CONDITIONS
    | {"Ready", "PreemptionScheduled", "VMEventScheduled"}
)


def slim(facts: NodeFacts) -> NodeFacts:
    """Leave out what no signal is read from, so that the facts of 5,000 nodes can be kept."""
    return replace(
        facts,
        annotations={
            name: text for name, text in facts.annotations.items() if name == TERMINATION_ANNOTATION
        },
        conditions=tuple(
            condition for condition in facts.conditions if condition.type in _SIGNALLED_BY_CONDITION
        ),
    )


def stale_at(event: NodeEvent) -> datetime | None:
    """Return from when on an Event says nothing any more; None when it never said anything (R7)."""
    if event.reason in NOTICE_EVENTS:
        return event.at + timedelta(seconds=max(NOTICE_S.values()) + NOTICE_STALE_S)
    if event.reason in HINT_EVENTS:
        return event.at + timedelta(seconds=HINT_STALE_S)
    return None


def assess(facts: NodeFacts, presets: tuple[Preset, ...] = PRESETS, now: datetime | None = None) -> NodeState:
    """Say what a Node is and what becomes of its pods (R4).

    The gravest signal is told; the deadline is the earliest that any notice names. Without `now`, Events
    never grow stale. Never raises: an unreadable deadline is no deadline.

    >>> ready = (Condition("Ready", "True"),)
    >>> assess(NodeFacts("a", "1", conditions=ready, unschedulable=True)).signal
    'cordoned (spec.unschedulable)'
    """
    capacity = classify(facts.labels, facts.taints, presets)
    signals = _signals(facts, capacity, now)
    notices = sorted(signals, key=lambda signal: list(_HEALTH).index(signal.tier))
    state = NodeState(
        name=facts.name,
        uid=facts.uid,
        machine=facts.machine,
        usual_notice_s=_notice_s(facts),
        capacity=capacity,
        spot_labels=spot_labels(facts.labels, presets) if capacity is CapacityClass.SPOT else (),
        contradiction=contradiction(facts.labels, facts.taints, presets),
        labels=facts.labels,
        taints=facts.taints,
        allocatable=facts.allocatable,
    )
    if not notices:
        return state
    gravest = notices[0]
    health = _HEALTH[gravest.tier]
    deadline = min((signal.deadline for signal in notices if signal.deadline), default=None)
    doomed = health is Health.DOOMED
    reclaimed = doomed and any(signal.reclaim for signal in notices)
    reclaim_s = NOTICE_S.get(facts.provider) if reclaimed else None
    voluntary = (facts.voluntary or _is_chosen(facts)) and not any(signal.reclaim for signal in notices)
    return replace(
        state,
        health=health,
        tier=gravest.tier,
        signal=gravest.text,
        deadline=deadline,
        undated=doomed and deadline is None and reclaim_s is None,
        reclaim_s=reclaim_s,
        notice_s=state.usual_notice_s if _is_noticed(facts, health, gravest) and not voluntary else None,
        voluntary=voluntary,
    )


def _is_noticed(facts: NodeFacts, health: Health, gravest: _Signal) -> bool:
    """Say whether a doomed node may go by its provider's notice: a cordon may be all there is of AWS's."""
    return health is Health.DOOMED and (gravest.tier is not Tier.CORDON or facts.provider == "aws")


def _is_chosen(facts: NodeFacts) -> bool:
    """Say whether Karpenter gives up one of its nodes by its own choice, before its NodeClaim says so (R8).

    It taints what it wants to consolidate or replace, says why on the NodeClaim 40 ms later, and deletes
    the Node at last; a machine that is taken away is deleted first and tainted then (measured with 1.15:
    docs/how-to/karpenter.md). A taint on a Node that is not Karpenter's is nobody's choice that we know.
    """
    tainted = any(taint.key == KARPENTER_TAINT for taint in facts.taints)
    return tainted and facts.deletion_timestamp is None and KARPENTER_LABEL in facts.labels


def gone(state: NodeState) -> NodeState:
    """Return the state of a node whose object has been deleted, or that a completed re-list left out.

    For nodes that were seen once: one that nobody has seen yet is "unknown, starting", not gone.
    """
    announced = state.announced or state.tier in {Tier.NOTICE, Tier.GONE}
    signal = "the Node object is gone"
    return replace(
        state, health=Health.GONE, tier=Tier.GONE, signal=signal, deadline=None, announced=announced
    )


def is_same_machine(one: NodeState, other: NodeState) -> bool:
    """Whether two Nodes are one machine, not started anew: its kubelet has run the pods all the time."""
    return bool(one.machine) and one.machine == other.machine


def _signals(facts: NodeFacts, capacity: CapacityClass, now: datetime | None) -> Iterator[_Signal]:
    yield from _from_readiness(facts)
    yield from _from_conditions(facts)
    if capacity is CapacityClass.SPOT:  # R6: whoever writes Events must not take the cover away
        yield from _from_events(facts, now)
    yield from _from_marks(facts)
    yield from _from_taints(facts)
    if facts.unschedulable:
        # The only default trace of AWS's termination handler.
        yield _Signal(Tier.CORDON, "cordoned (spec.unschedulable)")


def _from_readiness(facts: NodeFacts) -> Iterator[_Signal]:
    ready = facts.condition("Ready")
    if ready is None:
        yield _Signal(Tier.GONE, "no condition Ready", reclaim=True)
    elif ready.status == "False" and SHUTTING_DOWN in ready.message:
        # Not Ready, yet its pods are being stopped one by one and some still serve.
        yield _Signal(Tier.NOTICE, f"condition Ready=False ({SHUTTING_DOWN})", reclaim=True)
    elif ready.status != "True":
        why = f" ({ready.reason})" if ready.reason else ""
        yield _Signal(Tier.GONE, f"condition Ready={ready.status}{why}", reclaim=True)


def _from_conditions(facts: NodeFacts) -> Iterator[_Signal]:
    for condition in facts.conditions:
        if condition.status != "True":
            continue
        text = f"condition {condition.type}"
        if condition.type == "PreemptionScheduled":
            if "SpotRebalanceRecommendation" in condition.message:
                yield _Signal(Tier.HINT, f"{text} (rebalance recommendation)")
            else:
                yield _Signal(Tier.NOTICE, text, deadline_in(condition.message), reclaim=True)
        elif condition.type == "VMEventScheduled":
            yield from _from_vm_event(condition, text)
        elif condition.type in NOTICE_CONDITIONS:
            yield _Signal(Tier.NOTICE, text, reclaim=True)
        elif condition.type in CORDON_CONDITIONS:
            yield _Signal(Tier.CORDON, text)
        elif condition.type in HINT_CONDITIONS:
            yield _Signal(Tier.HINT, text)


def _from_vm_event(condition: Condition, text: str) -> Iterator[_Signal]:
    ending = ENDING_VM_EVENTS.search(f"{condition.reason} {condition.message}")
    if ending:
        deadline = deadline_in(condition.message)
        yield _Signal(Tier.NOTICE, f"{text} ({ending.group().capitalize()})", deadline, reclaim=True)


def _from_events(facts: NodeFacts, now: datetime | None) -> Iterator[_Signal]:
    for event in facts.events:
        stale = stale_at(event)
        if stale is None or (now is not None and not event.at - AHEAD <= now <= stale):
            continue
        if event.reason in NOTICE_EVENTS:
            deadline = event.at + timedelta(seconds=_notice_s(facts, event))
            yield _Signal(Tier.NOTICE, f"event {event.reason}", deadline, reclaim=True)
        else:
            yield _Signal(Tier.HINT, f"event {event.reason}")


def _notice_s(facts: NodeFacts, event: NodeEvent | None = None) -> float:
    """Return the seconds that a machine is left; an Event is AWS's unless the Node says otherwise."""
    unknown = SHORTEST_NOTICE_S if event is None else NOTICE_S["aws"]
    return NOTICE_S.get(facts.provider, unknown)


def _from_marks(facts: NodeFacts) -> Iterator[_Signal]:
    announced = facts.annotations.get(TERMINATION_ANNOTATION)
    if announced is not None:
        yield _Signal(Tier.NOTICE, f"annotation {TERMINATION_ANNOTATION}", deadline_in(announced))
    for key, values in NOTICE_LABELS.items():
        if facts.labels.get(key) in values:
            yield _Signal(Tier.NOTICE, f"label {key}={facts.labels[key]}", reclaim=True)
    if facts.deletion_timestamp is not None:
        yield _Signal(Tier.NOTICE, "the Node is being deleted")


def _from_taints(facts: NodeFacts) -> Iterator[_Signal]:
    for taint in facts.taints:
        if taint.key in NOTICE_TAINTS:
            values, reclaim = NOTICE_TAINTS[taint.key]
            if not values or taint.value in values:
                yield _Signal(Tier.NOTICE, f"taint {taint.key}", reclaim=reclaim)
        elif taint.key in HINT_TAINTS:
            yield _Signal(Tier.HINT, f"taint {taint.key}")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_RFC_1123 = re.compile(
    rf"(\d{{1,2}})\s+({'|'.join(_MONTHS)})\s+(\d{{4}})\s+(\d{{2}}):(\d{{2}}):(\d{{2}})\s+(?:GMT|UTC)"
)
_RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})")


def deadline_in(message: str) -> datetime | None:
    """Return the first instant in a message (RFC 1123 in GMT, or RFC 3339), in UTC; None without one.

    A zone that is not spelled out is never guessed: a wrong deadline is worse than none. Nor is one before
    1970 a deadline: Go writes the first second of the year 1 where nobody has set a time.

    >>> deadline_in("Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 GMT. For more information, see ...")
    datetime.datetime(2026, 8, 1, 5, 41, 2, tzinfo=datetime.timezone.utc)
    """
    try:
        at = _instant_in(message)
    except (ValueError, OverflowError):
        return None  # well written, yet no day of any calendar
    return at if at is not None and at >= _EPOCH else None


def _instant_in(message: str) -> datetime | None:
    if written := _RFC_1123.search(message):
        day, month, *rest = written.groups()
        year, hour, minute, second = (int(digits) for digits in rest)
        return datetime(year, _MONTHS.index(month) + 1, int(day), hour, minute, second, tzinfo=UTC)
    if written := _RFC_3339.search(message):
        return datetime.fromisoformat(written.group()).astimezone(UTC)
    return None
