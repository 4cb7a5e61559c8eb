"""Follows optional signals about nodes and capacity: they make splitter faster.

`cache` owns the one `ExternalSignals`. Four collections are followed where they exist and may be read: Events
about Nodes, Events about NodeClaims that got no machine, NodeClaims, and the status of
cluster-autoscaler. Events about what has no namespace are in the namespace `default`, so that is all
that is read of Events; the API server keeps no watch cache of them and reads whatever is asked for from
etcd. What was heard is joined with a node's own facts when somebody asks; nothing here decides, and
nothing knows the time (docs/adr/0014).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Generic, TypeVar

from splitter.core.nodes.facts import NodeEvent, NodeState
from splitter.core.nodes.fit import PodRequest
from splitter.core.nodes.signals import HINT_EVENTS, NOTICE_EVENTS, TERMINATION_ANNOTATION, stale_at
from splitter.core.nodes.spot_supply import (
    INSUFFICIENT_CAPACITY,
    AutoscalerStatus,
    Blocked,
    Claim,
    spot_blocked,
)
from splitter.kube import parse
from splitter.kube.client import Client
from splitter.kube.paths import NODE_CLAIMS, ResourcePath, config_maps
from splitter.kube.records import (
    AutoscalerRecord,
    ClaimRecord,
    NodeEventRecord,
    NodeRecord,
    Record,
    RefusalRecord,
)
from splitter.kube.store import Indexer, Reading
from splitter.kube.watch import Reflector

R = TypeVar("R", bound=Record)

# Karpenter deletes a NodeClaim in the moment in which it says that there was no machine for it.
_CLAIMS_REMEMBERED = 256
# Where Events about what has no namespace are.
_EVENTS = ResourcePath("/api/v1", "events", "default")


class ExternalSignals:
    """What was heard; `about_node(name)` and `about_capacity()` are called after each change that matters."""

    def __init__(
        self,
        about_node: Callable[[str], None],
        about_capacity: Callable[[], None],
        *,
        node_events: bool = True,
    ) -> None:
        """Begin without signals; without `node_events`, Events about Nodes are ignored (docs/adr/0035)."""
        self._node_events = node_events
        self._about_node = about_node
        self._about_capacity = about_capacity
        self._former_claims: OrderedDict[str, Claim] = OrderedDict()
        self.events = Indexer(parse.node_event, {"node": lambda record: record.node}, self._event_changed)
        self.claims = Indexer(parse.claim, {"node": lambda record: record.node}, self._claim_changed)
        self.refusals = Indexer(partial(parse.refusal, self._claim_of), {}, self._refusal_changed)
        self.autoscaler = Indexer(parse.autoscaler, {}, self._autoscaler_changed)

    def reflectors(self, client: Client, autoscaler_status: str) -> list[Reflector]:
        """Return the reflectors to run; `autoscaler_status` is namespace/name, empty for none."""
        about_nodes = Reflector(
            client,
            _EVENTS,
            ReasonFilter(self.events, NOTICE_EVENTS | HINT_EVENTS),
            fields="involvedObject.kind=Node",
            without="notices are seen in taints and conditions only, which may be seconds later",
        )
        reflectors = [
            *([about_nodes] if self._node_events else []),
            Reflector(
                client,
                _EVENTS,
                ReasonFilter(self.refusals, INSUFFICIENT_CAPACITY),
                fields="involvedObject.kind=NodeClaim",
                without="spot that Karpenter cannot get is covered after the grace only",
            ),
            Reflector(
                client,
                NODE_CLAIMS,
                self.claims,
                without="Karpenter's own choices are not told apart from reclaims",
            ),
        ]
        namespace, _, name = autoscaler_status.partition("/")
        if name:
            reflectors.append(
                Reflector(
                    client,
                    config_maps(namespace),
                    self.autoscaler,
                    fields=f"metadata.name={name}",
                    without="spot that cluster-autoscaler cannot get is covered after the grace only",
                )
            )
        return reflectors

    def events_about(self, node: NodeRecord) -> tuple[NodeEvent, ...]:
        """Return the Events about this very Node: its UID, or its name and no other UID, and younger."""
        return tuple(
            record.event
            for record in self.events.find("node", node.facts.name)
            if record.node_uid in {node.uid, node.facts.name, ""} and record.event.at >= node.created
        )

    def joined(self, node: NodeRecord) -> NodeRecord:
        """Return a node with the external signals about it; the same record when there are none."""
        if not len(self.events) and not len(self.claims):
            return node
        events = self.events_about(node)
        claims = self.claims.find("node", node.facts.name)
        voluntary = any(claim.voluntary for claim in claims)
        ends = max((claim.ends for claim in claims), default="")
        if not events and not voluntary and not ends:
            return node
        announced = {TERMINATION_ANNOTATION: ends} if ends else {}
        annotations = {**node.facts.annotations, **announced}
        facts = replace(node.facts, events=events, voluntary=voluntary, annotations=annotations)
        return replace(node, facts=facts)

    def consolidate(self, nodes: Iterable[str]) -> bool | None:
        """Whether Karpenter would give up one of these nodes; None where none of them is Karpenter's."""
        claims = [claim for node in nodes for claim in self.claims.find("node", node)]
        return any(claim.consolidates for claim in claims) if claims else None

    def silent_from(self, nodes: Iterable[NodeRecord], now: datetime) -> datetime | None:
        """Return when the first Event about one of these nodes grows stale, if one will."""
        times = (stale_at(event) for node in nodes for event in self.events_about(node))
        return min((at for at in times if at is not None and at >= now), default=None)

    def blocked(self, pod: PodRequest, nodes: Iterable[NodeState], now: datetime) -> Blocked | None:
        """Return why no spot machine can be had for such a replica, if the autoscalers say so."""
        refusals = (record.refusal for record in self.refusals.values())
        return spot_blocked(pod, nodes, self._status, refusals, now)

    @property
    def _status(self) -> AutoscalerStatus | None:
        return next((record.status for record in self.autoscaler.values()), None)

    def _claim_of(self, uid: str) -> Claim | None:
        record = self.claims.get("", uid)
        return record.claim if record is not None else self._former_claims.get(uid)

    def _event_changed(self, old: NodeEventRecord | None, new: NodeEventRecord | None) -> None:
        if (record := new or old) is not None:
            self._about_node(record.node)

    def _claim_changed(self, old: ClaimRecord | None, new: ClaimRecord | None) -> None:
        if new is None and old is not None:
            self._former_claims[old.uid] = old.claim
            if len(self._former_claims) > _CLAIMS_REMEMBERED:
                self._former_claims.popitem(last=False)
        elif new is not None and new.node and _cause_of(new) != _cause_of(old):
            self._about_node(new.node)

    def _refusal_changed(self, _: RefusalRecord | None, new: RefusalRecord | None) -> None:
        if new is not None:
            self._about_capacity()  # one that goes was stale long before

    def _autoscaler_changed(self, old: AutoscalerRecord | None, new: AutoscalerRecord | None) -> None:
        before = old.status.groups if old is not None and old.status is not None else ()
        after = new.status.groups if new is not None and new.status is not None else ()
        if before != after:
            self._about_capacity()


