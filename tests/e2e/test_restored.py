"""A namespace is restored out of a backup while its workloads were split, with all that is splitter's in it.

Every object comes back with a new UID and without a status: the Splits, the Placement, twins and pods too, in
any order, on other nodes. Nothing of it may end what serves, and all of it comes to stand as was asked for.
"""

import pytest

from e2e.support.backup import Backup
from lab.fixtures.shop import Shop
from lab.sandbox.instants import Instant

pytestmark = pytest.mark.e2e

REPLICAS = 4
# Velero leaves owners out; other tools keep them, although nobody has those UIDs any more.
WAYS = pytest.mark.parametrize(
    ("owners", "backwards"),
    [(False, False), (False, True), (True, False)],
    ids=["like Velero", "backwards", "with dead owners"],
)


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
