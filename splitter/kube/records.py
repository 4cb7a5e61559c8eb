"""The records that the cache keeps: one frozen dataclass for each kind.

`observe` parses raw objects into these and joins them into the core's views; nothing else reads them.
Interned strings and tuples: ten thousand pods must fit (docs/adr/0003).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from sys import getsizeof

import orjson

from splitter.core.labels_annotations import short_name
from splitter.core.limits import MAX_REPLICA_SETS, MAX_TERMS
from splitter.core.model import ReplicaSetView, SourceView, TwinView
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.nodes.facts import NodeEvent, NodeFacts, NodeState
from splitter.core.nodes.fit import MatchExpression, PodRequest, SpreadConstraint
from splitter.core.nodes.spot_supply import AutoscalerStatus, Claim
from splitter.core.placeable import Runs
from splitter.core.replica import Pool, Trouble
from splitter.core.split_status import SplitStatus
from splitter.core.split_status.view import SplitView
from splitter.core.template_sets import TemplateSet
from splitter.kube.packed import Labels, compact, unpacked

TEMPLATE_HASH = "pod-template-hash"


# What a record takes with its entries in the indexes.
_WEIGHT, _WEIGHT_OF_WORKLOAD = 2048, 8192
# What a pod keeps of a resource that it requests, beside its name: a pair and a number.
_WEIGHT_OF_RESOURCE = 100


@dataclass(frozen=True, slots=True)
class Record:
    """What every record has."""

    namespace: str
    """Empty for kinds of the whole cluster."""
    uid: str
    version: int
    """The resourceVersion."""

    @property
    def weight(self) -> int:
        """How many bytes it takes, about: what grows with what people write is counted."""
        return _WEIGHT


@dataclass(frozen=True, slots=True)
class PodRecord(Record):
    """One pod: its node, owner, readiness and requests."""

    name: str
    owner_uid: str | None
    node: str | None
    ready_since: datetime | None
    unready_since: datetime | None
    created: datetime
    terminating: bool
    terminating_since: datetime | None
    finished: bool
    bound_since: datetime | None
    unschedulable_since: datetime | None
    trouble: Trouble | None  # only of a pod that is not ready
    revision: str  # the template that it was made of: pod-template-hash, or a StatefulSet's revision
    born: Pool | None  # of a StatefulSet's pod: for which pool the admission policy made it
    labelled_for: str  # the workload that it is labelled for, where it bears our labels
    labels: Labels  # only of a pod of a ReplicaSet's, or that nobody controls
    of_replica_set: bool  # a ReplicaSet controls it
    held_for: str  # of a placeholder: the move that it holds room for
    deletion_cost: str | None
    cost_before: str | None
    cost_at: datetime | None  # when splitter last wrote to a pod that bears its cost
    termination_s: int
    priority: int
    requests: tuple[tuple[str, int], ...]

    @property
    def weight(self) -> int:
        """As of any record; pods may share labels and requests, and their writer may see that none do."""
        detail = self.trouble.detail if self.trouble is not None else ""
        texts = _size(detail, self.owner_uid or "", self.held_for, *(name for name, _ in self.requests))
        return _WEIGHT + self.labels.bytes + texts + _WEIGHT_OF_RESOURCE * len(self.requests)

    @property
    def unowned(self) -> tuple[str, str] | None:
        """Its namespace and pod-template-hash, if nobody controls it."""
        return (self.namespace, self.revision) if self.owner_uid is None and self.revision else None

    @property
    def labelled(self) -> tuple[str, str] | None:
        """Its namespace and the workload that it is labelled for, if it is."""
        return (self.namespace, self.labelled_for) if self.labelled_for else None


@dataclass(frozen=True, slots=True)
class ReplicaSetRecord(Record):
    """One ReplicaSet, splitter's or a user's."""

    controller_uid: str | None
    owner_uids: tuple[str, ...]  # all Deployments that own it, controlling or not
    owner_name: str | None  # the Deployment's name, of the first of them
    labels: Labels
    labels_unknown: bool  # its own, or those of its template
    template_labels_bytes: int
    deleting: bool
    packed_selector: bytes
    view: ReplicaSetView  # without its version, its pods, and how it hangs on a source

    @property
    def weight(self) -> int:
        """As of any record."""
        labels = self.labels.bytes + self.template_labels_bytes
        detail = self.view.refusal.detail if self.view.refusal is not None else ""
        texts = _size(detail, self.controller_uid or "", *self.owner_uids)
        return _WEIGHT + labels + len(self.packed_selector) + texts

    @property
    def selector(self) -> tuple[MatchExpression, ...]:
        """What it selects; of a long one so much that it is seen to have more than MAX_TERMS."""
        terms = orjson.loads(self.packed_selector)
        return tuple(MatchExpression(key, operator, tuple(values)) for key, operator, values in terms)

    @property
    def selects(self) -> tuple[str, str]:
        """Its namespace and the first label that its pods must have, as text: rivals are found by it."""
        named = (one for one in self.selector if one.operator == "In" and len(one.values) == 1)
        first = next((one for one in named if one.key != TEMPLATE_HASH), None)
        return self.namespace, f"{first.key}={first.values[0]}" if first is not None else ""


@dataclass(frozen=True, slots=True)
class TwinRecord(Record):
    """One generated Deployment or StatefulSet."""

    source: Key
    source_uid: str
    request: PodRequest  # what one of its pods asks the scheduler for
    spreads: tuple[SpreadConstraint, ...]  # and how its pods are to be spread
    owned: bytes  # which fields of its pod template are ours
    theirs: bytes  # and which another writer's
    created: datetime
    revision: str  # the one that its pods are rolled to
    view: TwinView  # without its version and its ReplicaSets

    @property
    def weight(self) -> int:
        """As of any record."""
        edits = sum(500 + 8 * len(orjson.dumps(one.value)) for one in self.view.edits)
        return (
            _WEIGHT_OF_WORKLOAD + len(self.owned) + len(self.theirs) + edits + 200 * self.request.requirements
        )

    @property
    def pool(self) -> Pool:
        """Which half of the split it is."""
        return self.view.pool

    @property
    def kind(self) -> str:
        """What it is: the same as its source."""
        return self.source.kind

    @property
    def key(self) -> Key:
        """What it is called."""
        return Key(self.kind, self.namespace, self.view.name)


@dataclass(frozen=True, slots=True)
class SourceRecord(Record):
    """One labelled source."""

    view: SourceView

    @property
    def weight(self) -> int:
        """As of any record: of its manifest once more, for what is read out of it."""
        templates = self.view.stateful.claim_templates if self.view.stateful is not None else ()
        read = _size(*self.view.claims, *templates, *self.view.selector_keys, self.view.selector)
        return _WEIGHT_OF_WORKLOAD + 2 * getsizeof(self.view.manifest_json) + read

    @property
    def kind(self) -> str:
        """What it is."""
        return self.view.key.kind


@dataclass(frozen=True, slots=True)
class NodeRecord(Record):
    """One node, assessed when it changed; the facts are kept, since others may say more about it."""

    created: datetime
    facts: NodeFacts
    state: NodeState


# While a workload moves it is looked at again and again, and its status is the same for most of that.
@lru_cache(maxsize=16)
def _parsed(status: bytes) -> SplitStatus:
    return SplitStatus.from_json(unpacked(status))


@dataclass(frozen=True, slots=True)
class SplitRecord(Record):
    """One Split."""

    name: str
    source: Key
    spec: SplitView  # without its status
    status: bytes = field(repr=False)  # packed: there are many, and a reconcile reads one
    state: str = ""
    template_set: str = ""  # that its last good policy names

    @property
    def labelled(self) -> tuple[str, str] | None:
        """As `PodRecord.labelled` of the pods that are labelled for its Deployment."""
        return (self.namespace, short_name(self.source.name)) if self.source.kind == DEPLOYMENT else None

    @property
    def weight(self) -> int:
        """As of any record."""
        return _WEIGHT + len(self.status) + 40 * len(self.spec.ordinals or ())

    @property
    def view(self) -> SplitView:
        """The whole of it: its status is parsed here, and nowhere else in a reconcile."""
        return replace(self.spec, status=_parsed(self.status))


@dataclass(frozen=True, slots=True)
class PlacementRecord(Record):
    """What the admission policy goes by in one namespace."""

    name: str
    sets: Mapping[str, tuple[str, Runs]]  # by the UID of a StatefulSet: its name, its on-demand ordinals
    spot_labels: frozenset[str] = frozenset()  # what spot nodes are asked by; none: everything that is known

    @property
    def weight(self) -> int:
        """As of any record."""
        return _WEIGHT + sum(300 + 128 * len(runs) for _, runs in self.sets.values())


@dataclass(frozen=True, slots=True)
class NamespaceRecord(Record):
    """One namespace's own annotations: defaults for its workloads."""

    name: str
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeEventRecord(Record):
    """One Event about a Node."""

    node: str
    node_uid: str  # some recorders leave it out, or write the name
    event: NodeEvent

    @property
    def weight(self) -> int:
        """As of any record."""
        return _WEIGHT + _size(self.node, self.node_uid)


