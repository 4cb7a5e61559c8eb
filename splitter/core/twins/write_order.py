"""Orders the writes of a reconcile: raises first, and lowerings only when doomed pods will go first.

`steps` and `offboard` ask here with the counts that they want. What makes a ReplicaSet pick the right pods
is the deletion cost (H7); users' own costs are remembered and put back. Source: H6 to H9, R48.
"""

from collections.abc import Sequence

from splitter.core.actions import Action, DeleteVanishedPod, Scale, SetDeletionCost
from splitter.core.clock import Waits
from splitter.core.model import Attachment, ReplicaSetView, seconds_between
from splitter.core.plan import PlanInput
from splitter.core.replica import NodeStatus, Replica

# What makes a ReplicaSet delete a pod first among the ready ones; users seldom go below 0.
OUR_COST = "-1000"
# Within so many seconds the controller of its ReplicaSet has seen a cost, as a rule within one; a time that
# the API server writes is cut to whole seconds.
COST_SEEN_S = 6.0
# A lost pod may look ready for a minute still, and must go before one that is only about to go.
LOST_COST = "-1001"


def is_low(cost: str | None) -> bool:
    """Whether a ReplicaSet might take a pod with this deletion cost before one with ours."""
    try:
        return int(cost or 0) <= int(OUR_COST)
    except ValueError:
        return False  # which Kubernetes counts as 0


def ordered(this: PlanInput, scales: Sequence[Scale], keeps: str = "") -> tuple[Action, ...]:
    """Order the writes of a reconcile: raises, deletion costs, lowerings, pods of vanished nodes (H8, H9).

    A holder is lowered only when every pod of it that is going carries the deletion cost already: a
    cost written in the same breath may reach the ReplicaSet controller after the scale. If it is to lose
    some of its ready pods and not all, the cost has to be older than that, too. In an emergency
    the raises go out alone: what can wait for the next reconcile must not keep a worker from the next
    workload's raise. `keeps` is the UID of a pod that bears our cost although its node is sound.
    """
    holders: dict[str, tuple[Replica, ...]] = {twin.name: twin.pods for twin in this.observed.twins}
    holders |= {rs.name: rs.pods for rs in this.observed.attached_as(Attachment.PARKED)}
    costs: list[Action] = []
    uncosted: set[str] = set()
    vanished: list[Action] = []
    marking = _marking(this)
    for name, pods in holders.items():
        others_stay = any(pod.counts and not pod.vanished for pod in pods)
        for pod in pods:
            if not pod.counts:
                continue
            at_once = pod.ordinal is not None
            if pod.vanished and pod.node is not None and this.rules.delete_pods_of_vanished_nodes:
                if at_once and (pod.successor or _may_still_run(pod, this)):
                    continue
                vanished.append(DeleteVanishedPod(pod.name, pod.uid, pod.node, pod.successor, at_once))
                if not at_once and others_stay:
                    # Its ReplicaSet still takes it for ready, and a scale-down would pick one that is so, or
                    # that becomes so before the scale-down gets there.
                    uncosted.add(name)
            elif marking and not at_once and _is_about_to_be_marked(pod):
                uncosted.add(name)
            elif pod.uid != keeps and (cost := cost_of(pod, counts=not at_once)) is not None:
                costs.append(cost)
                uncosted.add(name)
    raises = [scale for scale in scales if scale.replicas > scale.was]
    if raises and (costs or vanished):
        return tuple(raises)
    uncosted |= {scale.name for scale in scales if _goes_by_unseen(scale, holders.get(scale.name, ()), this)}
    lowerings = [scale for scale in scales if scale.replicas < scale.was and scale.name not in uncosted]
    return (*raises, *costs, *lowerings, *vanished)


def _goes_by_unseen(scale: Scale, pods: Sequence[Replica], this: PlanInput) -> bool:
    """Whether which ready pods go is decided by a cost that their controller may not have seen."""
    ready = sum(pod.ready for pod in pods)
    chosen = 0 < scale.replicas < ready and scale.replicas < scale.was
    return chosen and any(_is_unseen(pod, this.observed.waits) for pod in pods)


def _is_unseen(pod: Replica, waits: Waits) -> bool:
    """Whether a controller may not have seen its cost; it has, if the clocks are too far apart to tell."""
    if pod.cost_at is None or not pod.counts or seconds_between(waits.now, pod.cost_at) >= COST_SEEN_S:
        return False
    return not waits.past(pod.cost_at, COST_SEEN_S)


def _marking(this: PlanInput) -> bool:
    """Whether Kubernetes may be marking the pods of a node that fell silent a moment ago."""
    state = this.observed.rebalance
    return this.observed.waits.left_s(state.last_loss, this.rules.tuning.settle_s) > 0


def _is_about_to_be_marked(pod: Replica) -> bool:
    """Whether it is a ready pod of a silent node, which Kubernetes marks not ready once it knows.

    A write of ours right before makes that one fail, and it is tried again 5 s later: for as long requests go
    to an address at which nobody answers (seen with `make traffic`). Nobody waits for our cost so urgently.
    """
    return pod.node_status is NodeStatus.LOST and pod.ready_since is not None


def _may_still_run(pod: Replica, this: PlanInput) -> bool:
    """Whether a member stays for now whose Node went while Ready: a kubelet may run it on.

    Its successor of the same name would be made beside it. As in placement (docs/adr/0034).
    """
    return this.observed.waits.left_s(pod.vanished_since, this.rules.tuning.vanished_node_wait_s) > 0


def cost_of(pod: Replica, *, counts: bool = True) -> SetDeletionCost | None:
    """Return what gives a pod the deletion cost that it needs now (H7); None: it has that.

    None `counts` for a StatefulSet, whose pods only get their own back.
    """
    if not pod.going and pod.node_status is NodeStatus.SOUND and pod.cost_before is not None:
        return SetDeletionCost(pod.name, pod.uid, pod.cost_before or None)
    cost = LOST_COST if pod.node_status is NodeStatus.LOST else OUR_COST
    if counts and pod.going and pod.deletion_cost != cost:
        ours = pod.deletion_cost in {OUR_COST, LOST_COST} and pod.cost_before is not None
        before = pod.cost_before if ours else pod.deletion_cost
        return SetDeletionCost(pod.name, pod.uid, cost, remember=before or "")
    return None


def restored_costs(replica_sets: Sequence[ReplicaSetView], replicas: int) -> list[Action] | None:
    """Return what gives pods back the deletion costs that their users had set, or none.

    None while a ReplicaSet still has pods to delete, or will have once its controller knows how many
    `replicas` there are to be: without our costs it would take others.
    """
    restored: list[Action] = []
    for rs in replica_sets:
        pods = [pod for pod in rs.pods if pod.counts]
        ours = [pod for pod in pods if pod.cost_before is not None]
        if ours and len(pods) > min(rs.spec_replicas, replicas):
            return None
        restored += [SetDeletionCost(pod.name, pod.uid, pod.cost_before or None) for pod in ours]
    return restored
