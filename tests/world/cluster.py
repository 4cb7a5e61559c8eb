"""A cluster: an API server in memory, the controllers of Kubernetes, machines that come and go."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from world import clock
from world.api import Api
from world.controllers.autoscaler import Autoscalers
from world.controllers.daemon_set import DaemonSets
from world.controllers.deployment import Deployments
from world.controllers.disruption import Disruptions
from world.controllers.garbage import Garbage
from world.controllers.kubelet import Kubelets, Machines, Timing
from world.controllers.loop import Controller, Informers
from world.controllers.namespaces import Namespaces
from world.controllers.nodes import NodeLife, PodCollector, TaintEviction
from world.controllers.quota import Quotas
from world.controllers.replica_set import ReplicaSets
from world.controllers.scheduler import Scheduler
from world.controllers.stateful_set import StatefulSets
from world.controllers.volumes import Claims
from world.kinds import NAMESPACES, NODES, PODS, QUOTAS, Raw, Ref, path_of
from world.metrics import GROUP, USED_BY_NODES, USED_BY_PODS, Metrics
from world.objects import Objects
from world.pods import is_active, is_ready
from world.priorities import accounted, prioritised

# What a cluster has not where no one has installed it.
_NOT_INSTALLED = frozenset({"karpenter.sh", "keda.sh", "autoscaling.k8s.io", "metrics.k8s.io"})
POOL = "karpenter.sh/capacity-type"


class Cluster:
    """Everything that is there; `seed` decides each lag and each choice that Kubernetes leaves open."""

    def __init__(self, seed: int = 0, *, lag_s: float = 0.02, timing: Timing | None = None) -> None:
        self.objects = Objects(seed)
        self.api = Api(self.objects)
        self.api.missing |= _NOT_INSTALLED
        self.metrics = Metrics(self.objects)
        self.machines = Machines()
        managing = Informers(self.objects, seed + 1, lag_s)
        scheduling = Informers(self.objects, seed + 2, lag_s)
        running = Informers(self.objects, seed + 3, lag_s)
        collecting = Informers(self.objects, seed + 4, lag_s)
        self.kubelets = Kubelets(running, self.machines, timing or Timing())
        self.scheduler = Scheduler(scheduling)
        self.garbage = Garbage(collecting)
        self.autoscalers = Autoscalers(managing, self.metrics)
        self.controllers: list[Controller] = [
            Deployments(managing),
            ReplicaSets(managing),
            StatefulSets(managing),
            DaemonSets(managing),
            Disruptions(managing),
            NodeLife(managing, self.machines),
            TaintEviction(managing),
            PodCollector(managing),
            Quotas(managing),
            Namespaces(managing),
            Claims(managing),
            self.autoscalers,
            self.garbage,
            self.scheduler,
            self.kubelets,
        ]
        self.objects.rules += [prioritised(self.objects), accounted(self.objects)]
        self.objects.rules += [one.refuse for one in self.controllers if isinstance(one, Quotas)]
        self._informers = (managing, scheduling, running, collecting)
        self.objects.put(path_of(NAMESPACES, "", "shop"), {"metadata": {}})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let all controllers work; a fault of one of them is raised at the end."""
        for informers in self._informers:
            informers.start()
        tasks = [asyncio.create_task(one.run()) for one in self.controllers]
        try:
            yield
        finally:
            for informers in self._informers:
                informers.stop()
            failed = [task for task in tasks if task.done()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for task in failed:
                task.result()

    # --- machines ---------------------------------------------------------------------------------

    def add_node(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Raw] = (),
        *,
        pods: int = 110,
        cpu: str = "16",
        memory: str = "64Gi",
    ) -> None:
        """Have a machine join, ready."""
        self.machines.silent.pop(name, None)
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": clock.stamp()}
        raw: Raw = {
            "metadata": {
                "uid": f"uid-{name}-{self.objects.dice.getrandbits(32):08x}",
                "creationTimestamp": clock.stamp(),
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            },
            "spec": {"taints": list(taints)} if taints else {},
            "status": {
                "allocatable": {"cpu": cpu, "memory": memory, "pods": str(pods)},
                "conditions": [ready],
            },
        }
        self.objects.put(path_of(NODES, "", name), raw)

    def taint(self, node: str, taints: Sequence[Raw]) -> None:
        """Set a node's taints."""
        raw = self.objects.get(Ref(NODES, "", node))
        self.objects.update(Ref(NODES, "", node), {**raw, "spec": {**raw["spec"], "taints": list(taints)}})

    def silence(self, node: str) -> None:
        """Have a machine send no heartbeats from now on: its kubelet does nothing."""
        self.machines.silent.setdefault(node, clock.now())

    def speak(self, node: str) -> None:
        """Have a silent machine be back."""
        self.machines.silent.pop(node, None)
        self.kubelets.look_at(node)

    def vanish(self, node: str) -> None:
        """Take a machine away, and its Node object."""
        self.silence(node)
        self.objects.forget(path_of(NODES, "", node))

    def serve_metrics(self) -> None:
        """Have metrics-server installed."""
        self.api.missing.discard(GROUP)
        self.api.aggregated |= {USED_BY_NODES: self.metrics.nodes, USED_BY_PODS: self.metrics.pods}

    def quota(self, resource: str, hard: int, namespace: str = "shop") -> None:
        """Have a namespace allow so many of something."""
        path = path_of(QUOTAS, namespace, "small")
        self.objects.put(path, {"metadata": {}, "spec": {"hard": {resource: str(hard)}}})

    # --- what is there ----------------------------------------------------------------------------

    def pods(self, namespace: str = "shop") -> list[Raw]:
        """Return the pods that are not ending."""
        return [pod for pod in self.objects.all(PODS, namespace) if is_active(pod)]

    def ready(self, namespace: str = "shop") -> list[Raw]:
        """Return the pods that serve: ready, and their machine is there."""
        return [
            pod
            for pod in self.pods(namespace)
            if is_ready(pod) and pod["spec"].get("nodeName") not in self.machines.silent
        ]
