"""What would go wrong while pods have no owner is known before anything is written.

Labels of splitter's on the pods; policies and quotas that refuse one of the writes, or the garbage collector;
policies that change what is written. Each is refused, or said, and the workload is split when it is mended.
"""

from contextlib import AbstractContextManager

import pytest

from e2e.support.admission import changed, forbidden
from e2e.support.refusals import ASKED, REPLICAS, Untouched, condition, refused
from lab.fixtures.shop import BY_ITSELF_S, JsonObject, Shop, manifest

pytestmark = pytest.mark.e2e

# But for what a test asks the time by.
AT_LEAST_TWO = "object.spec.replicas >= 2 || object.metadata.name.startsWith('posted-')"
TOO_FEW = "a Deployment needs at least 2 replicas"
NO_BARE_PODS = "bare pods are not allowed; use a controller"
BARE_POD: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "bare"},
    "spec": manifest("bare", 0)["spec"]["template"]["spec"],
}


def bare_pods_forbidden(shop: Shop) -> AbstractContextManager[None]:
    """Have a policy refuse every pod that has no owner, new or changed."""
    owned = "has(object.metadata.ownerReferences) && size(object.metadata.ownerReferences) > 0"
    policy = {"validations": [{"expression": owned, "message": NO_BARE_PODS}]}
    return forbidden(shop, "bare", "pods", policy, lambda: shop.dry_run(BARE_POD), group="")


class TestPolicies:
    def test_at_least_two_replicas(self, shop: Shop) -> None:
        """All pods are on one pool, so the other twin is created with none: known before the pause."""
        shop.deploy(replicas=REPLICAS, annotations={"splitter.io/on-demand-base": str(REPLICAS)})
        policy = {"validations": [{"expression": AT_LEAST_TWO, "message": TOO_FEW}]}
        with forbidden(shop, "two", "deployments", policy, lambda: shop.dry_run(manifest("asked", 1))):
            shop.label()
            before = Untouched(shop)
            message = refused(shop, "WriteDenied")
            assert TOO_FEW in message
            assert "twin with" in message
            before.verify()
        shop.wait_split(on_demand=REPLICAS, spot=0, deadline_s=BY_ITSELF_S)

    def test_a_quota_that_holds_each_and_not_all(self, shop: Shop) -> None:
        """A dry run of each ReplicaSet fits: all together do not, and that is known before the pause."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.kubectl("create", "quota", "few", "--hard=count/replicasets.apps=4")
        path = f"/api/v1/namespaces/{shop.namespace}/resourcequotas/few"
        used = {"count/replicasets.apps": "1"}
        shop.until(lambda: shop.sandbox.api.get(path)["status"]["used"] == used, "the quota to be counted")
        shop.label()
        before = Untouched(shop)
        message = refused(shop, "WriteDenied")
        assert "ResourceQuota few has room for 3 more of count/replicasets.apps, and 4 are needed" in message
        before.verify()
        patch = '{"spec": {"hard": {"count/replicasets.apps": "5"}}}'
        shop.kubectl("patch", "quota", "few", "--type=merge", "-p", patch)
        shop.wait_split(on_demand=1, spot=2, deadline_s=BY_ITSELF_S)
        shop.unlabel()
        shop.wait_given_back()

    def test_no_bare_pods(self, shop: Shop) -> None:
        """The garbage collector could not take the owner off: refused, in the words of the policy."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        with bare_pods_forbidden(shop):
            shop.label()
            before = Untouched(shop)
            message = refused(shop, "WriteDenied")
            assert "take the owner off pod web-" in message
            assert NO_BARE_PODS in message
            assert "have none for a moment" in message
            before.verify()
        shop.wait_split(on_demand=1, spot=2, deadline_s=BY_ITSELF_S)

    def test_no_bare_pods_while_it_is_split(self, shop: Shop) -> None:
        """The pods are not let go on the way back either: they are replaced, and none is missed."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        with shop.watch() as watched, bare_pods_forbidden(shop):
            shop.unlabel()
            # The Split says it too, until it goes with the last trace: an Event stays.
            assert "take the owner off" in shop.reported("WriteDenied", NO_BARE_PODS)
            shop.wait_given_back()
        assert watched.lowest() >= REPLICAS

    def test_another_image(self, shop: Shop) -> None:
        """A policy that changes what is written is named with the fields, and without their values."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        renamed = (
            "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
            "containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{"
            "name: c.name, image: 'mirror/' + c.image})}}}}"
        )
        with changed(shop, "mirror", "deployments", renamed, lambda made: "mirror/" in image_of(made)):
            shop.label()
            before = Untouched(shop)
            message = refused(shop, "WriteDenied")
            assert "spec.template.spec.containers.web.image" in message
            assert "mirror/" not in message
            before.verify()
        shop.wait_split(on_demand=1, spot=2, deadline_s=BY_ITSELF_S)

    def test_a_container_more(self, shop: Shop) -> None:
        """It is split, and its Split goes on saying what a policy has added to the twins."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        injected = (
            "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
            "containers: [Object.spec.template.spec.containers{name: 'sidecar', image: 'proxy:1'}]}}}}"
        )
        with changed(shop, "inject", "deployments", injected, lambda made: "sidecar" in str(made)):
            shop.label()
            shop.wait_split(on_demand=1, spot=2)
            shop.until(lambda: condition(shop, "Eligible")[:2] == ("False", "Drift"), "the condition")
            said = condition(shop, "Eligible")[2]
            assert "spec.template.spec.containers.sidecar" in said
            assert "proxy" not in said
            shop.wait_steady()

    def test_another_template_of_replica_sets(self, shop: Shop) -> None:
        """What adopts the pods would be no ReplicaSet of its twin's template: both would roll at once."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        dated = (
            "Object{spec: Object.spec{template: Object.spec.template{metadata:"
            " Object.spec.template.metadata{annotations: {'made': 'so'}}}}}"
        )
        with changed(shop, "dated", "replicasets", dated, lambda made: "'made'" in str(made)):
            shop.label()
            before = Untouched(shop)
            message = refused(shop, "WriteDenied")
            assert "spec.template.metadata.annotations.made" in message
            before.verify()


def image_of(raw: JsonObject) -> str:
    """Return the image of the first container of a workload."""
    return str(raw["spec"]["template"]["spec"]["containers"][0]["image"])
