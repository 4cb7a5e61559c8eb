"""Turns raw API objects into slim records: with `observe`, the only code that knows their shape.

The stores call one function a kind for each watch event. Unknown or missing fields are read as
Kubernetes itself defaults them; nothing here judges. A module a kind; `fields` has what they share.
"""

from splitter.kube.parse.edits import owned, removed
from splitter.kube.parse.external_signals import (
    autoscaler,
    autoscaler_status,
    claim,
    event_words,
    node_event,
    refusal,
)
from splitter.kube.parse.nodes import node, node_facts
from splitter.kube.parse.pods import pod, pod_request
from splitter.kube.parse.splits import namespace, placement, split
from splitter.kube.parse.template_sets import template_set
from splitter.kube.parse.workloads import replica_set, source, twin

__all__ = [
    "autoscaler",
    "autoscaler_status",
    "claim",
    "event_words",
    "namespace",
    "node",
    "node_event",
    "node_facts",
    "owned",
    "placement",
    "pod",
    "pod_request",
    "refusal",
    "removed",
    "replica_set",
    "source",
    "split",
    "template_set",
    "twin",
]