@dataclass(frozen=True, slots=True)
class ClaimRecord(Record):
    """One NodeClaim of Karpenter's."""

    name: str
    node: str
    launched: bool  # a machine was found for it
    voluntary: bool  # its end is Karpenter's own choice
    consolidates: bool  # Karpenter would give it up for a cheaper one or for none, and asks budgets first
    ends: str  # when its machine is taken at the latest, as Karpenter wrote it; empty: nobody has said
    claim: Claim


@dataclass(frozen=True, slots=True)
class RefusalRecord(Record):
    """One Event that says that a NodeClaim got no machine."""

    at: datetime
    claim_name: str
    claim_uid: str

    @property
    def weight(self) -> int:
        """As of any record."""
        return _WEIGHT + _size(self.claim_name, self.claim_uid)


@dataclass(frozen=True, slots=True)
class AutoscalerRecord(Record):
    """The status of cluster-autoscaler."""

    status: AutoscalerStatus | None


@dataclass(frozen=True, slots=True)
class TemplateSetRecord(Record):
    """One ConfigMap with a template set."""

    template_set: TemplateSet


def _size(*texts: str) -> int:
    """Return what texts take, and their places: of each letter up to four bytes."""
    return sum(getsizeof(text) + 8 for text in texts)


def pack_selector(terms: Sequence[MatchExpression]) -> bytes:
    """Return a selector as JSON: parsed, it takes up to 15 times as much. Of a long one the beginning."""
    kept, left = [], MAX_TERMS + 1
    for term in terms:
        if left <= 0:
            break
        kept.append((term.key, term.operator, term.values[:left]))
        left -= max(1, len(term.values))
    return compact(kept)


def few(records: Sequence[ReplicaSetRecord]) -> Sequence[ReplicaSetRecord]:
    """Return as many as a reconcile looks at, and one more if there are more: with replicas, then the newest.

    Whoever may create ReplicaSets chooses how many there are.
    """
    if len(records) <= MAX_REPLICA_SETS:
        return records
    by_weight = sorted(
        records, key=lambda one: (bool(one.view.spec_replicas or one.view.status_replicas), one.view.created)
    )
    return by_weight[-MAX_REPLICA_SETS - 1 :]
