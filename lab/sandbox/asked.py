"""How many replicas the ReplicaSets of each workload were asked for together, at every moment.

What bounds a rollout. Its pods do not: when Kubernetes lowers the old ReplicaSet and raises the new one, the
new pod may be there before the old one goes, the more so on a busy machine.
"""

from typing import Any

from lab.sandbox.errors import SandboxError
from lab.sandbox.instants import Instant


class Asked:
    """Takes the changes of a namespace's ReplicaSets, from one watch: in the order in which they happened."""

    def __init__(self) -> None:
        self._changes: list[tuple[float, str, int]] = []

    def see(self, at: Instant, raw: dict[str, Any], deleted: bool) -> None:
        """Take one change."""
        replicas = 0 if deleted else raw["spec"]["replicas"]
        self._changes.append((at.monotonic_s, raw["metadata"]["name"], replicas))

    def highest(self, workload: str, since: Instant, until: Instant | None = None) -> int:
        """Return the most replicas that a workload's ReplicaSets asked for together, from an instant on.

        By name: a parked ReplicaSet has lost the labels of its pods. Raises SandboxError if none was seen.
        """
        now: dict[str, int] = {}
        highest = 0
        for at_s, name, replicas in tuple(self._changes):
            if until is not None and at_s > until.monotonic_s:
                break
            if name.startswith(f"{workload}-"):
                now[name] = replicas
                highest = sum(now.values()) if at_s <= since.monotonic_s else max(highest, sum(now.values()))
        if not now:
            raise SandboxError(f"no ReplicaSet of {workload} was seen")
        return highest
