"""How many replicas of a source serve, and how many with its newest template, in all holders (H84, H85).

The first is the condition `splitter.io/Available` of the source, which `kubectl wait` and Karmada
(manifests/karmada) read, because a source that is split into twins has no pods of its own. Its message names
the counts and the generation of the source that they are of. The second is `Updated`, of the Split.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from splitter.core.actions import HideAvailable
from splitter.core.desired.compare import is_withdrawn
from splitter.core.handover import Step
from splitter.core.holders import holder_of, updated_members
from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER, CONDITION_AVAILABLE
from splitter.core.model import TwinView
from splitter.core.plan import Plan, PlanInput
from splitter.core.reasons import State
from splitter.core.replica import Replica
from splitter.core.split_status import Condition

_AS_EXPECTED = "AsExpected"
_OVER = frozenset({Step.NOTHING, Step.CLEAN_UP, Step.RELEASE})
_NOT_SPLIT = frozenset({State.REFUSED, State.GIVING_BACK, State.CONFLICT})


def counted(this: PlanInput, plan: Plan) -> Plan:
    """Return the plan with what Split and source should say of the replicas."""
    return replace(shown(this, plan), updated=updated(this, plan))


def shown(this: PlanInput, plan: Plan) -> Plan:
    """Return the plan with the condition that its source should have, or with the removal of one."""
    there = this.source.available
    if _is_asked(this) and plan.step not in _OVER:
        if there is not None and any(map(_is_unsure, this.observed.twins)):
            return plan
        return replace(plan, shown=_condition(this, plan))
    return plan if there is None else replace(plan, retries=(*plan.retries, HideAvailable()))


def updated(this: PlanInput, plan: Plan) -> int | None:
    """Return how many of N replicas have the source's newest template and are available.

    As `kubectl rollout status` counts them: a replica of another template takes the place of one, so N are
    not reached while it is there; more of those than N make it negative. None: it is not split, it is given
    back, or its twins cannot be rendered.
    """
    n, split = this.source.replicas, this.observed.split
    if plan.state in _NOT_SPLIT:
        return None
    pods = _counting(_pods(this))
    if not this.observed.twins:
        placed = split is not None and split.ordinals is not None
        new = updated_members(this.source, pods) if placed else None
        return _of_n(n, pods, new) if new is not None else None
    if not isinstance(this.rendered, Mapping):
        return None
    unsure = any(map(_is_unsure, this.observed.twins))
    return _of_n(n, pods, _counting(_updated(this)) if not unsure else ())


def _of_n(n: int, pods: Sequence[Replica], new: Sequence[Replica]) -> int:
    return min(sum(pod.available for pod in new), n - (len(pods) - len(new)))


def _counting(pods: Iterable[Replica]) -> list[Replica]:
    return [pod for pod in pods if pod.counts]


def _is_asked(this: PlanInput) -> bool:
    """Whether it is split into twins, and Karmada manages it or the settings ask for the condition."""
    taken = ANNOTATION_TAKEN_OVER in this.source.annotations and bool(this.observed.twins)
    return taken and (this.source.by_karmada or this.rules.available_condition)


def _is_unsure(twin: TwinView) -> bool:
    """Whether the template of its pods is unknown, because its controller has not seen the last write."""
    return holder_of(twin).hides_templates


def _condition(this: PlanInput, plan: Plan) -> Condition:
    """Return what is counted. No count is above N: Karmada may take the sum of its members for the new N.

    So old replicas take their places first: a roll is not complete before the last of them goes.
    """
    n = this.source.replicas
    pods = _counting(_pods(this))
    new = len(_counting(_updated(this)))
    updated = max(0, min(new, n - (len(pods) - new)))
    ready = min(n, sum(pod.available for pod in pods))
    available = min(n, sum(pod.serves for pod in pods))
    # If the twins cannot be rendered, it is unknown whether they are what the source asks for.
    generation = this.source.generation if isinstance(this.rendered, Mapping) else 0
    counts = f"replicas={n} updated={updated} ready={ready} available={available} generation={generation}"
    cause = plan.troubles[0] if plan.troubles else plan.verdict
    there = this.source.available
    made = Condition(
        type=CONDITION_AVAILABLE,
        status="True" if available >= n else "False",
        reason=_AS_EXPECTED if available >= n else cause.reason.value,
        message=f"{available} of {n} replicas are available ({counts})",
    )
    if there is not None and there.status == made.status:
        return replace(made, since=there.since)
    return replace(made, since=this.observed.now.replace(microsecond=0))


def _pods(this: PlanInput) -> Iterator[Replica]:
    for holder in (*this.observed.holders, *this.observed.going):
        yield from holder.pods
    yield from this.observed.orphans


def _updated(this: PlanInput) -> Iterator[Replica]:
    """Yield the pods that have the source's template; those that change their owner have it."""
    yield from this.observed.orphans
    for holder in (*this.observed.replica_sets, *this.observed.going):
        is_current = holder.template_hash == this.source.template_hash and not holder.rolls
        if holder.held_by is not None or is_current:
            yield from holder.pods
    for twin in this.observed.twins:
        for holder in twin.replica_sets:
            if holder.template_hash == twin.template_hash and _is_current(this, twin):
                yield from holder.pods


def _is_current(this: PlanInput, twin: TwinView) -> bool:
    """Whether a twin has what its source asks for; another template set alone waits for the next rollout."""
    if not isinstance(this.rendered, Mapping):
        return True
    rendered = this.rendered[twin.pool]
    same = bool(rendered.made_of) and twin.made_of == rendered.made_of
    return twin.bears(rendered.hash) or (same and not is_withdrawn(twin.rendered_hash))
