"""Template sets that people bring: picked up live, broken in every way, refused, taken away.

Whatever happens to a set, the twins that run keep their last good template, and no pod is replaced
unless its user asks for it.
"""

from collections.abc import Iterator

import pytest

from e2e.support.template_sets import (
    NO_IMAGE,
    PODS,
    SPOT,
    Running,
    TemplateSet,
    deploy,
    spot_with,
    wait_held,
    wait_rolled,
    with_grace,
)
from e2e.support.terminal import Terminal, reported
from lab.fixtures.shop import Shop

pytestmark = pytest.mark.e2e


@pytest.fixture
def own_set(shop: Shop) -> Iterator[TemplateSet]:
    """Yield a set of the test's own, not written yet; it is gone afterwards."""
    template_set = TemplateSet(shop, f"{shop.namespace}-set")
    yield template_set
    template_set.delete()


@pytest.fixture
def split(shop: Shop, own_set: TemplateSet) -> Shop:
    """Return the shop with web split into 1 + 2 by a good set."""
    own_set.write()
    deploy(shop, own_set)
    shop.label()
    shop.wait_split(on_demand=1, spot=2)
    shop.until(lambda: shop.status().get("state") == "Steady", "rest")
    return shop


UNDEFINED = SPOT.replace(PODS, "spec: {{ pdo }}")
NOT_YAML = SPOT.replace(PODS, "spec: [{{ pod }}")
QUANTITY = spot_with({"containers": [{"name": "web", "resources": {"limits": {"cpu": "lots"}}}]})
UNKNOWN = spot_with({"contaners": []})
# What is wrong with a template, and the words of the API server.
BROKEN = (
    (NO_IMAGE, "containers[1].image: Required value"),
    (QUANTITY, "quantities must match the regular expression"),
    (UNKNOWN, ".spec.template.spec.contaners: field not declared"),
)


class TestBroken:
    def test_held(self, split: Shop, own_set: TemplateSet, admin: Terminal) -> None:
        """Said with its place, asked for or not; nothing rolls until it is mended, then what was asked."""
        before = Running(split)
        for text, words in BROKEN:
            own_set.change(text)
            wait_held(split, "TemplateInvalid", words)
        reported(admin.splitter("rollout", "deploy/web", "-n", split.namespace))
        generation = split.deployment()["metadata"]["generation"]
        split.until(lambda: split.status()["sourceGeneration"] == generation, "a look at what was asked")
        for text, words in BROKEN:
            own_set.change(text)
            wait_held(split, "TemplateInvalid", words)
        before.verify()
        own_set.change(with_grace(9))
        wait_rolled(split, grace=9)
