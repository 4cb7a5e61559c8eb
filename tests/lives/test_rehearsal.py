"""What would go wrong while pods have no owner is known before anything is written.

Labels of splitter's on the pods; policies and quotas that refuse one of the writes, or the garbage collector;
policies that change what is written. Each is refused, or said, and the workload is split when it is mended.
"""

import copy

import pytest

from e2e.support.refusals import ASKED, REPLICAS, Untouched, condition, refused
from lab.fixtures.shop import BY_ITSELF_S, JsonObject, Shop, manifest
from lives.policies import changed, forbidden

OURS = {"splitter.io/split": "enabled"}


def with_labels(selected: JsonObject, templated: JsonObject) -> JsonObject:
    """Return a Deployment as kustomize writes it: with more labels in its selector and its pod template."""
    made = manifest("web", REPLICAS, annotations={"splitter.io/on-demand-base": "1"}, labels=OURS)
    made["spec"]["selector"]["matchLabels"] |= selected
    made["spec"]["template"]["metadata"]["labels"] |= templated
    return made


class TestOwnLabels:
    @pytest.mark.parametrize(
        ("selected", "templated"),
        [(OURS, OURS), ({}, OURS), ({}, {"splitter.io/split": "parked"}), ({}, {"splitter.io/pool": "spot"})],
    )
    def test_by_common_labels(self, shop: Shop, selected: JsonObject, templated: JsonObject) -> None:
        """In selector and pod template: refused untouched, with the place; taken off them, it is split."""
        made = with_labels(selected, templated)
        shop.apply(made)
        shop.wait_rolled_out()
        before = Untouched(shop)
        message = refused(shop, "SelectorNotReleasable")
        assert next(iter(templated)) in message
        assert "spec.template.metadata.labels" in message
        before.verify()
        if selected:  # it is immutable
            shop.delete()
        shop.apply(with_labels({}, {}))
        shop.kubectl("label", "deployment", "web", "--overwrite", "splitter.io/split=enabled")
        shop.wait_split(on_demand=1, spot=2, deadline_s=BY_ITSELF_S)

    def test_in_the_template_while_it_is_split(self, shop: Shop) -> None:
        """It is rolled out, reported, and given back: no pod stays without an owner."""
        shop.apply(with_labels({}, {}))
        shop.wait_split(on_demand=1, spot=2)
        shop.apply(with_labels({}, OURS))
        shop.until(
            lambda: all("splitter.io/split" in pod["metadata"]["labels"] for pod in shop.pods()),
            "the roll of both twins",
        )
        shop.wait_split(on_demand=1, spot=2)
        shop.reported("SelectorNotReleasable")
        with shop.watch() as watched:
            shop.unlabel()
            shop.wait_given_back()
        assert watched.lowest() >= REPLICAS


TOO_FEW = "a Deployment needs at least 2 replicas"
NO_BARE_PODS = "bare pods are not allowed; use a controller"


def has_at_least_two(raw: JsonObject) -> bool:
    """Whether a Deployment has enough replicas; what a test asks the time by has none."""
    return bool(raw["spec"]["replicas"] >= 2 or raw["metadata"]["name"].startswith("posted-"))


def is_owned(raw: JsonObject) -> bool:
    """Whether a pod has an owner."""
    return bool(raw["metadata"].get("ownerReferences"))


def mirrored(raw: JsonObject) -> JsonObject:
    """Have all images come from a mirror."""
    made = copy.deepcopy(raw)
    for container in made["spec"]["template"]["spec"]["containers"]:
        container["image"] = f"mirror/{container['image']}"
    return made


def with_sidecar(raw: JsonObject) -> JsonObject:
    """Add a container."""
    made = copy.deepcopy(raw)
    made["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "proxy:1"})
    return made


def dated(raw: JsonObject) -> JsonObject:
    """Annotate the pods."""
    made = copy.deepcopy(raw)
    made["spec"]["template"]["metadata"].setdefault("annotations", {})["made"] = "so"
    return made


class TestPolicies:
    def test_at_least_two_replicas(self, shop: Shop) -> None:
        """All pods are on one pool, so the other twin is created with none: known before the pause."""
        shop.deploy(replicas=REPLICAS, annotations={"splitter.io/on-demand-base": str(REPLICAS)})
        with forbidden(shop, "deployments", has_at_least_two, TOO_FEW):
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
        message = "ResourceQuota few has room for 3 more of count/replicasets.apps, and 4 are needed"
        assert shop.says("WriteDenied", message)["state"] == "Refused"
        shop.reported("WriteDenied", message)
        before.verify()
        patch = '{"spec": {"hard": {"count/replicasets.apps": "5"}}}'
        shop.kubectl("patch", "quota", "few", "--type=merge", "-p", patch)
        shop.wait_split(on_demand=1, spot=2, deadline_s=BY_ITSELF_S)
        shop.unlabel()
        shop.wait_given_back()

    def test_no_bare_pods(self, shop: Shop) -> None:
        """The garbage collector could not take the owner off: refused, in the words of the policy."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        with forbidden(shop, "pods", is_owned, NO_BARE_PODS):
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
        with shop.watch() as watched, forbidden(shop, "pods", is_owned, NO_BARE_PODS):
            shop.unlabel()
            # The Split says it too, until it goes with the last trace: an Event stays.
            assert "take the owner off" in shop.reported("WriteDenied", NO_BARE_PODS)
            shop.wait_given_back()
        assert watched.lowest() >= REPLICAS

    def test_another_image(self, shop: Shop) -> None:
        """A policy that changes what is written is named with the fields, and without their values."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        with changed(shop, "deployments", mirrored):
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
        with changed(shop, "deployments", with_sidecar):
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
        with changed(shop, "replicasets", dated):
            shop.label()
            before = Untouched(shop)
            message = refused(shop, "WriteDenied")
            assert "spec.template.metadata.annotations.made" in message
            before.verify()
