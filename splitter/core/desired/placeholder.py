"""The pod that does nothing: what all placeholders are made of, whatever they stand for.

It runs a pause image, reads nothing, fits the restricted Pod Security Standard, and yields to any pod of a
higher priority. `placement.reservations` and `twins.hints` say where one stands and what it asks for.
"""

from collections.abc import Iterable
from typing import Final

from splitter.core.desired.manifest import Manifest
from splitter.core.desired.scheduling import ReservationRules

PRIORITY_CLASS: Final = "splitter-placeholder"
"""Lower than any other, so that placeholders yield (manifests/placeholder.yaml)."""

# The restricted Pod Security Standard asks for all of these.
_CONTAINER_SECURITY: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_POD_SECURITY: Final = {
    "runAsNonRoot": True,
    "runAsUser": 65535,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def idle_pod(rules: ReservationRules, containers: Iterable[Manifest]) -> dict[str, object]:
    """Return the spec of a pod that sleeps, with these containers: their resources and host ports."""
    spec: dict[str, object] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "priorityClassName": PRIORITY_CLASS,
        "securityContext": _POD_SECURITY,
        "containers": [
            {"name": f"room-{number}", "image": rules.image, "securityContext": _CONTAINER_SECURITY, **one}
            for number, one in enumerate(containers)
        ],
    }
    if rules.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in rules.pull_secrets]
    return spec
