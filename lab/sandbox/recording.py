"""What a recorder saw: every change of every pod and node, in the order it was seen.

`recorder` makes it, `timeline` analyses it; tests of the analysis make it by hand. Pure, and the only place
that reads raw pods and nodes for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.sandbox.commands import KUBELET_LABEL, KUBELET_STOPPED
from lab.sandbox.instants import Instant

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod as it was at one moment; `created` as Kubernetes wrote it, `node` empty until it is bound."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    ready: bool = False
    phase: str = "Pending"
    terminating: bool = False
    created: str = ""


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node as it was at one moment; `running` is False once its machine has fallen silent (Fleet.lose)."""

    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    running: bool = True
    unschedulable: bool = False
    taints: tuple[str, ...] = ()
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class PodChange:
    """A pod appeared, changed, or (`deleted`) is no more."""

    at: Instant
    pod: PodSeen
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node appeared, changed, or (`deleted`) is no more."""

    at: Instant
    node: NodeSeen
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Recording:
    """All changes seen between two moments, oldest first."""

    began: Instant
    ended: Instant
    changes: tuple[PodChange | NodeChange, ...]


def read_pod(raw: JsonObject) -> PodSeen:
    """Return what the sandbox wants to know of a raw pod."""
    metadata, status = raw["metadata"], raw.get("status", {})
    return PodSeen(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        labels=metadata.get("labels", {}),
        node=raw.get("spec", {}).get("nodeName", ""),
        ready=_is_ready(status),
        phase=status.get("phase", "Pending"),
        terminating="deletionTimestamp" in metadata,
        created=metadata.get("creationTimestamp", ""),
    )


def read_node(raw: JsonObject) -> NodeSeen:
    """Return what the sandbox wants to know of a raw node."""
    metadata, spec = raw["metadata"], raw.get("spec", {})
    labels = metadata.get("labels", {})
    return NodeSeen(
        name=metadata["name"],
        uid=metadata["uid"],
        labels=labels,
        ready=_is_ready(raw.get("status", {})),
        running=labels.get(KUBELET_LABEL) != KUBELET_STOPPED,
        unschedulable=bool(spec.get("unschedulable")),
        taints=tuple(f"{taint['key']}:{taint['effect']}" for taint in spec.get("taints", [])),
        terminating="deletionTimestamp" in metadata,
    )


def _is_ready(status: JsonObject) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in status.get("conditions") or []
    )
