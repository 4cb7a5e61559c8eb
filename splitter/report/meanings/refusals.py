"""What the reasons mean for which a workload, or what is written on it, is refused."""

from typing import Final

from splitter.core.reasons import Reason
from splitter.report.meanings.meaning import Meaning

REFUSALS: Final = {
    Reason.INVALID_LABEL: Meaning(
        "Warning",
        "`splitter.io/split` has a value other than `enabled`.",
        "Write `enabled`, or remove the label.",
    ),
    Reason.INVALID_ANNOTATION: Meaning(
        "Warning",
        "An annotation cannot be read, or is not one that splitter knows.",
        "The sentence says what to write.",
    ),
    Reason.INVALID_POLICY: Meaning(
        "Warning",
        ("Annotations contradict each other: `on-demand-max` and `spot-max` leave some replicas no place."),
        "Raise one of them.",
    ),
    Reason.ALREADY_PAUSED: Meaning(
        "Warning",
        "The Deployment was paused by somebody else.",
        "Run `kubectl rollout resume`. It is split when the rollout has finished.",
    ),
    Reason.UNPAUSED_BY_MANIFEST: Meaning(
        "Warning",
        "A manifest says `paused: false`; each apply would unpause it.",
        "Remove that line and apply again.",
    ),
    Reason.ROLLOUT_IN_PROGRESS: Meaning(
        "Normal",
        "A rollout is in progress. The workload is split when it has finished.",
        "Wait. If the rollout is stuck, correct it.",
    ),
    Reason.STRATEGY_RECREATE: Meaning(
        "Warning",
        "A handover runs pods of two generations at a time, which strategy `Recreate` does not allow.",
        "Set `RollingUpdate`.",
    ),
    Reason.SELECTOR_NOT_RELEASABLE: Meaning(
        "Warning",
        ("The selector has only `NotIn` and `DoesNotExist` terms: no ReplicaSet can be released from it."),
        "Create the Deployment again with a `matchLabels` entry.",
    ),
    Reason.TWIN_NAME_TAKEN: Meaning(
        "Warning", "An object that is not splitter's has a twin's name.", "Rename or delete it."
    ),
    Reason.CLAIM_NAME_TAKEN: Meaning(
        "Warning",
        "A volume claim that is not splitter's has the name of a twin's: the twin would mount it, and delete "
        "it when it is scaled down.",
        "Move what is on it elsewhere and delete the claim, or give the claim template another name.",
    ),
    Reason.IS_TWIN: Meaning(
        "Warning", "The object is a twin, or carries a twin's labels.", "Remove the copied labels."
    ),
    Reason.NAME_TOO_LONG: Meaning(
        "Warning", "A twin's name would be longer than Kubernetes allows.", "Choose a shorter name."
    ),
    Reason.NAMESPACE_EXCLUDED: Meaning(
        "Warning", "The settings exclude this namespace.", "Change its settings."
    ),
    Reason.TOO_LARGE: Meaning(
        "Warning",
        "The workload is over a limit: manifest, members, volume claims or ReplicaSets.",
        "The message has size and limit. Make it smaller, or do not split it. A split workload stays split.",
    ),
    Reason.OWNED_BY_CONTROLLER: Meaning(
        "Warning",
        "Another controller owns the workload and would undo the pause.",
        "Split the object that this controller creates it from, if that is possible.",
    ),
    Reason.AUTOSCALER_ON_TWIN: Meaning(
        "Warning", "An autoscaler is aimed at a twin's name.", "Aim it at the source, or delete it."
    ),
    Reason.AUTOSCALER_ON_SOURCE: Meaning(
        "Warning",
        (
            "An autoscaler is aimed at a StatefulSet, which has 0 replicas while it is split: it would "
            "stop, or act on no pod."
        ),
        (
            "Aim an HPA or a ScaledObject at the `Split` (`<name>-sts`); set a "
            "VerticalPodAutoscaler's `updateMode` to `Off`."
        ),
    ),
    Reason.REPLICAS_IN_GIT: Meaning(
        "Warning",
        (
            "A GitOps manager (Argo CD, Flux, Fleet, ...) applies `spec.replicas` of a StatefulSet "
            "again and again."
        ),
        "Take `spec.replicas` out of the manifest, and scale the `Split`.",
    ),
    Reason.VOLUMES_NOT_SHARED: Meaning(
        "Warning",
        (
            "A StatefulSet has `volumeClaimTemplates`: the pods of its twins have other names, and "
            "would begin with empty volumes."
        ),
        "Where they can be lost, annotate `splitter.io/volumes: disposable`.",
    ),
    Reason.VOLUMES_DELETED_WHEN_SCALED: Meaning(
        "Warning",
        (
            "`persistentVolumeClaimRetentionPolicy.whenScaled` is `Delete`: scaling it to 0 would "
            "delete all its volumes."
        ),
        "Set it to `Retain`.",
    ),
    Reason.STRATEGY_ON_DELETE: Meaning(
        "Warning",
        (
            "`updateStrategy: OnDelete` leaves it to a person when a pod gets a new template; twins "
            "are rolled."
        ),
        "Set it to `RollingUpdate`.",
    ),
    Reason.PLACEMENT_UNSUPPORTED: Meaning(
        "Warning",
        "A StatefulSet is split by placement unless it says otherwise, and the API server does not place"
        " pods: the policy is not there, or Kubernetes is older than 1.36. Also said of one whose policy"
        " went, or that changed its mode, while it is split.",
        "Apply `manifests/admission/placement.yaml`; or annotate `splitter.io/mode: twins`, if its pods may"
        " get other names.",
    ),
    Reason.SPLIT_NAME_TAKEN: Meaning(
        "Warning",
        "A Deployment `db-sts` and a StatefulSet `db` would have a `Split` of the same name.",
        "Split one of them only, or rename one.",
    ),
    Reason.NEWER_STATE: Meaning(
        "Warning",
        (
            "A newer splitter has split the workload, and this one cannot read what that wrote down. Nothing"
            " is touched, not even the status. Where the API server keeps Splits in another version, splitter"
            " does not start."
        ),
        "Run the newer version again; to stay with this one, have that one give back first"
        " ([how](../upgrade.md#back)).",
    ),
    Reason.VOLUME_READ_WRITE_ONCE: Meaning(
        "Warning",
        (
            "All replicas mount one claim that only one node may mount at a time; twins stand on "
            "different nodes."
        ),
        "A `ReadWriteMany` claim, or leave it unsplit.",
    ),
    Reason.SURGE_MAY_PEND: Meaning(
        "Normal",
        (
            "At take-over: `hostPort` or a required anti-affinity lets one pod stand on a node, so "
            "surge replicas may stay Pending where nodes are few."
        ),
        "Nothing, or more nodes.",
    ),
    Reason.AUTOSCALER_WITHOUT_TOLERANCE: Meaning(
        "Normal",
        (
            "At take-over: an HPA on the average of an External or Object metric loses its 10 % "
            "tolerance while the source's status shows 0 replicas."
        ),
        "`behavior.scaleUp.stabilizationWindowSeconds`.",
    ),
    Reason.WRITE_DENIED: Meaning(
        "Warning",
        (
            "The API server refused a write, already in the dry run before the first one: a policy, "
            "a webhook, a missing right."
        ),
        "The message has the answer of the API server.",
    ),
    Reason.INVALID_SETTINGS: Meaning(
        "",
        "A setting in the file or the environment cannot be used; splitter does not start.",
        "Write it as the message says.",
    ),
    Reason.FORBIDDEN: Meaning(
        "Warning",
        "splitter lacks a right. At start it exits with this reason.",
        "Apply `manifests/rbac.yaml`.",
    ),
    Reason.ANOTHER_LEADS: Meaning(
        "",
        "An elected leader works on this cluster, and this process takes part in no election, so it exits.",
        "Stop the other one first, or set `leader_election: on`.",
    ),
    Reason.API_UNREACHABLE: Meaning(
        "Warning",
        "The API server cannot be reached. At start splitter exits with this reason.",
        "Check the address, the credentials, the network.",
    ),
}
