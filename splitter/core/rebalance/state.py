"""The input of a decision: present counts, remembered state, and time constants.

`RebalanceInput` is built by the observer in every reconcile, `RebalanceState` comes from the Split's status
and goes back there, `Tuning` comes from the settings. Nothing here decides. Counts are replicas,
durations seconds, instants aware UTC datetimes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime

from splitter.core.model import Policy, Trouble
from splitter.core.placeable import Restart

RELEASE_S = 60.0
"""Doomed replicas that are covered are kept no longer than this: their notice may still be taken back."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """The time constants that are no annotation (R25, R33, R34, R41 to R44); settings may shorten them.

    The soak is `Policy.soak_s` and the grace `Policy.grace_s`, since users choose those.
    """

    soak_max_s: float = 3600.0
    """Hmax: the back-off stops doubling here (or at the user's own soak, where that is longer)."""
    calm_s: float = 3600.0
    """Spot that was up for less than this when it was lost is flapping: the soak doubles."""
    reset_s: float = 7200.0
    """So long without a loss, and the soak is the user's again."""
    burst_s: float = 120.0
    """Losses closer together than this are one event (AWS reclaims in bursts of minutes)."""
    settle_s: float = 10.0
    """So long after a loss, free spot nodes are not believed: the next notice may be theirs."""
    capacity_probe_replicas: int = 1
    """w0: replicas asked of spot beyond what runs, while nobody knows whether spot can be had."""
    barren_losses: int = 10
    """Spot rests after so many losses in a row that each came before it had earned anything (R27)."""
    barren_max_s: float = 86_400.0
    """The longest rest."""
    step_fraction: float = 0.25
    """On-demand goes down by at most this share of N in one step, but for what is above N + S."""
    step_interval_s: float = 60.0
    """Between two steps down."""
    fast_s: float = 60.0
    """The soak of one replica once spot as a whole has proven itself."""
    release_s: float | None = None
    """So long must everything doomed have been covered before it is let go. None: `RELEASE_S`, or less where
    the notice is shorter (docs/adr/0031)."""
    restarts_per_hour: int = 4
    """Placement: one member is ended at most so often within an hour; to restore order, half as often."""
    vanished_s: float = 40.0
    """Placement: so long a pod stays whose Node went while Ready. Kubernetes' own collector waits as long."""


@dataclass(frozen=True, slots=True)
class RebalanceInput:
    """One moment of one workload, counted by the state of its pods' nodes, never by status counters.

    Only pods that are not terminating count. Ready means ready on a node that exists, is Ready and is
    not doomed. A pod whose node nobody has seen yet is `spot_starting`. Voluntary disruption (Karpenter
    consolidation) counts in `spot_doomed` but its node stays out of `lost_node_uids`: spot then replaces
    it itself, on-demand only after the grace. A ready pod on a hinted node is passed with `now`, so that
    it holds its place but earns no return.
    """

    now: datetime
    desired: int
    """N, the source's `spec.replicas`."""
    max_surge: int
    """S, rounded up."""
    max_unavailable: int
    """U, rounded down."""
    on_demand_spec: int
    """The twin's `spec.replicas`, as read after our last write."""
    on_demand_ready: int
    on_demand_stuck: int = 0
    """Unschedulable for longer than the grace."""
    on_demand_over_quota: int = 0
    """Not created, since a quota is used up: by spot's Pending replicas too."""
    on_demand_doomed: int = 0
    """On nodes that are going or gone: replaced within on-demand."""
    spot_spec: int = 0
    spot_ready_since: tuple[datetime, ...] = ()
    """When each ready replica became ready (or its node did, whichever is later); any order."""
    spot_starting: int = 0
    """Bound to a healthy or not yet seen node, not ready yet."""
    spot_pending: int = 0
    """Not bound; a subset of these is the probe."""
    spot_pending_since: datetime | None = None
    """Since when the oldest of those has been unschedulable: a shortage that began while nobody looked
    (splitter was down) counts from its beginning. None = unknown."""
    spot_hindered: int = 0
    """Asked for, and kept from running by what no other node would cure: refused by the API server, their
    volume missing (`causes`). Neither placed nor a shortage of spot."""
    spot_unplaceable: Trouble | None = None
    """Why the nodes that are there do not take the pending ones; None: too few, or full."""
    spot_doomed: int = 0
    """Still there, on a node that is going. Gone nodes' pods count nowhere."""
    spot_stop_at: datetime | None = None
    """When the first of the doomed has to begin to end: the deadline of its node, less its
    terminationGracePeriodSeconds. None: no node of theirs tells a deadline."""
    spot_stop_after_s: float | None = None
    """Of the doomed without a deadline: the same, in seconds after the notice, by their provider's."""
    lost_node_uids: tuple[str, ...] = ()
    """Every spot node that is doomed, NotReady or absent under a bound pod of this workload now."""
    lost_nodes_live: bool = False
    """All of those are doomed, and none is NotReady or absent yet."""
    surging: int = 0
    """Beside both specs: what rollouts hold or may hold, replicas that wait for a node left out."""
    fit_spot: int = 0
    """Replicas that the healthy spot nodes have room for now (`nodes.count_headroom`)."""
    blocked: str = ""
    """Why no more spot can be counted on now: an autoscaler says so, or a node hints that it may go."""
    view_broken: bool = False
    """More than half of the on-demand nodes are NotReady too: our view is broken, not spot."""
    cover: bool = True
    """False: on-demand never stands in for spot (StatefulSets with volumes in twins mode)."""

    @property
    def floor(self) -> int:
        """Return F: what must stay ready while we lower something."""
        return max(0, self.desired if self.max_surge >= 1 else self.desired - self.max_unavailable)

    @property
    def spot_ready(self) -> int:
        """Return R: ready replicas on healthy spot nodes."""
        return len(self.spot_ready_since)

    @property
    def spot_placed(self) -> int:
        """Return the replicas that have a healthy spot node, ready or not."""
        return self.spot_ready + self.spot_starting

    @property
    def spot_accounted(self) -> int:
        """Return the replicas that on-demand need not stand in for: placed, or hindered wherever they go."""
        return self.spot_placed + self.spot_hindered

    def age_s(self, since: datetime | None) -> float:
        """Return the seconds since an instant; minus infinity when there is none yet."""
        return (self.now - since).total_seconds() if since is not None else float("-inf")

    def within_spec(self) -> "RebalanceInput":
        """Count only what will still be there when the controllers have caught up with the specs.

        For a moment after a scale-down more pods exist than are asked for. Counting those would let
        two reconciles in a row spend the same surplus. What goes first is what a ReplicaSet deletes first:
        the unready, the doomed (their deletion cost is -1000), then the youngest.
        """
        on_demand_ready = min(self.on_demand_ready, self.on_demand_spec)
        on_demand_doomed = min(self.on_demand_doomed, self.on_demand_spec - on_demand_ready)
        unready = self.on_demand_spec - on_demand_ready - on_demand_doomed
        ready_since = tuple(sorted(self.spot_ready_since))[: self.spot_spec]
        doomed = min(self.spot_doomed, self.spot_spec - len(ready_since))
        starting = min(self.spot_starting, self.spot_spec - len(ready_since) - doomed)
        return replace(
            self,
            on_demand_ready=on_demand_ready,
            on_demand_doomed=on_demand_doomed,
            on_demand_stuck=min(self.on_demand_stuck, unready),
            on_demand_over_quota=min(self.on_demand_over_quota, unready),
            spot_ready_since=ready_since,
            spot_doomed=doomed,
            spot_starting=starting,
            spot_hindered=min(self.spot_hindered, self.spot_spec - len(ready_since) - doomed - starting),
        )


@dataclass(frozen=True, slots=True)
class RebalanceState:
    """What must outlive a reconcile and a restart; kept in the Split's status (`to_json`, `from_json`).

    >>> RebalanceState.from_json(RebalanceState(lost=True, window=4).to_json())
    RebalanceState(soak_s=None, last_loss=None, lost=True, window=4, ...)
    """

    soak_s: float | None = None
    """H while backed off; None = the policy's own soak, so that a changed annotation counts at once."""
    last_loss: datetime | None = None
    lost: bool = False
    """A loss is not made good yet: only what is ready counts as spot."""
    interrupted: bool = False
    """The last loss was announced, and no replica has gone with its node since."""
    window: int = 1
    """w: replicas asked of spot beyond what is ready there, while lost."""
    asked: int | None = None
    """Ready replicas at which the window doubles."""
    up_since: datetime | None = None
    """When spot came up after the last loss."""
    proven: bool = False
    """A replica has stood for the whole soak since the last loss."""
    short_since: datetime | None = None
    """Since when spot has placed less than is wanted there."""
    last_step: datetime | None = None
    """When on-demand was lowered last."""
    cover_since: datetime | None = None
    """Since when everything doomed has been covered."""
    doomed_since: datetime | None = None
    """Since when there have been doomed replicas: the first notice was no earlier for us."""
    charged: tuple[str, ...] = ()
    """Lost nodes that were counted already; a node that recovers leaves, and may be lost again."""
    uncharged: int = 0
    """How many more were counted than have room in `charged`."""
    barren: int = 0
    """Losses in a row that each came before on-demand had given up anything for spot."""
    barren_since: datetime | None = None
    """The loss before those."""
    decided: int | None = None
    """On-demand replicas asked for last. More than these are there: the reason of a raise was forgotten."""
    moved: int | None = None
    """Placement: the ordinal moved last (at `last_step`), until it is known how that ended."""
    moved_uid: str = ""
    """Placement: the pod that was ended by that move."""
    moved_up: bool = False
    """Placement: that move was to on-demand."""
    failed_moves: int = 0
    """Placement: moves to spot in a row that ended elsewhere; each doubles the rest before the next."""
    failed_covers: int = 0
    """Placement: the same of moves to on-demand."""
    unplaced: bool = False
    """Placement: the pod of the last move was born without the label of the admission policy."""
    restarts: tuple[Restart, ...] = ()
    """Placement: the ends of members by splitter within the last hour."""
    yielded: tuple[int, ...] = ()
    """Placement: ordinals of the base that may start on spot, since on-demand had no room."""

    def soak(self, policy: Policy) -> float:
        """Return H in seconds: never less than the user asks for."""
        return max(policy.soak_s, self.soak_s or 0.0)

    def not_after(self, now: datetime) -> "RebalanceState":
        """Pull instants of the future back to `now`: a clock that was set back must not hold us up."""
        ahead = {
            field.name: now
            for field in fields(self)
            if isinstance(instant := getattr(self, field.name), datetime) and instant > now
        }
        restarts = tuple(one._replace(at=min(one.at, now)) for one in self.restarts)
        return replace(self, restarts=restarts, **ahead)  # type: ignore[arg-type] # only instants are replaced, by an instant

    def unwritten(self, before: "RebalanceState") -> "RebalanceState":
        """Return what to remember when a write failed: all that was seen, nothing that was to be done.

        A loss stays a loss: the pods that tell of it may be gone before the next try. Ends of pods that were
        asked for stay counted: without an answer they may have happened.
        """
        # None stays: less than there is would look like a raise that nobody remembers.
        counts = [one.decided for one in (before, self) if one.decided is not None]
        return replace(
            self,
            decided=max(counts) if before.decided is not None else None,
            last_step=before.last_step,
            moved=before.moved,
            moved_uid=before.moved_uid,
            moved_up=before.moved_up,
            failed_moves=before.failed_moves,
            failed_covers=before.failed_covers,
            unplaced=before.unplaced,
            yielded=before.yielded,
        )

    def to_json(self) -> dict[str, object]:
        """Return what differs from the default, in JSON's own types, camelCase as in the CRD."""
        values: dict[str, object] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                values[_WIRE[field.name]] = _plain(value)
        return values

    @staticmethod
    def from_json(status: object) -> "RebalanceState":
        """Read what `to_json` wrote; a missing or malformed field takes its default.

        Never raises: the Split is a report that anyone may have edited, and starting from nothing is
        safe (it soaks again, and on-demand is never lowered by forgetting).
        """
        if not isinstance(status, Mapping):
            return RebalanceState()
        return RebalanceState(
            soak_s=_seconds(status.get(_WIRE["soak_s"])),
            last_loss=_instant(status.get(_WIRE["last_loss"])),
            lost=status.get(_WIRE["lost"]) is True,
            interrupted=status.get(_WIRE["interrupted"]) is True,
            window=_count(status.get(_WIRE["window"])) or 1,
            asked=_count(status.get(_WIRE["asked"])),
            up_since=_instant(status.get(_WIRE["up_since"])),
            proven=status.get(_WIRE["proven"]) is True,
            short_since=_instant(status.get(_WIRE["short_since"])),
            last_step=_instant(status.get(_WIRE["last_step"])),
            cover_since=_instant(status.get(_WIRE["cover_since"])),
            doomed_since=_instant(status.get(_WIRE["doomed_since"])),
            charged=_words(status.get(_WIRE["charged"])),
            uncharged=_count(status.get(_WIRE["uncharged"])) or 0,
            barren=_count(status.get(_WIRE["barren"])) or 0,
            barren_since=_instant(status.get(_WIRE["barren_since"])),
            decided=_ordinal(status.get(_WIRE["decided"])),
            moved=_ordinal(status.get(_WIRE["moved"])),
            moved_uid=_word(status.get(_WIRE["moved_uid"])),
            moved_up=status.get(_WIRE["moved_up"]) is True,
            failed_moves=_count(status.get(_WIRE["failed_moves"])) or 0,
            failed_covers=_count(status.get(_WIRE["failed_covers"])) or 0,
            unplaced=status.get(_WIRE["unplaced"]) is True,
            restarts=tuple(_restarts(status.get(_WIRE["restarts"]))),
            yielded=_ordinals(status.get(_WIRE["yielded"])),
        )


_RESTARTS_MAX = 4096  # of a thousand members, four each
_SECONDS_MAX = 10**9  # a generation; anything longer is a slip of the hand

_WIRE = {
    "soak_s": "soakSeconds",
    "last_loss": "lastLoss",
    "lost": "lost",
    "interrupted": "interrupted",
    "window": "window",
    "asked": "asked",
    "up_since": "upSince",
    "proven": "proven",
    "short_since": "shortSince",
    "last_step": "lastStep",
    "cover_since": "coverSince",
    "doomed_since": "doomedSince",
    "charged": "chargedNodes",
    "uncharged": "unchargedNodes",
    "barren": "barrenLosses",
    "barren_since": "barrenSince",
    "decided": "onDemandDecided",
    "moved": "movedOrdinal",
    "moved_uid": "movedUid",
    "moved_up": "movedToOnDemand",
    "failed_moves": "failedMoves",
    "failed_covers": "failedCovers",
    "unplaced": "unplaced",
    "restarts": "restarts",
    "yielded": "yieldedOrdinals",
}


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case tuple():
            return [_plain(one) for one in value]
        case _:
            return value


def _instant(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        instant = datetime.fromisoformat(value)
        return instant.astimezone(UTC) if instant.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared before converted: JSON knows integers that no float can hold.
    return float(value) if 0 < value < _SECONDS_MAX else None


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if value > 0 else None


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def _restarts(value: object) -> Iterator[Restart]:
    # Anybody may have edited it: no more than there can be, the last ones.
    for one in value[-_RESTARTS_MAX:] if isinstance(value, list | tuple) else ():
        if isinstance(one, list | tuple) and len(one) == len(Restart._fields):
            ordinal, at = _ordinal(one[0]), _instant(one[1])
            if ordinal is not None and at is not None:
                yield Restart(ordinal, at, one[2] is True)


def _words(value: object) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list | tuple) else ()


def _ordinal(value: object) -> int | None:
    return 0 if value == 0 and not isinstance(value, bool) else _count(value)


def _ordinals(value: object) -> tuple[int, ...]:
    ordinals = map(_ordinal, value if isinstance(value, list | tuple) else ())
    return tuple(ordinal for ordinal in ordinals if ordinal is not None)
