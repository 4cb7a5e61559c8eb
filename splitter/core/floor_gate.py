"""The floor gate: whatever step asked, no batch of writes goes below the floor (promise 1, H86).

One of `gates`. The steps take care by themselves (`handover.break_`, `replica_moves.may_lower`, `rollout`);
the gate counts once more, over all writes of the batch and all holders, so a step that forgets to ask takes
no service down. It counts as `floor` does: what a holder surely keeps is a lower bound, what a write may cost
an upper bound, and a difference of two lower bounds is taken for neither.
"""

from collections.abc import Mapping
from dataclasses import replace

from splitter.core.actions import Action, ApplyTwin, Scale, is_lowering
from splitter.core.floor import floor_of, kept_by, kept_by_source, most_lost
from splitter.core.model import Attachment, Note, Observation, ReplicaSetView, TwinView
from splitter.core.plan import Plan, PlanInput, undone
from splitter.core.reasons import Reason, State


def within_floor(this: PlanInput, planned: Plan) -> Plan:
    """Return the plan without the writes that could go below the floor, counted in the order of the batch.

    A lowering keeps F. A roll keeps N - maxUnavailable: where surge replicas find no node it may fall back to
    the source's own strategy (H64).
    """
    observed, source = this.observed, this.source
    risky = [one for one in planned.actions if is_lowering(one) or _rolled(observed, one) is not None]
    if not risky:
        return planned
    floor = floor_of(source.replicas, source.max_surge, source.max_unavailable)
    holders = _holders(observed)
    kept = {name: kept_by(holder, holder.spec_replicas) for name, holder in holders.items()}
    own = kept_by_source(source, observed.attached_as(Attachment.ATTACHED))
    dropped = list[Action]()
    for one in risky:
        twin = _rolled(observed, one)
        if isinstance(one, ApplyTwin) and twin is not None:
            name, least = twin.name, floor_of(source.replicas, 0, source.max_unavailable)
            after, lost = _in_roll(twin, kept[name], one.max_unavailable)
        elif isinstance(one, Scale) and one.name in holders:
            name, least = one.name, floor
            after, lost = kept_by(holders[name], one.replicas), most_lost(holders[name], one.replicas)
        else:
            continue
        if own + sum(kept.values()) - kept[name] + after < least and lost:
            dropped.append(one)
        else:
            kept[name] = after
    return _without(dropped, observed, planned) if dropped else planned


def _in_roll(twin: TwinView, kept: int, unavailable: int) -> tuple[int, int]:
    """Return what a twin surely keeps while its template is rolled out, and what that may cost."""
    stateful = twin.first_ordinal is not None
    least = max(0, twin.spec_replicas - (twin.max_unavailable if stateful else unavailable))
    return min(kept, least), max(0, sum(pod.serves for pod in twin.pods) - least)


def _without(dropped: list[Action], observed: Observation, planned: Plan) -> Plan:
    """Return the plan without these writes, and without what it would remember of them."""
    kept = replace(planned, actions=tuple(one for one in planned.actions if one not in dropped))
    names = ", ".join(_name(observed, one) for one in dropped)
    message = f"hold {names}: too few available replicas would be sure to stay"
    note = Note(Reason.WAITING_FOR_REPLICAS, message, warning=True)
    moves = (one for one in planned.notes if one.move is not None)
    state = undone(kept, observed)
    return replace(kept, state=State.HELD, verdict=note, notes=(*moves, note), rebalance=state, relief=None)


def _name(observed: Observation, dropped: Action) -> str:
    if isinstance(dropped, Scale):
        return f"{dropped.name} at {dropped.was}, {dropped.replicas} asked for"
    twin = _rolled(observed, dropped)
    return f"the template of {twin.name}" if twin is not None else type(dropped).__name__


def _rolled(observed: Observation, write: Action) -> TwinView | None:
    """Return the twin to which a write gives another template; None: it does no such thing."""
    twin = observed.twin(write.pool) if isinstance(write, ApplyTwin) else None
    is_other = twin is not None and isinstance(write, ApplyTwin) and write.hash != twin.rendered_hash
    return twin if is_other else None


def _holders(observed: Observation) -> Mapping[str, TwinView | ReplicaSetView]:
    """Return by name what splitter scales: the twins, and what is parked."""
    parked = {rs.name: rs for rs in observed.attached_as(Attachment.PARKED)}
    return {**parked, **{twin.name: twin for twin in observed.twins}}
