"""The life of a StatefulSet in placement mode, told by its recorded pods.

Its object, names and count are its user's; more than half of its members are ready at every instant, and no
member restarts that need not move.
"""

from collections.abc import Iterator

import pytest

from lab.fixtures.placed import POLICY, Placed, needs_placement
from lab.fixtures.shop import Shop
from lab.sandbox import Sandbox
from lab.sandbox.fleet import Fleet

pytestmark = [pytest.mark.e2e, needs_placement]


@pytest.fixture(autouse=True, scope="module")
def policy(sandbox: Sandbox) -> Iterator[None]:
    """Have the API server place pods; in other tests it does not."""
    sandbox.kubectl("apply", "-f", POLICY)
    yield
    sandbox.kubectl("delete", "-f", POLICY)


def test_a_life(shop: Shop, fleet: Fleet) -> None:
    """A member that stands right stays; the others move, one at a time; letting go touches no pod.

    All spot nodes vanish meanwhile: never under 3 of 5 ready, all 5 again, and none on on-demand restarts.
    """
    db = Placed(shop)
    db.create(5)
    before, uids, stood = db.snapshot(), db.uids(), db.pools()
    with db.watch() as watched:
        db.label()
        db.wait_placed([0, 1, 2], [3, 4])
        assert watched.lowest() >= 4
        right = {k for k, pool in stood.items() if pool == ("on-demand" if k < 3 else "spot")}
        moved = db.uids()
        assert {k for k in range(5) if uids[f"db-{k}"] == moved[f"db-{k}"]} == right
        kept = {f"db-{k}": moved[f"db-{k}"] for k in range(3)}
        fleet.kill(fleet.names("spot"))
        db.wait_placed([0, 1, 2, 3, 4], [])
        assert watched.lowest() >= 3
        assert kept.items() <= db.uids().items()
        fleet.restore(fleet.names("spot"))
        db.wait_placed([0, 1, 2], [3, 4])
        assert kept.items() <= db.uids().items()
        since = db.uids()
        db.unlabel()
        db.wait_unplaced()
        assert db.uids() == since
    assert db.snapshot().spec == before.spec
    assert db.snapshot().annotations == before.annotations
    assert db.snapshot().managers - {"kubectl-label"} == before.managers - {"kubectl-label"}
    assert db.names() == {"db"}
