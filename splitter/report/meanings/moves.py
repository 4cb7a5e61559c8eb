"""What the reasons for moving replicas mean: hand-overs, and rebalancing between the pools."""

from typing import Final

from splitter.core.reasons import Reason
from splitter.report.meanings.meaning import Meaning

HAND_OVERS: Final = {
    Reason.TAKEN_OVER: Meaning("Normal", "The workload is marked as split; its handover begins."),
    Reason.PAUSED: Meaning(
        "Normal",
        "The source was paused, so that its controller leaves its ReplicaSets to splitter.",
        "Do not resume it.",
    ),
    Reason.PARKED: Meaning("Normal", "A ReplicaSet was released from the source; its pods keep serving."),
    Reason.TWIN_CREATED: Meaning("Normal", "A twin was missing and was created at 0 replicas."),
    Reason.HANDING_OVER: Meaning(
        "Normal", "The source's running pods become the twins' pods; none of them is restarted."
    ),
    Reason.HANDED_OVER: Meaning(
        "Normal", "All pods belong to the twins. Those in the wrong pool move next, make before break."
    ),
    Reason.GIVING_BACK: Meaning(
        "Normal", "The twins' running pods become the source's pods; none of them is restarted."
    ),
    Reason.GIVEN_BACK: Meaning(
        "Normal", "The source runs its own pods again; nothing of splitter is left on it."
    ),
    Reason.WAITING_FOR_TURN: Meaning(
        "Normal",
        "`max_concurrent_moves` other workloads are being taken over or moved by choice now.",
        "Wait, or raise the setting.",
    ),
    Reason.WAITING_FOR_CONTROLLER: Meaning(
        "Normal",
        "The Deployment controller has not seen the last write yet.",
        "If it stays: is kube-controller-manager healthy?",
    ),
    Reason.WAITING_FOR_CALM: Meaning(
        "Normal",
        "A node under the workload is about to go or is gone. Running pods change their owner later.",
        "If it stays: look at the node that the message names.",
    ),
    Reason.WAITING_FOR_REPLICAS: Meaning(
        "Normal",
        "splitter removes nothing before new replicas are available.",
        "If it stays: look at the pods that do not become ready.",
    ),
    Reason.FOREIGN_UNPAUSE: Meaning(
        "Warning",
        "Somebody unpaused the source; it was paused again.",
        (
            "Stop whoever does it: `kubectl rollout resume`, a manifest. Remove the label to have the "
            "workload back."
        ),
    ),
    Reason.REPLICAS_SAVED: Meaning(
        "Normal",
        ("A StatefulSet's replica count was written into `splitter.io/replicas`, before it is scaled to 0."),
    ),
    Reason.REPLICAS_CHANGED: Meaning(
        "Normal",
        (
            "Somebody scaled the StatefulSet, or its `Split`: that is the new count. The source "
            "has 0 replicas again."
        ),
    ),
    Reason.FOREIGN_SCALE: Meaning(
        "Warning",
        (
            "Somebody set a StatefulSet's `spec.replicas` back to the count that splitter has saved "
            "already; it was set to 0 again. The sentence names who, as `managedFields` do."
        ),
        (
            "Take `spec.replicas` out of that tool's manifests; scale the `Split`. Remove the label "
            "to have the workload back."
        ),
    ),
    Reason.IDENTITIES_CHANGE: Meaning(
        "Normal",
        "The pods of a StatefulSet that is split get other names.",
        "Change lists of peers by name: [how](../how-to/split-a-statefulset.md).",
    ),
    Reason.INTRUDER_PARKED: Meaning(
        "Warning",
        "A ReplicaSet that appeared when the source was unpaused was parked, and is drained to 0.",
        "As above.",
    ),
    Reason.CONFLICT: Meaning(
        "Warning",
        (
            "The source was unpaused three times within 10 minutes, or a StatefulSet's "
            "`spec.replicas` set back by one and the same writer. The workload is given back and left "
            "alone."
        ),
        (
            "Find who does it (for a StatefulSet the sentence names it), then remove the label and "
            "set it again."
        ),
    ),
}

