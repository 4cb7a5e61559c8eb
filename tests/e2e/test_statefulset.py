"""The life of one split StatefulSet, told by its recorded pods: split, scaled, rolled, given back."""

import pytest

from e2e.database import Database
from e2e.shop import Shop

pytestmark = pytest.mark.e2e


@pytest.fixture
def database(shop: Shop) -> Database:
    """Return the StatefulSet of the test's namespace."""
    return Database(shop)


@pytest.mark.parametrize("ordered", [False, True], ids=["Parallel", "OrderedReady"])
def test_label_splits_and_its_removal_gives_back(database: Database, ordered: bool) -> None:
    """A label moves 5 replicas to 3 + 2 by default, its removal gives all back as found, without a dip."""
    database.deploy(5, ordered=ordered)
    before = database.found()
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
    assert database.found() == before
    assert database.names() == {"db"}
    assert database.pods() == {f"db-{ordinal}" for ordinal in range(5)}
