"""The cache of the cluster's objects; a change enqueues the workloads that it affects.

One indexer a kind, filled by reflectors.
Each change is turned into the keys of the workloads it concerns, and they are woken; what changed is
forgotten on purpose, since a reconcile looks at everything. A change of a node's health enqueues the owners
of its pods urgently, and so does what others say about a node (`external_signals`). Nothing here knows what
will be done.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from splitter.core.labels_annotations import ANNOTATION_TEMPLATE, SOURCES_SELECTOR, TWINS_SELECTOR
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key
from splitter.core.nodes.facts import CapacityClass, Health, NodeState
from splitter.core.nodes.fit import NodeHeadroom, PodRequest
from splitter.core.nodes.signals import gone, is_same_machine
from splitter.core.nodes.spot_supply import Blocked, kind_of
from splitter.core.reasons import State
from splitter.core.replica import Pool
from splitter.kube import parse
from splitter.kube.applied import AppliedFields
from splitter.kube.asks import Assess, Enqueue
from splitter.kube.budgets import Budgets
from splitter.kube.client import Client
from splitter.kube.external_signals import ExternalSignals
from splitter.kube.mutations import NONE, Mutations
from splitter.kube.node_usage import NodeUsage
from splitter.kube.paths import NAMESPACES, NODES, pods, replica_sets, splits, workloads
from splitter.kube.placement_cache import PlacementCache
from splitter.kube.predicates import OwnStatuses, needs_reconcile, source_needs_reconcile, stands
from splitter.kube.records import (
    NamespaceRecord,
    NodeRecord,
    PodRecord,
    ReplicaSetRecord,
    SourceRecord,
    SplitRecord,
    TwinRecord,
)
from splitter.kube.shares import Shares
from splitter.kube.store import Indexer
from splitter.kube.template_sets import TemplateSets
from splitter.kube.unseen import unseen
from splitter.kube.watch import Reflector

logger = logging.getLogger("splitter.cache")

# Fewer on-demand nodes than this prove nothing about our view when half of them are NotReady.
_FEW_NODES = 3
# Nodes that were seen and are gone, remembered to tell their pods from pods of nodes not seen yet.
_VANISHED = 4096
# Evicted pods whose end the watch may not have told yet: more than can be under way at once.
_EVICTED = 1024


class Cache:
    """All indexers, and the reflectors that fill them."""

    def __init__(
        self,
        assess: Assess,
        enqueue: Enqueue,
        autoscaler_status: str = "",
        own_namespace: str = "",
        *,
        hear_node_events: bool = True,
    ) -> None:
        self._assess = assess
        self._enqueue = enqueue
        self._autoscaler_status = autoscaler_status
        self.applied = AppliedFields()
        self.statuses = OwnStatuses()
        self._view_broken: bool | None = None  # None: to be counted
        self._contradictory: set[str] = set()  # UIDs of nodes that were said to be so
        self.external_signals = ExternalSignals(
            self._node_signalled, self._capacity_signalled, node_events=hear_node_events
        )
        self.template_sets = TemplateSets(own_namespace, self._template_set_changed)
        self.written: list[Reflector] = []  # of what splitter itself writes, ReplicaSets and pods left out
        self._evicted: OrderedDict[str, None] = OrderedDict()  # UIDs of pods that we have evicted
        self.vanished: dict[str, NodeState] = {}  # by name
        self.predecessors: dict[str, NodeState] = {}  # by the UID of the next node of that name
        self.shares = shares = Shares()
        by_key = {"key": lambda record: record.view.key}
        self.sources = Indexer(parse.source, by_key, self._source_changed, shares=shares)
        self.splits = Indexer(
            parse.split,
            {
                "source": lambda record: record.source,
                "name": lambda record: (record.namespace, record.name),
                "namespace": lambda record: record.namespace,
                "labelled": lambda record: record.labelled,
            },
            self._split_changed,
            shares=shares,
        )
        self.budgets = Budgets(self._budget_changed, shares)
        self.placements = PlacementCache(partial(enqueue, urgent=False), self._knows, shares)
        self.twins = Indexer(
            parse.twin, {"source": lambda record: record.source}, self._twin_changed, shares=shares
        )
        self.replica_sets = Indexer(
            parse.replica_set,
            {
                "controller": lambda record: (record.namespace, record.controller_uid),
                "deployment": lambda record: (record.namespace, record.owner_name),
                "selects": lambda record: record.selects,
            },
            self._replica_set_changed,
            shares=shares,
        )
        self.pods = Indexer(
            parse.pod,
            {
                "owner": lambda record: (record.namespace, record.owner_uid),
                "node": lambda record: record.node,
                "unowned": lambda record: record.unowned,
                "labelled": lambda record: record.labelled,
            },
            self._pod_changed,
            shares=shares,
        )
        self._node_usage = NodeUsage(self.pods)
        self.nodes = Indexer(
            partial(parse.node, assess),
            {
                "name": lambda record: record.facts.name,
                "kind": lambda record: kind_of(record.state),
                "hopeful": lambda record: record.state.is_spot and record.state.health is Health.HEALTHY,
            },
            self._node_changed,
        )
        by_name = {"name": lambda record: record.name}
        self.namespaces = Indexer(parse.namespace, by_name, self._namespace_changed)

    def reflectors(self, client: Client, namespaces: Sequence[str]) -> list[Reflector]:
        """Return the reflectors to run; namespaced kinds only in `namespaces` when some are named."""
        reflectors = [Reflector(client, NODES, self.nodes)]
        reflectors += self.external_signals.reflectors(client, self._autoscaler_status)
        reflectors += self.template_sets.reflectors(client)
        if not namespaces:
            reflectors.append(Reflector(client, NAMESPACES, self.namespaces))
        for namespace in namespaces or ("",):  # without one: all of them at once
            reflectors.append(Reflector(client, pods(namespace), self.pods))
            reflectors.append(Reflector(client, replica_sets(namespace), self.replica_sets))
            reflectors.append(self.budgets.reflector(client, namespace))
            self.written += self.written_in(client, namespace)
        return reflectors + self.written

    def written_in(self, client: Client, namespace: str) -> list[Reflector]:
        """Return what follows what splitter itself writes in a namespace."""
        reflectors = [self.placements.reflector(client, namespace)]
        reflectors.append(Reflector(client, splits(namespace), self.splits))
        for kind in (DEPLOYMENT, STATEFUL_SET):
            path = workloads(kind, namespace)
            sources = self.sources.of_kind(kind, partial(_is_of, kind))
            twins = self.twins.of_kind(kind, partial(_is_of, kind))
            reflectors.append(Reflector(client, path, sources, SOURCES_SELECTOR))
            reflectors.append(Reflector(client, path, twins, TWINS_SELECTOR))
        return reflectors

    def node_state(self, node: NodeRecord, now: datetime) -> NodeState:
        """Return the state of a node now, with external signals about it."""
        joined = self.external_signals.joined(node)
        return node.state if joined is node else self._assess(joined.facts, now=now)

    def spot_headroom(self, now: datetime) -> Iterator[NodeHeadroom]:
        """Yield the spot nodes that may be healthy, and what is promised there, counted one by one."""
        for node in self.nodes.find("hopeful", True):  # noqa: FBT003 (the key of an index)
            yield NodeHeadroom(self.node_state(node, now), self._node_usage.used(node.facts.name))

    def headroom(self, now: datetime) -> Iterator[NodeHeadroom]:
        """Yield all nodes, and what is promised there."""
        for node in self.nodes.values():
            yield NodeHeadroom(self.node_state(node, now), self._node_usage.used(node.facts.name))

    def carries_split(self, node_name: str) -> bool:
        """Whether a pod of a workload that is split stands on a node."""
        pods = (pod for pod in self.pods.find("node", node_name) if stands(pod))
        return any((key := self._source_of_pod(pod)) is not None and self._is_split(key) for pod in pods)

    @property
    def view_broken(self) -> bool:
        """Whether more than half of the on-demand nodes are NotReady: then our view is broken, not spot."""
        if self._view_broken is None:
            on_demand = [record.state for record in self.nodes.values() if not record.state.is_spot]
            absent = sum(1 for state in on_demand if state.health is Health.GONE)
            self._view_broken = len(on_demand) >= _FEW_NODES and absent * 2 > len(on_demand)
        return self._view_broken

    def count_nodes(self, capacity: CapacityClass) -> int:
        """Return how many nodes are paid for like this; may be called from another thread."""
        return sum(node.state.capacity is capacity for node in list(self.nodes.values()))

    def spot_blocked(self, pod: PodRequest, now: datetime) -> Blocked | None:
        """Return why no spot machine can be had for such a replica, if the autoscalers say so."""
        return self.external_signals.blocked(pod, (node.state for node in self.nodes.samples("kind")), now)

    def silent_from(self, node_names: Iterable[str], now: datetime) -> datetime | None:
        """Return when time alone changes what these nodes are: an Event about one of them grows stale."""
        records = (self.nodes.one("name", name) for name in node_names)
        return self.external_signals.silent_from((node for node in records if node is not None), now)

    def twin_applied(self, raw: Mapping[str, Any], made: Mutations = NONE) -> None:
        """Take the answer to our own write of a twin's template, and remember what became of its fields."""
        self.applied.answered(raw, made)
        self.twins.upsert(raw)

    def evicted(self, uid: str) -> None:
        """Remember that a pod was evicted: the answer does not show it, and the watch may be late."""
        self._evicted[uid] = None
        if len(self._evicted) > _EVICTED:
            self._evicted.popitem(last=False)

    def is_ending(self, pod: PodRecord) -> bool:
        """Whether a pod is on its way out, as far as is known."""
        return pod.terminating or pod.uid in self._evicted

    def find_vanished(self) -> None:
        """Find the nodes that went while we were not there: of pods that are older than the list of nodes.

        Called once, after the first complete lists. A pod seen before its brand-new node is younger than
        that list, and its node stays "not seen yet".
        """
        for pod in self.pods.values():
            if pod.node is None or pod.version > self.nodes.listed_version():
                continue
            if pod.node in self.vanished or self.nodes.one("name", pod.node) is not None:
                continue
            self.vanished[pod.node] = unseen(pod.node)

    def workloads(self) -> set[Key]:
        """Every workload that may be ours: labelled, reported on, or owner of something of ours."""
        parked = {
            Key(DEPLOYMENT, record.namespace, record.owner_name)
            for record in self.replica_sets.values()
            if record.owner_name and record.controller_uid is None
        }
        return (
            {record.view.key for record in self.sources.values()}
            | {record.source for record in self.splits.values()}
            | self.placements.keys()
            | {record.source for record in self.twins.values()}
            | parked
        )

    def _source_changed(self, old: SourceRecord | None, new: SourceRecord | None) -> None:
        if (record := new or old) is not None and source_needs_reconcile(old, new):
            self._enqueue(record.view.key, urgent=False)

    def _split_changed(self, old: SplitRecord | None, new: SplitRecord | None) -> None:
        if (record := new or old) is not None and self.statuses.needs_reconcile(old, new):
            self._enqueue(record.source, urgent=False)

    def _twin_changed(self, old: TwinRecord | None, new: TwinRecord | None) -> None:
        if (record := new or old) is not None and needs_reconcile(old, new):
            self._enqueue(record.source, urgent=False)
        if new is None and old is not None:
            self.applied.forget(old.uid)

    def _replica_set_changed(self, old: ReplicaSetRecord | None, new: ReplicaSetRecord | None) -> None:
        key = self._owner_of(record) if (record := new or old) is not None else None
        if key is not None and needs_reconcile(old, new):
            self._enqueue(key, urgent=False)

    def _pod_changed(self, old: PodRecord | None, new: PodRecord | None) -> None:
        if not needs_reconcile(old, new):
            return
        self._node_usage.pod_changed(old, new)
        record = new or old
        if record is not None and (key := self._source_of_pod(record)) is not None:
            self._enqueue(key, urgent=False)

    def _node_changed(self, old: NodeRecord | None, new: NodeRecord | None) -> None:
        broken, self._view_broken = self._view_broken, None
        if broken and not self.view_broken:  # all were held meanwhile, and nothing else would tell them
            for key in self.workloads():
                self._enqueue(key, urgent=self._is_split(key))
        if new is None and old is not None:
            self._contradictory.discard(old.uid)
            self.predecessors.pop(old.uid, None)
            self.vanished[old.state.name] = gone(old.state)
            if len(self.vanished) > _VANISHED:
                del self.vanished[next(iter(self.vanished))]
        elif new is not None:
            before = self.vanished.pop(new.state.name, None)
            if before is not None and not is_same_machine(before, new.state):
                self.predecessors[new.uid] = before
            if old is not None and old.state == new.state:
                return  # a heartbeat
            self._complain_about(new)
            self.placements.saw(new.state.spot_labels)
        if (record := new or old) is not None:
            self.enqueue_owners_on(record.facts.name)

    def _complain_about(self, node: NodeRecord) -> None:
        """Log once that a node's labels do not say whether it is spot, and have to be corrected."""
        if node.state.contradiction and node.uid not in self._contradictory:
            self._contradictory.add(node.uid)
            logger.warning(
                "node %s has contradictory marks and counts as on-demand: %s. Mend its labels, or name your"
                " own in spot_selectors or on_demand_selectors",
                node.facts.name,
                node.state.contradiction,
            )

    def _node_signalled(self, name: str) -> None:
        if self.nodes.one("name", name) is not None:
            self.enqueue_owners_on(name)

    def _capacity_signalled(self) -> None:
        """Enqueue the workloads that wait for spot."""
        for twin in self.twins.values():
            if twin.pool is Pool.SPOT and twin.view.available_replicas < twin.view.spec_replicas:
                self._enqueue(twin.source, urgent=False)
        for split in self.splits.values():
            if split.spec.ordinals is not None and split.state != State.STEADY:
                self._enqueue(split.source, urgent=False)

    def enqueue_owners_on(self, node_name: str) -> None:
        """Ask for a reconcile of each workload with a pod on a node: urgent, if it can be helped there."""
        for pod in self.pods.find("node", node_name):
            if not pod.finished and (key := self._source_of_pod(pod)) is not None:
                self._enqueue(key, urgent=stands(pod) and self._is_split(key))

    def put_endangered_first(self) -> None:
        """Have those looked at first whose nodes are unwell, or went while nobody looked.

        The nodes are listed long before the pods: when they were seen, nothing was known to stand on them.
        """
        unwell = [node.facts.name for node in self.nodes.values() if node.state.health is not Health.HEALTHY]
        for name in (*unwell, *self.vanished):
            self.enqueue_owners_on(name)

    def _is_split(self, key: Key) -> bool:
        """Whether there is anything to raise: a twin, or in placement mode ordinals."""
        placed = any(split.spec.ordinals is not None for split in self.splits.find("source", key))
        return placed or bool(self.twins.find("source", key))

    def _namespace_changed(self, old: NamespaceRecord | None, new: NamespaceRecord | None) -> None:
        if old is not None and new is not None and old.annotations == new.annotations:
            return
        if (record := new or old) is not None:
            for source in self.sources.values():
                if source.namespace == record.name:
                    self._enqueue(source.view.key, urgent=False)

    def _budget_changed(self, namespace: str, split_uid: str | None) -> None:
        """Enqueue the workload; for a user's budget all of the namespace, since it may select their pods."""
        ours = self.splits.get(namespace, split_uid) if split_uid is not None else None
        for split in self.splits.find("namespace", namespace) if ours is None else (ours,):
            self._enqueue(split.source, urgent=False)

    def _template_set_changed(self, name: str) -> None:
        """Enqueue the workloads that name the set, or did when their annotations could last be read."""
        for source in self.sources.values():
            if name in self._template_sets_of(source):
                self._enqueue(source.view.key, urgent=False)

    def _template_sets_of(self, source: SourceRecord) -> Iterable[str]:
        namespace = self.namespaces.one("name", source.namespace)
        split = self.splits.one("source", source.view.key)
        written = (source.view.annotations, namespace.annotations if namespace else {})
        last_good = split.template_set if split else ""
        return (last_good, *(annotations.get(ANNOTATION_TEMPLATE, "") for annotations in written))

    def _source_of_pod(self, pod: PodRecord) -> Key | None:
        """Return the source that a pod belongs to, if it may be ours: by its owner, or by its label."""
        if pod.owner_uid is None:
            return next((split.source for split in self.splits.find("labelled", pod.labelled)), None)
        if (replica_set := self.replica_sets.get(pod.namespace, pod.owner_uid)) is not None:
            return self._owner_of(replica_set)
        if (twin := self.twins.get(pod.namespace, pod.owner_uid)) is not None:
            return twin.source
        if (source := self.sources.get(pod.namespace, pod.owner_uid)) is not None:
            return source.view.key
        split = self.splits.get(pod.namespace, pod.owner_uid)  # of a placeholder
        return split.source if split is not None else None

    def _owner_of(self, record: ReplicaSetRecord) -> Key | None:
        """Return the source that a ReplicaSet belongs to, through its twin or directly, if it may be ours."""
        for uid in record.owner_uids:
            if (twin := self.twins.get(record.namespace, uid)) is not None:
                return twin.source
        if record.owner_name is None:
            return None
        key = Key(DEPLOYMENT, record.namespace, record.owner_name)
        return key if self._knows(key) else None

    def _knows(self, key: Key) -> bool:
        return bool(self.sources.find("key", key) or self.splits.find("source", key))


def _is_of(kind: str, record: SourceRecord | TwinRecord) -> bool:
    return record.kind == kind
