"""Computes what a twin must look like, and compares it with what is there.

`render` calls `enforce` on what a template rendered and `rendered_hash` on the result; the planner
compares that hash with the one stored on the twin, never the manifest with a server-defaulted
object. `template_hash` finds the ReplicaSet that runs a template. The functions that add affinity
and tolerations or merge are the templates' filters (templates/README.md). Manifests are plain JSON
(mappings, lists, scalars); no function here changes what it was given.
"""

from splitter.core.desired.compare import (
    canonical_json,
    is_same_pod,
    is_withdrawn,
    rendered_hash,
    template_hash,
    withdrawn,
)
from splitter.core.desired.manifest import (
    Manifest,
    mapping_at,
    merge,
    without,
)
from splitter.core.desired.scheduling import (
    MAX_REQUIREMENTS,
    NodePresets,
    add_tolerations,
    leave_dead_nodes_after,
    prefer_node_affinity,
    require_node_affinity,
    required_terms,
)
from splitter.core.desired.tracking import (
    is_tracking,
    portable_labels,
    with_labels,
)
from splitter.core.desired.twin import (
    INITIAL_STRATEGY,
    REVISION_HISTORY_LIMIT,
    enforce,
    first_ordinal,
    hosts,
    peers,
    pod_labels,
    rendered_from,
    twin_labels,
)

__all__ = [
    "INITIAL_STRATEGY",
    "MAX_REQUIREMENTS",
    "REVISION_HISTORY_LIMIT",
    "Manifest",
    "NodePresets",
    "add_tolerations",
    "canonical_json",
    "enforce",
    "first_ordinal",
    "hosts",
    "is_same_pod",
    "is_tracking",
    "is_withdrawn",
    "leave_dead_nodes_after",
    "mapping_at",
    "merge",
    "peers",
    "pod_labels",
    "portable_labels",
    "prefer_node_affinity",
    "rendered_from",
    "rendered_hash",
    "require_node_affinity",
    "required_terms",
    "template_hash",
    "twin_labels",
    "with_labels",
    "withdrawn",
    "without",
]
