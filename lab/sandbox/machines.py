"""The manifests of the fleet's machines and of what a cloud writes on them before it takes them away.

Pure: `fleet` sends what is made here. Nodes look like Karpenter's, because its labels and taints are the
ones most clusters with spot capacity have.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from lab.sandbox.commands import KUBELET_LABEL, KUBELET_RUNNING
from lab.sandbox.instants import Instant
from lab.sandbox.versions import kubernetes_version

JsonObject = dict[str, Any]
Pool = Literal["spot", "on-demand"]

CAPACITY_LABEL = "karpenter.sh/capacity-type"
DISRUPTED_TAINT = "karpenter.sh/disrupted"
FINALIZER = "sandbox.splitter.io/machine"
CONDITION = "PreemptionScheduled"

# As every kubelet registers. From a Node without any Ready condition Kubernetes takes the not-ready taint
# away, and pods are bound before the machine is up.
_NOT_READY_YET: JsonObject = {
    "type": "Ready",
    "status": "False",
    "reason": "KubeletNotReady",
    "message": "the kubelet has just registered",
}


class Notice(StrEnum):
    """How the cloud says that it will take a machine away.

    TAINT: `karpenter.sh/disrupted:NoSchedule`, as Karpenter does. CONDITION: `PreemptionScheduled=True`
    with the deadline in its message, as AKS does. CORDON: `spec.unschedulable`, all that AWS's termination
    handler leaves. DELETION: a deletionTimestamp on the Node, held by a finalizer.
    """

    TAINT = "taint"
    CONDITION = "condition"
    CORDON = "cordon"
    DELETION = "deletion"


def node(
    name: str,
    pool: Pool,
    *,
    address: str,
    cpu: str,
    memory: str,
    pods: int,
    zone: str,
    labels: Mapping[str, str],
    taints: Sequence[JsonObject],
) -> JsonObject:
    """Return the manifest of a Node as a kubelet would register it."""
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/region": "sandbox",
                "topology.kubernetes.io/zone": zone,
                CAPACITY_LABEL: pool,
                KUBELET_LABEL: KUBELET_RUNNING,
                **labels,
            },
        },
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [_NOT_READY_YET],
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "kwok://sandbox",
                "kernelVersion": "sandbox",
                "kubeProxyVersion": "",
                "kubeletVersion": f"v{kubernetes_version()}",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "sandbox",
                "systemUUID": "",
            },
        },
    }


def preemption_condition(now: Instant, deadline_s: float) -> JsonObject:
    """Return the condition that announces the machine's end `deadline_s` seconds from now."""
    moment = datetime.fromtimestamp(now.wall_s, UTC)
    deadline = moment + timedelta(seconds=deadline_s)
    return {
        "type": CONDITION,
        "status": "True",
        "reason": "PreemptScheduled",
        # The form of AKS's node-problem-detector: the event's name, then the time after "NotBefore:".
        "message": f"Preempt Scheduled: NotBefore: {rfc3339(deadline)}",
        "lastTransitionTime": rfc3339(moment),
        "lastHeartbeatTime": rfc3339(moment),
    }


def unknown_conditions(now: Instant) -> list[JsonObject]:
    """Return what the node controller writes on a Node whose kubelet it has not heard from for too long."""
    moment = rfc3339(datetime.fromtimestamp(now.wall_s, UTC))
    return [
        {
            "type": kind,
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": moment,
        }
        for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    ]


def readiness_condition(now: Instant, *, ready: bool) -> JsonObject:
    """Return what the node controller writes on the pods of a lost Node, or its kubelet once it is back."""
    moment = rfc3339(datetime.fromtimestamp(now.wall_s, UTC))
    return {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": moment}


def rfc3339(moment: datetime) -> str:
    """Return a moment in the form Kubernetes uses, in whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
