"""A Service that was made for the source finds the pods of all holders, at every moment."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab.demo.watching import Watch
from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant

pytestmark = pytest.mark.e2e

REPLICAS, SURGE = 4, 2
ASKED = {"splitter.io/on-demand-base": "1"}


@contextmanager
def ready(shop: Shop) -> Iterator[list[int]]:
    """Yield how many endpoints were ready, at each change of the Service's EndpointSlices."""
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    shop.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
    path = f"/apis/discovery.k8s.io/v1/namespaces/{shop.namespace}/endpointslices"
    collected: list[int] = []
    slices: dict[str, int] = {}

    def changed(_at: Instant, raw: JsonObject, deleted: bool) -> None:
        ready = [one for one in raw.get("endpoints") or [] if one["conditions"].get("ready")]
        slices[raw["metadata"]["name"]] = 0 if deleted else len(ready)
        if collected or sum(slices.values()) == REPLICAS:  # from the moment it is complete
            collected.append(sum(slices.values()))

    with Watch(shop.sandbox.api, path, changed):
        shop.until(lambda: collected, "the Service to have all endpoints")
        yield collected


def test_endpoints(shop: Shop, fleet: Fleet) -> None:
    """Taken over, rolled, scaled, noticed and given back: never fewer than N; a loss takes what was there.

    The dead leave at once, and the rest follow.
    """
    spot = fleet.names("spot")
    shop.deploy(replicas=REPLICAS, annotations=ASKED)
    with ready(shop) as endpoints:
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        shop.set_image("web:2")
        shop.until(lambda: set(shop.images()) == {"web:2"}, "web:2 everywhere")
        shop.wait_split(on_demand=1, spot=3)
        fleet.notice(spot)
        shop.until(lambda: shop.shape().on_demand >= REPLICAS, "on-demand to hold all")
        shop.until(lambda: not shop.shape().spot, "the doomed replicas to be let go")
        fleet.kill(spot)
        fleet.restore(spot)
        shop.wait_split(on_demand=1, spot=3)
        shop.scale(6)
        shop.wait_split(on_demand=1, spot=5)
        shop.scale(REPLICAS)
        shop.wait_split(on_demand=1, spot=3)
        assert min(endpoints) >= REPLICAS
        assert max(endpoints) <= 6 + SURGE
        fleet.kill(spot)
        shop.until(lambda: shop.shape().on_demand >= REPLICAS, "on-demand to hold all")
        shop.until(lambda: endpoints[-1] == REPLICAS, "all endpoints to be back")
        planned = len(endpoints)
        fleet.restore(spot)
        shop.wait_split(on_demand=1, spot=3)
        shop.unlabel()
        shop.wait_given_back()
    assert min(endpoints) >= 1
    assert min(endpoints[planned:]) >= REPLICAS
