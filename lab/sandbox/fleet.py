"""The machines of a sandbox: bought, given notice, taken away, lost and given back.

A test or the demo calls it through `sandbox.fleet`. It writes only Node objects, their leases, and on the
pods of a machine that dies the mark that stops their playing (`stages.yaml`); what follows from that
(taints, evictions, garbage collection, new pods) is Kubernetes' own doing. Writes to many nodes go out at
the same time: clouds take machines in swarms.
"""

import contextlib
import copy
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from lab.sandbox import machines
from lab.sandbox.api import Api, JsonObject, PatchKind
from lab.sandbox.commands import KUBELET_LABEL, KUBELET_RUNNING, KUBELET_STOPPED
from lab.sandbox.errors import ApiError
from lab.sandbox.instants import Instant
from lab.sandbox.machines import Pool
from lab.sandbox.nodes import LEASE_NAMESPACE, LEASES, NODES, ZONES, Nodes

FROZEN_ANNOTATION = "sandbox.splitter.io/frozen"


class Fleet(Nodes):
    """The machines of one sandbox, by name; safe to use from many threads."""

    def __init__(self, api: Api, check: Callable[[], None]) -> None:
        super().__init__(api, check)
        self._numbers: dict[str, itertools.count[int]] = {}
        self._addresses = itertools.count(1)

    def add(
        self,
        pool: Pool,
        count: int,
        *,
        cpu: str = "8",
        memory: str = "32Gi",
        pods: int = 110,
        zone: str | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[JsonObject] = (),
    ) -> tuple[str, ...]:
        """Buy `count` machines and return their names once pods can be scheduled on all of them.

        Names count on: spot-0, spot-1, ... The capacity type is in `karpenter.sh/capacity-type`. Without a
        `zone` they take turns in sandbox-a, -b and -c. `taints` are Kubernetes' own form:
        `{"key": "spot", "value": "true", "effect": "NoSchedule"}`. About 1 s for 10 machines.
        Raises SandboxError when one does not become Ready.
        """
        numbers = self._numbers.setdefault(pool, itertools.count())
        names = []
        for number in itertools.islice(numbers, count):
            name = f"{pool}-{number}"
            self._blueprints[name] = machines.node(
                name,
                pool,
                address=self._next_address(),
                cpu=cpu,
                memory=memory,
                pods=pods,
                zone=zone or ZONES[number % len(ZONES)],
                labels=labels or {},
                taints=taints,
            )
            names.append(name)
        return self._register(names)

    def kill(self, names: str | Iterable[str]) -> Instant:
        """Stop the machines' heartbeats and delete their Node objects. Return the instant right before.

        Their pods stay behind as objects that nobody plays any more, still Running and Ready as they were,
        until Kubernetes' pod garbage collection or somebody deletes them; one that is being deleted stays
        Terminating until then.
        """
        names = self._known(names)
        self._freeze(names)
        self._keep_leases(names)
        began = Instant.now()
        self._each(names, self._remove)
        return began

    def lose(self, names: str | Iterable[str], *, seen_at_once: bool = False) -> Instant:
        """Stop the machines' heartbeats, and keep their Node objects. Return the instant right before.

        They turn NotReady by themselves when the sandbox's grace is over, where it has one, or with
        `seen_at_once` as if it were over now: Ready=Unknown, and their pods not ready.
        """
        names = self._known(names)
        self._freeze(names)
        began = Instant.now()
        stopped = {"metadata": {"labels": {KUBELET_LABEL: KUBELET_STOPPED}}}
        self._each(names, lambda name: self._patch(name, stopped))
        if seen_at_once:
            self._each(names, lambda name: self._set_conditions(name, machines.unknown_conditions(began)))
            unready = {"status": {"conditions": [machines.readiness_condition(began, ready=False)]}}
            pods = itertools.chain.from_iterable(self._each(names, self._pods_on))
            paths = [f"{_path_of(pod)}/status" for pod in pods]
            self._each(paths, lambda path: self._mark(path, unready, PatchKind.STRATEGIC))
        return began

    def restore(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Bring machines back as new Node objects of the same names; return once pods can be scheduled.

        Whatever is left of the old ones goes first. As on a real machine that is re-used, pods that are
        still bound to the name are played again.
        """
        names = self._known(names)
        self._keep_leases(names)
        self._each(names, self._remove)
        self._each(names, self._wait_until_gone)
        self._thaw(names)
        self._register(names)
        return names

    def reconnect(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Let lost machines send heartbeats again, on the same Node objects; return once they are Ready.

        Their kubelets report the pods that ran all the time as ready again.
        """
        names = self._known(names)
        running = {"metadata": {"labels": {KUBELET_LABEL: KUBELET_RUNNING}}}
        self._thaw(names)
        self._each(names, lambda name: self._patch(name, running))
        self._wait_until_usable(names)
        ready = {"status": {"conditions": [machines.readiness_condition(Instant.now(), ready=True)]}}
        pods = itertools.chain.from_iterable(self._each(names, self._pods_on))
        paths = [f"{_path_of(pod)}/status" for pod in pods if pod["status"].get("phase") == "Running"]
        self._each(paths, lambda path: self._mark(path, ready, PatchKind.STRATEGIC))
        return names

    def _register(self, names: Sequence[str]) -> tuple[str, ...]:
        self._each(names, lambda name: self._api.create(NODES, copy.deepcopy(self._blueprints[name])))
        self._wait_until_usable(names)
        return tuple(names)

    def _keep_leases(self, names: Sequence[str]) -> None:
        """Keep the leases of machines when their Nodes are deleted, until the machines are back.

        KWOK 0.8.0 passes over pods of a machine whose lease it does not see as its own, for good. A lease
        that goes with the old Node and is made again for the new one leaves such a moment: KWOK looks at a
        cache, calls the machine Ready by the old lease, and then finds it gone. Garbage collection deletes
        what belongs to the Node, so that the lease is given to its namespace instead.
        """
        namespace = self._api.get(f"/api/v1/namespaces/{LEASE_NAMESPACE}")["metadata"]
        owner = {"apiVersion": "v1", "kind": "Namespace", "name": LEASE_NAMESPACE, "uid": namespace["uid"]}
        kept = {"metadata": {"ownerReferences": [owner]}}
        self._each([f"{LEASES}/{name}" for name in names], lambda path: self._mark(path, kept))

    def _freeze(self, names: Sequence[str]) -> None:
        """Cancel the delayed steps of KWOK for the pods of machines that are about to be killed."""
        pods = itertools.chain.from_iterable(self._each(names, self._pods_on))
        mark = {"metadata": {"annotations": {FROZEN_ANNOTATION: "its machine is gone"}}}
        moving = [_path_of(pod) for pod in pods if not _is_settled(pod)]
        self._each(moving, lambda path: self._mark(path, mark))

    def _thaw(self, names: Sequence[str]) -> None:
        """Let KWOK play the pods again of machines that are about to be back.

        Before KWOK manages them, and not after: it then lists the pods of a machine while it watches them,
        and a list that was read before a pod was thawed may be looked at after it. That pod stays frozen.
        """
        pods = itertools.chain.from_iterable(self._each(names, self._pods_on))
        mark = {"metadata": {"annotations": {FROZEN_ANNOTATION: None}}}
        frozen = [
            _path_of(pod) for pod in pods if FROZEN_ANNOTATION in pod["metadata"].get("annotations", {})
        ]
        self._each(frozen, lambda path: self._mark(path, mark))

    def _mark(self, path: str, mark: JsonObject, kind: PatchKind = PatchKind.MERGE) -> None:
        with contextlib.suppress(ApiError):  # it may have ended since it was seen
            self._api.patch(path, mark, kind=kind)

    def _next_address(self) -> str:
        number = next(self._addresses)
        return f"10.{64 + number // 65536}.{number // 256 % 256}.{number % 256}"


def _path_of(pod: JsonObject) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _is_settled(pod: JsonObject) -> bool:
    """Return whether KWOK has nothing more to do for a pod as it is."""
    return pod["status"].get("phase") != "Pending" and not pod["metadata"].get("deletionTimestamp")