REBALANCING: Final = {
    Reason.BALANCED: Meaning("Normal", "Both twins have what the policy wants."),
    Reason.SCALED: Meaning("Normal", "The twins follow a new replica count of the source."),
    Reason.SPOT_INTERRUPTED: Meaning(
        "Warning",
        "Spot nodes under replicas are about to go: on-demand was raised at once.",
        "Nothing; this is what splitter is for.",
    ),
    Reason.SPOT_LOST: Meaning(
        "Warning", "Spot nodes under replicas are gone: on-demand was raised at once.", "Nothing."
    ),
    Reason.SPOT_SHORT: Meaning(
        "Warning",
        (
            "Replicas found no spot node for longer than the grace, because there are too few or they "
            "are full: on-demand covers them."
        ),
        "Is there spot capacity, and an autoscaler that may buy it?",
    ),
    Reason.SPOT_BLOCKED: Meaning(
        "Normal",
        (
            "The autoscaler says that there is no spot capacity now, or a node hints that it may go: "
            "on-demand covers at once, and returns wait."
        ),
        "More instance types or zones make this rarer.",
    ),
    Reason.SPOT_UNPROFITABLE: Meaning(
        "Normal",
        (
            "Spot was lost many times in a row before on-demand could be lowered, so it only added to the "
            "cost: on-demand serves alone, and spot is tried again with one replica at the time that is said."
        ),
        "Other instance types or zones for spot; a shorter `splitter.io/soak` where brief gaps do no harm.",
    ),
    Reason.SOAKING: Meaning(
        "Normal",
        ("Spot replicas are ready. On-demand replicas stay until these have been ready for the soak."),
        "Shorten `splitter.io/soak` if it takes too long.",
    ),
    Reason.RETURNING: Meaning("Normal", "Spot has proven itself: replicas move back to it, in steps."),
    Reason.COVERED: Meaning(
        "Normal", "Replacements are available on on-demand, so doomed or lost spot replicas are removed."
    ),
    Reason.PROBING: Meaning(
        "Normal",
        "A few spot replicas stay Pending as capacity probes, to find out when spot is available again.",
        "Nothing: these Pending pods of the spot twin are intended.",
    ),
    Reason.ON_DEMAND_DOOMED: Meaning(
        "Warning", "On-demand nodes under replicas are about to go: these replicas are replaced on on-demand."
    ),
    Reason.ON_DEMAND_SHORT: Meaning(
        "Warning",
        "On-demand replicas found no node for the whole grace. Twins ask spot for its own share only;"
        " in placement mode they may start on spot.",
        "Is there on-demand capacity, and an autoscaler that may buy it?",
    ),
    Reason.ON_DEMAND_CAPPED: Meaning(
        "Warning",
        "`splitter.io/on-demand-max` keeps on-demand from replacing all missing spot replicas.",
        "Raise it, if the service needs all its replicas.",
    ),
    Reason.NOTICE_TOO_SHORT: Meaning(
        "Normal",
        (
            "Its pods take longer to start than the notice of spot nodes lasts: when all of spot goes at "
            "once, so many replicas are missing for so long."
        ),
        "A larger `splitter.io/on-demand-base`, or pods that start faster; nothing where it is harmless.",
    ),
    Reason.CONTROL_PLANE_VIEW: Meaning(
        "Warning",
        (
            "More than half of the on-demand nodes look unready too, or what the workload needs cannot "
            "be listed: our view is broken rather than spot. Everything but cover is held."
        ),
        "Look at the control plane and the network, and at splitter's rights in the namespace.",
    ),
    Reason.QUORUM_HELD: Meaning(
        "Normal",
        (
            "Placement: without this pod not more than half of the members would be ready, so it is "
            "not moved. A Warning where a node is about to go."
        ),
        (
            "With one or two members: scale to 3 or more, split it into twins, or delete the pod "
            "yourself when that suits. Else: look at the members that are not ready."
        ),
    ),
    Reason.WAITING_FOR_ROOM: Meaning(
        "Normal",
        "Placement: a pod moves only when a placeholder pod has reserved room in the other pool.",
        "If it stays: is there capacity, and an autoscaler that may buy it?",
    ),
    Reason.EVICTION_REFUSED: Meaning(
        "Warning",
        "Placement: a PodDisruptionBudget refuses the eviction; it is asked again every 10 s.",
        "Check whether all members are ready. A budget that allows no disruption stops all moves.",
    ),
    Reason.UNGUARDED: Meaning(
        "Warning",
        "splitter's PodDisruptionBudget cannot be written, so evictions may not wait for replacements.",
        "The message has the API server's answer. Grant the right (`manifests/rbac.yaml`) or the quota, or "
        "annotate `splitter.io/evictions: unguarded`.",
    ),
    Reason.MOVE_UNDONE: Meaning(
        "Warning",
        (
            "Placement: a pod that was moved started in the pool that it came from, or found no node. "
            "Each time in a row doubles the time to the next try."
        ),
        (
            "Does something else than splitter pull it there: a spread constraint, a PreferNoSchedule "
            "taint on spot nodes? Has it the label `splitter.io/pool`? Without, the policy "
            "`splitter-placement` does not act."
        ),
    ),
    Reason.RESTART_LIMIT: Meaning(
        "Warning",
        (
            "Placement: splitter has ended this member as often as it may within an hour "
            "(`member_restarts_per_hour`; half of it for planned moves)."
        ),
        "Look at its Events to see why it does not stay in the right pool.",
    ),
    Reason.RELIEVING: Meaning(
        "Normal",
        "A replica stands in the other pool. Or, by `splitter.io/relief`: it leaves a hot node, prefers spot"
        " and comes from on-demand, or is spread as its constraints ask. One more is started first; in"
        " placement mode a member is restarted.",
    ),
    Reason.RELIEVED: Meaning(
        "Normal", "The new replica is ready on another node, and the one that was to leave is gone."
    ),
    Reason.RELIEF_UNDONE: Meaning(
        "Warning",
        "A replica was to leave its node and stays: the new one came to a hot node too (or to on-demand"
        " where it was to come to spot, or where it is spread no better) or was not ready in time, or"
        " something more important happened. The workload rests for half an hour.",
        "If it recurs: does the Split say why the scheduler gets no hint? Mend that. Do the hot nodes request"
        " less than others? Raise the requests of what uses so much there.",
    ),
    Reason.RELIEF_PAUSED: Meaning(
        "Warning",
        "`splitter.io/relief` is set, and nothing is relieved. The message says what is missing.",
        "Install metrics-server or name a Prometheus, apply `manifests/relief.yaml`, or remove the"
        " annotation.",
    ),
    Reason.NODES_HOT: Meaning("Normal", "Replicas stand on hot nodes. The message says why none leaves now."),
    Reason.NODES_COOL: Meaning(
        "Normal",
        "No replica stands on a hot node. The message says how many prefer spot and stand on on-demand, or"
        " crowd a node or zone.",
    ),
    Reason.PODS_IN_OTHER_POOL: Meaning(
        "Normal",
        "Pods of a twin stand on nodes of the other pool, as out of a backup, and stay for now. The message"
        " says which, and why.",
        "Who waits for room, its turn or the next try is replaced by itself. Else change what the message"
        " names (`maxSurge`, `splitter.io/on-demand-max`, a pod-deletion-cost), or delete the pods when it"
        " suits you.",
    ),
    Reason.FROZEN: Meaning(
        "Normal",
        "`splitter.io/freeze` holds all counts, in an outage too.",
        "Remove the annotation to let them move.",
    ),
    Reason.DRY_RUN: Meaning(
        "Normal",
        "`splitter.io/dry-run` is set: splitter would have done this.",
        "Remove the annotation to let it happen.",
    ),
}
