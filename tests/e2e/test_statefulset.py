"""The life of one split StatefulSet, told by its recorded pods: split, scaled, given back."""

import pytest

from lab.fixtures.database import Database

pytestmark = pytest.mark.e2e


def test_a_life(database: Database) -> None:
    """Its members get other names behind the same Service; `kubectl scale split` scales it, to 0 too."""
    database.deploy(5)
    before = database.snapshot()
    with database.watch() as watched:
        database.label()
        database.wait_split(on_demand=3, spot=2)
        pods = database.pods()
        assert len(pods) == 5
        database.shop.until(lambda: endpoints(database) == pods, "the five pods to be the endpoints")
        database.shop.kubectl("scale", "split/db-sts", "--replicas=6")
        database.wait_split(on_demand=4, spot=2)
        database.shop.kubectl("scale", "split/db-sts", "--replicas=5")
        database.wait_split(on_demand=3, spot=2)
        database.unlabel()
        database.wait_given_back()
        assert watched.lowest() >= 5
        assert watched.highest() <= 7
    assert database.snapshot() == before
    assert database.names() == {"db"}
    database.label()
    database.wait_split(on_demand=3, spot=2)
    database.shop.kubectl("scale", "split/db-sts", "--replicas=0")
    database.wait_split(on_demand=0, spot=0)


def endpoints(database: Database) -> set[str]:
    """Return the host names that the Service publishes."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{database.shop.namespace}/endpointslices"
    collected = database.shop.sandbox.api.list(path, labels="kubernetes.io/service-name=db")
    return {one["hostname"] for raw in collected for one in raw.get("endpoints") or () if one.get("hostname")}
