"""What splitter's MutatingAdmissionPolicy does to a new pod of a StatefulSet that a Placement names.

Source: manifests/admission/placement.yaml, for nodes that are labelled as Karpenter does. The policy itself
is tried on a real API server (tests/e2e/test_placement_policy.py).
"""

from typing import TYPE_CHECKING, Any, Final

from world.admission import Request
from world.kinds import PLACEMENTS, PODS, Raw, Ref, path_of, ref_of
from world.objects import Objects
from world.pods import controller_of

if TYPE_CHECKING:
    from collections.abc import Mapping

INDEX: Final = "apps.kubernetes.io/pod-index"
NAME: Final = "splitter-placement"
_GROUP: Final = "/apis/admissionregistration.k8s.io/v1"
_PATHS: Final = tuple(
    path_of(f"{_GROUP}/{kind}", "", NAME)
    for kind in ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
)
_KEY: Final = "karpenter.sh/capacity-type"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_ON_DEMAND: Final = {"matchExpressions": [{"key": _KEY, "operator": "NotIn", "values": ["spot"]}]}
_SPOT: Final = {"matchExpressions": [{"key": _KEY, "operator": "In", "values": ["spot"]}]}


class PlacementPolicy:
    """The policy, its binding and what they do; `acts`: else pods are born as their manifests say."""

    def __init__(self, objects: Objects) -> None:
        self.acts = True
        self.before: Mapping[int, str] = {}  # pools by ordinals, while there is no Placement
        self._objects = objects
        self.install()
        objects.rules.append(self._place)

    def install(self) -> None:
        """Have it in force."""
        self.acts = True
        for path in _PATHS:
            self._objects.put(path, {"metadata": {}})

    def remove(self) -> None:
        """Delete it."""
        self.acts = False
        for path in _PATHS:
            if self._objects.find(ref_of(path)) is not None:
                self._objects.forget(path)

    def _place(self, request: Request) -> Raw | None:
        new = request.new
        if request.verb != "create" or request.ref.kind != PODS or new is None or not self.acts:
            return None
        labels = new["metadata"].get("labels") or {}
        if INDEX not in labels or "splitter.io/pool" in labels:
            return None
        pool = self._pool(
            request.ref.namespace, (controller_of(new) or {}).get("uid", ""), int(labels[INDEX])
        )
        if not pool:
            return None
        metadata = {**new["metadata"], "labels": {**labels, "splitter.io/pool": pool}}
        return {**new, "metadata": metadata, "spec": _placed(new["spec"], pool)}

    def _pool(self, namespace: str, owner: str, ordinal: int) -> str:
        placement = self._objects.find(Ref(PLACEMENTS, namespace, NAME))
        if placement is None:
            return self.before.get(ordinal, "")
        named: Any = placement["spec"]["statefulSets"].get(owner)
        if named is None:
            return ""
        there = any(run["first"] <= ordinal <= run["last"] for run in named["onDemandOrdinals"])
        return "on-demand" if there else "spot"


def _placed(spec: Raw, pool: str) -> Raw:
    affinity = spec.get("affinity") or {}
    of_nodes = dict(affinity.get("nodeAffinity") or {})
    if pool == "spot":
        of_nodes[_PREFERRED] = [*of_nodes.get(_PREFERRED, ()), {"weight": 100, "preference": _SPOT}]
    else:
        of_nodes[_REQUIRED] = {"nodeSelectorTerms": [_ON_DEMAND]}
    return {**spec, "affinity": {**affinity, "nodeAffinity": of_nodes}}
