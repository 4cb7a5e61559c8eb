"""The policy that splits a StatefulSet where its pods are born: node affinity by ordinal, no twins.

`splitter admission placement` prints it. In the API server it sees each new pod of a StatefulSet beside the
one Placement of its namespace, if there is one; where that names the pod's own StatefulSet, the pod gets what
a twin's pod would get from the templates: on-demand ordinals are *required* to stay off spot nodes, all the
others *prefer* spot and tolerate its taints, so that they start somewhere when spot is gone and nobody is
there to decide. Which ordinals, the planner decides; `kube.placement_writer` makes the Placement of the
Splits.

It must never refuse a pod nor look at one of anything but a StatefulSet. Source: P3, P4.
"""

from collections.abc import Sequence
from typing import Final

from splitter.admission.expressions import Manifest, lines, literal, policy, variables
from splitter.core.desired.manifest import Manifest as Term
from splitter.core.desired.scheduling import NodePresets
from splitter.core.labels_annotations import LABEL_POOL
from splitter.core.replica import Pool

# Of the policy, its binding, and the one Placement of each namespace that has something to say.
NAME: Final = "splitter-placement"
PLACEMENT_KIND: Final = "Placement"
# The StatefulSet controller's own label (Kubernetes 1.28): pods without it cost nothing.
_ORDINAL: Final = "apps.kubernetes.io/pod-index"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
# The most that a node can be preferred by.
_WEIGHT: Final = 100

# A StatefulSet's controller makes its pods with one owner, itself.
_OWNER: Final = "object.metadata.ownerReferences[0]"
# The pod's own StatefulSet, by its UID: a namesake, before or after, is another one.
_OF_A_PLACED: Final = f"""\
has(object.metadata.ownerReferences) &&
{_OWNER}.uid in params.spec.statefulSets && {_OWNER}.kind == "StatefulSet" &&
{_OWNER}.apiVersion.startsWith("apps/") && {_OWNER}.?controller.orValue(false)"""
_IN_THE_SET: Final = """\
params.spec.statefulSets[object.metadata.ownerReferences[0].uid].onDemandOrdinals.exists(range,
range.first <= variables.ordinal && variables.ordinal <= range.last)"""


def placement_policy(presets: NodePresets) -> list[Manifest]:
    """Return the MutatingAdmissionPolicy and its binding for these spot and on-demand nodes.

    Raises ValueError without terms for either pool: pods would go anywhere.
    """
    if not presets.spot_terms or not presets.on_demand_terms:
        raise ValueError("no node selector term is given, so nothing tells spot nodes from others")
    spec: Manifest = {
        # A pod that cannot be placed is born unsplit; it is never refused.
        "failurePolicy": "Ignore",
        # Once more would add everything twice.
        "reinvocationPolicy": "Never",
        "paramKind": {"apiVersion": "splitter.io/v1alpha1", "kind": PLACEMENT_KIND},
        "matchConstraints": {
            "objectSelector": {
                "matchExpressions": [
                    {"key": _ORDINAL, "operator": "Exists"},
                    # Placed already. So the second round, which each mutation brings about, ends here.
                    {"key": LABEL_POOL, "operator": "DoesNotExist"},
                ]
            },
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ],
        },
        "matchConditions": [{"name": "of-a-placed-statefulset", "expression": _OF_A_PLACED}],
        "variables": variables(
            pod="dyn(object)",
            ordinal=f"int(variables.pod.metadata.labels[{literal(_ORDINAL)}])",
            isOnDemand=_IN_THE_SET,
            affinity="variables.pod.spec.?affinity.orValue({})",
            nodeAffinity="variables.affinity.?nodeAffinity.orValue({})",
            ownTerms=f"variables.nodeAffinity.?{_REQUIRED}.nodeSelectorTerms.orValue([])",
            # One without expressions matches no node; with ours in it, it would match ours.
            usedTerms="variables.ownTerms.filter(term, size(term.?matchExpressions.orValue([])) +\n"
            "size(term.?matchFields.orValue([])) > 0)",
            required=_required(presets.on_demand_terms),
            # Which of them a cluster has, the Placement says; where it does not, all are asked for.
            allLabels=literal([*_by_label(presets.spot_terms)]),
            seenLabels="params.spec.?spotLabels.orValue([]).filter(label, label in variables.allLabels)",
            spotLabels="size(variables.seenLabels) == 0 ? variables.allLabels : variables.seenLabels",
            preferred=_preferred(presets.spot_terms),
            ownTolerations="variables.pod.spec.?tolerations.orValue([])",
            tolerations=f"variables.ownTolerations + {lines(presets.spot_tolerations)}"
            ".filter(one, !(one in variables.ownTolerations))",
        ),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _patch()}}],
    }
    # By name, so that it is one whatever the namespace holds: the API server converts the pod for each.
    chosen: Manifest = {"paramRef": {"name": NAME, "parameterNotFoundAction": "Allow"}}
    return policy("MutatingAdmissionPolicy", NAME, spec, chosen)


