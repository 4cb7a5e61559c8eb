"""What the sandbox reads of raw pods and nodes: as Kubernetes shows them, with much left out."""

from typing import Any

import pytest

from lab.sandbox.commands import KUBELET_LABEL, KUBELET_STOPPED
from lab.sandbox.recording import NodeSeen, PodSeen, read_node, read_pod

POD: dict[str, Any] = {"metadata": {"namespace": "shop", "name": "web-1", "uid": "u"}}
NODE: dict[str, Any] = {"metadata": {"name": "node-1", "uid": "u"}}


def ready(status: str) -> dict[str, Any]:
    """Return a status with other conditions before the one about readiness."""
    return {"conditions": [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": status}]}


def test_a_pod_of_this_moment() -> None:
    """It has no node, no status and no labels yet."""
    assert read_pod(POD) == PodSeen("shop", "web-1", "u")
    assert read_pod({**POD, "status": {"conditions": None}}) == PodSeen("shop", "web-1", "u")


def test_a_pod_that_runs() -> None:
    """And one that is told to end serves until it has."""
    metadata = {**POD["metadata"], "labels": {"app": "web"}, "creationTimestamp": "2026-01-05T10:00:00Z"}
    raw = {
        "metadata": metadata,
        "spec": {"nodeName": "node-1"},
        "status": {**ready("True"), "phase": "Running"},
    }
    seen = read_pod(raw)
    assert (seen.node, seen.ready, seen.phase, seen.terminating) == ("node-1", True, "Running", False)
    assert (seen.labels, seen.created) == ({"app": "web"}, "2026-01-05T10:00:00Z")
    ending = read_pod({**raw, "metadata": {**metadata, "deletionTimestamp": "2026-01-05T10:00:00Z"}})
    assert (ending.ready, ending.terminating) == (True, True)


@pytest.mark.parametrize(("status", "is_ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_node_is_ready_where_it_says_so(status: str, *, is_ready: bool) -> None:
    """One that has fallen silent is of unknown readiness."""
    assert read_node({**NODE, "status": ready(status)}).ready is is_ready


def test_a_node_without_anything_said() -> None:
    """It has just been made."""
    assert read_node(NODE) == NodeSeen("node-1", "u", ready=False)


def test_a_node_on_its_way_out() -> None:
    """Its machine, its cordon and its taints are seen."""
    metadata = {**NODE["metadata"], "labels": {KUBELET_LABEL: KUBELET_STOPPED}, "deletionTimestamp": "now"}
    taints = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule", "value": "x"}]
    seen = read_node({"metadata": metadata, "spec": {"unschedulable": True, "taints": taints}})
    assert (seen.running, seen.unschedulable, seen.terminating) == (False, True, True)
    assert seen.taints == ("karpenter.sh/disrupted:NoSchedule",)
