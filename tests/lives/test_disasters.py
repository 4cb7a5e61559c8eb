"""What splitter stands on goes away under it: a namespace, the kind of its reports, a report."""

from lab.fixtures.shop import Shop

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2


class TestReport:
    """The Split is deleted in the middle."""

    def test_of_taking_over(self, shop: Shop) -> None:
        """It is written anew, and the take-over goes on, never below N."""
        shop.deploy(replicas=REPLICAS, surge=1, annotations=ASKED)
        with shop.watch() as watched:
            shop.label()
            for replicas in (1, 3):
                shop.until(lambda least=replicas: sum(shop.twins() or ()) >= least, "the middle")  # type: ignore[misc]
                shop.kubectl("delete", "split", "web", "--ignore-not-found")
            shop.wait_split(on_demand=1, spot=3)
            shop.until(lambda: shop.status().get("state") == "Steady", "the Split to say that all is steady")
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + 1
        shop.wait_no_strays()

    def test_of_giving_back(self, shop: Shop) -> None:
        """All is given back without it, and none is left."""
        shop.deploy(replicas=REPLICAS, surge=1, annotations=ASKED)
        before = shop.snapshot()
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        with shop.watch() as watched:
            shop.unlabel()
            for replicas in (3, 1, 0):
                shop.until(lambda most=replicas: sum(shop.twins() or (0,)) <= most, "the middle")  # type: ignore[misc]
                shop.kubectl("delete", "split", "web", "--ignore-not-found")
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + 1
        assert shop.snapshot() == before
        shop.wait_no_strays()
