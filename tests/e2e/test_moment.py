"""Pods that are let go and that nothing adopts: losses are covered, it is told, and it ends either way."""

from collections.abc import Iterator

import pytest

from e2e.support.admission import steadily
from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox.errors import SandboxError
from lab.sandbox.fleet import Fleet

pytestmark = pytest.mark.e2e

COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
BY_IT = f"request.userInfo.username == '{COLLECTOR}'"
OWNED = "size(object.metadata.?ownerReferences.orValue([])) > 0"
WORDS = "bare pods are not allowed"
N = 6


@pytest.fixture
def no_bare_pods(shop: Shop) -> Iterator[None]:
    """Have a policy here that only the garbage collector meets: no dry run of another account shows it."""
    name = f"{shop.namespace}-bare"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": shop.namespace}}}
    spec: JsonObject = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "collector", "expression": BY_IT}],
        "validations": [{"expression": OWNED, "message": WORDS}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
    kinds = {"ValidatingAdmissionPolicy": spec, "ValidatingAdmissionPolicyBinding": binding}
    for kind, one in kinds.items():
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "spec": one}
        shop.apply({**body, "metadata": {"name": name}})
    shop.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe", "ownerReferences": [_owner(shop)]},
            "spec": {"containers": [{"name": "probe", "image": "web:1"}]},
        }
    )

    def refuses() -> bool:
        try:
            shop.kubectl(
                *("patch", "pod", "probe", "--type=merge", "--dry-run=server", f"--as={COLLECTOR}"),
                *("--as-group=system:serviceaccounts:kube-system", "--as-group=system:serviceaccounts"),
                *("--patch", '{"metadata": {"ownerReferences": null}}'),
            )
        except SandboxError as refusal:
            return WORDS in str(refusal)
        return False

    shop.until(lambda: steadily(refuses), "the policy to be in force")
    shop.kubectl("delete", "pod", "probe", "--wait=false")
    yield
    for kind in kinds:
        shop.kubectl("delete", kind.lower(), name, "--ignore-not-found")


def _owner(shop: Shop) -> JsonObject:
    namespace = shop.sandbox.api.get(f"/api/v1/namespaces/{shop.namespace}")
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": shop.namespace,
        "uid": namespace["metadata"]["uid"],
    }


@pytest.mark.usefixtures("no_bare_pods")
def test_a_collector_that_may_not_take_the_owner_off(shop: Shop, fleet: Fleet) -> None:
    """It is told, with the name of the ReplicaSet; a loss is covered; removing the label gives it back."""
    shop.deploy(replicas=N)
    with shop.watch() as watched:
        shop.label()
        assert "has not let go of" in shop.reported("HandoverHangs")
        shop.wait_split(on_demand=0, spot=N)
        assert watched.lowest() >= N
    ending = {
        one["metadata"]["name"] for one in shop.replica_sets() if "deletionTimestamp" in one["metadata"]
    }
    fleet.kill(fleet.names("spot"))
    shop.until(lambda: shop.shape().on_demand == N, "the loss to be covered")
    # What hangs in its deletion then has a pod that no node has, too.
    shop.until(
        lambda: any("nodeName" not in pod["spec"] for pod in shop.pods()), "a replica to probe for spot"
    )
    with shop.watch() as watched:
        shop.unlabel()
        shop.wait_given_back(ending=ending)
        assert watched.lowest() >= N
