"""Finds which twins others have edited, and says what is put back (H68).

The planner asks before it chooses a step, and again when the plan is there. What equals what the templates
render now is no edit: `kubectl set image deploy -l app=web` reaches the source and both twins.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from splitter.core.actions import ApplyTwin
from splitter.core.clock import Waits
from splitter.core.drift import differing, missing, overwritten
from splitter.core.model import Note, Observation, Rendered, TwinView, seconds_between
from splitter.core.plan import Plan
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.core.twins import write_conflicts

FOLLOWS_S = 5.0
"""Units: seconds. An edit waits this long for the same one on the source: one command writes one by one."""


@dataclass(frozen=True, slots=True)
class Drift:
    """What of a twin differs from what is rendered."""

    twin: str
    what: str
    at: datetime | None  # when the last of it was written, or seen
    due: bool  # it is put back now; else the same edit of the source may follow


def drifted(
    observed: Observation, rendered: Mapping[Pool, Rendered] | Note
) -> tuple[Observation, Mapping[Pool, Drift]]:
    """Call a twin out of date if another client has edited its template; returns also what was edited."""
    if isinstance(rendered, Note):
        return observed, {}
    drifts = {
        twin.pool: drift
        for twin in observed.twins
        if (drift := _drift(twin, rendered[twin.pool], observed.waits)) is not None
    }
    due = [twin for twin in observed.twins if twin.pool in drifts and drifts[twin.pool].due]
    twins = {twin.pool: replace(twin, rendered_hash="") for twin in due}
    if not twins:
        return observed, drifts
    on_demand, spot = (twins.get(pool, observed.twin(pool)) for pool in (Pool.ON_DEMAND, Pool.SPOT))
    return replace(observed, on_demand=on_demand, spot=spot), drifts


def _drift(twin: TwinView, rendered: Rendered, waits: Waits) -> Drift | None:
    what, instants = [], []
    if edits := differing(twin.edits, rendered):
        what.append("; ".join(overwritten(edits, rendered)))
        instants += [edit.at for edit in edits if edit.at is not None]
    if twin.removed is not None and (fields := missing(twin.removed.paths, rendered)):
        what.append(f"fields of its pod template were removed: {'; '.join(fields)}")
        instants.append(twin.removed.at)
    if not what:
        return None
    at = max(instants, default=None)
    # An edit further in the future comes from a clock that cannot be trusted.
    trusted = at is not None and seconds_between(waits.now, at) <= FOLLOWS_S
    return Drift(twin.name, "; ".join(what), at, due=not (trusted and waits.left_s(at, FOLLOWS_S)))


def put_back(observed: Observation, planned: Plan, edited: Mapping[Pool, Drift]) -> Plan:
    """Say what was edited when it is put back."""
    back = [edited[one.pool] for one in planned.actions if isinstance(one, ApplyTwin) and one.pool in edited]
    if not back:
        return planned
    writer, at = write_conflicts.TEMPLATES, back[0].at
    count = len(write_conflicts.with_one_more(observed, writer, at))
    message = (
        f"another client edited {back[0].twin} ({back[0].what}); put back"
        f" ({write_conflicts.times(count)}). A change belongs"
        " on the source, and reaches both twins"
    )
    notes = (Note(Reason.DRIFT, message, warning=True), *write_conflicts.declared(count, writer))
    # A client that writes it again and again would have all pods replaced, and replaced back, without end.
    return replace(
        planned,
        notes=(*notes, *planned.notes),
        write_conflict=True,
        conflicting_writer=writer,
        conflict_at=at,
    )
