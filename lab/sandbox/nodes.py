"""Node objects: the notices that are written on them, and what all machines of a sandbox have in common.

`fleet` plays machines on them, `real.fleet` runs some. Writes to many nodes go out at the same time: clouds
take machines in swarms.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from lab.sandbox import machines
from lab.sandbox.api import Api, JsonObject, PatchKind
from lab.sandbox.errors import ApiError, SandboxError
from lab.sandbox.instants import Instant
from lab.sandbox.machines import Notice, Pool
from lab.sandbox.waiting import wait_until

Result = TypeVar("Result")

NODES = "/api/v1/nodes"
LEASE_NAMESPACE = "kube-node-lease"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"
ZONES = ("sandbox-a", "sandbox-b", "sandbox-c")

_WRITERS = 16  # 500 nodes take 2 s; more threads than this only queue in the API server
# 500 nodes are Ready within 10 s of their creation on 2 idle cores, and within 20 s on busy ones.
_READY_DEADLINE_S = 120.0
_TWO_MINUTES_S = 120.0  # the longest notice that clouds give (AWS)
_GONE_DEADLINE_S = 30.0
_CONFLICT = 409
_NOT_YET = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Nodes:
    """The Node objects of machines, by name; safe to use from many threads."""

    def __init__(self, api: Api, check: Callable[[], None]) -> None:
        self._api = api
        self._check = check
        self._blueprints: dict[str, JsonObject] = {}

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
        names = self._known(names)
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
        names = self._known(names)
        began = Instant.now()
        self._each(names, lambda name: self._withdraw(name, taint))
        return began

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
        node = self._api.find(f"{NODES}/{name}")
        return node is not None and _is_usable(node)

    def _wait_until_gone(self, name: str) -> None:
        wait_until(
            lambda: self._api.find(f"{NODES}/{name}") is None,
            what=f"node {name} to be gone",
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
            self._change_taints(name, lambda taints: [each for each in taints if each["key"] != key])
        if spec.get("unschedulable"):
            self._patch(name, {"spec": {"unschedulable": None}})
        if any(condition["type"] == machines.CONDITION for condition in node["status"].get("conditions", [])):
            absent = {"status": {"conditions": [{"type": machines.CONDITION, "$patch": "delete"}]}}
            self._api.patch(f"{NODES}/{name}/status", absent, kind=PatchKind.STRATEGIC)

    def _pods_on(self, name: str) -> list[JsonObject]:
        return self._api.list("/api/v1/pods", fields=f"spec.nodeName={name}")

    def _set_conditions(self, name: str, conditions: list[JsonObject]) -> None:
        self._api.patch(
            f"{NODES}/{name}/status", {"status": {"conditions": conditions}}, kind=PatchKind.STRATEGIC
        )

    def _patch(self, name: str, patch: JsonObject) -> None:
        self._api.patch(f"{NODES}/{name}", patch)

    def _known(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Return one name, or several, as a tuple. Raises SandboxError for one that no machine has."""
        names = as_names(names)
        unknown = [name for name in names if name not in self._blueprints]
        if unknown:
            raise SandboxError(
                f"the fleet has no machine called {', '.join(unknown)}. "
                f"It has: {', '.join(self._blueprints) or 'none'}."
            )
        return names

    @staticmethod
    def _each(names: Sequence[str], write: Callable[[str], Result]) -> list[Result]:
        """Call `write` for all at the same time; the first exception is raised when all have ended."""
        if not names:
            return []
        with ThreadPoolExecutor(max_workers=min(_WRITERS, len(names))) as writers:
            return list(writers.map(write, names))


def as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return one name, or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


def _is_usable(node: JsonObject) -> bool:
    conditions = node["status"].get("conditions", [])
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    # The not-ready taint stays for a moment after Ready, and nothing is scheduled until it is gone.
    held_back = any(taint["key"] in _NOT_YET for taint in node["spec"].get("taints", []))
    return ready and not held_back
