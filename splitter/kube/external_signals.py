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
from typing import Any, Generic, TypeVar

from splitter.core.nodes.believed_events import BELIEVED, BelievedEvents
from splitter.core.nodes.facts import NodeEvent, NodeState
from splitter.core.nodes.fit import PodRequest
from splitter.core.nodes.signals import TERMINATION_ANNOTATION, stale_at
from splitter.core.nodes.spot_supply import AutoscalerStatus, Blocked, Claim, Refusal, spot_blocked
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

EVENTS_KEPT = 4096
"""The most Events that are kept of each kind: an account that may write one may write any number."""
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
        """Begin without signals; without `node_events`, no Event is believed (docs/adr/0035, 0107)."""
        self._node_events = node_events
        self._about_node = about_node
        self._about_capacity = about_capacity
        self._former_claims: OrderedDict[str, ClaimRecord] = OrderedDict()
        self.events = Indexer(
            parse.node_event, {"node": lambda record: record.node}, self._event_changed, EVENTS_KEPT
        )
        self.claims = Indexer(parse.claim, {"node": lambda record: record.node}, self._claim_changed)
        self.refusals = Indexer(
            parse.refusal, {"claim": lambda record: record.claim_uid}, self._refusal_changed, EVENTS_KEPT
        )
        self.autoscaler = Indexer(parse.autoscaler, {}, self._autoscaler_changed)

    def reflectors(self, client: Client, autoscaler_status: str) -> list[Reflector]:
        """Return the reflectors to run; `autoscaler_status` is namespace/name, empty for none."""
        stores: Mapping[str, tuple[Indexer[Any], str]] = {
            "Node": (
                self.events,
                "notices are seen in taints and conditions only, which may be seconds later",
            ),
            "NodeClaim": (self.refusals, "spot that Karpenter cannot get is covered after the grace only"),
        }
        reflectors = [
            Reflector(
                client,
                _EVENTS,
                EventFilter(indexer, row),
                fields=f"involvedObject.kind={row.kind}",
                without=without,
            )
            for row in (BELIEVED if self._node_events else ())
            for indexer, without in (stores[row.kind],)
        ]
        reflectors.append(
            Reflector(
                client,
                NODE_CLAIMS,
                self.claims,
                without="Karpenter's own choices are not told apart from reclaims, and spot that it cannot"
                " get is covered after the grace only",
            )
        )
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
        refused = ((record.at, self._refused(record)) for record in self.refusals.values())
        refusals = (Refusal(at, claim) for at, claim in refused if claim is not None)
        return spot_blocked(pod, nodes, self._status, refusals, now)

    @property
    def _status(self) -> AutoscalerStatus | None:
        return next((record.status for record in self.autoscaler.values()), None)

    def _refused(self, refusal: RefusalRecord) -> Claim | None:
        """Return the NodeClaim that an Event is about; None if it was never seen, or has a machine (R10)."""
        record = self.claims.get("", refusal.claim_uid) or self._former_claims.get(refusal.claim_uid)
        is_true = record is not None and record.name == refusal.claim_name and not record.launched
        return record.claim if record is not None and is_true else None

    def _event_changed(self, old: NodeEventRecord | None, new: NodeEventRecord | None) -> None:
        if (record := new or old) is not None:
            self._about_node(record.node)

    def _claim_changed(self, old: ClaimRecord | None, new: ClaimRecord | None) -> None:
        if new is None:
            if old is not None and old.claim.for_spot and not old.launched:
                self._former_claims[old.uid] = old
                if len(self._former_claims) > _CLAIMS_REMEMBERED:
                    self._former_claims.popitem(last=False)
            return
        if new.node and _cause_of(new) != _cause_of(old):
            self._about_node(new.node)
        if old is None and self.refusals.find("claim", new.uid):
            self._about_capacity()

    def _refusal_changed(self, _: RefusalRecord | None, new: RefusalRecord | None) -> None:
        if new is not None and self._refused(new) is not None:
            self._about_capacity()  # one that goes was stale long before

    def _autoscaler_changed(self, old: AutoscalerRecord | None, new: AutoscalerRecord | None) -> None:
        before = old.status.groups if old is not None and old.status is not None else ()
        after = new.status.groups if new is not None and new.status is not None else ()
        if before != after:
            self._about_capacity()


class EventFilter(Generic[R]):
    """Gives a store the Events of one row of the table only: the API server selects by one reason at most.

    A client can edit an Event. One that no longer belongs to the row is removed from the store.
    """

    def __init__(self, indexer: Indexer[R], row: BelievedEvents) -> None:
        self._indexer = indexer
        self._row = row

    def read(self, raw: dict[str, Any]) -> Reading[R] | None:
        """Read an object of a list; None when no store wants it."""
        return self._indexer.read(raw) if self._row.says(*parse.event_words(raw)) else None

    def replace(self, listed: Iterable[Reading[R] | None], namespace: str | None, version: int) -> None:
        """Take a complete list."""
        self._indexer.replace(filter(None, listed), namespace, version)

    def discard(self, listed: Iterable[Reading[R] | None]) -> None:
        """Take note that a list was not read to its end."""
        self._indexer.discard(filter(None, listed))

    def upsert(self, raw: dict[str, Any]) -> None:
        """Take a new or changed object."""
        if self._row.says(*parse.event_words(raw)):
            self._indexer.upsert(raw)
        else:
            self.remove(raw)

    def remove(self, raw: dict[str, Any]) -> None:
        """Forget an object, if the store has it: the store remembers each removal, and most are of others."""
        metadata = raw["metadata"]
        if self._indexer.get(metadata["namespace"], metadata["uid"]) is not None:
            self._indexer.remove(raw)


def _cause_of(claim: ClaimRecord | None) -> tuple[bool, str]:
    """Return what a NodeClaim says about the end of its node."""
    return (claim.voluntary, claim.ends) if claim is not None else (False, "")
