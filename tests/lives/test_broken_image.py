"""An image that cannot be pulled, and then the loss of all spot nodes: the worst day, told by the pods."""

from collections import Counter

import pytest

from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet
from lab.sandbox.machines import Notice

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2
GOOD, BAD, MENDED = "web:1", "web:bad", "web:2"


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """Return a namespace with `web`, split into 1 + 3, whose new image cannot be pulled."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED, image=GOOD)
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    with shop.watch() as watched:
        shop.set_image(BAD)
        shop.until(lambda: shop.images()[BAD] and ready(shop)[GOOD] == REPLICAS, "the broken roll")
        assert watched.lowest() >= REPLICAS
    return shop


def ready(shop: Shop, pool: str = "") -> Counter[str]:
    """Count the pods that are ready, of one pool's nodes or of all, by their image."""
    return Counter(
        image(pod)
        for pod in shop.pods()
        if pod["spec"].get("nodeName", "").startswith(pool)
        and any(
            one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ())
        )
    )


def image(pod: dict[str, dict[str, list[dict[str, str]]]]) -> str:
    """Return the image of a pod's first container."""
    return pod["spec"]["containers"][0]["image"]


def mended(shop: Shop, fleet: Fleet) -> None:
    """Bring the spot nodes back, apply an image that can be pulled, and wait until all of it runs."""
    with shop.watch() as watched:
        shop.set_image(MENDED)
        fleet.restore(fleet.names("spot"))
        shop.until(lambda: shop.images() == {MENDED: REPLICAS}, f"{MENDED} everywhere")
        shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS


def test_all_spot_vanishes(shop: Shop, fleet: Fleet) -> None:
    """On-demand goes back to the last good template before it is raised: N serve again."""
    with shop.watch() as watched:
        fleet.kill(fleet.names("spot"))
        shop.until(lambda: ready(shop, "on-demand") == {GOOD: REPLICAS}, f"{REPLICAS} of {GOOD} on on-demand")
        assert watched.lowest() >= 1  # the one that stood on on-demand
    shop.until(lambda: shop.bound_to_vanished() == 0, "the pods of the vanished nodes to go")
    mended(shop, fleet)


def test_all_spot_is_announced_to_go(shop: Shop, fleet: Fleet) -> None:
    """With notice not one of N is missing: good replicas stand on on-demand before the nodes go."""
    with shop.watch() as watched:
        fleet.notice(fleet.names("spot"), Notice.TAINT)
        shop.until(lambda: ready(shop, "on-demand") == {GOOD: REPLICAS}, f"{REPLICAS} of {GOOD} on on-demand")
        fleet.kill(fleet.names("spot"))
        shop.until(lambda: shop.bound_to_vanished() == 0, "the pods of the vanished nodes to go")
        assert watched.lowest() >= REPLICAS
    mended(shop, fleet)


def test_undone(shop: Shop) -> None:
    """The old image applied again ends the broken roll; no good pod was ever touched but by the roll."""
    with shop.watch() as watched:
        shop.set_image(GOOD)
        shop.wait_split(on_demand=1, spot=3)
        shop.until(lambda: shop.images() == {GOOD: REPLICAS}, f"{GOOD} everywhere")
        assert watched.lowest() >= REPLICAS
