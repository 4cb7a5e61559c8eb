"""What the API server refuses of an object: stale versions, what is for life, what does not fit together.

Source: k8s.io/apimachinery, pkg/api/validation/objectmeta.go; pkg/apis/{apps,core}/validation of Kubernetes.
"""

from typing import Final

from splitter.kube.client import ApiError
from world.kinds import DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, Raw, Ref
from world.selectors import selects

_MUTABLE: Final = frozenset(
    {
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    }
)


def must_be_met(preconditions: Raw, old: Raw) -> None:
    """Raise ApiError (409) for preconditions that do not hold."""
    for name, wanted in preconditions.items():
        there = old["metadata"].get(name)
        if wanted != there:
            said = f"the {name} in the precondition ({wanted}) does not match that in record ({there})"
            raise ApiError(409, "Conflict", f"Precondition failed: {said}")


def must_be_of(ref: Ref, old: Raw, new: Raw) -> None:
    """Raise ApiError for a version (409) or a UID (422) that is another, and new finalizers of what goes."""
    said, there = new["metadata"], old["metadata"]
    if "deletionTimestamp" in there and set(said.get("finalizers") or ()) - set(
        there.get("finalizers") or ()
    ):
        message = (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted"
        )
        raise ApiError(422, "Invalid", f'"{ref.name}" is invalid: {message}')
    if said.get("resourceVersion", there["resourceVersion"]) != there["resourceVersion"]:
        message = (
            "the object has been modified; please apply your changes to the latest version and try again"
        )
        plural = ref.kind.rpartition("/")[2]
        raise ApiError(409, "Conflict", f'Operation cannot be fulfilled on {plural} "{ref.name}": {message}')
    if said.get("uid", there["uid"]) != there["uid"]:
        raise ApiError(
            422, "Invalid", f"{ref.name} is invalid: metadata.uid: Invalid value: field is immutable"
        )


def validate(kind: str, old: Raw | None, new: Raw) -> None:
    """Raise ApiError (422) for what no such object can be."""
    if sum(bool(one.get("controller")) for one in new["metadata"].get("ownerReferences") or ()) > 1:
        message = "metadata.ownerReferences: Only one reference can have Controller set to true"
        raise ApiError(422, "Invalid", f'"{new["metadata"]["name"]}" is invalid: {message}')
    if kind == STATEFUL_SETS and old is not None:
        for field in {*old["spec"], *new["spec"]} - _MUTABLE:
            if old["spec"].get(field) != new["spec"].get(field):
                message = (
                    f"spec: Forbidden: updates to statefulset spec for fields other than {sorted(_MUTABLE)}"
                )
                raise ApiError(422, "Invalid", f'"{new["metadata"]["name"]}" is invalid: {message}')
    if kind not in {DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS}:
        return
    name, spec = new["metadata"].get("name"), new["spec"]
    if old is not None and old["spec"].get("selector") != spec.get("selector"):
        raise ApiError(
            422, "Invalid", f'"{name}" is invalid: spec.selector: Invalid value: field is immutable'
        )
    if spec["replicas"] < 0:
        raise ApiError(
            422, "Invalid", f'"{name}" is invalid: spec.replicas: must be greater than or equal to 0'
        )
    if not selects(spec.get("selector"), {"metadata": spec["template"].get("metadata") or {}}):
        message = "spec.template.metadata.labels: `selector` does not match template `labels`"
        raise ApiError(422, "Invalid", f'"{name}" is invalid: {message}')


def must_be_the_same_pod(old: Raw, new: Raw) -> None:
    """Raise ApiError (422) for what of a pod is for life (ValidatePodUpdate)."""
    if old["spec"] is new["spec"]:
        return
    for field in {*old["spec"], *new["spec"]} - {"containers", "tolerations", "activeDeadlineSeconds"}:
        if old["spec"].get(field) != new["spec"].get(field):
            message = f"spec: Forbidden: pod updates may not change fields other than its images ({field})"
            raise ApiError(422, "Invalid", f'"{new["metadata"]["name"]}" is invalid: {message}')


def _must_be_mutable(old: Raw, new: Raw) -> None:
    for field in {*old, *new["spec"]} - _MUTABLE:
        if old.get(field) != new["spec"].get(field):
            message = f"spec: Forbidden: updates to statefulset spec for fields other than {sorted(_MUTABLE)}"
            raise ApiError(422, "Invalid", f'"{new["metadata"]["name"]}" is invalid: {message}')
