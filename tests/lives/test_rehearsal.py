"""What would go wrong while pods have no owner is known before anything is written.

Labels of splitter's on the pods; policies and quotas that refuse one of the writes, or the garbage collector;
policies that change what is written. Each is refused, or said, and the workload is split when it is mended.
"""

import pytest

from e2e.support.refusals import REPLICAS, Untouched, refused
from lab.fixtures.shop import BY_ITSELF_S, JsonObject, Shop, manifest

OURS = {"splitter.io/split": "enabled"}


def with_labels(selected: JsonObject, templated: JsonObject) -> JsonObject:
    """Return a Deployment as kustomize writes it: with more labels in its selector and its pod template."""
    made = manifest("web", REPLICAS, annotations={"splitter.io/on-demand-base": "1"}, labels=OURS)
    made["spec"]["selector"]["matchLabels"] |= selected
    made["spec"]["template"]["metadata"]["labels"] |= templated
    return made


class TestOwnLabels:
    @pytest.mark.parametrize(
        ("selected", "templated"),
        [(OURS, OURS), ({}, OURS), ({}, {"splitter.io/split": "parked"}), ({}, {"splitter.io/pool": "spot"})],
    )
    def test_by_common_labels(self, shop: Shop, selected: JsonObject, templated: JsonObject) -> None:
        """In selector and pod template: refused untouched, with the place; taken off them, it is split."""
        made = with_labels(selected, templated)
        shop.apply(made)
        shop.wait_rolled_out()
        before = Untouched(shop)
        message = refused(shop, "SelectorNotReleasable")
        assert next(iter(templated)) in message
        assert "spec.template.metadata.labels" in message
        before.verify()
        if selected:  # it is immutable
            shop.delete()
        shop.apply(with_labels({}, {}))
        shop.kubectl("label", "deployment", "web", "--overwrite", "splitter.io/split=enabled")
        shop.wait_split(on_demand=1, spot=2, deadline_s=BY_ITSELF_S)

    def test_in_the_template_while_it_is_split(self, shop: Shop) -> None:
        """It is rolled out, reported, and given back: no pod stays without an owner."""
        shop.apply(with_labels({}, {}))
        shop.wait_split(on_demand=1, spot=2)
        shop.apply(with_labels({}, OURS))
        shop.until(
            lambda: all("splitter.io/split" in pod["metadata"]["labels"] for pod in shop.pods()),
            "the roll of both twins",
        )
        shop.wait_split(on_demand=1, spot=2)
        shop.reported("SelectorNotReleasable")
        with shop.watch() as watched:
            shop.unlabel()
            shop.wait_given_back()
        assert watched.lowest() >= REPLICAS
