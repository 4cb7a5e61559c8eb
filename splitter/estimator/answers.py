"""Answers Karmada's three questions from the caches: bytes in, bytes out. It writes nothing.

`server` calls `answer` for each request, `Following` calls `look` each second. What cannot be answered is
refused with a gRPC status; Karmada then goes on by its own counts (K8).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum, unique
from itertools import chain
from typing import Final

from splitter.core.model import seconds_between
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.nodes.fit import PodRequest, Toleration
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.estimator import messages
from splitter.estimator.headroom import ANYWHERE, Headroom, ReplicaRequest, count_sets
from splitter.estimator.messages import Component, RoomRequest, UnschedulableRequest
from splitter.estimator.shortages import Shortages
from splitter.estimator.wire import WireError, number_field
from splitter.kube.cache import Cache
from splitter.kube.pod_views import PodViews
from splitter.kube.records import PodRecord, TwinRecord, few

MAX_BYTES: Final = 256 * 1024
"""Of one request. Karmada's have some hundred bytes."""
_MOST_REPLICAS: Final = 2**31 - 1
# 0.3 s for what a request may ask; a twin of the default templates has 69 requirements.
_MOST_COMPARED: Final = 1_000_000
# Kinds of waiting pods, by what they request: a tenant may create any number.
_MOST_WAITING: Final = 100


@unique
class Status(StrEnum):
    """The gRPC statuses that are answered, by their names."""

    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    UNAVAILABLE = "UNAVAILABLE"


