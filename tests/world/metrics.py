"""What metrics-server tells of nodes and pods (metrics.k8s.io): what they really use, as a test says."""

from collections import Counter
from datetime import timedelta
from math import ceil

from splitter.kube.client import ApiError
from world import clock
from world.kinds import NODES, PODS, Raw
from world.objects import Objects
from world.pods import is_ready
from world.selectors import selects

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
        self.loads: dict[str, int] = {}  # by namespace: what its serving pods share, in thousandths of a CPU
        self.queues: dict[str, int] = {}  # by namespace: how long its external metric `queue` is
        self.looks: Counter[str] = Counter()  # by namespace: how often its pods' samples were asked for
        self.window_s = 10
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

    def queue(self, namespace: str, name: str) -> int:
        """Return an external metric. Raises ApiError where there is none."""
        if name != "queue" or namespace not in self.queues:
            raise ApiError(404, "NotFound", f"{name} is not there")
        return self.queues[namespace]

    def samples(self, namespace: str, selector: Raw) -> dict[str, Raw]:
        """Return what each running pod of a namespace uses of its load, by name, as an autoscaler asks.

        Traffic goes to those that are ready and stay; a kubelet that is gone tells of no pod.
        """
        self._must_be_up()
        self.looks[namespace] += 1
        if namespace not in self.loads:
            return {}
        nodes = {raw["metadata"]["name"] for raw in self._objects.all(NODES) if is_ready(raw)}
        running = [
            pod
            for pod in self._objects.all(PODS, namespace)
            if pod["spec"].get("nodeName") in nodes - self.unmeasured
            and pod["status"].get("phase") == "Running"
            and selects(selector, pod)
        ]
        serving = [
            pod["metadata"]["uid"]
            for pod in running
            if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]
        ]
        share = self.loads[namespace] / max(1, len(serving))
        at = clock.instant(clock.stamp())  # in whole seconds
        return {
            pod["metadata"]["name"]: {
                "cpu_m": ceil(share) if pod["metadata"]["uid"] in serving else 0,
                "at": at,
                "window_s": self.window_s,
            }
            for pod in running
        }

    def _must_be_up(self) -> None:
        if self.down:
            raise ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request")

    def _measured(self) -> Raw:
        return {
            "timestamp": clock.stamp(clock.now() - timedelta(seconds=self.age_s)),
            "window": f"{self.window_s}s",
        }

    def _running(self) -> list[Raw]:
        return [
            pod
            for pod in self._objects.all(PODS)
            if is_ready(pod) and pod["spec"].get("nodeName") not in {None, *self.unmeasured}
        ]

    def _used(self, pod: Raw) -> int:
        return self.uses.get((pod["metadata"].get("labels") or {}).get("app", ""), 0)
