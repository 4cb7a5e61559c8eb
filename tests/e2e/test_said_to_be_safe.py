"""What looks safe, and is not: said before the label is set, by the refusal, and while it is so."""

import pytest

from lab.fixtures.shop import Shop, manifest

pytestmark = pytest.mark.e2e


class TestReplicasThatAreNotReady:
    """A rollout is waited for, and a replica that is held up is none."""

    def test_one_is_refused_by_the_api_server(self, shop: Shop) -> None:
        """Its ServiceAccount was deleted: what runs is split, and the API server's words are said."""
        shop.kubectl("create", "serviceaccount", "web")
        web = manifest("web", 3, annotations={"splitter.io/on-demand-base": "1"})
        web["spec"]["template"]["spec"]["serviceAccountName"] = "web"
        shop.apply(web)
        shop.wait_rolled_out()
        shop.kubectl("delete", "serviceaccount", "web")
        shop.scale(4)
        shop.until(lambda: shop.deployment()["status"].get("unavailableReplicas") == 1, "one to be missing")
        with shop.watch() as watched:
            shop.label()
            assert 'serviceaccount "web" not found' in shop.reported("TakenOver")
            shop.until(shop.is_handed_over, "it to be split")
            shop.says("PodsRefused", 'serviceaccount "web" not found')
            assert watched.lowest() >= 3
        shop.kubectl("create", "serviceaccount", "web")
        shop.wait_split(on_demand=1, spot=3)
