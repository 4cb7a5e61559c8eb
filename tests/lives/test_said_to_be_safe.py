"""What looks safe, and is not: said before the label is set, by the refusal, and while it is so."""

import json

from e2e.support.refusals import Untouched, condition, refused
from lab.fixtures.shop import CAPACITY, LABEL, JsonObject, Shop, manifest
from lab.sandbox.fleet import Fleet
from lives.terminal import Terminal


class TestReplicasThatAreNotReady:
    """A rollout is waited for, and a replica that is held up is none."""

    def test_one_finds_no_node(self, shop: Shop) -> None:
        """8 nodes hold 8 of 9 replicas: these are split, none that serves goes, and the ninth is named."""
        web = manifest("web", 9, annotations={"splitter.io/on-demand-base": "5"})
        web["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5"
        shop.apply(web)
        shop.until(lambda: shop.deployment()["status"].get("availableReplicas") == 8, "8 replicas")
        with shop.watch() as watched:
            shop.label()
            taken = shop.reported("HandingOver", "taking over")
            assert (
                "8 of 8 running pods stay where they are; taken over though not ready: 1 (pod web-" in taken
            )
            assert taken.endswith(": it finds no node)")
            shop.until(lambda: shop.twins() == (5, 4) and shop.is_handed_over(), "it to be split")
            shop.says("OnDemandShort", "1 of 5 on-demand replicas find no node")
            assert watched.lowest() >= 8
        assert not shop.events("RolloutInProgress")

    def test_one_is_refused_by_the_api_server(self, shop: Shop) -> None:
        """Its ServiceAccount was deleted: what runs is split, and the API server's words are said."""
        accounts = f"/api/v1/namespaces/{shop.namespace}/serviceaccounts"
        shop.sandbox.api.create(accounts, {"metadata": {"name": "web"}})
        web = manifest("web", 3, annotations={"splitter.io/on-demand-base": "1"})
        web["spec"]["template"]["spec"]["serviceAccountName"] = "web"
        shop.apply(web)
        shop.wait_rolled_out()
        shop.kubectl("delete", "serviceaccount", "web")
        shop.scale(4)
        shop.until(lambda: shop.deployment()["status"].get("unavailableReplicas") == 1, "one to be missing")
        with shop.watch() as watched:
            shop.label()
            assert 'serviceaccount "web" not found' in shop.reported("HandingOver", "taking over")
            shop.until(shop.is_handed_over, "it to be split")
            shop.says("PodsRefused", 'serviceaccount "web" not found')
            assert watched.lowest() >= 3
        shop.sandbox.api.create(accounts, {"metadata": {"name": "web"}})
        shop.wait_split(on_demand=1, spot=3)


def pinned(selector: dict[str, str], **annotations: str) -> JsonObject:
    """Return the Deployment web of 4 replicas with a node selector of its user's."""
    web = manifest("web", 4, annotations={f"splitter.io/{name}": text for name, text in annotations.items()})
    web["spec"]["template"]["spec"]["nodeSelector"] = selector
    return web


class TestPoolsThatTakeNoReplica:
    """What the pod template asks for is held against both pools, before the label and afterwards."""

    def test_pinned_to_spot(self, shop: Shop, admin: Terminal) -> None:
        """Nothing could cover a loss: `plan`, `suggest` and the refusal say so in the same words."""
        web = pinned({CAPACITY: "spot"})
        shop.apply(web)
        shop.wait_rolled_out()
        planned = admin.splitter("plan", "deploy/web", "-n", shop.namespace).stdout
        suggested = admin.splitter("suggest", "-n", shop.namespace).stdout
        shop.label()
        before = Untouched(shop)
        said = refused(shop, "CoverImpossible")
        assert said.startswith(f"cover is impossible: the pod template has nodeSelector {CAPACITY}=spot")
        assert said in planned
        assert said in suggested
        assert "69 %" not in suggested
        before.verify()
        del web["spec"]["template"]["spec"]["nodeSelector"]
        web["metadata"]["labels"] = {**web["metadata"]["labels"], LABEL: "enabled"}
        shop.apply(web)
        shop.wait_split(on_demand=0, spot=4)
        pin = {"spec": {"template": {"spec": {"nodeSelector": {CAPACITY: "spot"}}}}}
        shop.kubectl("patch", "deployment", "web", "--patch", json.dumps(pin))
        shop.says("CoverImpossible", "Until then the twins keep the template that they have")
        assert condition(shop, "PoolsFit")[:2] == ("False", "CoverImpossible")
        assert shop.shape().spot == 4

    def test_no_node_of_now(self, shop: Shop, fleet: Fleet, admin: Terminal) -> None:
        """An autoscaler may bring others: it is split, and the warning stays."""
        web = pinned({}, **{"on-demand-base": "1"})
        term = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(fleet.names("spot"))}
        web["spec"]["template"]["spec"]["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [term]}]
                }
            }
        }
        shop.apply(web)
        shop.wait_rolled_out()
        planned = admin.splitter("plan", "deploy/web", "-n", shop.namespace).stdout
        shop.label()
        said = shop.reported("CoverImpossible", "with the nodes that there are")
        assert said in planned
        shop.until(lambda: condition(shop, "PoolsFit")[:2] == ("Unknown", "CoverImpossible"), "the condition")


class TestNoSpotNode:
    """No label tells which nodes are spot: the first fault on a new cluster."""

    def test_is_said_first(self, shop: Shop, fleet: Fleet, admin: Terminal) -> None:
        """With the setting, and with the label of a node that looks like spot; no replica is said to move."""
        shop.deploy(replicas=2)
        names = fleet.names("spot")
        shop.sandbox.kubectl("label", "node", *names, f"{CAPACITY}-", "node-type=spot")
        try:
            planned = admin.splitter("plan", "deploy/web", "-n", shop.namespace).stdout
            suggested = admin.splitter("suggest", "-n", shop.namespace).stdout
            shop.label()
            said = shop.says("SpotUnseen", "node-type=spot")["message"]
            shop.until(shop.is_handed_over, "it to be split")
            explained = admin.splitter("explain", "deploy/web", "-n", shop.namespace).stdout
        finally:
            shop.sandbox.kubectl("label", "node", *names, f"{CAPACITY}=spot", "node-type-")
        first = planned.splitlines()[1]
        assert first.startswith("  ! no node of the cluster is recognised as spot (node spot-")
        assert "spot_selectors" in first
        assert "moved to spot" not in planned
        assert suggested.startswith("! no node of the cluster is recognised as spot (node spot-")
        assert said.startswith("no node of the cluster is recognised as spot")
        assert explained.splitlines()[0].endswith("SpotUnseen")
        shop.wait_split(on_demand=0, spot=2)
        shop.until(lambda: condition(shop, "PoolsFit")[0] == "True", "the warning to go")
