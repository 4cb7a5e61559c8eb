"""Where a twin's pods may run: node affinity and tolerations, added to what their user asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from splitter.core.desired.manifest import Manifest, mapping_at, mappings

# What a user asks of nodes is multiplied by the kinds of nodes that there are: 5 terms with 40 instance types
# each make 3,600 with all 16 presets for spot. 10,000 take 0.1 s to make and to write.
MAX_REQUIREMENTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class NodePresets:
    """What tells spot nodes from others, for affinity and tolerations (R1).

    `spot_terms` and `on_demand_terms` are nodeSelectorTerms, ORed; `spot_tolerations` are what spot
    nodes' taints ask for.
    """

    spot_terms: tuple[Manifest, ...]
    on_demand_terms: tuple[Manifest, ...]
    spot_tolerations: tuple[Manifest, ...] = ()
    spot_marks: tuple[Manifest, ...] = ()
    """Terms one of which each node matches that is recognised as spot; none: nobody knows."""
    on_demand_marks: tuple[Manifest, ...] = ()
    """The same of the nodes that on-demand replicas are asked for on."""


@dataclass(frozen=True, slots=True)
class ReservationRules:
    """What the settings say about placeholders."""

    nodes: NodePresets
    image: str
    pull_secrets: tuple[str, ...] = ()
    """Names of Secrets in the namespace of the workload."""


def require_node_affinity(pod_spec: Manifest, terms: Sequence[Manifest]) -> dict[str, object]:
    """Return the pod spec bound to nodes that match any of `terms`, and the user's own terms too.

    nodeSelectorTerms are ORed, so each of ours is ANDed into each of the user's. A user's term
    without expressions matches no node in Kubernetes: it is left out, for ANDing ours into it
    would widen it to all of ours.

    Raises ValueError without terms: the result would run anywhere. And where all of them, each with each,
    would hold more than MAX_REQUIREMENTS requirements and values.
    """
    _need_terms(terms)
    affinity, node_affinity = _node_affinity(pod_spec)
    required = mapping_at(node_affinity, _REQUIRED)
    own = required_terms(pod_spec)
    _need_few(own, terms)
    if not own:
        combined = [dict(term) for term in terms]
    else:
        combined = [_both(user, term) for user in own if _matches_any(user) for term in terms]
    required = {**required, "nodeSelectorTerms": combined or [dict(term) for term in own]}
    return _with_node_affinity(pod_spec, affinity, {**node_affinity, _REQUIRED: required})


def required_terms(pod_spec: Manifest) -> list[dict[str, object]]:
    """Return the nodeSelectorTerms that a pod spec requires; what is malformed counts as none."""
    _, node_affinity = _node_affinity(pod_spec)
    return mappings(mapping_at(node_affinity, _REQUIRED).get("nodeSelectorTerms"))


def prefer_node_affinity(
    pod_spec: Manifest, terms: Sequence[Manifest], weight: int = 100
) -> dict[str, object]:
    """Return the pod spec preferring nodes that match any of `terms`; the user's wishes stay.

    Raises ValueError without terms: nothing would be preferred.
    """
    _need_terms(terms)
    affinity, node_affinity = _node_affinity(pod_spec)
    preferred = [
        *mappings(node_affinity.get(_PREFERRED)),
        *({"weight": weight, "preference": dict(term)} for term in terms),
    ]
    return _with_node_affinity(pod_spec, affinity, {**node_affinity, _PREFERRED: preferred})


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _need_terms(terms: Sequence[Manifest]) -> None:
    if not any(_matches_any(term) for term in terms):
        raise ValueError(
            "no node selector term is given, so nothing tells spot nodes from others; "
            "enable a provider preset or write selectors of your own in the settings"
        )


def _need_few(own: Sequence[Manifest], terms: Sequence[Manifest]) -> None:
    if not own:
        return
    total = len(terms) * sum(map(_requirements, own)) + len(own) * sum(map(_requirements, terms))
    if total > MAX_REQUIREMENTS:
        raise ValueError(
            f"each of the {len(own)} nodeSelectorTerms of the workload is combined with each of {len(terms)}"
            f" that tell its pools apart, which makes {total} requirements and values; at most"
            f" {MAX_REQUIREMENTS} are allowed. Ask for fewer terms, or name fewer providers in the setting"
            " provider_presets"
        )


def _requirements(term: Manifest) -> int:
    """Return how many requirements a term has, and values in them."""
    requirements = [*mappings(term.get("matchExpressions")), *mappings(term.get("matchFields"))]
    values = (one.get("values") for one in requirements)
    return len(requirements) + sum(len(one) for one in values if isinstance(one, list))


def _matches_any(term: Manifest) -> bool:
    return bool(term.get("matchExpressions") or term.get("matchFields"))


def _both(user: Manifest, ours: Manifest) -> dict[str, object]:
    """Return one term that matches what both match: the lists inside a term are ANDed."""
    joined = {
        key: [*mappings(user.get(key)), *mappings(ours.get(key))]
        for key in ("matchExpressions", "matchFields")
        if user.get(key) or ours.get(key)
    }
    return {**user, **joined}


def _node_affinity(pod_spec: Manifest) -> tuple[Manifest, Manifest]:
    affinity = mapping_at(pod_spec, "affinity")
    return affinity, mapping_at(affinity, "nodeAffinity")


def _with_node_affinity(pod_spec: Manifest, affinity: Manifest, node_affinity: Manifest) -> dict[str, object]:
    return {**pod_spec, "affinity": {**affinity, "nodeAffinity": dict(node_affinity)}}


def add_tolerations(pod_spec: Manifest, tolerations: Sequence[Manifest]) -> dict[str, object]:
    """Return the pod spec with these tolerations after the user's own, each once."""
    own = mappings(pod_spec.get("tolerations"))
    new = [dict(toleration) for toleration in tolerations if toleration not in own]
    return {**pod_spec, "tolerations": [*own, *new]} if new else dict(pod_spec)


def leave_dead_nodes_after(pod_spec: Manifest, seconds: int) -> dict[str, object]:
    """Return the pod spec evicted `seconds` after its node is not ready or unreachable.

    Kubernetes' default is 300 s. Where the user tolerates such a taint in any way, that stays.
    """
    own = mappings(pod_spec.get("tolerations"))
    return add_tolerations(
        pod_spec,
        [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            if not any(_tolerates(toleration, key) for toleration in own)
        ],
    )


def _tolerates(toleration: Manifest, key: str) -> bool:
    """Return whether the user has said something about a NoExecute taint of this key."""
    about_key = toleration.get("key") in {key, None, ""}
    return about_key and toleration.get("effect") in {"NoExecute", None, ""}
