"""Shows suggestions: a table with the reasons and the commands below each line, or plain values.

Pure: what `suggest` found in, text out. The lines hold words of others, and are made printable by who
writes them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from splitter.core.eligibility import seen_as_spot
from splitter.core.model import Note
from splitter.plugin.cli.splits import NAME_MIN, called, shortened
from splitter.plugin.cli.wrapping import wrapped
from splitter.plugin.core.suggestion import Proposal
from splitter.plugin.simulate.estimate import UNKNOWN_START_S, Estimate
from splitter.plugin.simulate.spot_history import LAST_S, NO_HISTORY, OUTAGE, HistorySource, SpotHistory

_HEADINGS = ("WORKLOAD", "N", "VCPU", "GIB", "START", "ON-DEMAND", "SPOT", "MOVES", "SAVING", "LOST/MONTH")
_GIB = 1024**3
_NONE = "no workload without the label is here"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A proposal with its estimate; a refused workload has none."""

    proposal: Proposal
    estimate: Estimate | None

    def order(self) -> tuple[bool, float, int, str]:
        """Return the place in the list: the largest saving first, what is refused last."""
        saving = self.estimate.saving if self.estimate is not None else 0.0
        # Of the same share, more vCPUs save more.
        return self.estimate is None, -round(saving, 2), -self.proposal.cpu_m, str(self.proposal.key)


@dataclass(frozen=True, slots=True)
class Suggestions:
    """All suggestions, and the assumptions behind them."""

    suggestions: tuple[Suggestion, ...]
    unseen: tuple[str, ...] = ()
    history: SpotHistory = NO_HISTORY
    spot_nodes: int | None = None
    """Spot nodes that there are; None: nodes may not be seen."""
    looks_like_spot: str = ""
    """Where no node is recognised as spot: what looks like spot all the same."""
    notice_s: float = 30.0
    spot_price: float = 0.3


def as_json(suggestions: Suggestions) -> dict[str, Any]:
    """Return plain values, for programs."""
    return {
        "assumed": {
            "onDemandPrice": 1.0,
            "spotPrice": suggestions.spot_price,
            "interruptions": suggestions.history.source.value,
            "trace": suggestions.history.name,
            "noticeSeconds": suggestions.notice_s,
            "startSecondsWhereUnknown": UNKNOWN_START_S,
        },
        "spotNodes": suggestions.spot_nodes,
        "notShown": list(suggestions.unseen),
        "workloads": [_plain(one) for one in suggestions.suggestions],
    }


def _plain(one: Suggestion) -> dict[str, Any]:
    it = one.proposal
    plain: dict[str, Any] = {
        "kind": it.key.kind,
        "namespace": it.key.namespace,
        "name": it.key.name,
        "eligible": it.refusal is None,
        "refused": it.refused,
        "reason": it.refusal.reason.value if it.refusal is not None else "",
        "message": it.refusal.message if it.refusal is not None else "",
        "replicas": it.replicas,
        "requests": {"vcpu": it.cpu_m / 1000, "gib": round(it.memory_bytes / _GIB, 3)},
        "startSeconds": it.start_s,
        "mode": it.mode.value,
        "policy": dict(it.annotations) if not it.refused else {},
        "why": it.why if not it.refused else "",
        "advice": [note.message for note in it.advice],
        "wanted": None,
        "moves": None,
        "savingPercent": None,
        "lostReplicaSecondsPerMonth": None,
        "commands": list(it.commands),
    }
    if one.estimate is None:
        return plain
    return plain | {
        "wanted": {"onDemand": it.on_demand, "spot": it.replicas - it.on_demand},
        "moves": {"toSpot": it.to_spot, "toOnDemand": it.to_on_demand},
        "savingPercent": round(100 * one.estimate.saving, 1),
        "lostReplicaSecondsPerMonth": round(one.estimate.lost_s),
    }


