"""Rolls that go wrong or change their mind: what stops them, and that nobody notices meanwhile."""

import pytest

from lab.fixtures.shop import BY_ITSELF_S, POOL, JsonObject, Shop
from lives.policies import forbidden

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


def twin_image(shop: Shop, pool: str) -> str:
    """Return the image that a twin asks for."""
    raw: str = shop.deployment(f"web-{pool}")["spec"]["template"]["spec"]["containers"][0]["image"]
    return raw


def deadline_s(shop: Shop, pool: str) -> int:
    """Return after how many seconds without progress a twin's roll is given up."""
    raw: int = shop.deployment(f"web-{pool}")["spec"]["progressDeadlineSeconds"]
    return raw


def generation(shop: Shop, pool: str) -> int:
    """Return what each change of a twin's spec adds one to."""
    raw: int = shop.deployment(f"web-{pool}")["metadata"]["generation"]
    return raw


class TestStalled:
    @pytest.fixture(autouse=True)
    def impatient(self, shop: Shop) -> None:
        """Have it give a roll up after 5 seconds, once it is split: that may take a busy machine longer."""
        shop.kubectl("patch", "deployment", "web", "--patch", '{"spec": {"progressDeadlineSeconds": 5}}')
        shop.until(
            lambda: [deadline_s(shop, pool) for pool in ("on-demand", "spot")] == [5, 5],
            "both twins to have the deadline",
        )
        shop.wait_steady()

    def test_the_other_twin_keeps_the_old_template(self, shop: Shop) -> None:
        """A roll without progress is said once, stops where it is, and ends with the fixed image."""
        with shop.watch() as watched:
            set_image(shop, BAD)
            shop.reported("RolloutStalled")
            assert (twin_image(shop, "on-demand"), twin_image(shop, "spot")) == (BAD, GOOD)
            shop.wait_posted()
            assert len(shop.events("RolloutStalled")) == 1
            set_image(shop, MENDED)
            shop.until(lambda: shop.images() == {MENDED: REPLICAS}, f"{MENDED} everywhere")
            shop.wait_split(on_demand=2, spot=3)
        assert watched.lowest() >= REPLICAS
        assert watched.highest_asked() <= REPLICAS + SURGE

    def test_spot_first_is_a_canary(self, shop: Shop) -> None:
        """Asked so, spot gets the new template first, and on-demand never sees a broken one."""
        shop.annotate(rollout_order="spot-first")
        before = generation(shop, "on-demand")
        with shop.watch() as watched:
            set_image(shop, BAD)
            shop.reported("RolloutStalled")
            assert (twin_image(shop, "on-demand"), twin_image(shop, "spot")) == (GOOD, BAD)
            set_image(shop, GOOD)
            shop.until(lambda: shop.images() == {GOOD: REPLICAS}, f"{GOOD} everywhere")
            shop.wait_split(on_demand=2, spot=3)
        assert generation(shop, "on-demand") == before
        assert watched.lowest() >= REPLICAS


class TestWrites:
    def test_a_change_writes_each_twin_once(self, shop: Shop) -> None:
        """One image change is one write of each twin's template, and none of its counts."""
        before = {pool: generation(shop, pool) for pool in ("on-demand", "spot")}
        set_image(shop, MENDED)
        shop.until(lambda: shop.images() == {MENDED: REPLICAS}, f"{MENDED} everywhere")
        shop.wait_split(on_demand=2, spot=3)
        assert {pool: generation(shop, pool) - before[pool] for pool in before} == {"on-demand": 1, "spot": 1}

    def test_a_newer_template_replaces_an_unfinished_one(self, shop: Shop) -> None:
        """Three images in a row: the last one runs, and nothing was missing meanwhile."""
        with shop.watch() as watched:
            for image in ("web:3", "web:4", MENDED):
                set_image(shop, image)
            shop.until(lambda: shop.images() == {MENDED: REPLICAS}, f"{MENDED} everywhere")
            shop.wait_split(on_demand=2, spot=3)
        assert watched.lowest() >= REPLICAS
        assert watched.highest_asked() <= REPLICAS + SURGE


class TestDryRun:
    def test_what_only_the_second_write_would_show(self, shop: Shop) -> None:
        """A policy refuses the new spot twin: neither twin is rolled; without it, both are."""
        before = {pool: generation(shop, pool) for pool in ("on-demand", "spot")}
        with forbidden(shop, "deployments", is_good_or_on_demand, REFUSED):
            set_image(shop, MENDED)
            shop.says("WriteDenied", REFUSED)
            assert {pool: generation(shop, pool) for pool in before} == before
            assert shop.images() == {GOOD: REPLICAS}
        shop.annotate(grace="20s")  # whoever touches the source need not wait for the next look
        shop.until(lambda: shop.images() == {MENDED: REPLICAS}, f"{MENDED} everywhere", BY_ITSELF_S)


def is_good_or_on_demand(raw: JsonObject) -> bool:
    """Whether a Deployment is no spot twin with a new image."""
    [container] = raw["spec"]["template"]["spec"]["containers"]
    return bool(container["image"] == GOOD or raw["metadata"]["labels"].get(POOL) != "spot")
