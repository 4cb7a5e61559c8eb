"""A workload that allows no surge (maxSurge 0) trades its own maxUnavailable instead, and no more."""

from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet

REPLICAS, UNAVAILABLE = 4, 1


def test_without_surge_the_floor_is_what_may_be_unavailable(shop: Shop, fleet: Fleet) -> None:
    """Never below N - U, never above N; what moves to spot is begun with one more."""
    shop.deploy(
        replicas=REPLICAS,
        surge=0,
        unavailable=UNAVAILABLE,
        annotations={"splitter.io/on-demand-base": "1"},
    )
    before = shop.snapshot()
    with shop.watch() as watched:
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS - UNAVAILABLE
        assert watched.highest() <= REPLICAS + 1
    fleet.kill(fleet.names("spot"))
    shop.until(lambda: shop.shape().on_demand >= REPLICAS, "on-demand to hold all")
    # Spot is asked for one more by then. Whatever else replaces its dead pods is one too many until it goes.
    shop.until(
        lambda: shop.twins() == (REPLICAS, 1) and shop.shape().total == REPLICAS + 1,
        "all but one of spot's replicas to go",
    )
    shop.until(lambda: shop.bound_to_vanished() == 0, "the pods of the vanished nodes to go")
    with shop.watch() as watched:
        fleet.restore(fleet.names("spot"))
        shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS - UNAVAILABLE
        assert watched.highest() <= REPLICAS + 1
    with shop.watch() as watched:
        shop.unlabel()
        shop.wait_given_back()
        assert watched.lowest() >= REPLICAS - UNAVAILABLE
        assert watched.highest() <= REPLICAS
    assert shop.snapshot() == before
