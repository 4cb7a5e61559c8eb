"""The controller dies at every write to a split StatefulSet: what it promises holds all the same."""

from e2e.support.mortal import Dying, Mortal, every
from lab.fixtures.database import Database
from lab.fixtures.shop import Shape

MEMBERS = 4


def test_of_a_whole_life(mortal: Mortal) -> None:
    """Killed after each single write of on-boarding and off-boarding, it completes them.

    There are N ready members at every moment, never more than N + 1, and in the end the StatefulSet is its
    user's again as it was. One that is missing holds up all after it: OrderedReady. Both orders, and a crash
    at any moment, are explored in `tests/model/test_explorer.py`.
    """
    database = Database(mortal.shop)
    database.deploy(MEMBERS, ordered=True)
    before = database.snapshot()
    with database.watch() as watched:
        mortal.dies_at(every)
        lives = Dying(mortal, watched, MEMBERS)
        life = lives("on-boarding", database.label, lambda: is_split(database, 3, 1), least=10)
        assert life.highest <= MEMBERS + 1, life.tell()
        life = lives("off-boarding", database.unlabel, lambda: is_given_back(database), least=10)
        assert life.highest <= MEMBERS + 1, life.tell()
    assert database.snapshot() == before


def is_split(database: Database, on_demand: int, spot: int) -> bool:
    """Whether the pods stand as said, all ready, none beside, and the twins ask for just that."""
    wanted = Shape(on_demand, spot, on_demand + spot)
    at_zero = database.source()["spec"]["replicas"] == 0
    return at_zero and database.twins() == (on_demand, spot) and database.shop.shape("db") == wanted


def is_given_back(database: Database) -> bool:
    """Whether it runs its own pods, and nothing that splitter made or wrote is left."""
    source = database.source()
    marks = {"splitter.io/taken-over", "splitter.io/replicas"} & source["metadata"]["annotations"].keys()
    ready = source["status"].get("availableReplicas") == MEMBERS
    return database.split() is None and database.names() == {"db"} and not marks and ready