class ReasonFilter(Generic[R]):
    """Lets a store hear of Events with certain reasons only: the API server selects by one at most."""

    def __init__(self, indexer: Indexer[R], reasons: frozenset[str]) -> None:
        self._indexer = indexer
        self._reasons = reasons

    def read(self, raw: dict[str, Any]) -> Reading[R] | None:
        """Read an object of a list; None when no store wants it."""
        return self._indexer.read(raw) if self._matters(raw) else None

    def replace(self, listed: Iterable[Reading[R] | None], namespace: str | None, version: int) -> None:
        """Take a complete list."""
        self._indexer.replace(filter(None, listed), namespace, version)

    def upsert(self, raw: dict[str, Any]) -> object:
        """Take a new or changed object."""
        return self._indexer.upsert(raw) if self._matters(raw) else None

    def remove(self, raw: dict[str, Any]) -> None:
        """Forget an object."""
        if self._matters(raw):
            self._indexer.remove(raw)

    def _matters(self, raw: Mapping[str, Any]) -> bool:
        return parse.event_reason(raw) in self._reasons


def _cause_of(claim: ClaimRecord | None) -> tuple[bool, str]:
    """Return what a NodeClaim says about the end of its node."""
    return (claim.voluntary, claim.ends) if claim is not None else (False, "")
