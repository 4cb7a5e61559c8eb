"""The floor: what a client that decides nothing needs for the same writes, in the same cluster."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from lab.bench.crowd import DEPLOYMENTS, Crowd, deployment
from lab.demo.watching import Watch
from lab.sandbox import Api, Instant
from lab.sandbox.waiting import wait_until

JsonObject = dict[str, Any]

_WRITERS = 8
_RESERVED: JsonObject = {"key": "bench", "value": "reserved", "effect": "NoSchedule"}
_DISRUPTED = "karpenter.sh/disrupted"


class Reflex:
    """Scales a set of Deployments as soon as it sees the taint on its node, and does nothing else."""

    def __init__(self, api: Api, node: str, names: list[str], replicas: int = 2) -> None:
        self._api = api
        self._node = node
        self._names = names
        self._replicas = replicas
        self._tainted = False
        self._writers = ThreadPoolExecutor(_WRITERS)

    def node_seen(self, _at: Instant, raw: JsonObject, _deleted: bool) -> None:
        """Take one change of one node."""
        if raw["metadata"]["name"] != self._node:
            return
        tainted = any(taint["key"] == _DISRUPTED for taint in raw["spec"].get("taints", []))
        if tainted and not self._tainted:
            for name in self._names:
                self._writers.submit(self.scale, name, self._replicas)
        self._tainted = tainted

    def scale(self, name: str, replicas: int) -> None:
        """Write one count, as splitter does: a merge patch of the scale subresource."""
        self._api.patch(f"{DEPLOYMENTS}/{name}/scale", {"spec": {"replicas": replicas}})

    def close(self) -> None:
        """End the threads."""
        self._writers.shutdown()


@contextmanager
def _prepared(crowd: Crowd, count: int) -> Iterator[tuple[str, list[str]]]:
    """Yield a node that only the bare client looks at, and Deployments that only it scales."""
    (node,) = crowd.sandbox.fleet.add("spot", 1, taints=[_RESERVED])
    names = [f"bare{number:02}" for number in range(count)]
    for name in names:
        crowd.sandbox.api.create(DEPLOYMENTS, deployment(name, replicas=1, split=False))
    wait_until(
        lambda: all(_available(crowd, name) == 1 for name in names),
        what="the bare Deployments",
        deadline_s=60,
    )
    yield node, names
    for name in names:
        crowd.sandbox.api.delete(f"{DEPLOYMENTS}/{name}")


def _available(crowd: Crowd, name: str) -> int:
    return int(crowd.deployments.objects.get(name, {}).get("status", {}).get("availableReplicas", 0))


def floor(crowd: Crowd, *, writes: int, rounds: int) -> list[float]:
    """Return the seconds from a taint to each of `writes` scale writes, in so many rounds."""
    collected = []
    with _prepared(crowd, writes) as (node, names), ExitStack() as stack:
        reflex = Reflex(crowd.sandbox.api, node, names)
        stack.callback(reflex.close)
        stack.enter_context(Watch(crowd.sandbox.api, "/api/v1/nodes", reflex.node_seen))
        for _ in range(rounds):
            noticed = crowd.sandbox.fleet.notice(node)
            collected += raises_after(crowd, noticed, names, expected=len(names))
            crowd.sandbox.fleet.withdraw(node)
            for name in names:
                reflex.scale(name, 1)
            wait_until(
                lambda: all(crowd.deployments.objects[name]["spec"]["replicas"] == 1 for name in names),
                what="the bare Deployments to be small again",
                deadline_s=60,
            )
    return collected


def raises_after(
    crowd: Crowd, noticed: Instant, names: list[str], *, expected: int, deadline_s: float = 30
) -> list[float]:
    """Return the seconds from a notice to the first raise of each named Deployment, once all have come."""
    asked = frozenset(names)

    def first_raises() -> dict[str, float]:
        values: dict[str, float] = {}
        for write in crowd.scales.writes():
            if write.at >= noticed and write.after > write.before and write.name in asked:
                values.setdefault(write.name, write.at.monotonic_s - noticed.monotonic_s)
        return values

    wait_until(
        lambda: len(first_raises()) >= expected,
        what=f"{expected} Deployments to be raised",
        deadline_s=deadline_s,
    )
    return list(first_raises().values())
