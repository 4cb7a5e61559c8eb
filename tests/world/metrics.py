"""What metrics-server tells of nodes and pods (metrics.k8s.io): what they really use, as a test says."""

from collections import Counter
from datetime import timedelta

from splitter.kube.client import ApiError
from world import clock
from world.kinds import NODES, PODS, Raw
from world.objects import Objects
from world.pods import is_ready

GROUP = "metrics.k8s.io"
USED_BY_NODES, USED_BY_PODS = f"/apis/{GROUP}/v1beta1/nodes", f"/apis/{GROUP}/v1beta1/pods"
_NANO = 1_000_000


class Metrics:
    """Each pod that runs uses what its label `app` says, and each node what its pods use and its own."""

    def __init__(self, objects: Objects) -> None:
        """Measure nothing yet."""
        self._objects = objects
        self.uses: dict[str, int] = {}  # by label app, in thousandths of a CPU
        self.own: dict[str, int] = {}  # of a node beside its pods
        self.unmeasured: set[str] = set()  # nodes that are left out, with their pods
        self.lies: Raw = {}  # what each item says instead
        self.age_s = 0.0
        self.down = False  # the aggregator finds no one to ask

    def nodes(self) -> list[Raw]:
        """Answer for nodes."""
        self._must_be_up()
        used: Counter[str] = Counter()
        for pod in self._running():
            used[pod["spec"]["nodeName"]] += self._used(pod)
        names = [raw["metadata"]["name"] for raw in self._objects.all(NODES)]
        return [
            {
                "metadata": {"name": name},
                **self._measured(),
                "usage": {"cpu": f"{(used[name] + self.own.get(name, 0)) * _NANO}n", "memory": "1Gi"},
                **self.lies,
            }
            for name in names
            if name not in self.unmeasured
        ]

    def pods(self) -> list[Raw]:
        """Answer for pods."""
        self._must_be_up()
        return [
            {
                "metadata": {name: pod["metadata"].get(name) for name in ("name", "namespace", "labels")},
                **self._measured(),
                "containers": [
                    {"name": "c", "usage": {"cpu": f"{self._used(pod) * _NANO}n", "memory": "16Mi"}}
                ],
            }
            for pod in self._running()
        ]

    def _must_be_up(self) -> None:
        if self.down:
            raise ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request")

    def _measured(self) -> Raw:
        return {"timestamp": clock.stamp(clock.now() - timedelta(seconds=self.age_s)), "window": "10s"}

    def _running(self) -> list[Raw]:
        return [
            pod
            for pod in self._objects.all(PODS)
            if is_ready(pod) and pod["spec"].get("nodeName") not in {None, *self.unmeasured}
        ]

    def _used(self, pod: Raw) -> int:
        return self.uses.get((pod["metadata"].get("labels") or {}).get("app", ""), 0)
