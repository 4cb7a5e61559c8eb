"""What the reasons mean why replicas do not run, and those about templates and rollouts."""

from typing import Final

from splitter.core.reasons import Reason
from splitter.report.meanings.meaning import Meaning

TROUBLES: Final = {
    Reason.IMAGE_PULL_FAILED: Meaning(
        "Warning",
        "A container's image cannot be pulled.",
        "Correct the image, or the pull secret.",
        moves="no",
    ),
    Reason.CRASH_LOOPING: Meaning(
        "Warning", "A container ends with an error again and again.", "`kubectl logs --previous`", moves="no"
    ),
    Reason.CONTAINER_CONFIG_INVALID: Meaning(
        "Warning",
        "A container cannot be created: a ConfigMap, Secret or command is wrong.",
        "Correct what the sentence names.",
        moves="no",
    ),
    Reason.NOT_READY: Meaning(
        "Warning",
        (
            "Replicas have a healthy node and have not been ready for longer than the grace. While "
            "spot is covered, they hold its return."
        ),
        "Look at the pod's Events, the readiness probe and the logs.",
        moves="no",
    ),
    Reason.QUOTA_EXCEEDED: Meaning(
        "Warning",
        (
            "A ResourceQuota refuses pods. Nothing is removed to make room, and a shortage like this "
            "is not covered on on-demand, whose pods would be refused as well."
        ),
        (
            "Raise the quota: N + maxSurge pods, N + 1 with maxSurge 0. splitter has the ReplicaSet try "
            "again after seconds at first, and every two minutes at last."
        ),
        moves="no",
    ),
    Reason.PODS_REFUSED: Meaning(
        "Warning",
        "The API server refuses pods for another reason: PodSecurity, a LimitRange, a webhook.",
        "Change the pod template or the policy; the sentence has its words.",
        moves="no",
    ),
    Reason.VOLUME_UNAVAILABLE: Meaning(
        "Warning",
        "A PersistentVolumeClaim is missing or not bound: no node would help.",
        "Create the claim, or what provides it.",
        moves="no",
    ),
    Reason.SCHEDULING_GATED: Meaning(
        "Warning", "A scheduling gate holds pods back.", "Whoever set the gate has to remove it.", moves="no"
    ),
    Reason.TAINT_NOT_TOLERATED: Meaning(
        "Warning",
        "Every healthy node of the pool that matches has a taint that the pods do not tolerate.",
        "Add the toleration, or bring nodes without the taint.",
        moves="after the grace",
    ),
    Reason.AFFINITY_UNMATCHED: Meaning(
        "Warning",
        "No healthy node of the pool matches the pods' own node selector or affinity.",
        "Change it, or bring nodes that match.",
        moves="after the grace",
    ),
    Reason.VOLUME_ZONE_CONFLICT: Meaning(
        "Warning",
        "The nodes that are left cannot reach the pods' volume.",
        "Bring nodes where the volume is.",
        moves="after the grace",
    ),
}

ROLLOUTS: Final = {
    Reason.ROLLING: Meaning("Normal", "A twin gets the source's new template, one twin at a time."),
    Reason.ROLLOUT_HELD: Meaning(
        "Normal",
        (
            "A roll waits, because another twin is unfinished, replicas are missing or there is no "
            "room to surge."
        ),
        "If it stays: look at the pods of the twin it names.",
    ),
    Reason.DRIFT: Meaning(
        "Warning",
        (
            "Somebody has written another value over one of a twin's pod template, or removed one; it "
            "is put back by a roll. What was only added to it stays."
        ),
        "Change the source instead: both twins follow.",
    ),
    Reason.ROLLOUT_STALLED: Meaning(
        "Warning",
        ("A twin made no progress for `progressDeadlineSeconds`; the other keeps the last template."),
        "Correct the pod template; the fixed one replaces the unfinished one.",
    ),
    Reason.TEMPLATE_SET_CHANGED: Meaning(
        "Normal",
        "Only the template set has changed. Running pods keep the old template.",
        "The change is applied with the next rollout. To apply it now: `splitter rollout deploy/NAME`.",
    ),
    Reason.TEMPLATE_INVALID: Meaning(
        "Warning",
        (
            "A template set is not there, does not render, takes more CPU, memory or time than it may "
            "([limits](../limits.md#rendering)), or renders something that is not a twin or that the API "
            "server refuses."
        ),
        (
            "The sentence names file and line, or the field. The twins stay as they are until it is "
            "mended ([write a template set](../how-to/write-a-template-set.md))."
        ),
    ),
    Reason.TEMPLATE_SET_NOT_ALLOWED: Meaning(
        "Warning",
        "The template set is there, but does not name this namespace among those that may use it.",
        (
            "Add the namespace to the set's annotation `splitter.io/namespaces`, or use another set. "
            "The twins stay as they are."
        ),
    ),
}
