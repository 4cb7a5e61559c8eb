"""The kind of splitter's reports goes away under it: the CRD is deleted, and all Splits with it."""

from collections.abc import Callable, Iterator

import pytest

from lab.fixtures.controller import Controller
from lab.fixtures.namespaces import wait_alone
from lab.fixtures.shop import Shop
from lab.sandbox import Sandbox
from splitter.bundled import bundled_path

pytestmark = pytest.mark.e2e

REPLICAS, SURGE = 4, 2
CRD = "splits.splitter.io"


@pytest.fixture
def crd(sandbox: Sandbox) -> Iterator[Callable[[], None]]:
    """Yield what brings the CRD back, where no other test has Splits; it is back in any case afterwards."""
    wait_alone(sandbox)

    def apply() -> None:
        sandbox.kubectl("apply", "-f", str(bundled_path("manifests") / "crd.yaml"))
        sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{CRD}")

    yield apply
    apply()


def test_deleted_and_applied_again(shop: Shop, crd: Callable[[], None], controller: Controller) -> None:
    """It says once what is missing and which file mends it; no pod is touched, and all comes back.

    Scaled while the kind was missing, it follows when that is back.
    """
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations={"splitter.io/on-demand-base": "1"})
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    pods, before = shop.pod_uids(), len(controller.said())

    def complaints(about: str = "") -> list[str]:
        lines = controller.said()[before:].splitlines()
        return [one for one in lines if (" WARNING " in one or " ERROR " in one) and about in one]

    with shop.watch() as watched:
        shop.sandbox.kubectl("delete", "crd", CRD)
        shop.until(lambda: complaints("manifests/crd.yaml"), "the word about the CRD")
        shop.reported("WriteDenied")
        shop.deploy("other", replicas=1, ready_after="3s")  # time goes by
        assert shop.pod_uids() == pods
        shop.scale(REPLICAS + 2)
        crd()
        shop.wait_split(on_demand=1, spot=5)
        shop.until(lambda: shop.status().get("state") == "Steady", "it to be reported on again")
        assert watched.lowest() >= REPLICAS
        assert watched.highest() <= REPLICAS + 2 + SURGE
    assert pods < shop.pod_uids()
    assert len(complaints()) <= 2, complaints()
    assert "Traceback" not in controller.said()[before:]
    shop.unlabel()
    shop.wait_given_back()
