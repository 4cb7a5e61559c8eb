"""Users have Kubernetes' own roles, and with them what they need of splitter's kinds, and no more."""

import itertools

import pytest

from lab.fixtures.namespaces import NAMESPACES
from lab.fixtures.shop import DEADLINE_S
from lab.sandbox import Sandbox
from lab.sandbox.errors import SandboxError
from lab.sandbox.waiting import wait_until
from splitter.bundled import bundled_path

pytestmark = pytest.mark.e2e

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RESOURCES = ("splits", "splits/status", "placements")
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
READS = {(verb, kind) for verb in ("get", "list", "watch") for kind in ("splits", "placements")}
DELETES = {("delete", "splits"), ("delete", "placements")}
MAY = {"view": READS, "edit": READS | DELETES, "admin": READS | DELETES}


@pytest.mark.usefixtures("kubeconfig")
def test_say_what_a_user_may_do(sandbox: Sandbox) -> None:
    """Who has `view` in a namespace sees its Splits; `edit` deletes them as well; writing is splitter's."""
    sandbox.kubectl("apply", "-f", str(bundled_path("manifests/aggregated-roles.yaml")))
    sandbox.api.create(NAMESPACES, {"metadata": {"name": "tenants"}})
    for role in MAY:
        sandbox.kubectl(
            "create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}er", "-n", "tenants"
        )

    def may(role: str, namespace: str) -> set[tuple[str, str]]:
        return {
            (verb, kind)
            for verb, kind in itertools.product(VERBS, RESOURCES)
            if allowed(sandbox, f"{role}er", namespace, verb, kind)
        }

    # kube-controller-manager adds the rules to the roles, and the authorizer sees that by a watch.
    wait_until(
        lambda: {role: may(role, "tenants") for role in MAY} == MAY,
        what="the roles to be aggregated",
        deadline_s=DEADLINE_S,
    )
    assert not any(may(role, "default") for role in MAY)
    assert sandbox.kubectl("get", "splits", "-n", "tenants", "--as=viewer", "-o", "name") == ""
    with pytest.raises(SandboxError, match="cannot delete resource"):
        sandbox.kubectl("delete", "split", "web", "-n", "tenants", "--as=viewer")


def allowed(sandbox: Sandbox, user: str, namespace: str, verb: str, kind: str) -> bool:
    """Return whether the authorizer lets a user do something in a namespace."""
    resource, _, sub = kind.partition("/")
    asked = {
        "namespace": namespace,
        "group": "splitter.io",
        "verb": verb,
        "resource": resource,
        "subresource": sub,
    }
    review = {"spec": {"user": user, "resourceAttributes": asked}}
    return bool(sandbox.api.create(REVIEWS, review)["status"]["allowed"])
