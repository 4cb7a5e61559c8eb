"""What the API server makes of a StatefulSet's pod by splitter's MutatingAdmissionPolicy, if that is applied.

Source: splitter/manifests/admission/placement.yaml, for nodes that say their capacity type as Karpenter's do.
"""

from typing import Final

from world.admission import Request, Rule
from world.kinds import PODS, Raw, Ref
from world.objects import Objects
from world.pods import controller_of

_NAME: Final = "splitter-placement"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_POLICY: Final = tuple(
    Ref(f"{_ADMISSION}/{kind}", "", _NAME)
    for kind in ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
)
_PLACEMENTS: Final = "/apis/splitter.io/v1alpha1/placements"
_INDEX, _POOL = "apps.kubernetes.io/pod-index", "splitter.io/pool"
_CAPACITY: Final = "karpenter.sh/capacity-type"
_ON_DEMAND: Final[Raw] = {"key": _CAPACITY, "operator": "In", "values": ["on-demand", "reserved"]}
_SPOT: Final[Raw] = {"key": _CAPACITY, "operator": "In", "values": ["spot"]}


def placement_rule(objects: Objects) -> Rule:
    """Return the rule; a pod that it cannot place is born unsplit."""

    def rule(request: Request) -> Raw | None:
        pod = request.new
        if request.verb != "create" or request.ref.kind != PODS or pod is None:
            return None
        labels = pod["metadata"].get("labels") or {}
        if _INDEX not in labels or _POOL in labels or not all(map(objects.find, _POLICY)):
            return None
        owner = controller_of(pod) or {}
        placement = objects.find(Ref(_PLACEMENTS, request.ref.namespace, _NAME))
        placed = ((placement or {}).get("spec") or {}).get("statefulSets", {}).get(owner.get("uid"))
        if placed is None or owner["kind"] != "StatefulSet":
            return None
        ordinal = int(labels[_INDEX])
        on_demand = any(one["first"] <= ordinal <= one["last"] for one in placed["onDemandOrdinals"])
        metadata = {**pod["metadata"], "labels": {**labels, _POOL: "on-demand" if on_demand else "spot"}}
        return {
            **pod,
            "metadata": metadata,
            "spec": {**pod["spec"], "affinity": _affinity(pod, on_demand=on_demand)},
        }

    return rule


def _affinity(pod: Raw, *, on_demand: bool) -> Raw:
    affinity: Raw = pod["spec"].get("affinity") or {}
    node: Raw = affinity.get("nodeAffinity") or {}
    if on_demand:
        own = (node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms")
        terms = [
            {**term, "matchExpressions": [*term.get("matchExpressions", ()), _ON_DEMAND]}
            for term in own or [{}]
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {**affinity, "nodeAffinity": {**node, **required}}
    wish = {"weight": 100, "preference": {"matchExpressions": [_SPOT]}}
    wishes = [*node.get("preferredDuringSchedulingIgnoredDuringExecution", ()), wish]
    return {**affinity, "nodeAffinity": {**node, "preferredDuringSchedulingIgnoredDuringExecution": wishes}}