def _required(terms: Sequence[Term]) -> str:
    """Return the on-demand terms, ANDed into each of the user's: `require_node_affinity` in CEL."""
    both = " +\n".join(
        'variables.usedTerms.map(term, {"matchExpressions": dyn(term.?matchExpressions.orValue([]) +\n'
        f'{lines(_expressions(term))}), ?"matchFields": term.?matchFields}})'
        for term in terms
    )
    return (
        f"size(variables.ownTerms) == 0 ? dyn({lines(terms)}) :\n"
        f"size(variables.usedTerms) == 0 ? dyn(variables.ownTerms) : dyn({both})"
    )


def _expressions(term: Term) -> list[dict[str, str]]:
    """Return the expressions of a term of ours; there is nothing else in one."""
    expressions = term["matchExpressions"]
    if set(term) != {"matchExpressions"} or not isinstance(expressions, list):
        raise ValueError(f"a node selector term of {sorted(term)} cannot be written as a policy")
    return expressions


def _preferred(terms: Sequence[Term]) -> str:
    """Return the user's own wishes and ours: each kind of spot nodes that there is, by its label."""
    asked = [
        f"({literal(label)} in variables.spotLabels ? {lines(wishes)} : [])"
        for label, wishes in _by_label(terms).items()
    ]
    return " +\n".join([f"variables.nodeAffinity.?{_PREFERRED}.orValue([])", *asked])


def _by_label(terms: Sequence[Term]) -> dict[str, list[Term]]:
    """Return our wishes by the label that each is about: the first of its expressions."""
    by_label: dict[str, list[Term]] = {}
    for term in terms:
        label = _expressions(term)[0]["key"]
        by_label.setdefault(label, []).append({"weight": _WEIGHT, "preference": dict(term)})
    return by_label


def _patch() -> str:
    """Return the patches: `add` replaces what is there, but needs what it is added to."""
    node_affinity = "/spec/affinity/nodeAffinity"
    affinity = _add("/spec/affinity", "{}")
    of_nodes = _add(node_affinity, "{}")
    required = _add(f"{node_affinity}/{_REQUIRED}", '{"nodeSelectorTerms": variables.required}')
    preferred = _add(f"{node_affinity}/{_PREFERRED}", "variables.preferred")
    tolerations = _add("/spec/tolerations", "variables.tolerations")
    pool = f"variables.isOnDemand ? {literal(Pool.ON_DEMAND.value)} : {literal(Pool.SPOT.value)}"
    label = f"/metadata/labels/{LABEL_POOL.replace('/', '~1')}"
    return (
        f'("affinity" in variables.pod.spec ? [] : [{affinity}]) +\n'
        f'("nodeAffinity" in variables.affinity ? [] : [{of_nodes}]) +\n'
        f"(variables.isOnDemand ? [\n  {required}\n] : [\n  {preferred},\n  {tolerations}\n]) +\n"
        f"[{_add(label, pool)}]"
    )


def _add(path: str, value: str) -> str:
    return f'JSONPatch{{op: "add", path: {literal(path)}, value: {value}}}'
