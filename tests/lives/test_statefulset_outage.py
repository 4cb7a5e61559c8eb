"""A quorum through outages: all spot nodes vanish, return and vanish again, told by the recorded pods."""

from collections.abc import Callable

import pytest

from lab.fixtures.database import Database
from lab.fixtures.shop import Watched
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant
from lab.sandbox.machines import Notice
from lab.sandbox.timeline import Between

MEMBERS = 5
QUORUM = MEMBERS // 2 + 1


@pytest.fixture(params=[False, True], ids=["Parallel", "OrderedReady"])
def quorum(database: Database, request: pytest.FixtureRequest) -> Database:
    """Return 5 members split into 3 + 2."""
    database.deploy(MEMBERS, ordered=request.param, ready_after="1s")
    database.label()
    database.wait_split(on_demand=3, spot=2)
    return database


def test_a_quorum_outlives_every_outage_without_notice(
    quorum: Database, fleet: Fleet, record_property: Callable[[str, object], None]
) -> None:
    """Never under 3 ready, and back to 5; both outages, and the return between."""
    spot = fleet.names("spot")
    with quorum.watch() as watched:
        for _ in range(2):
            gone = fleet.kill(spot)
            quorum.shop.until(lambda: covers(quorum), "cover on on-demand")
            whole_s = watched.timeline.seconds_below(MEMBERS, Between(gone, Instant.now()))
            record_property("StatefulSet by twins, all spot lost: whole again after, s", whole_s)
            quorum.shop.until(lambda: not quorum.shop.bound_to_vanished(), "the dead to be cleared away")
            quorum.shop.until(lambda: is_recorded(watched), "the recorder to have heard of all")
            returned = Instant.now()
            fleet.restore(spot)
            quorum.wait_split(on_demand=3, spot=2)
            back = Between(returned, Instant.now())
            assert watched.timeline.lowest_available(back) >= MEMBERS
        assert watched.lowest() >= QUORUM


def test_with_notice_nobody_is_missing(
    database: Database, fleet: Fleet, record_property: Callable[[str, object], None]
) -> None:
    """All 5 are ready all the time."""
    database.deploy(MEMBERS, ready_after="1s")
    database.label()
    database.wait_split(on_demand=3, spot=2)
    spot = fleet.names("spot")
    with database.watch() as watched:
        said = fleet.notice(spot, Notice.TAINT)
        database.shop.until(lambda: covers(database), "cover on on-demand")
        took_s = Instant.now().monotonic_s - said.monotonic_s
        record_property("StatefulSet by twins, all spot announced to go: covered after, s", took_s)
        database.shop.until(lambda: is_recorded(watched), "the recorder to have heard of the cover")
        fleet.kill(spot)
        database.shop.until(lambda: not database.shop.bound_to_vanished(), "the dead to be cleared away")
        fleet.restore(spot)
        database.wait_split(on_demand=3, spot=2)
        assert watched.lowest() >= MEMBERS


def is_recorded(watched: Watched) -> bool:
    """Whether on-demand has all members in what is recorded: that comes by a watch, a little later."""
    return watched.available_on("on-demand") >= MEMBERS


def covers(database: Database) -> bool:
    """Whether on-demand has all members, all ready."""
    return database.shop.shape("db").on_demand >= MEMBERS
