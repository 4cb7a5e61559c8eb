"""A namespace is restored out of a backup while its workloads were split, with all that is splitter's in it.

Every object comes back with a new UID and without a status: the Splits, the Placement, twins and pods too, in
any order, on other nodes. Nothing of it may end what serves, and all of it comes to stand as was asked for.
"""

import pytest

from e2e.support.backup import Backup
from lab.fixtures.database import Database
from lab.fixtures.placed import Placed
from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant
from world.placement_policy import PlacementPolicy
from world.sandbox import InMemory

# Velero leaves owners out; other tools keep them, although nobody has those UIDs any more.
WAYS = pytest.mark.parametrize(
    ("owners", "backwards"),
    [(False, False), (False, True), (True, False)],
    ids=["like Velero", "backwards", "with dead owners"],
)


@pytest.fixture
def policy(sandbox: InMemory) -> None:
    """Have the API server place pods."""
    sandbox.at_once(lambda: PlacementPolicy(sandbox.cluster.objects))


@WAYS
def test_twins_of_a_statefulset(database: Database, owners: bool, backwards: bool) -> None:
    """The saved count is N, and the twins are its own again."""
    database.deploy(5)
    database.label()
    database.wait_split(on_demand=3, spot=2)
    backup = Backup(database.shop, owners=owners)
    backup.erase()
    backup.restore(backwards=backwards)
    database.wait_steady()
    database.wait_split(on_demand=3, spot=2)
    with database.watch() as watched:
        database.unlabel()
        database.wait_given_back()
        assert watched.lowest() >= 4
    assert database.source()["spec"]["replicas"] == 5


@WAYS
def test_a_placed_statefulset(
    policy: None,  # noqa: ARG001
    shop: Shop,
    fleet: Fleet,
    owners: bool,
    backwards: bool,
) -> None:
    """The policy is told of its new UID, and members that were born unsplit move one at a time."""
    assert fleet.names("spot")
    db = Placed(shop)
    db.create(5)
    db.label()
    db.wait_placed([0, 1, 2], [3, 4])
    backup = Backup(shop, owners=owners)
    backup.erase()
    backup.restore(backwards=backwards)
    db.wait_rolled_out()
    with db.watch() as watched:
        db.wait_placed([0, 1, 2], [3, 4])
        db.wait_steady()
        assert watched.lowest() >= 4
        uids = db.uids()
        db.unlabel()
        db.wait_unplaced()
        assert db.uids() == uids


@WAYS
def test_a_deployment(shop: Shop, owners: bool, backwards: bool) -> None:
    """Its twins are its own again. It stands as before, and is given back without a dip."""
    shop.deploy(replicas=REPLICAS, surge=2, annotations={"splitter.io/on-demand-base": "1"})
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    backup = Backup(shop, owners=owners)
    backup.erase()
    backup.restore(backwards=backwards)
    with shop.watch() as watched:
        shop.wait_steady()
        shop.wait_split(on_demand=1, spot=3)
        began = Instant.now()
        shop.unlabel()
        shop.wait_given_back()
        assert watched.lowest(since=began) >= REPLICAS
    shop.wait_no_strays()


REPLICAS = 4
