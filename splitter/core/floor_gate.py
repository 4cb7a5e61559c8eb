"""The floor gate: whatever step asked, no batch of writes goes below the floor (promise 1, H86).

One of `gates`. The steps take care by themselves (`shares.break_`, `replica_moves.may_lower`, `rollout`);
the gate counts once more, over all writes of the batch and all holders, so a step that forgets to ask takes
no service down. It counts as `holders` do: what a holder surely keeps is a lower bound, what a write may cost
an upper bound, and a difference of two lower bounds is taken for neither.
"""

from collections.abc import Mapping
from dataclasses import replace

from splitter.core.actions import Action, ApplyTwin, Scale, is_lowering
from splitter.core.holders import holder_of, holders_of
from splitter.core.holders.holder import floor_of, kept_by_source
from splitter.core.holders.shares import share_of
from splitter.core.model import Attachment, Note, Observation, TwinView
from splitter.core.plan import Plan, PlanInput, undone
from splitter.core.reasons import Reason, State


def within_floor(this: PlanInput, planned: Plan) -> Plan:
    """Return the plan with writes that do not go below the floor, counted in the order of the batch.

    A lowering keeps F, and goes as far as that is sure. A roll keeps N - maxUnavailable: where surge replicas
    find no node it may fall back to the source's own strategy (H64).
    """
    observed, source = this.observed, this.source
    risky = [one for one in planned.actions if is_lowering(one) or _rolled(observed, one) is not None]
    if not risky:
        return planned
    floor = floor_of(source.replicas, source.max_surge, source.max_unavailable)
    shares = {holder.view.name: share_of(holder, 0, 0) for holder in holders_of(observed)}
    kept = {name: share.available for name, share in shares.items()}
    own = kept_by_source(source, observed.attached_as(Attachment.ATTACHED))
    narrowed = dict[Action, Action | None]()
    for one in risky:
        twin = _rolled(observed, one)
        if isinstance(one, Scale) and one.name in shares:
            others = own + sum(kept.values()) - kept[one.name]
            share = replace(shares[one.name], target=one.replicas)
            given = one.was - one.replicas
            # In a roll a count may be safe although one above it is not: what is asked for is tried first.
            if share.is_too_many(given, floor - others):
                given = share.shrink(floor - others)
                narrowed[one] = replace(one, replicas=one.was - given) if given else None
            kept[one.name] = share.kept(given)
        elif isinstance(one, ApplyTwin) and twin is not None:
            _, unavailable, _ = holder_of(twin).roll_numbers(one.max_surge, one.max_unavailable)
            after, lost = _in_roll(twin, kept[twin.name], unavailable)
            least = floor_of(source.replicas, 0, source.max_unavailable)
            if own + sum(kept.values()) - kept[twin.name] + after < least and lost:
                narrowed[one] = None
            else:
                kept[twin.name] = after
    return _narrowed(narrowed, observed, planned) if narrowed else planned


def _in_roll(twin: TwinView, kept: int, unavailable: int) -> tuple[int, int]:
    """Return what a twin surely keeps while its template is rolled out, and what that may cost."""
    least = max(0, twin.spec_replicas - unavailable)
    return min(kept, least), max(0, sum(pod.serves for pod in twin.pods) - least)


def _narrowed(narrowed: Mapping[Action, Action | None], observed: Observation, planned: Plan) -> Plan:
    """Return the plan with these writes in place of others, and without what it would remember of those."""
    writes = (narrowed.get(one, one) for one in planned.actions)
    kept = replace(planned, actions=tuple(one for one in writes if one is not None))
    names = ", ".join(_name(observed, asked, write) for asked, write in narrowed.items())
    message = f"hold {names}: too few available replicas would be sure to stay"
    note = Note(Reason.WAITING_FOR_REPLICAS, message, warning=True)
    moves = (one for one in planned.notes if one.move is not None)
    state = undone(kept, observed)
    return replace(kept, state=State.HELD, verdict=note, notes=(*moves, note), rebalance=state, relief=None)


def _name(observed: Observation, asked: Action, write: Action | None) -> str:
    if isinstance(asked, Scale):
        count = write.replicas if isinstance(write, Scale) else asked.was
        return f"{asked.name} at {count}, {asked.replicas} asked for"
    twin = _rolled(observed, asked)
    return f"the template of {twin.name}" if twin is not None else type(asked).__name__


def _rolled(observed: Observation, write: Action) -> TwinView | None:
    """Return the twin to which a write gives another template; None: it does no such thing."""
    twin = observed.twin(write.pool) if isinstance(write, ApplyTwin) else None
    is_other = twin is not None and isinstance(write, ApplyTwin) and write.hash != twin.rendered_hash
    return twin if is_other else None
