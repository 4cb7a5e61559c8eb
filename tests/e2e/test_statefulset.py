"""The life of one split StatefulSet, told by its recorded pods: split, scaled, rolled, given back."""

import pytest

from lab.fixtures.database import Database

pytestmark = pytest.mark.e2e


@pytest.fixture
def whole(database: Database) -> Database:
    """Return `db`, 5 members split into 3 + 2."""
    database.deploy(5)
    database.label()
    database.wait_split(on_demand=3, spot=2)
    return database


@pytest.mark.parametrize("ordered", [False, True], ids=["Parallel", "OrderedReady"])
def test_label_splits_and_its_removal_gives_back(database: Database, ordered: bool) -> None:
    """A label moves 5 members to 3 + 2 by default, its removal gives all back as found, without a dip."""
    database.deploy(5, ordered=ordered)
    before = database.snapshot()
    with database.watch() as watched:
        database.label()
        database.wait_split(on_demand=3, spot=2)
        assert database.pods() == {
            *(f"db-on-demand-{ordinal}" for ordinal in range(3)),
            *(f"db-spot-{ordinal}" for ordinal in (1000, 1001)),
        }
        database.unlabel()
        database.wait_given_back()
        assert watched.lowest() >= 5
        assert watched.highest() <= 6
    assert database.snapshot() == before
    assert database.names() == {"db"}
    assert database.pods() == {f"db-{ordinal}" for ordinal in range(5)}
    said = database.reported("IdentitiesChange")
    database.shop.wait_posted()
    assert database.events("IdentitiesChange") == [said]
    assert said.startswith("its pods get other names: db-0.db becomes db-on-demand-0.db or db-spot-1000.db.")


def test_peers_stay_behind_the_service(whole: Database) -> None:
    """The headless Service lists the pods of both twins, each under its own name."""
    pods = whole.pods()
    assert len(pods) == 5
    whole.shop.until(lambda: endpoints(whole) == pods, "the five pods to be the endpoints")


def endpoints(database: Database) -> set[str]:
    """Return the host names that the Service publishes."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{database.shop.namespace}/endpointslices"
    collected = database.shop.sandbox.api.list(path, labels="kubernetes.io/service-name=db")
    return {one["hostname"] for raw in collected for one in raw.get("endpoints") or () if one.get("hostname")}


class TestScale:
    def test_by_the_split(self, whole: Database) -> None:
        """`kubectl scale split/db-sts` does as well, to 0 too, which the source cannot say."""
        with whole.watch() as watched:
            whole.shop.kubectl("scale", "split/db-sts", "--replicas=6")
            whole.wait_split(on_demand=4, spot=2)
            assert watched.lowest() >= 5
        whole.shop.kubectl("scale", "split/db-sts", "--replicas=0")
        whole.wait_split(on_demand=0, spot=0)
        whole.shop.kubectl("scale", "split/db-sts", "--replicas=3")
        whole.wait_split(on_demand=2, spot=1)
        whole.unlabel()
        whole.wait_given_back()
        assert whole.source()["spec"]["replicas"] == 3
