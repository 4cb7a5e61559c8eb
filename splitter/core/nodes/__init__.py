"""Assesses nodes: spot or on-demand, about to go or not, and how much fits.

`kube.observe` parses a Node into `NodeFacts` and keeps the `NodeState` that `assess` returns; the
planner counts pods by it. The same preset table that classifies nodes (`capacity`) also yields the
node affinity and the tolerations of the twins, so that what we ask for and what we recognise cannot
drift apart. `signals` reads the notices, `fit` counts free room, `spot_supply` says whether more could be
had. Nothing here decides about replicas.
Source: R1 to R11.
"""

from splitter.core.nodes.capacity import (
    PRESETS,
    LabelMatch,
    Preset,
    classify,
    on_demand_node_selector_terms,
    parse_selector,
    presets_with,
    spot_labels,
    spot_node_selector_terms,
    spot_tolerations,
)
from splitter.core.nodes.facts import (
    CapacityClass,
    Condition,
    Health,
    NodeEvent,
    NodeFacts,
    NodeState,
    Taint,
    Tier,
)
from splitter.core.nodes.fit import (
    MatchExpression,
    NodeHeadroom,
    NodeTerm,
    PodRequest,
    Toleration,
    count_headroom,
    count_headroom_on,
    may_run_on,
)
from splitter.core.nodes.signals import (
    HINT_EVENTS,
    NOTICE_EVENTS,
    TERMINATION_ANNOTATION,
    assess,
    gone,
    is_same_machine,
    slim,
    stale_at,
)
from splitter.core.nodes.spot_supply import (
    INSUFFICIENT_CAPACITY,
    AutoscalerStatus,
    Blocked,
    Claim,
    NodeGroup,
    Refusal,
    kind_of,
    lasts,
    spot_blocked,
)

__all__ = [
    "HINT_EVENTS",
    "INSUFFICIENT_CAPACITY",
    "NOTICE_EVENTS",
    "PRESETS",
    "TERMINATION_ANNOTATION",
    "AutoscalerStatus",
    "Blocked",
    "CapacityClass",
    "Claim",
    "Condition",
    "Health",
    "LabelMatch",
    "MatchExpression",
    "NodeEvent",
    "NodeFacts",
    "NodeGroup",
    "NodeHeadroom",
    "NodeState",
    "NodeTerm",
    "PodRequest",
    "Preset",
    "Refusal",
    "Taint",
    "Tier",
    "Toleration",
    "assess",
    "classify",
    "count_headroom",
    "count_headroom_on",
    "gone",
    "is_same_machine",
    "kind_of",
    "lasts",
    "may_run_on",
    "on_demand_node_selector_terms",
    "parse_selector",
    "presets_with",
    "slim",
    "spot_blocked",
    "spot_labels",
    "spot_node_selector_terms",
    "spot_tolerations",
    "stale_at",
]
