"""What clouds and autoscalers say: Events about nodes, cluster-autoscaler's ConfigMap."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from lab.fixtures.shop import manifest
from lab.sandbox import Sandbox

REPLICAS, SURGE = 4, 2

EVENTS = "/api/v1/namespaces/default/events"
STATUS = "/api/v1/namespaces/kube-system/configmaps"
STATUS_NAME = "cluster-autoscaler-status"


class Say:
    """Writes Events about nodes, as Karpenter and AWS's termination handler do."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._api = sandbox.api
        self._said: list[str] = []

    def about(self, node: str, reason: str, *, age_s: float = 0, uid: str | None = None) -> None:
        """Write an Event about a node."""
        if uid is None:
            uid = self._api.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]
        self._write("Node", node, uid, (reason, "Spot interruption warning was triggered"), age_s)

    def refused(self, claim: str, uid: str) -> None:
        """Write an Event that says that Karpenter got no machine for a NodeClaim."""
        message = "There is no Spot capacity available that matches your request"
        self._write("NodeClaim", claim, uid, ("InsufficientCapacityError", message))

    def _write(self, kind: str, name: str, uid: str, words: tuple[str, str], age_s: float = 0) -> None:
        reason, message = words
        at = (datetime.now(UTC) - timedelta(seconds=age_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
        made = self._api.create(
            EVENTS,
            {
                "metadata": {"generateName": f"{name}.", "namespace": "default"},
                "involvedObject": {"kind": kind, "name": name, "uid": uid},
                "reason": reason,
                "message": message,
                "source": {"component": "karpenter"},
                "firstTimestamp": at,
                "lastTimestamp": at,
                "type": "Warning",
            },
        )
        self._said.append(made["metadata"]["name"])

    def take_back(self) -> None:
        """Delete what was said."""
        while self._said:
            self._api.delete(f"{EVENTS}/{self._said.pop()}", missing_ok=True)


class Status:
    """The ConfigMap in which cluster-autoscaler says how its groups do."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._api = sandbox.api

    def write(self, groups: Mapping[str, str]) -> None:
        """Write the status: the scale-up of each group."""
        self.remove()
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC")
        lines = [f"time: {now}", "autoscalerStatus: Running", "nodeGroups:"]
        for name, scale_up in groups.items():
            lines += [f"- name: {name}", "  scaleUp:", f"    status: {scale_up}"]
        values = {"metadata": {"name": STATUS_NAME}, "data": {"status": "\n".join(lines)}}
        self._api.create(STATUS, values)

    def remove(self) -> None:
        """Delete the ConfigMap."""
        self._api.delete(f"{STATUS}/{STATUS_NAME}", missing_ok=True)


def one_a_node() -> dict[str, Any]:
    """Return a pod template of which a node holds one."""
    values: dict[str, Any] = manifest("web", REPLICAS)["spec"]["template"]
    values["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "5", "memory": "64Mi"}}
    return values
