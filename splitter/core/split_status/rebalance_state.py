"""What the rebalancing has to remember. Counts are replicas, durations seconds, instants aware UTC."""

from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple

from splitter.core.split_status import values
from splitter.core.split_status.backoff import Backoff
from splitter.core.split_status.values import Kept, kept

_RESTARTS_MAX = 4096  # of a thousand members, four each


class Restart(NamedTuple):
    """A member that splitter has ended, to be made anew."""

    ordinal: int
    at: datetime
    planned: bool = False
    """It stood in the wrong pool: any other time would have done."""


def _restart(value: object) -> Restart | None:
    if not isinstance(value, list | tuple) or len(value) != len(Restart._fields):
        return None
    which, at = values.ordinal(value[0]), values.instant(value[1])
    return Restart(which, at, values.is_true(value[2])) if which is not None and at is not None else None


def _from_one(value: object) -> int:
    return values.count(value) or 1


@dataclass(frozen=True, slots=True)
class RebalanceState(Kept):
    """What must outlive a reconcile and a restart; kept in the Split's status (`to_json`, `from_json`).

    >>> RebalanceState.from_json({"lost": True, "window": 4}) == RebalanceState(lost=True, window=4)
    True
    """

    soak_s: float | None = kept("soakSeconds", values.seconds)
    """H while backed off; None = the policy's own soak, so that a changed annotation counts at once."""
    last_loss: datetime | None = kept("lastLoss", values.instant)
    lost: bool = kept("lost", values.is_true)
    """A loss is not made good yet: only what is ready counts as spot."""
    interrupted: bool = kept("interrupted", values.is_true)
    """The last loss was announced, and no replica has gone with its node since."""
    window: int = kept("window", _from_one)
    """w: replicas asked of spot beyond what is ready there, while lost."""
    asked: int | None = kept("asked", values.count)
    """Ready replicas at which the window doubles. Fewer prove nothing, however few are wanted (R29)."""
    up_since: datetime | None = kept("upSince", values.instant)
    """When spot came up after the last loss."""
    proven: bool = kept("proven", values.is_true)
    """A replica has stood for the whole soak since the last loss."""
    short_since: datetime | None = kept("shortSince", values.instant)
    """Since when spot has placed less than is wanted there."""
    last_step: datetime | None = kept("lastStep", values.instant)
    """When on-demand was lowered last."""
    cover_since: datetime | None = kept("coverSince", values.instant)
    """Since when everything doomed has been covered."""
    doomed_since: datetime | None = kept("doomedSince", values.instant)
    """Since when there have been doomed replicas: the first notice was no earlier for us."""
    on_demand_doomed_since: datetime | None = kept("onDemandDoomedSince", values.instant)
    """The same of on-demand replicas."""
    charged: tuple[str, ...] = kept("chargedNodes", values.listed(values.maybe_word))
    """Lost nodes that were counted already; a node that recovers leaves, and may be lost again."""
    uncharged: int = kept("unchargedNodes", values.number)
    """How many more were counted than have room in `charged`."""
    barren: int = kept("barrenLosses", values.number)
    """Losses in a row that each came before on-demand had given up anything for spot."""
    barren_since: datetime | None = kept("barrenSince", values.instant)
    """The loss before those."""
    decided: int | None = kept("onDemandDecided", values.ordinal)
    """On-demand replicas asked for last. More than these are there: the reason of a raise was forgotten."""
    moved: int | None = kept("movedOrdinal", values.ordinal)
    """Placement: the ordinal moved last (at `last_step`), until it is known how that ended."""
    moved_uid: str = kept("movedUid", values.word)
    """Placement: the pod that was ended by that move."""
    moved_up: bool = kept("movedToOnDemand", values.is_true)
    """Placement: that move was to on-demand."""
    failed_moves: Backoff = kept("failedMoves", Backoff.from_json)
    """Placement: moves to spot that ended elsewhere. The rest begins at `last_step`."""
    failed_covers: Backoff = kept("failedCovers", Backoff.from_json)
    """Placement: moves to on-demand that ended elsewhere. The rest begins at `last_step`."""
    failed_placeholders: Backoff = kept("failedPlaceholders", Backoff.from_json)
    """Placement: placeholders that held no room in a pool. The rest begins when the last one was let go."""
    failed_placeholders_up: bool = kept("failedPlaceholdersOnDemand", values.is_true)
    """Placement: that pool was on-demand."""
    unplaced: bool = kept("unplaced", values.is_true)
    """Placement: the pod of the last move was born without the label of the admission policy."""
    restarts: tuple[Restart, ...] = kept("restarts", values.listed(_restart, _RESTARTS_MAX))
    """Placement: the ends of members by splitter within the last hour."""
    yielded: tuple[int, ...] = kept("yieldedOrdinals", values.listed(values.ordinal))
    """Placement: ordinals of the base that may start on spot, since on-demand had no room."""

    def soak(self, asked_s: float) -> float:
        """Return H in seconds: never less than the user asks for."""
        return max(asked_s, self.soak_s or 0.0)

    def not_after(self, now: datetime) -> "RebalanceState":
        """Pull instants of the future back to `now`: a clock that was set back must not hold us up."""
        ahead: dict[str, Any] = {
            field.name: now
            for field in fields(self)
            if isinstance(instant := getattr(self, field.name), datetime) and instant > now
        }
        last = self.failed_placeholders.last
        if last is not None and last > now:
            ahead["failed_placeholders"] = replace(self.failed_placeholders, last=now)
        if any(one.at > now for one in self.restarts):
            ahead["restarts"] = tuple(one._replace(at=min(one.at, now)) for one in self.restarts)
        return replace(self, **ahead) if ahead else self

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
            failed_placeholders=before.failed_placeholders,
            failed_placeholders_up=before.failed_placeholders_up,
            unplaced=before.unplaced,
            yielded=before.yielded,
        )
