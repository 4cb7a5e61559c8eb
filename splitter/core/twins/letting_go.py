"""What is done when a rehearsal shows that pods without an owner would find no new one (H18).

The reconciler rehearses right before pods are let go, and before anything is paused for that again. Refused,
no pod loses its owner: on the way there the source goes on by itself, on the way back the twins do.
"""

from dataclasses import replace

from splitter.core import actions as do
from splitter.core.handover import Step, waits_for_pods
from splitter.core.model import Note
from splitter.core.plan import AT_ONCE_S, POLL_S, Plan, PlanInput, looked_at_again
from splitter.core.reasons import State
from splitter.core.twins import steps


def undone(this: PlanInput, refused: Note) -> Plan:
    """Let the source go on by itself, with the pods that it still has."""
    resume = do.SetPaused(paused=False, resource_version=this.source.resource_version)
    again_s = this.rules.look_again_s
    return Plan(Step.ADOPT_PODS, State.HELD, refused, (resume,), (refused,), requeue_after_s=again_s)


def not_paused(this: PlanInput) -> Plan | None:
    """Return the hold of a source whose pods may not be let go: it runs by itself; None: it may be paused."""
    refused, twins = this.observed.letting_go_refused, this.observed.twins
    if refused is None or not twins or not all(map(waits_for_pods, twins)):
        return None
    return Plan(Step.PAUSE, State.HELD, refused, notes=(refused,), requeue_after_s=this.rules.look_again_s)


def kept_by_twins(this: PlanInput, refused: Note) -> Plan:
    """Keep the pods with their twins, which go on covering losses, for as long as this is refused.

    The place for a way back that needs no pod without an owner.
    """
    if resumed := tuple(
        do.PauseTwin(twin.name, paused=False, resource_version=twin.resource_version)
        for twin in this.observed.twins
        if twin.paused
    ):
        note = replace(refused, quiet=True)
        return Plan(Step.OFFBOARD, State.GIVING_BACK, note, resumed, (note,), requeue_after_s=AT_ONCE_S)
    kept = replace(steps.run(this), step=Step.OFFBOARD, state=State.GIVING_BACK)
    if kept.actions:
        return looked_at_again(kept, POLL_S)
    return looked_at_again(replace(kept, verdict=refused, notes=(refused,)), this.rules.look_again_s)
