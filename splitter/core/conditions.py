"""The conditions of a Split: one function for each, which says whether it holds and why.

Conditions are in the Kubernetes convention: the time of a transition changes with the status only, and
`observedGeneration` is the Split's own, because kubectl and kstatus compare it with that. Which generation of
the source a status is about is `status.sourceGeneration` (docs/adr/0123).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from splitter.core.model import Note, Observation
from splitter.core.plan import Plan, PolicyInForce
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.split_status import TEXT_MAX, Condition

_AS_EXPECTED: Final = "AsExpected"
_MOVING: Final = frozenset({State.TAKING_OVER, State.MOVING, State.ROLLING, State.GIVING_BACK})
# Verdicts that last until a person acts; and of refusals those that do not.
_STALLED: Final = frozenset({Reason.ROLLOUT_STALLED, Reason.TEMPLATE_INVALID})
_PASSING: Final = frozenset({Reason.ROLLOUT_IN_PROGRESS, Reason.WAITING_FOR_TURN})


def conditions(
    observed: Observation, plan: Plan, in_force: PolicyInForce, *, ready: int, spot_ready: int, conflict: bool
) -> tuple[Condition, ...]:
    """Return all conditions of a Split. `ready` and `spot_ready` are replicas."""
    desired = observed.source.replicas if observed.source else 0
    updated = _updated(plan, desired, observed.source.generation if observed.source else 0)
    stalled = is_stalled(plan)
    made = (
        _eligible(plan),
        _condition("PolicyValid", in_force.valid, next(iter(in_force.problems), None)),
        _ready(plan, ready, desired),
        updated,
        _reconciling(plan, updated, stalled=stalled),
        _condition("Stalled", stalled, plan.verdict if stalled else None),
        _condition("PodsHealthy", not plan.troubles, _together(plan.troubles)),
        _pools_fit(plan.barred),
        _condition("Progressing", plan.state in _MOVING, plan.verdict),
        _spot_available(plan, spot_ready, observed.spot.name if observed.spot else ""),
        _condition("Conflict", conflict, plan.verdict if conflict else None),
    )
    now = observed.now.replace(microsecond=0)
    generation = observed.split.generation if observed.split is not None else None
    before = {(old.type, old.status): old.since for old in observed.reported.conditions}
    return tuple(
        replace(one, since=before.get((one.type, one.status), now), observed_generation=generation)
        for one in made
    )


def objection_to(plan: Plan) -> Note | None:
    """Return why a workload is refused, or would be today."""
    return plan.verdict if plan.state is State.REFUSED else plan.objection


def is_stalled(plan: Plan) -> bool:
    """Whether nothing goes on before a person acts: it is refused, or its roll cannot go on."""
    if plan.state is State.REFUSED:
        return plan.verdict.reason not in _PASSING
    return plan.state is State.CONFLICT or plan.verdict.reason in _STALLED


def _updated(plan: Plan, desired: int, generation: int) -> Condition:
    """Return whether all replicas have the source's newest template and are available (H85)."""
    if plan.updated is None:
        return _condition("Updated", False, plan.verdict)  # noqa: FBT003 (its value is the point)
    there = max(0, plan.updated)
    message = f"{there} of {desired} replicas have the template of generation {generation} and are available"
    done = plan.updated >= desired
    condition = _condition("Updated", done, Note(_cause(plan).reason, message))
    return replace(condition, reason=_AS_EXPECTED) if done else condition


def _reconciling(plan: Plan, updated: Condition, *, stalled: bool) -> Condition:
    """Return whether a change of the source is under way: what kstatus calls in progress."""
    goes_on = updated.status != "True" and (plan.updated is not None or plan.state in _MOVING)
    if stalled or not goes_on:
        return _condition("Reconciling", False, None)  # noqa: FBT003 (its value is the point)
    return replace(updated, type="Reconciling", status="True")


def _eligible(plan: Plan) -> Condition:
    objection = objection_to(plan)
    return _condition("Eligible", objection is None, objection)


def _ready(plan: Plan, ready: int, desired: int) -> Condition:
    return _enough("Ready", ready, desired, "replicas", _cause(plan).reason)


def _cause(plan: Plan) -> Note:
    """Return why replicas are missing."""
    return plan.troubles[0] if plan.troubles else plan.verdict


def _spot_available(plan: Plan, ready: int, twin: str) -> Condition:
    own = (trouble for trouble in plan.troubles if trouble.about.startswith(f"{twin}: " if twin else " "))
    cause = next(own, plan.verdict)
    return _enough("SpotAvailable", ready, plan.wanted_spot, "wanted spot replicas", cause.reason)


def _enough(kind: str, available: int, wanted: int, what: str, cause: Reason) -> Condition:
    """Return a condition about a count; what is in order has no cause."""
    condition = _condition(
        kind, available >= wanted, Note(cause, f"{available} of {wanted} {what} are available")
    )
    return condition if available < wanted else replace(condition, reason=_AS_EXPECTED)


def _pools_fit(barred: Sequence[Note]) -> Condition:
    """Return whether both pools can take replicas; unknown where only the nodes of now say no."""
    fits = _condition("PoolsFit", not barred, _together(barred))
    by_nodes = bool(barred) and all(one.cause is VerdictCause.BY_NODES for one in barred)
    return replace(fits, status="Unknown") if by_nodes else fits


def _together(troubles: Sequence[Note]) -> Note | None:
    if not troubles:
        return None
    return Note(troubles[0].reason, " ".join(trouble.message for trouble in troubles))


def _condition(kind: str, holds: bool, note: Note | None) -> Condition:  # noqa: FBT001 (its value is the point)
    return Condition(
        type=kind,
        status="True" if holds else "False",
        reason=note.reason.value if note else _AS_EXPECTED,
        message=note.message[:TEXT_MAX] if note else "",
    )