class RefusedError(Exception):
    """A request that is not answered."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Estimator:
    """Answers for one member cluster."""

    def __init__(
        self,
        cluster: str,
        cache: Cache,
        spot_tolerations: tuple[Toleration, ...],
        unknown: Callable[[], str] = lambda: "",
    ) -> None:
        """`unknown`: says why the caches do not tell what is there now; empty if they do."""
        self._cluster = cluster
        self._cache = cache
        self._views = PodViews(cache)
        self._spot_tolerations = spot_tolerations
        self._unknown = unknown
        self._shortages = Shortages()
        self._changed: set[Key] = set()

    def changed(self, key: Key, *, urgent: bool) -> None:  # noqa: ARG002 - what a cache calls
        """Take note that something about a workload has changed."""
        self._changed.add(key)

    def look(self) -> None:
        """Look at the workloads that have changed: how many of their replicas have a place."""
        now = datetime.now(UTC)
        changed, self._changed = self._changed, set()
        for key in changed:
            self._shortages.note(key, self._missing(key, now), now)

    def answer(self, method: str, raw: bytes) -> bytes:
        """Return the response to a request. Raises RefusedError."""
        if len(raw) > MAX_BYTES:
            raise RefusedError(Status.RESOURCE_EXHAUSTED, f"a request may have {MAX_BYTES} bytes")
        try:
            asked = READERS[method](raw)
        except WireError as error:
            raise RefusedError(Status.INVALID_ARGUMENT, f"the request cannot be read: {error}") from error
        if asked.cluster != self._cluster:
            raise RefusedError(
                Status.INVALID_ARGUMENT, f"this is the estimator of the cluster {self._cluster}"
            )
        if why := self._unknown():
            raise RefusedError(Status.UNAVAILABLE, why)
        now = datetime.now(UTC)
        number = self._fits(asked, now) if isinstance(asked, RoomRequest) else self._without_place(asked, now)
        return number_field(1, min(number, _MOST_REPLICAS))

    def _fits(self, asked: RoomRequest, now: datetime) -> int:
        components = [(self._replica(one), one.replicas) for one in asked.components]
        assumed = [(self._replica(one), one.replicas) for one in asked.assumed]
        headroom = Headroom(self._cache.headroom(now))
        _must_be_quick(headroom, [one for one, _ in (*components, *assumed)])
        for replica, replicas in assumed:
            headroom.place(replica, replicas)
        return count_sets(self._free(headroom, [replica for replica, _ in components]), components)

    def _replica(self, one: Component) -> ReplicaRequest:
        return ReplicaRequest.of(one.pod, self._spot_tolerations)

    def _free(
        self, headroom: Headroom, replicas: Sequence[ReplicaRequest], own: frozenset[str] = frozenset()
    ) -> Headroom:
        """Return the nodes that admit them, without the room of pods that the scheduler has still to look at.

        Where those will go is not known, so all of them are taken to go there. What the scheduler has refused
        takes no room (K2). `own`: the UIDs of owners of pods that are among the replicas that are counted.
        """
        admitting = headroom.admitting(replicas)
        waiting = Counter(
            pod.requests
            for pod in self._cache.pods.values()
            if pod.node is None
            and pod.unschedulable_since is None
            and not (pod.finished or pod.terminating or pod.owner_uid in own)
        )
        for requests, pods in waiting.most_common(_MOST_WAITING):
            anywhere = PodRequest(dict(requests), tolerations=(ANYWHERE,))
            admitting.place(ReplicaRequest.of(anywhere), pods)
        return admitting

    def _without_place(self, asked: UnschedulableRequest, now: datetime) -> int:
        key, cache = asked.key, self._cache
        held = cache.twins.find("source", key)
        twins, owners = {twin.pool: twin for twin in held}, frozenset(self._owners(key, held))
        source = cache.sources.one("key", key)
        if source is None and not owners:
            raise RefusedError(Status.NOT_FOUND, f"there is no {key.kind} {key.namespace}/{key.name}")
        if source is None or set(twins) != set(Pool):
            return self._refused_for(owners, asked, now)
        self._changed.discard(key)
        missing = self._missing(key, now)
        self._shortages.note(key, missing, now)
        lasting = self._shortages.lasting(key, asked.threshold_s, now)
        if lasting >= missing or not any(map(is_announced, self._pods(key, now))):
            return lasting
        # K5: what finds a node in a moment is not moved away.
        replica = ReplicaRequest(twins[Pool.ON_DEMAND].request, twins[Pool.SPOT].request)
        headroom = Headroom(cache.headroom(now))
        _must_be_quick(headroom, [replica])
        free = self._free(headroom, [replica], owners).count(replica)
        return max(lasting, missing - free)

    def _missing(self, key: Key, now: datetime) -> int:
        """Return how many replicas of a split workload have no future: N without those that have a place."""
        source = self._cache.sources.one("key", key)
        if source is None or not self._cache.twins.find("source", key):
            return 0
        return max(0, source.view.replicas - sum(map(has_place, self._pods(key, now))))

    def _refused_for(self, owners: frozenset[str], asked: UnschedulableRequest, now: datetime) -> int:
        """Count as Karmada does (K7): of a workload without twins, the pods that were refused so long."""
        waits = (
            pod.unschedulable_since
            for pod in self._records(asked.key, owners)
            if not (pod.finished or pod.terminating) and pod.unschedulable_since is not None
        )
        return sum(seconds_between(since, now) >= asked.threshold_s for since in waits)

    def _pods(self, key: Key, now: datetime) -> Iterator[Replica]:
        owners = self._owners(key, self._cache.twins.find("source", key))
        return (self._views.of(pod, now) for pod in self._records(key, owners))

    def _records(self, key: Key, owners: Iterable[str]) -> Iterator[PodRecord]:
        return chain.from_iterable(self._cache.pods.find("owner", (key.namespace, owner)) for owner in owners)

    def _owners(self, key: Key, twins: Sequence[TwinRecord]) -> Iterator[str]:
        """Yield the UIDs of what owns its pods: the twins or their ReplicaSets, and the source's own."""
        sets = [
            *self._cache.replica_sets.find("deployment", (key.namespace, key.name)),
            *(
                rs
                for twin in twins
                for rs in self._cache.replica_sets.find("controller", (key.namespace, twin.uid))
            ),
        ]
        if key.kind == DEPLOYMENT:
            return (one.uid for one in few(sets))
        return (one.uid for one in (*twins, *self._cache.sources.find("key", key)))


def _must_be_quick(headroom: Headroom, replicas: Sequence[ReplicaRequest]) -> None:
    """Raise RefusedError for what would keep the process from all other questions."""
    if len(headroom) * sum(one.comparisons for one in replicas) > _MOST_COMPARED:
        raise RefusedError(Status.RESOURCE_EXHAUSTED, "it asks for more than can be compared with all nodes")


def is_announced(pod: Replica) -> bool:
    """Whether its node goes by a notice. One that is only cordoned, or that its owner replaces, has none."""
    return pod.node_status is NodeStatus.DOOMED and pod.notice_s is not None


def has_place(pod: Replica) -> bool:
    """Whether a replica has a future here (K4): it has a node, and nothing says that it loses it."""
    bound = pod.node_status not in {NodeStatus.UNBOUND, NodeStatus.LOST}
    return pod.counts and bound and not is_announced(pod)


READERS: Final[Mapping[str, Callable[[bytes], RoomRequest | UnschedulableRequest]]] = {
    "MaxAvailableReplicas": messages.max_replicas,
    "MaxAvailableComponentSets": messages.max_component_sets,
    "GetUnschedulableReplicas": messages.unschedulable,
}
"""What reads each of the three calls."""
