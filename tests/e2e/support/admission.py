"""Admission policies of a namespace: what its administrator forbids there, for as long as a test says."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lab.fixtures.shop import DEADLINE_S, JsonObject, Shop
from lab.sandbox import Sandbox
from lab.sandbox.errors import SandboxError
from lab.sandbox.waiting import wait_until


def steadily(holds: Callable[[], object]) -> bool:
    """Whether something about a policy holds, and goes on holding.

    An API server was seen to let two requests pass right after it had refused the first.
    """
    return all(holds() for _ in range(25))


def checked(sandbox: Sandbox, name: str) -> JsonObject:
    """Wait until Kubernetes has looked for mistakes of types in a policy, and return the policy."""
    path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{name}"

    def snapshot() -> JsonObject | None:
        raw = sandbox.api.get(path)
        looked_at = raw.get("status", {}).get("observedGeneration") == raw["metadata"]["generation"]
        return raw if looked_at else None

    return wait_until(snapshot, what=f"the policy {name} to be looked at", deadline_s=DEADLINE_S)


@contextmanager
def forbidden(
    shop: Shop,
    name: str,
    resource: str,
    policy: JsonObject,
    attempt: Callable[[], object],
    *,
    group: str = "apps",
) -> Iterator[None]:
    """Have an admission policy judge each new or changed object of a v1 resource in this namespace.

    `policy` has the `validations`, and what else is particular to it. It is in force while `attempt`, a dry
    run of what is forbidden, is refused in the words of its first validation, and gone when this returns.
    """
    name = f"{shop.namespace}-{name}"
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]}
    constraints = {"resourceRules": [{**rule, "operations": ["CREATE", "UPDATE"]}]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": shop.namespace}}}
    binding: JsonObject = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
    kinds = (
        ("ValidatingAdmissionPolicy", {**policy, "matchConstraints": constraints}),
        ("ValidatingAdmissionPolicyBinding", binding),
    )
    for kind, spec in kinds:
        made = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "spec": spec}
        shop.apply({**made, "metadata": {"name": name}})
    words: str = policy["validations"][0]["message"]

    def refuses() -> bool:
        try:
            attempt()
        except SandboxError as refusal:
            return words in str(refusal)
        return False

    shop.until(lambda: steadily(refuses), "the policy to be in force")
    try:
        yield
    finally:
        for kind, _ in kinds:
            shop.kubectl("delete", kind.lower(), name)
        shop.until(lambda: steadily(lambda: not refuses()), "the policy to be gone")
