"""Rolls that go wrong or change their mind: what stops them, and that nobody notices meanwhile."""

from contextlib import AbstractContextManager

import pytest

from e2e.support.admission import forbidden
from lab.fixtures.shop import BY_ITSELF_S, Shop
from lab.sandbox import PatchKind

pytestmark = pytest.mark.e2e

GOOD, BAD, MENDED = "web:1", "web:bad", "web:2"

ASKED = {"splitter.io/on-demand-base": "2"}
REPLICAS, SURGE = 5, 2
REFUSED = "no new images on spot today"


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """Return a namespace with `web`, split into 2 + 3."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED, image=GOOD)
    shop.label()
    shop.wait_split(on_demand=2, spot=3)
    return shop


def set_image(shop: Shop, image: str) -> None:
    """Roll an image out as a user does."""
    shop.set_image(image)


def generation(shop: Shop, pool: str) -> int:
    """Return what each change of a twin's spec adds one to."""
    raw: int = shop.deployment(f"web-{pool}")["metadata"]["generation"]
    return raw


class TestDryRun:
    def test_what_only_the_second_write_would_show(self, shop: Shop) -> None:
        """A policy refuses the new spot twin: neither twin is rolled; without it, both are."""
        before = {pool: generation(shop, pool) for pool in ("on-demand", "spot")}
        with new_spot_images_forbidden(shop):
            set_image(shop, MENDED)
            shop.says("WriteDenied", REFUSED)
            assert {pool: generation(shop, pool) for pool in before} == before
            assert shop.images() == {GOOD: REPLICAS}
        shop.annotate(grace="20s")  # whoever touches the source need not wait for the next look
        shop.until(lambda: shop.images() == {MENDED: REPLICAS}, f"{MENDED} everywhere", BY_ITSELF_S)


def new_spot_images_forbidden(shop: Shop) -> AbstractContextManager[None]:
    """Have an admission policy refuse, in this namespace, each new image of a spot twin."""
    same = f"object.spec.template.spec.containers[0].image == '{GOOD}'"
    key = "'splitter.io/pool'"
    spot = f"{key} in object.metadata.labels && object.metadata.labels[{key}] == 'spot'"
    policy = {
        "matchConditions": [{"name": "spot", "expression": spot}],
        "validations": [{"expression": same, "message": REFUSED}],
    }
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": MENDED}]}}}}

    def attempt() -> None:
        path = f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/web-spot"
        query, how = {"dryRun": "All"}, PatchKind.STRATEGIC
        shop.sandbox.api.request("PATCH", path, query=query, body=patch, content_type=how)

    return forbidden(shop, "no-new-spot-images", "deployments", policy, attempt)
