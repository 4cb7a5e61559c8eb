"""Follows what the dashboard shows: Splits, pods and nodes, with the rights of whoever looks.

Each kind may be refused, and may come later: `missing` says what cannot be shown, and the rest goes on. Every
change names the workloads that it concerns. Nothing is written.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from splitter.core.labels_annotations import short_name
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.nodes.facts import Health
from splitter.kube import parse
from splitter.kube.asks import Assess
from splitter.kube.client import Client
from splitter.kube.paths import NODES, pods, splits
from splitter.kube.records import NodeRecord, PodRecord, SplitRecord
from splitter.kube.store import Indexer
from splitter.kube.watch import Reflector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

logger = logging.getLogger("splitter.cluster_view")

# So long the first view waits for the first lists; what has not come by then comes to the page later.
_FIRST_LISTS_S = 10.0

Changed = Callable[[Key | None], object]
"""Told of each change: of a workload, or with None of a node on which no replica stands."""

_TROUBLED = frozenset({Health.DOOMED, Health.GONE})
_LOST = {
    "splits": "no workload is shown",
    "pods": "replicas are not shown on their nodes",
    "nodes": "nodes are shown by name only, and no notice is seen before splitter tells of it",
}


class ClusterView:
    """Splits, pods and nodes as they are now; `run` keeps them so."""

    def __init__(
        self,
        client: Client,
        namespaces: Sequence[str],
        assess: Assess,
        changed: Changed,
        wanted: Callable[[Key], bool] = lambda _: True,
    ) -> None:
        """`namespaces`: where to look; none means all."""
        self._changed = changed
        self._wanted = wanted
        self.splits = Indexer(
            parse.split,
            {"key": lambda record: record.source, "label": _labelled, "owner": _owner},
            self._split_changed,
        )
        self.pods = Indexer(
            parse.pod,
            {
                "labelled": lambda record: record.labelled,
                "owner": lambda record: (record.namespace, record.owner_uid),
                "node": lambda record: record.node,
            },
            self._pod_changed,
        )
        self.nodes = Indexer(
            partial(parse.node, assess),
            {
                "name": lambda record: record.facts.name,
                "troubled": lambda record: record.state.health in _TROUBLED or None,
            },
            self._node_changed,
        )
        self._reflectors = [Reflector(client, NODES, self.nodes, without=_LOST["nodes"])]
        for namespace in namespaces or ("",):
            self._reflectors += [
                Reflector(client, splits(namespace), self.splits, without=_LOST["splits"]),
                Reflector(client, pods(namespace), self.pods, without=_LOST["pods"]),
            ]

    def followed(self) -> AbstractAsyncContextManager[None]:
        """Follow everything until the end of the block; each kind was listed or refused when it begins."""
        return followed(self._reflectors)

    @property
    def missing(self) -> tuple[str, ...]:
        """What cannot be shown now, and why: a sentence each."""
        return missing_of(self._reflectors, _LOST)

    def sees(self, plural: str) -> bool:
        """Whether objects of this kind may be read, as far as is known."""
        return not any(one.path.plural == plural and one.left_out for one in self._reflectors)

    def split(self, key: Key) -> SplitRecord | None:
        """Return the Split of a workload, if it was asked for."""
        return self.splits.one("key", key) if self._wanted(key) else None

    def pods_of(self, split: SplitRecord) -> list[PodRecord]:
        """Return the pods of a workload: those of its twins, and in placement mode its own."""
        result = {
            pod.uid: pod
            for pod in self.pods.find("labelled", _labelled(split))
            if pod.of_replica_set is (split.source.kind == DEPLOYMENT) or pod.owner_uid is None
        }
        if (owner := _owner(split)) is not None:
            result |= {pod.uid: pod for pod in self.pods.find("owner", owner)}
        return list(result.values())

    def node(self, name: str) -> NodeRecord | None:
        """Return a node, if it is there and may be seen."""
        return self.nodes.one("name", name)

    def troubled_nodes(self) -> tuple[NodeRecord, ...]:
        """Return the nodes that are announced to go, or are not Ready."""
        return self.nodes.find("troubled", True)  # noqa: FBT003 (the key of an index)

    def splits_on(self, node: str) -> dict[Key, int]:
        """Return which workloads have replicas on a node, and how many."""
        result: dict[Key, int] = {}
        for pod in self.pods.find("node", node):
            split = None if pod.finished else self._split_of(pod)
            if split is not None and self._wanted(split.source):
                result[split.source] = result.get(split.source, 0) + 1
        return result

    def _split_of(self, pod: PodRecord) -> SplitRecord | None:
        if pod.owner_uid is not None:
            split = self.splits.one("owner", (pod.namespace, pod.owner_uid))
            if split is not None:
                return split
        if pod.labelled is None:
            return None
        is_deployment = pod.of_replica_set
        return next(
            (
                split
                for split in self.splits.find("label", pod.labelled)
                if (split.source.kind == DEPLOYMENT) is is_deployment
            ),
            None,
        )

    def _split_changed(self, old: SplitRecord | None, new: SplitRecord | None) -> None:
        record = new or old
        if record is not None and self._wanted(record.source):
            self._changed(record.source)

    def _pod_changed(self, old: PodRecord | None, new: PodRecord | None) -> None:
        record = new or old
        split = self._split_of(record) if record is not None else None
        if split is not None and self._wanted(split.source):
            self._changed(split.source)

    def _node_changed(self, old: NodeRecord | None, new: NodeRecord | None) -> None:
        if old is not None and new is not None and old.state == new.state:
            return  # a heartbeat
        self._changed(None)
        if (record := new or old) is not None:
            for key in self.splits_on(record.facts.name):
                self._changed(key)


@asynccontextmanager
async def followed(reflectors: Sequence[Reflector]) -> "AsyncIterator[None]":
    """Follow these collections until the end of the block; each was listed or refused when it begins.

    An API server that does not answer is named by `missing_of`, and waited for.
    """
    tasks = [asyncio.create_task(one.run()) for one in reflectors]
    for task in tasks:
        task.add_done_callback(_complain)
    try:
        with suppress(TimeoutError):  # the page says so
            async with asyncio.timeout(_FIRST_LISTS_S):
                for one in reflectors:
                    await one.answered.wait()
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def missing_of(reflectors: Sequence[Reflector], lost: Mapping[str, str]) -> tuple[str, ...]:
    """Return what of these collections cannot be shown now, and why; `lost`: what follows, by their kinds."""
    return tuple(dict.fromkeys(filter(None, (_missing(one, lost) for one in reflectors))))


def _complain(task: "asyncio.Task[None]") -> None:
    """Log that a kind is no longer followed: a reflector never ends by itself."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("what is shown is no longer up to date, this is a bug of splitter's", exc_info=error)


def _labelled(split: SplitRecord) -> tuple[str, str]:
    """Return what the pods of its twins are labelled with."""
    return split.namespace, short_name(split.source.name)


def _owner(split: SplitRecord) -> tuple[str, str] | None:
    """Return by which owner the pods of a set in placement mode are known: the source owns both."""
    if split.spec.ordinals is None or not split.spec.owner_uids:
        return None
    return split.namespace, split.spec.owner_uids[0]


def _missing(reflector: Reflector, lost: Mapping[str, str]) -> str:
    path, error = reflector.path, reflector.error
    if not reflector.answered.is_set() and error is None:
        return f"{path.plural} are still being read"
    if error is None:
        return ""
    if not reflector.left_out:
        return f"{path.plural} are not up to date: the API server does not answer ({error.message or error})"
    if error.status == HTTPStatus.NOT_FOUND:
        return f"this cluster knows no {path.plural}: is splitter installed there? {lost[path.plural]}"
    where = f" in namespace {path.namespace}" if path.namespace else ""
    return f"these credentials may not list {path.plural}{where}: {lost[path.plural]}"
