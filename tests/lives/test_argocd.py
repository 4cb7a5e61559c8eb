"""What Argo CD would show through the life of a split workload, by its own scripts."""

from argocd import health
from lab.fixtures.shop import Shop

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS = 3


class TestHealth:
    def test_from_label_to_giving_back(self, shop: Shop) -> None:
        """Source, twins and Split are Healthy when at rest; a broken image makes the Split Degraded."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        assert health(shop.deployment()) == ("Healthy", "")
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        shop.until(lambda: _split(shop)[0] == "Healthy", "the Split to be Healthy")
        status, message = health(shop.deployment())
        assert status == "Healthy"
        assert "split by splitter" in message
        for twin in ("web-on-demand", "web-spot"):
            _wait_healthy(shop, twin)
        shop.annotate(freeze="true")
        shop.until(lambda: _split(shop)[0] == "Suspended", "the freeze")
        shop.annotate(freeze="false", spot_percent="nonsense")
        shop.until(lambda: _split(shop)[0] == "Degraded", "the bad annotation")
        shop.annotate(spot_percent="100")
        shop.until(lambda: _split(shop)[0] == "Healthy", "the Split to be Healthy again")
        seen = set()
        shop.unlabel()

        def is_unsplit() -> bool:
            seen.add(health(shop.deployment())[0])
            return shop.split() is None

        shop.until(is_unsplit, "the Split to go")
        assert seen <= {"Healthy", "Progressing"}
        shop.wait_given_back()
        _wait_healthy(shop)

    def test_of_what_is_refused(self, shop: Shop) -> None:
        """The Deployment runs on as it is, and its Split says that it is not split."""
        shop.deploy(replicas=1, strategy={"type": "Recreate"})
        shop.label()
        shop.until(lambda: _split(shop)[0] == "Degraded", "the refusal")
        assert "StrategyRecreate" in _split(shop)[1]
        assert health(shop.deployment()) == ("Healthy", "")


def _wait_healthy(shop: Shop, name: str = "web") -> None:
    """Wait until Argo CD calls a Deployment healthy: it goes by the status, which follows the pods."""
    shop.until(lambda: health(shop.deployment(name)) == ("Healthy", ""), f"{name} to be Healthy")


def _split(shop: Shop) -> tuple[str, str]:
    result = shop.split()
    return ("", "") if result is None else health(result)
