"""What is done when a rehearsal shows that pods without an owner would find no new one (H18).

The reconciler rehearses right before pods are let go, and before anything is paused for that again. Refused,
no pod loses its owner: on the way there the source goes on by itself, on the way back pods are replaced.
"""

from splitter.core import actions as do
from splitter.core.eligibility.deployments import selected_by_others
from splitter.core.handover import Step, waits_for_pods
from splitter.core.model import Attachment, Note
from splitter.core.plan import AT_ONCE_S, POLL_S, Plan, PlanInput
from splitter.core.reasons import Reason, State


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


def taken_back(this: PlanInput) -> Plan | None:
    """Return the end of a take-over whose pods another controller has begun to select meanwhile (H29).

    The Split says so first: the following steps, and those after a restart, go by it.
    """
    rival = selected_by_others(this.observed, this.source, this.policy)
    if rival is None:
        return None
    actions = (do.EnsureSplit(takes_over=False),)
    return Plan(Step.ADOPT_PODS, State.HELD, rival, actions, (rival,), requeue_after_s=AT_ONCE_S)


def barred(this: PlanInput) -> Note | None:
    """Return why the twins' pods may not be let go: a rival, a rehearsal, or what was let go and hangs."""
    hung = [rs.name for rs in this.observed.attached_as(Attachment.PARKED) if rs.deleted is not None]
    hangs = Note(Reason.HANDOVER_HANGS, f"what was let go before has not ended: {', '.join(hung)}")
    rival = selected_by_others(this.observed, this.source, this.policy)
    return rival or this.observed.letting_go_refused or (hangs if hung else None)


def replaced(this: PlanInput, why: Note) -> Plan:
    """Resume the source, which makes its own pods: the twins give theirs one for one (H52, H34).

    A source that runs already goes on: pods without an owner are counted when the moment ends (H54).
    """
    message = f"its pods are replaced, and none changes its owner: {why.message}"
    note = Note(why.reason, message, warning=True)
    resume = do.SetPaused(paused=False, resource_version=this.source.resource_version)
    actions = (resume,) if this.source.paused else ()
    again_s = AT_ONCE_S if actions else POLL_S
    return Plan(Step.OFFBOARD, State.GIVING_BACK, note, actions, (note,), requeue_after_s=again_s)
