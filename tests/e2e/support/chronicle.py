"""What is written on nodes, NodeClaims and pods, in order and with times.

It only reads, as the recorder does, and keeps what splitter might take for a signal: taints, conditions,
cordons, deletions, annotations of Karpenter's, Events, and what becomes of pods and of the twins' counts.
The figures of docs/how-to/karpenter.md are its (`make test-karpenter PYTEST=-s`).
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from lab.sandbox.api import Api
from lab.sandbox.following import Follower
from lab.sandbox.instants import Instant
from lab.sandbox.karpenter import NODE_CLAIMS, POOL_LABEL

JsonObject = dict[str, Any]
Facts = Callable[[JsonObject], Iterator[str]]

# The kubelet's own, which say nothing about where a node is going.
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was written or taken back, on one object."""

    at: Instant
    subject: str
    """Such as "Node spot kwok-spot-x2b4c"."""
    fact: str
    """Such as "+ taint karpenter.sh/disrupted:NoSchedule"."""


class Chronicle:
    """Keeps from `__enter__` to `__exit__`; what was there at the beginning is not told."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._known: dict[str, set[str]] = {}
        self._telling = False
        self._followers = (
            Follower(api, "/api/v1/nodes", self._facts_of(_of_node)),
            Follower(api, NODE_CLAIMS, self._facts_of(_of_anything)),
            Follower(api, f"/api/v1/namespaces/{namespace}/pods", self._facts_of(_of_pod)),
            Follower(api, f"/apis/apps/v1/namespaces/{namespace}/deployments", self._facts_of(_of_twin)),
            Follower(api, "/apis/events.k8s.io/v1/events", self._event),
        )

    def __enter__(self) -> Self:
        """Begin."""
        for follower in self._followers:
            follower.start()
        for follower in self._followers:
            follower.wait_for_first_list()
        self._telling = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; what was kept stays."""
        for follower in self._followers:
            follower.stop()

    def entries(self, subject: str = "", fact: str = "") -> list[Entry]:
        """Return what contains both texts, oldest first."""
        with self._lock:
            ordered = sorted(self._entries, key=lambda entry: entry.at)
        return [entry for entry in ordered if subject in entry.subject and fact in entry.fact]

    def first(self, subject: str, fact: str) -> Instant:
        """Return when something was first written. Raises AssertionError when it never was."""
        entries = self.entries(subject, fact)
        assert entries, f"nothing like {fact!r} was written on {subject!r}"
        return entries[0].at

    def reported(self, since: Instant) -> str:
        """Return all since a moment, a line each, in seconds after it."""
        return "\n".join(
            f"{entry.at.monotonic_s - since.monotonic_s:8.2f} s  {entry.subject:52} {entry.fact}"
            for entry in self.entries()
            if entry.at >= since
        )

    def _facts_of(self, facts: Facts) -> Callable[..., None]:
        """Return what hears of the changes of a collection, and keeps what became true or ceased to be."""

        def tell(at: Instant, raw: JsonObject, *, deleted: bool) -> None:
            uid, subject = raw["metadata"]["uid"], _subject(raw)
            before = self._known.pop(uid, None)
            if deleted:
                self._keep(at, subject, ["is gone"])
                return
            now = self._known[uid] = set(facts(raw))
            former = before or set()
            appeared = ["appears"] if before is None else []
            came, went = sorted(now - former), sorted(former - now)
            self._keep(
                at, subject, [*appeared, *(f"+ {fact}" for fact in came), *(f"- {fact}" for fact in went)]
            )

        return tell

    def _event(self, at: Instant, raw: JsonObject, *, deleted: bool) -> None:
        about = raw.get("regarding", {})
        if not deleted and about.get("kind") in {"Node", "NodeClaim", "Pod"}:
            who = raw.get("reportingController") or raw.get("deprecatedSource", {}).get("component", "")
            text = f"Event {raw['reason']} ({who}): {raw.get('note', '')}"
            self._keep(at, f"{about['kind']} {about['name']}", [text])

    def _keep(self, at: Instant, subject: str, facts: list[str]) -> None:
        if self._telling:
            with self._lock:
                self._entries.extend(Entry(at, subject, fact) for fact in facts)


def _subject(raw: JsonObject) -> str:
    metadata = raw["metadata"]
    kind = raw.get("kind", "")
    pool = metadata.get("labels", {}).get(POOL_LABEL) or metadata.get("labels", {}).get(
        "splitter.io/pool", ""
    )
    return " ".join(filter(None, (kind, pool, metadata["name"])))


def _of_node(raw: JsonObject) -> Iterator[str]:
    yield from (f"taint {taint['key']}:{taint['effect']}" for taint in raw["spec"].get("taints", []))
    if raw["spec"].get("unschedulable"):
        yield "cordoned"
    yield from _of_anything(raw)
    yield from (
        f"label {key}"
        for key in raw["metadata"].get("labels", {})
        if "exclude" in key or "karpenter.sh/" in key
    )


def _of_pod(raw: JsonObject) -> Iterator[str]:
    if node := raw["spec"].get("nodeName"):
        yield f"bound to {node}"
    yield from _of_anything(raw)


def _of_twin(raw: JsonObject) -> Iterator[str]:
    yield f"asks for {raw['spec']['replicas']}"


def _of_anything(raw: JsonObject) -> Iterator[str]:
    metadata = raw["metadata"]
    if "deletionTimestamp" in metadata:
        yield "is being deleted"
    annotations = metadata.get("annotations", {})
    yield from (
        f"annotation {key}={text}" for key, text in annotations.items() if key.startswith("karpenter.sh/")
    )
    for condition in raw.get("status", {}).get("conditions") or []:
        if condition["type"] not in _PRESSURES:
            reason = condition.get("reason") or "-"
            yield f"condition {condition['type']}={condition['status']} ({reason})"
