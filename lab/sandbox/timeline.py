"""Answers about a recording: how many pods were available, and how many there were, at each moment.

Tests and the demo's report ask it. Pure. A pod is *available* while it is Ready, not terminating, and on a
node whose object exists, is Ready and whose machine has not fallen silent: from the moment a node is
killed its pods count as unavailable, although Kubernetes calls them Ready for another minute. The *total*
counts pods that exist and have not ended (phase Succeeded or Failed), with or without those terminating.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lab.sandbox.instants import Instant
from lab.sandbox.recording import NodeChange, NodeSeen, PodChange, PodSeen, Recording

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Between:
    """A stretch of time, both ends included."""

    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class Steps:
    """A number that holds from one moment until the next: `values[i]` from `times[i]` on, 0 before.

    `times` are in seconds of the monotonic clock, ascending.
    """

    times: tuple[float, ...]
    values: tuple[int, ...]

    def at(self, moment: Instant) -> int:
        """Return the value at a moment."""
        index = bisect_right(self.times, moment.monotonic_s) - 1
        return self.values[index] if index >= 0 else 0

    def stretches(self, between: Between) -> Iterator[tuple[float, float, int]]:
        """Yield (from, until, value) in monotonic seconds, covering `between` without gaps."""
        start_s, end_s = between.start.monotonic_s, between.end.monotonic_s
        value = self.at(between.start)
        for time_s, next_value in zip(self.times, self.values, strict=True):
            if time_s <= between.start.monotonic_s:
                continue
            if time_s > end_s:
                break
            yield start_s, time_s, value
            start_s, value = time_s, next_value
        yield start_s, end_s, value

    def lowest(self, between: Between) -> int:
        """Return the lowest value within a stretch of time."""
        return min(value for _, _, value in self.stretches(between))

    def highest(self, between: Between) -> int:
        """Return the highest value within a stretch of time."""
        return max(value for _, _, value in self.stretches(between))

    def seconds_below(self, number: int, between: Between) -> float:
        """Return for how many seconds in all the value was under `number`.

        Example: at 4 for 10 s, at 3 for 2 s, at 4 again: 2.0 seconds below 4.
        """
        return sum(until_s - from_s for from_s, until_s, value in self.stretches(between) if value < number)

    def seconds_until_at_least(self, number: int, after: Instant) -> float | None:
        """Return how many seconds after a moment the value first was `number` or more (0.0: at once).

        None when it never was.
        """
        if self.at(after) >= number:
            return 0.0
        later = (time_s for time_s, value in zip(self.times, self.values, strict=True) if value >= number)
        return next((time_s - after.monotonic_s for time_s in later if time_s > after.monotonic_s), None)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The step functions of one selection of pods, and the recording's two ends.

    `total` includes terminating pods, `total_without_terminating` does not.
    """

    whole: Between
    available: Steps
    total: Steps
    total_without_terminating: Steps

    @classmethod
    def of(
        cls,
        recording: Recording,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        where: Callable[[PodSeen], bool] | None = None,
    ) -> "Timeline":
        """Return the timeline of the pods that match all of namespace, labels and `where`.

        Example: `Timeline.of(recording, "shop", {"app": "web"}, where=lambda pod: pod.node != "spot-0")`.
        """
        wanted = dict(labels or {})

        def selects(pod: PodSeen) -> bool:
            return (
                (namespace is None or pod.namespace == namespace)
                and wanted.items() <= dict(pod.labels).items()
                and (where is None or where(pod))
            )

        return _replay(recording, selects)

    def lowest_available(self, between: Between | None = None) -> int:
        """Return the fewest available pods at any moment (of the whole recording, unless told otherwise)."""
        return self.available.lowest(between or self.whole)

    def highest_total(self, between: Between | None = None, *, with_terminating: bool = True) -> int:
        """Return the most pods that existed at any one moment."""
        total = self.total if with_terminating else self.total_without_terminating
        return total.highest(between or self.whole)

    def seconds_below(self, number: int, between: Between | None = None) -> float:
        """Return for how many seconds fewer than `number` pods were available."""
        return self.available.seconds_below(number, between or self.whole)


def _replay(recording: Recording, selects: Callable[[PodSeen], bool]) -> Timeline:
    """Play the changes once, counting after each.

    Only the pods that a change concerns are looked at again: a node's change concerns all pods on it.
    """
    count = _Count()
    times: list[float] = []
    counted: list[tuple[int, int, int]] = []
    for change in recording.changes:
        match change:
            case PodChange(pod=pod, deleted=deleted):
                count.pod_changed(None if deleted or not selects(pod) else pod, pod.uid)
            case NodeChange(node=node, deleted=deleted):
                count.node_changed(node, deleted=deleted)
        now = (count.available, count.total, count.total - count.terminating)
        if counted and counted[-1] == now:
            continue
        times.append(change.at.monotonic_s)
        counted.append(now)
    available, total, without = zip(*counted, strict=True) if counted else ((), (), ())
    at = tuple(times)
    whole = Between(recording.began, recording.ended)
    return Timeline(whole, Steps(at, available), Steps(at, total), Steps(at, without))


class _Count:
    """The pods and nodes as they are at one moment of the replay, counted."""

    def __init__(self) -> None:
        self.available = 0
        self.total = 0
        self.terminating = 0
        self._pods: dict[str, PodSeen] = {}
        self._pods_on: dict[str, set[str]] = {}
        self._nodes: dict[str, NodeSeen] = {}

    def pod_changed(self, pod: PodSeen | None, uid: str) -> None:
        former = self._pods.pop(uid, None)
        if former:
            self._add(former, -1)
            self._pods_on[former.node].discard(uid)
        if pod and pod.phase not in _ENDED:
            self._pods[uid] = pod
            self._pods_on.setdefault(pod.node, set()).add(uid)
            self._add(pod, 1)

    def node_changed(self, node: NodeSeen, *, deleted: bool) -> None:
        known = self._nodes.get(node.name)
        if deleted and known and known.uid != node.uid:
            return  # the news of an older node's end, after a new one took its name
        pods = [self._pods[uid] for uid in self._pods_on.get(node.name, ())]
        for pod in pods:
            self._add(pod, -1)
        if deleted:
            self._nodes.pop(node.name, None)
        else:
            self._nodes[node.name] = node
        for pod in pods:
            self._add(pod, 1)

    def _add(self, pod: PodSeen, sign: int) -> None:
        self.total += sign
        self.terminating += sign * pod.terminating
        self.available += sign * self._is_available(pod)

    def _is_available(self, pod: PodSeen) -> bool:
        node = self._nodes.get(pod.node)
        serves = node is not None and node.ready and node.running
        return pod.ready and not pod.terminating and serves
