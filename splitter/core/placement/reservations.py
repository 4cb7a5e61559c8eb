"""The placeholder: a pod that asks for what a member asks for, in the pool that the member moves to (P21).

`table` has it made and let go. It proves that there is room (an autoscaler buys a node for it where
there is none), keeps others out of it while the member ends, and, on spot, stands for the soak in its place.
What else it is made of is the same for all placeholders (`desired.placeholder`).
"""

import json
from collections.abc import Mapping
from typing import Final

from splitter.core.desired.compare import canonical_json, template_hash
from splitter.core.desired.manifest import Manifest, mapping_at, mappings
from splitter.core.desired.placeholder import idle_pod
from splitter.core.desired.scheduling import ReservationRules, add_tolerations, require_node_affinity
from splitter.core.replica import Pool

# What of a pod decides on which nodes it may be, beside its resources and volumes.
_WHERE: Final = (
    *("nodeSelector", "affinity", "tolerations", "schedulerName", "runtimeClassName", "resourceClaims"),
)
_ASKED: Final = ("requests", "limits", "claims")


def reservation_hash(source: Manifest, rules: ReservationRules) -> str:
    """Return a hash of all that a placeholder of this StatefulSet is made of, its ordinal and pool apart."""
    return template_hash({"spec": _asked(source, rules)})


def placeholder_manifest(
    source: Manifest, pool: Pool, rules: ReservationRules, volume_terms_json: str = ""
) -> dict[str, object]:
    """Return the spec of a placeholder for a member of this StatefulSet in a pool.

    `volume_terms_json` are the nodeSelectorTerms of the member's volumes, as a JSON list. Raises ValueError
    where nothing tells spot nodes from others.
    """
    terms = rules.nodes.spot_terms if pool is Pool.SPOT else rules.nodes.on_demand_terms
    spec = require_node_affinity(_asked(source, rules), terms)
    if volume_terms_json:
        spec = require_node_affinity(spec, mappings(json.loads(volume_terms_json)))
    if pool is Pool.SPOT:
        spec = add_tolerations(spec, rules.nodes.spot_tolerations)
    return spec


def _asked(source: Manifest, rules: ReservationRules) -> dict[str, object]:
    pod = mapping_at(mapping_at(mapping_at(source, "spec"), "template"), "spec")
    sidecars = [one for one in mappings(pod.get("initContainers")) if one.get("restartPolicy") == "Always"]
    holders = [*mappings(pod.get("containers")), *sidecars]
    spec: dict[str, object] = {key: pod[key] for key in _WHERE if key in pod}
    if own := _resources(pod):
        spec["resources"] = own
    spec |= idle_pod(rules, map(_holding, holders))
    return json.loads(canonical_json(spec))  # type: ignore[no-any-return]


def _holding(one: Mapping[str, object]) -> dict[str, object]:
    made: dict[str, object] = {"resources": _resources(one)}
    # A port of the node is room too; it listens on none.
    if ports := [port for port in mappings(one.get("ports")) if port.get("hostPort")]:
        made["ports"] = [{key: port[key] for key in port if key != "name"} for port in ports]
    return made


def _resources(holder: Mapping[str, object]) -> dict[str, object]:
    resources = mapping_at(holder, "resources")
    return {key: resources[key] for key in _ASKED if key in resources}
