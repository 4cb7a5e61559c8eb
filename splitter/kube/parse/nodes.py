"""Nodes."""

from collections.abc import Mapping, Sequence
from sys import intern

from splitter.core.nodes.facts import Condition, NodeFacts, Taint
from splitter.core.nodes.signals import slim
from splitter.kube.asks import Assess
from splitter.kube.parse.fields import Raw, identity, instant, maybe_instant, quantity, short
from splitter.kube.records import NodeRecord

# Labels, taints and kinds of resources: of a node of a large cloud there are some 80, 10 and 20.
_MOST = 256
_LONGEST_MESSAGE = 1000


def node(assess: Assess, raw: Raw) -> NodeRecord:
    """Parse a node and assess it; of the facts only those are kept that others may add to."""
    metadata = raw["metadata"]
    created, facts = instant(metadata["creationTimestamp"]), slim(node_facts(raw))
    return NodeRecord(*identity(metadata), created, facts, assess(facts))


def node_facts(raw: Raw) -> NodeFacts:
    """Parse a node: what the classifier of the core reads."""
    metadata, spec, status = raw["metadata"], raw.get("spec", {}), raw.get("status", {})
    return NodeFacts(
        name=metadata["name"],
        uid=metadata["uid"],
        labels=_few(metadata.get("labels", {})),
        annotations=metadata.get("annotations", {}),
        taints=_taints(spec.get("taints", ())[:_MOST]),
        conditions=tuple(
            Condition(
                condition["type"],
                condition["status"],
                short(condition.get("reason", "")),
                short(condition.get("message", ""), _LONGEST_MESSAGE),
            )
            for condition in status.get("conditions", ())
        ),
        unschedulable=bool(spec.get("unschedulable")),
        deletion_timestamp=maybe_instant(metadata.get("deletionTimestamp")),
        machine=_machine(status.get("nodeInfo") or {}),
        provider=intern(spec.get("providerID", "").partition("://")[0]),
        allocatable={
            name: quantity(name, text) for name, text in _few(status.get("allocatable", {})).items()
        },
    )


def _few(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return labels, or what is allocatable; the first of more than a node has: a kubelet writes its own."""
    if len(values) > _MOST:
        values = dict(sorted(values.items())[:_MOST])
    return {intern(name): text for name, text in values.items()}


def _machine(info: Raw) -> str:
    """Name a machine since it was started last; empty where it does not say both."""
    system, boot = str(info.get("systemUUID") or ""), str(info.get("bootID") or "")
    return f"{system}/{boot}" if system and boot else ""


def _taints(raw: Sequence[Raw]) -> tuple[Taint, ...]:
    return tuple(Taint(taint["key"], taint.get("value", ""), taint["effect"]) for taint in raw)
