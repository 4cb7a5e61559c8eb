"""The life of one split Deployment, told by its recorded pods: split, scaled, rolled, given back."""

import pytest

from lab.fixtures.shop import REVISION, Shop

pytestmark = [pytest.mark.e2e, pytest.mark.life]

ASKED = {"splitter.io/on-demand-base": "2", "splitter.io/spot-percent": "80"}


def test_label_splits_and_its_removal_gives_back(shop: Shop) -> None:
    """A label moves 8 replicas to 3 + 5 as asked, its removal gives all back as found, without a dip."""
    shop.deploy(replicas=8, annotations=ASKED)
    before = shop.snapshot()
    with shop.watch() as watched:
        shop.label()
        shop.wait_split(on_demand=3, spot=5)
        shop.unlabel()
        shop.wait_given_back()
        assert watched.lowest() >= 8
        assert watched.highest() <= 10
    assert shop.snapshot() == before
    assert shop.deployments() == {"web"}
    assert {pod["metadata"]["ownerReferences"][0]["name"] for pod in shop.pods()} == {
        rs["metadata"]["name"] for rs in shop.replica_sets() if rs["spec"]["replicas"]
    }


def test_scale_is_followed(shop: Shop) -> None:
    """`kubectl scale` on the source goes on working, up and down, and never costs a replica."""
    shop.deploy(replicas=4, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=2, spot=2)
    with shop.watch() as watched:
        shop.scale(8)
        shop.wait_split(on_demand=3, spot=5)
        assert watched.lowest() >= 4
        assert watched.highest() <= 10
    with shop.watch() as watched:
        shop.scale(3)
        shop.wait_split(on_demand=2, spot=1)
        assert watched.lowest() >= 3
        assert watched.highest() <= 10


def test_image_change_and_undo(shop: Shop) -> None:
    """A new image reaches both twins without a dip; given back, the history is there and can be undone."""
    shop.deploy(replicas=4, annotations=ASKED)
    shop.set_image("web:2")
    shop.wait_rolled_out()
    shop.label()
    shop.wait_split(on_demand=2, spot=2)
    with shop.watch() as watched:
        shop.set_image("web:3")
        shop.until(lambda: set(shop.images()) == {"web:3"}, "both twins to run web:3")
        shop.wait_split(on_demand=2, spot=2)
        shop.unlabel()
        shop.wait_given_back()
        assert watched.lowest() >= 4
        assert watched.highest_asked() <= 6
    assert set(shop.images()) == {"web:3"}
    images = {rs["spec"]["template"]["spec"]["containers"][0]["image"] for rs in shop.replica_sets()}
    assert images == {"web:1", "web:2", "web:3"}
    with shop.watch() as watched:  # once more: what the first life has left is in nobody's way
        shop.label()
        shop.wait_split(on_demand=2, spot=2)
        shop.unlabel()
        shop.wait_given_back()
        assert watched.lowest() >= 4
    history = shop.kubectl("rollout", "history", "deployment/web")
    assert shop.deployment()["metadata"]["annotations"][REVISION] in history
    shop.kubectl("rollout", "undo", "deployment/web")
    shop.wait_rolled_out()
    shop.until(lambda: set(shop.images()) == {"web:2"}, "the image before the last")