def as_lines(suggestions: Suggestions, *, namespaced: bool, width: int | None = None) -> Iterator[str]:
    """Yield the table; fitted to `width` columns, but for commands, which are copied whole."""
    if not suggestions.suggestions:
        yield _NONE
        yield from _unseen(suggestions, width)
        return
    if suggestions.looks_like_spot:
        yield from wrapped(f"! {seen_as_spot(suggestions.looks_like_spot)}", width, further="  ")
    rows = [_HEADINGS, *(_cells(one, namespaced=namespaced) for one in suggestions.suggestions)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    if width is not None:
        left = width - sum(widths[1:]) - 2 * len(widths[1:])
        widths[0] = min(widths[0], max(NAME_MIN, left))
    yield _row(_HEADINGS, widths)
    for one, cells in zip(suggestions.suggestions, rows[1:], strict=True):
        yield _row(cells, widths)
        for line in _described(one.proposal):
            yield from wrapped(line, width, "  ", "    ")
        yield from (f"    {command}" for command in one.proposal.commands)
    yield ""
    for note in _notes(suggestions):
        yield from wrapped(note, width, further="  ")
    yield from _unseen(suggestions, width)


def _cells(one: Suggestion, *, namespaced: bool) -> tuple[str, ...]:
    it, estimate = one.proposal, one.estimate
    seen = (
        called(it.key, namespaced=namespaced),
        str(it.replicas),
        f"{it.cpu_m / 1000:.1f}",
        f"{it.memory_bytes / _GIB:.1f}",
        "?" if it.start_s is None else f"{it.start_s:.0f} s",
    )
    if estimate is None:
        return (*seen, "-", "-", "-", "-", "-")
    moves = "?" if it.to_spot is None or it.to_on_demand is None else str(it.to_spot + it.to_on_demand)
    return (
        *seen,
        str(it.on_demand),
        str(it.replicas - it.on_demand),
        moves,
        f"{100 * estimate.saving:.0f} %",
        f"{estimate.lost_s:.0f} s",
    )


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = [
        cell.rjust(width) if column else shortened(cell, width).ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(shown).rstrip()


def _described(it: Proposal) -> Iterator[str]:
    if it.refusal is not None:
        yield f"{'refused' if it.refused else 'not yet'}: {_sentence(it.refusal)}"
    if it.refused:
        return
    yield it.why
    yield from (f"! {_sentence(note)}" for note in it.advice)


def _sentence(note: Note) -> str:
    return f"{note.message} ({note.reason})"


def _notes(suggestions: Suggestions) -> Iterator[str]:
    """Yield what the figures mean and rest on."""
    yield f"Assumed: a replica costs 1 on on-demand and {suggestions.spot_price:g} on spot."
    yield f"Interruptions: {_interruptions(suggestions.history, suggestions.notice_s)}"
    yield (
        "SAVING: against all replicas on on-demand. LOST/MONTH: seconds in which a wanted replica is not"
        " ready, summed over the replicas. MOVES: pods that would change pool. START: from scheduled to"
        f" Ready, for nine pods in ten; where none is seen (?) {UNKNOWN_START_S:.0f} s are assumed."
    )
    if suggestions.spot_nodes == 0 and not suggestions.looks_like_spot:
        yield "No node is spot capacity now: one has to come, or be recognised (docs/architecture.md)."


def _interruptions(history: SpotHistory, notice_s: float) -> str:
    """Return how spot nodes are taken to come and go, and how far that can be believed."""
    if history.source is HistorySource.FILE:
        return f"as in trace {history.name}, each with a notice of {notice_s:.0f} s."
    if history.source is HistorySource.NODES:
        return (
            f"as the ages of your {len(history.ages_s)} spot nodes tell, {history.mean_age_s / 3600:.1f} h on"
            f" average: each is announced {notice_s:.0f} s before it goes, at the age that it has now, and"
            f" its place is empty for {LAST_S // 60} minutes. They live on, so fewer may be lost; nodes that"
            " went before are not seen, so more may be. Give a record of yours with --trace."
        )
    young = (
        f" Your {len(history.ages_s)} spot nodes are {history.mean_age_s / 60:.0f} min old on average, which"
        " tells nothing yet."
        if history.ages_s
        else ""
    )
    return (
        f"invented. All spot nodes are gone for {LAST_S // 60} minutes once a day, {notice_s:.0f} s after a"
        f" notice (splitter simulate --outage {OUTAGE},nodes=N --notice {notice_s:.0f}). No real month is"
        f" like that.{young}"
    )


def _unseen(suggestions: Suggestions, width: int | None) -> Iterator[str]:
    for one in suggestions.unseen:
        yield from wrapped(f"! {one}", width, further="  ")
