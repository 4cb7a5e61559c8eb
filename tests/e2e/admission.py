"""Admission policies of a namespace: what its administrator forbids there, for as long as a test says."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from e2e.shop import JsonObject, Shop
from splitter.sandbox.errors import SandboxError


@contextmanager
def forbidden(
    shop: Shop, name: str, resource: str, policy: JsonObject, attempt: Callable[[], object]
) -> Iterator[None]:
    """Have an admission policy judge each new or changed object of an apps/v1 resource in this namespace.

    `policy` has the `validations`, and what else is particular to it. It is in force when `attempt`, a dry
    run of what is forbidden, is refused in the words of its first validation.
    """
    name = f"{shop.namespace}-{name}"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": [resource]}
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

    def is_in_force() -> bool:
        try:
            attempt()
        except SandboxError as refusal:
            return words in str(refusal)
        return False

    shop.until(is_in_force, "the policy to be in force")
    try:
        yield
    finally:
        for kind, _ in kinds:
            shop.kubectl("delete", kind.lower(), name)
