"""Were the promises kept in a round: judged by what the recorder saw, and by nothing that splitter says.

`run` gives it the recording of a round and what the world itself took away. Pure.

*The floor.* F is the least N of the round, less maxUnavailable where there is no surge. What serves may be
fewer only by what the world took: replicas whose machine went or fell silent, and pods that a hand deleted.
Each such loss excuses as many replicas as it took below F, and each one that is made good is excused no
longer: so a write that lowers what a loss has left is found too. A write that was sent before the loss could
not know of it: what it ends afterwards is excused as well, at most as many as the loss took above F.

*The bound.* At most the largest N of the round, plus S (or 1, the probe of a workload without surge). What
stands on a machine that goes is not counted, nor what a hand deleted. In a round with an emergency what was
already starting is excused besides: at most as many as ever were not yet ready at one moment after it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from lab.sandbox.instants import Instant
from lab.sandbox.recording import NodeChange, NodeSeen, PodChange, PodSeen, Recording

_ENDED = ("Succeeded", "Failed")
PLACEHOLDER = "splitter.io/placeholder"
"""The label of a pod that only holds room: no replica of anything."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is promised to one workload in one round. `spare`: pods beyond S for the moment of a rollout."""

    namespace: str
    least: int
    most: int
    surge: int
    unavailable: int
    spare: int = 0
    quorum: bool = False
    """Moved by eviction: on notice at once, but never to half of the members or fewer (docs/placement.md)."""

    @property
    def floor(self) -> int:
        """The fewest replicas that may serve."""
        return self.least if self.surge >= 1 else self.least - self.unavailable

    def when(self, *, emergency: bool) -> "Terms":
        """Return what is promised in a round in which machines go, or not."""
        if not (self.quorum and emergency):
            return self
        return replace(self, unavailable=self.least - self.least // 2 - 1)

    @property
    def bound(self) -> int:
        """The most replicas that there may be without an emergency."""
        return self.most + max(1, self.surge) + self.spare


@dataclass(frozen=True, slots=True)
class Taken:
    """What the world took: nodes by name (`emergency`: there was any), pods by uid."""

    nodes: Collection[str] = ()
    pods: Collection[str] = ()
    emergency: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """A write of splitter: when it was sent, and to what in which namespace."""

    at: Instant
    namespace: str
    name: str

    def may_end(self, pod: PodSeen) -> bool:
        """Whether it went to the pod, or to what its pod's name begins with, as pods of one controller do."""
        return pod.namespace == self.namespace and f"{pod.name}-".startswith(f"{self.name}-")


@dataclass(frozen=True, slots=True)
class Moment:
    """How a workload stood right after one change; replicas."""

    at_s: float
    serving: int
    lost: int
    """How many of those that served until now the world has just taken."""
    ended: PodSeen | None
    """The one that served until now and that no loss explains."""
    counted: int
    """How many exist, without those that go for the world's reasons."""
    starting: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """A round of one workload."""

    terms: Terms
    lowest: int
    excused: int
    highest: int
    starting: int
    faults: tuple[str, ...]


def judge(
    terms: Terms, recording: Recording, taken: Taken, since: Instant, sent: Sequence[Sent] = ()
) -> Verdict:
    """Return the verdict about one workload since a moment at which the recorder knew all there was."""
    terms = terms.when(emergency=taken.emergency)
    moments = list(_moments(terms.namespace, recording, taken, since))
    faults: list[str] = []
    allowed = most_excused = 0
    borne: list[float] = []  # when the world took what was above the floor, one time for each replica
    for moment in moments:
        short = terms.floor - moment.serving
        had, allowed = allowed, min(allowed + moment.lost, max(0, short))
        borne += [moment.at_s] * (moment.lost - max(0, allowed - had))
        if short > allowed and (unaware := _unaware(moment, borne, sent)) is not None:
            borne.remove(unaware)
            allowed += 1
        most_excused = max(most_excused, allowed)
        if short > allowed and not any(fault.startswith("floor") for fault in faults):
            faults.append(
                f"floor: {moment.serving} served at {_at(since, moment)}, {terms.floor} were promised and "
                f"{allowed} excused"
            )
    starting = max(moment.starting for moment in moments) if taken.emergency else 0
    highest = max(moments, key=lambda moment: moment.counted)
    if highest.counted > terms.bound + starting:
        faults.append(
            f"bound: {highest.counted} replicas at {_at(since, highest)}, at most {terms.bound} were promised"
            f" and {starting} were starting"
        )
    return Verdict(
        terms,
        lowest=min(moment.serving for moment in moments),
        excused=most_excused,
        highest=highest.counted,
        starting=starting,
        faults=tuple(faults),
    )


def story(namespace: str, recording: Recording, taken: Taken, since: Instant) -> Iterator[tuple[float, str]]:
    """Yield (monotonic seconds, one line) for each change that concerns a workload, for a person."""
    changes = [change for change in recording.changes if change.at > since]
    moments = list(_moments(namespace, recording, taken, since))
    for change, moment in zip(changes, moments[1:], strict=True):
        counts = f"{moment.serving} serve of {moment.counted}"
        match change:
            case PodChange(pod=pod) if pod.namespace == namespace:
                marks = " gone" if change.deleted else " terminating" if pod.terminating else ""
                ready = " ready" if pod.ready else ""
                yield moment.at_s, f"{counts}  pod {pod.name} on {pod.node or 'no node'}{ready}{marks}"
            case NodeChange(node=node):
                taints = " ".join(node.taints)
                well = "ready" if node.ready and node.running else "not ready"
                yield moment.at_s, f"{counts}  node {node.name} {'gone' if change.deleted else well} {taints}"
            case _:
                pass


def _unaware(moment: Moment, borne: Sequence[float], sent: Sequence[Sent]) -> float | None:
    """Return when the loss was that the write which ended a pod could not know of; None: there was none."""
    if moment.ended is None:
        return None
    cause_s = max(
        (
            write.at.monotonic_s
            for write in sent
            if write.at.monotonic_s <= moment.at_s and write.may_end(moment.ended)
        ),
        default=moment.at_s,
    )
    return next((lost_s for lost_s in borne if cause_s < lost_s), None)


def _at(since: Instant, moment: Moment) -> str:
    return f"{moment.at_s - since.monotonic_s:.2f} s"


class _Seen:
    """The pods of one namespace and the nodes, as they are at one moment of the recording."""

    def __init__(self, namespace: str, taken: Taken) -> None:
        self._namespace = namespace
        self._taken = taken
        self._pods: dict[str, PodSeen] = {}
        self._nodes: dict[str, NodeSeen] = {}
        self._serving: frozenset[str] = frozenset()
        # Their machine went. One of its name may run them again, as kubelets do, or not: nobody can say. So
        # they serve while they say so, and if they go it is the world that took them.
        self._orphans: set[str] = set()

    def change(self, change: PodChange | NodeChange) -> Moment:
        match change:
            case PodChange(pod=pod, deleted=deleted):
                self._pod_changed(pod, deleted=deleted)
            case NodeChange(node=node, deleted=deleted):
                self._node_changed(node, deleted=deleted)
        serving = frozenset(uid for uid, pod in self._pods.items() if self._serves(pod))
        gone, self._serving = self._serving - serving, serving
        by_world = [uid for uid in gone if isinstance(change, NodeChange) or self._world_took(uid)]
        ended = change.pod if isinstance(change, PodChange) and len(gone) > len(by_world) else None
        return self.moment(change.at, len(by_world), ended)

    def moment(self, at: Instant, lost: int = 0, ended: PodSeen | None = None) -> Moment:
        counted = [
            pod
            for pod in self._pods.values()
            if not pod.terminating and pod.node not in self._taken.nodes and pod.uid not in self._taken.pods
        ]
        starting = sum(not pod.ready for pod in counted)
        return Moment(at.monotonic_s, len(self._serving), lost, ended, len(counted), starting)

    def _world_took(self, uid: str) -> bool:
        """Whether a hand or the end of its machine took a pod, or its kubelet calls it not ready any more."""
        pod = self._pods.get(uid)
        known = uid in self._taken.pods or uid in self._orphans
        return known or (pod is not None and not pod.terminating)

    def _pod_changed(self, pod: PodSeen, *, deleted: bool) -> None:
        if pod.namespace != self._namespace or PLACEHOLDER in pod.labels:
            return
        if deleted or pod.phase in _ENDED:
            self._pods.pop(pod.uid, None)
        else:
            self._pods[pod.uid] = pod

    def _node_changed(self, node: NodeSeen, *, deleted: bool) -> None:
        known = self._nodes.get(node.name)
        if not deleted:
            self._nodes[node.name] = node
        elif known is not None and known.uid == node.uid:  # not an older one's end
            del self._nodes[node.name]
            self._orphans |= {uid for uid, pod in self._pods.items() if pod.node == node.name}

    def _serves(self, pod: PodSeen) -> bool:
        node = self._nodes.get(pod.node)
        runs = node is not None and node.ready and node.running
        return pod.ready and not pod.terminating and runs


def _moments(namespace: str, recording: Recording, taken: Taken, since: Instant) -> Iterator[Moment]:
    """Yield how it stood when the round began, and after each change from then on."""
    seen = _Seen(namespace, taken)
    for change in recording.changes:
        if change.at <= since:
            seen.change(change)
    yield seen.moment(since)
    for change in recording.changes:
        if change.at > since:
            yield seen.change(change)
