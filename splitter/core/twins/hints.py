"""The hint of a move: placeholders on the nodes that its new replica had better not take.

The scheduler goes by requests and does not see real use, so a hot node may draw the very replica that is to
leave it. A placeholder there prefers (it does not require) to be without replicas of the twin, and the
scheduler heeds that from both sides. It requests next to nothing, so it holds no room, and yields to any pod.
`relief` asks for them before it raises; here is also when they go. Source: R54, docs/adr/0070.
"""

import json
from dataclasses import replace
from typing import Final

from splitter.core.actions import CreatePlaceholder, DeletePlaceholder
from splitter.core.desired.manifest import Manifest, mapping_at
from splitter.core.desired.placeholder import idle_pod
from splitter.core.desired.scheduling import ReservationRules
from splitter.core.desired.twin import pod_labels
from splitter.core.hot_nodes import LeavingReplica
from splitter.core.labels_annotations import HELD_FOR_RELIEF
from splitter.core.model import Note, Observation, seconds_between
from splitter.core.plan import Plan, PlanInput
from splitter.core.reasons import VerdictCause
from splitter.core.relief.model import HINT, SKEW_S
from splitter.core.relief.thresholds import thresholds_of
from splitter.core.replica import Pool, Replica
from splitter.core.split_status import ReliefMove
from splitter.core.twins.relief_status import created_since

# The scheduler takes milliseconds; without the hint the move goes on as ever.
_BOUND_WITHIN_S = 10.0
# Longer than a new replica takes to be bound. Each placeholder that is left goes then, whatever goes on.
_HOLDS_S = 60.0
# And where splitter does not come back, kubelet ends it.
_ENDS_ITSELF_S = 120
# Whoever may create pods may have any number of them look like ours: the rest comes in the next reconcile.
_AT_ONCE = 16
_HOSTNAME: Final = "kubernetes.io/hostname"


def hints_of(observed: Observation) -> list[Replica]:
    """Return the placeholders of relief, whether they are of use or not."""
    return [pod for pod in observed.placeholders if pod.held_for.startswith(HELD_FOR_RELIEF)]


def asked(this: PlanInput, pool: Pool, leaving: LeavingReplica) -> tuple[CreatePlaceholder, ...]:
    """Return the placeholders to create before a twin is raised; none where there is no way to make one."""
    rules, rendered = this.rules.reservations, this.rendered
    if rules is None or isinstance(rendered, Note):
        return ()
    there = {pod.held_for.removeprefix(HELD_FOR_RELIEF) for pod in hints_of(this.observed)}
    template = mapping_at(mapping_at(json.loads(rendered[pool].manifest_json), "spec"), "template")
    spec = mapping_at(template, "spec")
    return tuple(
        CreatePlaceholder(
            pool,
            f"{HELD_FOR_RELIEF}{node}",
            json.dumps(_manifest(rules, this.source.key.name, pool, spec, node)),
            node,
        )
        for node in leaving.keep_off
        if node not in there
    )


def _manifest(
    rules: ReservationRules, source: str, pool: Pool, twin_spec: Manifest, node: str
) -> dict[str, object]:
    """Return the spec of a pod that stands on this node only, and would rather be without the twin's pods."""
    amounts = {"cpu": f"{HINT.cpu:.0f}m", "memory": f"{HINT.memory:.0f}"}
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    apart = {"labelSelector": {"matchLabels": pod_labels(source, pool)}, "topologyKey": _HOSTNAME}
    spec: dict[str, object] = {
        **idle_pod(rules, [{"resources": {"requests": amounts, "limits": amounts}}]),
        "activeDeadlineSeconds": _ENDS_ITSELF_S,
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}},
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": apart}]
            },
        },
    }
    if "tolerations" in twin_spec:  # it stands where the twin's pods may
        spec["tolerations"] = twin_spec["tolerations"]
    return spec


def are_waited_for(observed: Observation) -> bool:
    """Whether a placeholder that was created a moment ago has no node yet: till then it tells nothing."""
    return any(
        pod.counts and pod.node is None and _is_younger(pod, observed, _BOUND_WITHIN_S)
        for pod in hints_of(observed)
    )


def _is_younger(pod: Replica, observed: Observation, than_s: float) -> bool:
    made = pod.created
    if made is None or seconds_between(made, observed.now) < -SKEW_S:
        return False
    return not observed.waits.past(made, than_s)


def with_those_let_go(this: PlanInput, planned: Plan) -> Plan:
    """Return the plan with the deletion of placeholders that are of no use: the new replica has a node.

    Or no move goes on any more, whatever has ended it: a loss, the end of the wish. After a restart nobody
    knows for a while which nodes are hot; till then the young ones stay, for the move they were made for.
    """
    observed, hot = this.observed, this.observed.hot_nodes
    move = observed.reported.relief.current
    asks = hot is not None and not hot.paused and thresholds_of(this.policy.relief) is not None
    begins = asks and hot is not None and not hot.known and move is None
    goes_on = planned.verdict.cause is VerdictCause.RELIEF and not (move and _is_bound(observed, move))
    spent = tuple(
        DeletePlaceholder(pod.name, pod.uid)
        for pod in hints_of(observed)
        if not pod.terminating
        and not ((begins or goes_on) and pod.counts and _is_younger(pod, observed, _HOLDS_S))
    )
    return replace(planned, let_go=spent[:_AT_ONCE]) if spent else planned


def _is_bound(observed: Observation, move: ReliefMove) -> bool:
    """Whether the new replica has a node, wherever."""
    pods = [pod for twin in observed.twins if twin.pool.value == move.pool for pod in twin.pods]
    return any(pod.node is not None for pod in created_since(move, pods))
