"""What other hands do to a split workload and to what is splitter's, told by the recorded pods."""

import pytest

from e2e.shop import Shop

pytestmark = pytest.mark.e2e

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2


@pytest.fixture
def split_shop(shop: Shop) -> Shop:
    """Return a namespace with `web` split into 1 + 3."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    return shop


@pytest.mark.xfail(reason="twins are known by a label that users can take away", strict=True)
class TestLabelsOfAllDeployments:
    """`kubectl label deployment --all` meets the twins too, whose label is what splitter knows them by."""

    def test_removed_from_all(self, split_shop: Shop) -> None:
        """The label removed with --all gives back as if it were removed from the source alone."""
        shop = split_shop
        with shop.watch() as watched:
            shop.kubectl("label", "deployment", "--all", "splitter.io/split-")
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
        assert shop.deployments() == {"web"}

    @pytest.mark.parametrize("written", ["splitter.io/split-", "splitter.io/split=enabled"])
    def test_changed_on_a_twin(self, split_shop: Shop, written: str) -> None:
        """A twin whose label somebody removes or overwrites is still the twin: its pods go on serving."""
        shop = split_shop
        with shop.watch() as watched:
            shop.kubectl("label", "--overwrite", "deployment", "web-spot", written)
            shop.until(
                lambda: shop.deployment("web-spot")["metadata"]["labels"].get("splitter.io/split") == "twin",
                "the twin's label",
            )
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
