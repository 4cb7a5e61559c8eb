"""The machines of a sandbox: bought, given notice, taken away, lost and given back.

A test or the demo calls it through `sandbox.fleet`. It writes only Node objects, their leases, and on the
pods of a machine that dies the mark that stops their playing (`stages.yaml`); what follows from that
(taints, evictions, garbage collection, new pods) is Kubernetes' own doing. Writes to many nodes go out at
the same time: clouds take machines in swarms.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from splitter.sandbox import machines
from splitter.sandbox.api import Api, JsonObject, PatchKind
from splitter.sandbox.commands import KUBELET_LABEL, KUBELET_RUNNING, KUBELET_STOPPED
from splitter.sandbox.errors import ApiError, SandboxError
from splitter.sandbox.instants import Instant
from splitter.sandbox.machines import Notice, Pool
from splitter.sandbox.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Result = TypeVar("Result")

NODES = "/api/v1/nodes"
FROZEN_ANNOTATION = "sandbox.splitter.io/frozen"

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_ZONES = ("sandbox-a", "sandbox-b", "sandbox-c")
_WRITERS = 16  # 500 nodes take 2 s; more threads than this only queue in the API server
# 500 nodes are Ready within 10 s of their creation on 2 idle cores, and within 20 s on busy ones.
_READY_DEADLINE_S = 120.0
_TWO_MINUTES_S = 120.0  # the longest notice that clouds give (AWS)
_GONE_DEADLINE_S = 30.0
_CONFLICT = 409
_NOT_YET = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Fleet:
    """The machines of one sandbox, by name; safe to use from many threads."""

    def __init__(self, api: Api, check: Callable[[], None]) -> None:
        self._api = api
        self._check = check
        self._blueprints: dict[str, JsonObject] = {}
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
                zone=zone or _ZONES[number % len(_ZONES)],
                labels=labels or {},
                taints=taints,
            )
            names.append(name)
        return self._register(names)

    def names(self, pool: Pool | None = None) -> tuple[str, ...]:
        """Return the names of all machines ever added, or of one pool's, also of those killed."""
        return tuple(
            name
            for name, node in self._blueprints.items()
            if pool is None or node["metadata"]["labels"][machines.CAPACITY_LABEL] == pool
        )

    def notice(
        self,
        names: str | Iterable[str],
        how: Notice = Notice.TAINT,
        *,
        deadline_s: float = _TWO_MINUTES_S,
        taint: str = machines.DISRUPTED_TAINT,
    ) -> Instant:
        """Announce that machines will be taken away, and return the moment right before the first write.

        `deadline_s` stands in the message of CONDITION; nothing happens by itself when it passes: call
        `kill`. `taint` is the key that TAINT sets.
        """
        names = _as_names(names)
        self._known(names)
        began = Instant.now()
        match how:
            case Notice.TAINT:
                self._each(names, lambda name: self._taint(name, taint))
            case Notice.CONDITION:
                condition = machines.preemption_condition(began, deadline_s)
                self._each(names, lambda name: self._set_conditions(name, [condition]))
            case Notice.CORDON:
                self._each(names, lambda name: self._patch(name, {"spec": {"unschedulable": True}}))
            case Notice.DELETION:
                self._each(names, self._delete_but_hold)
        return began

    def withdraw(self, names: str | Iterable[str], *, taint: str = machines.DISRUPTED_TAINT) -> Instant:
        """Take back notices of every kind, and return the moment right before the first write.

        Raises SandboxError for a notice by DELETION: Kubernetes never takes a deletion back.
        """
        names = _as_names(names)
        self._known(names)
        began = Instant.now()
        self._each(names, lambda name: self._withdraw(name, taint))
        return began

    def kill(self, names: str | Iterable[str]) -> Instant:
        """Have the machines vanish: no more heartbeats, Node objects gone. Return the moment right before.

        Their pods stay behind as objects that nobody plays any more, still Running and Ready as they were,
        until Kubernetes' pod garbage collection or somebody deletes them; one that is being deleted stays
        Terminating until then.
        """
        names = _as_names(names)
        self._known(names)
        self._freeze(names)
        began = Instant.now()
        self._each(names, self._remove)
        return began

    def lose(self, names: str | Iterable[str], *, seen_at_once: bool = False) -> Instant:
        """Have the machines fall silent while their Node objects stay. Return the moment right before.

        They turn NotReady by themselves when the sandbox's grace is over, where it has one, or with
        `seen_at_once` as if it were over now: Ready=Unknown, and their pods not ready.
        """
        names = _as_names(names)
        self._known(names)
        self._freeze(names)
        began = Instant.now()
        stopped = {"metadata": {"labels": {KUBELET_LABEL: KUBELET_STOPPED}}}
        self._each(names, lambda name: self._patch(name, stopped))
        if seen_at_once:
            self._each(names, lambda name: self._set_conditions(name, machines.unknown_conditions(began)))
            unready = {"status": {"conditions": [machines.readiness_condition(began, ready=False)]}}
            pods = itertools.chain.from_iterable(self._each(names, self._pods_on))
            paths = [f"{_path_of(pod)}/status" for pod in pods]
            self._each(paths, lambda path: self._mark_pod(path, unready, PatchKind.STRATEGIC))
        return began

    def restore(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Bring machines back as new Node objects of the same names; return once pods can be scheduled.

        Whatever is left of the old ones goes first. As on a real machine that is re-used, pods that are
        still bound to the name are played again.
        """
        names = _as_names(names)
        self._known(names)
        self._each(names, self._remove)
        # A lease left of the old Node is deleted by garbage collection just when the new one needs it.
        self._each(names, lambda name: self._api.delete(f"{_LEASES}/{name}", missing_ok=True))
        self._each(names, self._wait_until_gone)
        self._thaw(names)
        self._register(names)
        return names

    def reconnect(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Have lost machines be heard again, on the same Node objects; return once they are Ready.

        Their kubelets report the pods that ran all the time as ready again.
        """
        names = _as_names(names)
        self._known(names)
        running = {"metadata": {"labels": {KUBELET_LABEL: KUBELET_RUNNING}}}
        self._thaw(names)
        self._each(names, lambda name: self._patch(name, running))
        self._wait_until_usable(names)
        ready = {"status": {"conditions": [machines.readiness_condition(Instant.now(), ready=True)]}}
        pods = itertools.chain.from_iterable(self._each(names, self._pods_on))
        paths = [f"{_path_of(pod)}/status" for pod in pods if pod["status"].get("phase") == "Running"]
        self._each(paths, lambda path: self._mark_pod(path, ready, PatchKind.STRATEGIC))
        return names

    def _register(self, names: Sequence[str]) -> tuple[str, ...]:
        self._each(names, lambda name: self._api.create(NODES, copy.deepcopy(self._blueprints[name])))
        self._wait_until_usable(names)
        return tuple(names)

    def _wait_until_usable(self, names: Sequence[str]) -> None:
        # One after the other: while the first is waited for the rest become Ready too, and looking at the
        # whole list (1.5 MB for 500 nodes) twenty times a second would slow down what it waits for.
        for name in names:
            wait_until(
                partial(self._is_usable, name),
                what=f"node {name} to become Ready",
                deadline_s=_READY_DEADLINE_S,
                check=self._check,
            )

    def _is_usable(self, name: str) -> bool:
        return _is_usable(self._api.get(f"{NODES}/{name}"))

    def _wait_until_gone(self, name: str) -> None:
        wait_until(
            lambda: self._api.find(f"{NODES}/{name}") is None and self._api.find(f"{_LEASES}/{name}") is None,
            what=f"node {name} and its lease to be gone",
            deadline_s=_GONE_DEADLINE_S,
            check=self._check,
        )

    def _remove(self, name: str) -> None:
        self._api.delete(f"{NODES}/{name}", missing_ok=True)
        node = self._api.find(f"{NODES}/{name}")
        if node and node["metadata"].get("finalizers"):  # it had notice by deletion
            self._patch(name, {"metadata": {"finalizers": None}})

    def _delete_but_hold(self, name: str) -> None:
        self._patch(name, {"metadata": {"finalizers": [machines.FINALIZER]}})
        self._api.delete(f"{NODES}/{name}")

    def _taint(self, name: str, key: str) -> None:
        taint = {"key": key, "effect": "NoSchedule"}
        self._change_taints(name, lambda taints: [each for each in taints if each["key"] != key] + [taint])

    def _untaint(self, name: str, key: str) -> None:
        self._change_taints(name, lambda taints: [each for each in taints if each["key"] != key])

    def _change_taints(self, name: str, change: Callable[[list[JsonObject]], list[JsonObject]]) -> None:
        """Change the list of taints as it is now.

        Taints have no merge key, any patch replaces the whole list. The resourceVersion keeps us from wiping
        what the node controller has just written; after a conflict we look again.
        """

        def written() -> bool:
            node = self._api.get(f"{NODES}/{name}")
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            taints = change(node["spec"].get("taints", []))
            try:
                self._patch(name, {"metadata": version, "spec": {"taints": taints}})
            except ApiError as refusal:
                if refusal.status != _CONFLICT:
                    raise
                return False
            return True

        wait_until(written, what=f"the taints of {name} to be written", deadline_s=_GONE_DEADLINE_S)

    def _withdraw(self, name: str, key: str) -> None:
        node = self._api.get(f"{NODES}/{name}")
        if node["metadata"].get("deletionTimestamp"):
            raise SandboxError(
                f"node {name} is being deleted, and Kubernetes never takes a deletion back. "
                "Use kill() and restore() to get a fresh node of that name."
            )
        spec = node["spec"]
        if any(taint["key"] == key for taint in spec.get("taints", [])):
            self._untaint(name, key)
        if spec.get("unschedulable"):
            self._patch(name, {"spec": {"unschedulable": None}})
        if any(condition["type"] == machines.CONDITION for condition in node["status"].get("conditions", [])):
            absent = {"status": {"conditions": [{"type": machines.CONDITION, "$patch": "delete"}]}}
            self._api.patch(f"{NODES}/{name}/status", absent, kind=PatchKind.STRATEGIC)

    def _freeze(self, names: Sequence[str]) -> None:
        """Stop what KWOK has put off for the pods of machines that are about to die."""
        pods = itertools.chain.from_iterable(self._each(names, self._pods_on))
        mark = {"metadata": {"annotations": {FROZEN_ANNOTATION: "its machine is gone"}}}
        moving = [_path_of(pod) for pod in pods if not _is_settled(pod)]
        self._each(moving, lambda path: self._mark_pod(path, mark))

    def _thaw(self, names: Sequence[str]) -> None:
        """Have the pods of machines that are about to be back be played again.

        Before KWOK manages them, and not after: it then lists the pods of a machine while it watches them,
        and a list that was read before a pod was thawed may be looked at after it. That pod stays frozen.
        """
        pods = itertools.chain.from_iterable(self._each(names, self._pods_on))
        mark = {"metadata": {"annotations": {FROZEN_ANNOTATION: None}}}
        frozen = [
            _path_of(pod) for pod in pods if FROZEN_ANNOTATION in pod["metadata"].get("annotations", {})
        ]
        self._each(frozen, lambda path: self._mark_pod(path, mark))

    def _mark_pod(self, path: str, mark: JsonObject, kind: PatchKind = PatchKind.MERGE) -> None:
        with contextlib.suppress(ApiError):  # it may have ended since it was listed
            self._api.patch(path, mark, kind=kind)

    def _pods_on(self, name: str) -> list[JsonObject]:
        return self._api.list("/api/v1/pods", fields=f"spec.nodeName={name}")

    def _set_conditions(self, name: str, conditions: list[JsonObject]) -> None:
        self._api.patch(
            f"{NODES}/{name}/status", {"status": {"conditions": conditions}}, kind=PatchKind.STRATEGIC
        )

    def _patch(self, name: str, patch: JsonObject) -> None:
        self._api.patch(f"{NODES}/{name}", patch)

    def _known(self, names: Iterable[str]) -> None:
        unknown = [name for name in names if name not in self._blueprints]
        if unknown:
            raise SandboxError(
                f"the fleet has no machine called {', '.join(unknown)}. "
                f"It has: {', '.join(self._blueprints) or 'none'}."
            )

    def _next_address(self) -> str:
        number = next(self._addresses)
        return f"10.{64 + number // 65536}.{number // 256 % 256}.{number % 256}"

    @staticmethod
    def _each(names: Sequence[str], write: Callable[[str], Result]) -> list[Result]:
        """Call `write` for all at the same time; the first exception is raised when all have ended."""
        if not names:
            return []
        with ThreadPoolExecutor(max_workers=min(_WRITERS, len(names))) as writers:
            return list(writers.map(write, names))


def _as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _path_of(pod: JsonObject) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _is_settled(pod: JsonObject) -> bool:
    """Return whether KWOK has nothing more to do for a pod as it is."""
    return pod["status"].get("phase") != "Pending" and not pod["metadata"].get("deletionTimestamp")


def _is_usable(node: JsonObject) -> bool:
    conditions = node["status"].get("conditions", [])
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    # The not-ready taint stays for a moment after Ready, and nothing is scheduled until it is gone.
    held_back = any(taint["key"] in _NOT_YET for taint in node["spec"].get("taints", []))
    return ready and not held_back
