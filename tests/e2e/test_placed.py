"""The life of a StatefulSet in placement mode, told by its recorded pods.

Its object, names and count are its user's; more than half of its members are ready at every instant, and no
member restarts that need not move.
"""

from collections.abc import Callable, Iterator

import pytest

from e2e.support.admission import steadily
from e2e.support.terminal import Terminal
from lab.fixtures.controller import Controller
from lab.fixtures.placed import CLAIM, POLICY, Placed, needs_placement, volume
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


@pytest.fixture
def db(shop: Shop) -> Placed:
    """Return the StatefulSet of the test's namespace."""
    return Placed(shop)


@pytest.mark.parametrize("ordered", [False, True], ids=["Parallel", "OrderedReady"])
def test_label_places_and_its_removal_restarts_nothing(db: Placed, ordered: bool) -> None:
    """Who stands right stays; the others move, one at a time; letting go touches no pod."""
    db.create(5, ordered=ordered)
    before, uids, stood = db.snapshot(), db.uids(), db.pools()
    with db.watch() as watched:
        db.label()
        db.wait_placed([0, 1, 2], [3, 4])
        assert watched.lowest() >= 4
        right = {k for k, pool in stood.items() if pool == ("on-demand" if k < 3 else "spot")}
        moved = db.uids()
        assert {k for k in range(5) if uids[f"db-{k}"] == moved[f"db-{k}"]} == right
        since = db.uids()
        db.unlabel()
        db.wait_unplaced()
        assert db.uids() == since
    assert db.snapshot().spec == before.spec
    assert db.snapshot().annotations == before.annotations
    assert db.snapshot().managers - {"kubectl-label"} == before.managers - {"kubectl-label"}
    assert db.names() == {"db"}


@pytest.fixture
def placed(db: Placed) -> Placed:
    """Return it split and at rest: 0-2 on on-demand, 3 and 4 on spot."""
    db.create(5)
    db.label()
    db.wait_placed([0, 1, 2], [3, 4])
    return db


def test_all_spot_gone_at_once(
    placed: Placed, fleet: Fleet, record_property: Callable[[str, object], None]
) -> None:
    """Never under 3 of 5 ready, all 5 again, and nobody on on-demand restarts."""
    uids = placed.uids()
    with placed.watch() as watched:
        took_s = placed.seconds_until_whole(watched, fleet.kill(fleet.names("spot")))
        assert watched.lowest() >= 3
    record_property("StatefulSet placed, all spot lost: whole again after, s", took_s)
    assert placed.ordinals() == [0, 1, 2, 3, 4]
    assert stayed(placed, uids) == {0, 1, 2}
    with placed.watch() as watched:
        fleet.restore(fleet.names("spot"))
        placed.wait_placed([0, 1, 2], [3, 4])
        assert watched.lowest() >= 4
    assert stayed(placed, uids) == {0, 1, 2}


def test_a_node_that_registers_anew_keeps_its_members(
    placed: Placed, fleet: Fleet, controller: Controller
) -> None:
    """Deleted while Ready, and there again under its name: its kubelet runs the pods that are bound to it.

    The controller stands still meanwhile, and sees afterwards what has happened: in these tests it waits for
    such a node for a second, and a busy machine may need longer to register.
    """
    uids, node = placed.uids(), placed.node_of(0)
    controller.pause()
    try:
        fleet.restore(node)
    finally:
        controller.resume()
    placed.wait_placed([0, 1, 2], [3, 4])
    placed.shop.wait_posted()
    assert placed.uids() == uids
    assert placed.node_of(0) == node


def test_verbs(placed: Placed, fleet: Fleet, admin: Terminal) -> None:
    """status, plan, explain, freeze and uninstall take it; those about twins say what to use instead."""
    where = ("-n", placed.shop.namespace)
    reported = ""
    for verb in ("status", "plan", "explain"):
        reported += (answer := admin.splitter(verb, "sts/db", *where)).stdout
        assert answer.returncode == 0, answer.stderr
    assert "db-0: on on-demand node" in reported
    assert "majority" in reported
    assert admin.splitter("freeze", "sts/db", *where).returncode == 0
    placed.says("Frozen")
    fleet.notice(fleet.names("spot"))
    assert admin.splitter("unfreeze", "sts/db", *where).returncode == 0
    placed.wait_placed([0, 1, 2, 3, 4], [])
    for verb, instead in (
        ("restart", "kubectl rollout restart statefulset/db -n"),
        ("rollout", "no template set is used"),
        ("render", "is split by placement, which makes no twins"),
    ):
        answer = admin.splitter(verb, "sts/db", *where)
        assert (answer.returncode, answer.stdout) == (1, ""), verb
        assert instead in answer.stderr
        reported += answer.stderr
    print(reported)  # noqa: T201 - what a person reads
    uids = placed.uids()
    assert admin.splitter("uninstall", *where).returncode == 0
    assert placed.split() is None
    assert placed.uids() == uids


def test_policy_missing(shop: Shop, sandbox: Sandbox) -> None:
    """Without the policy in the API server it is refused, and left alone; with it, it is split."""
    db = Placed(shop)
    sandbox.kubectl("delete", "-f", POLICY)
    try:
        db.create(3)
        uids = db.uids()
        db.label()
        words = "manifests/admission/placement.yaml"
        assert db.says("PlacementUnsupported", words)["state"] == "Refused"
        db.reported("PlacementUnsupported", words)
        shop.wait_posted()
        assert len(db.events("PlacementUnsupported")) == 1
        assert db.uids() == uids
    finally:
        sandbox.kubectl("apply", "-f", POLICY)
    db.annotate(grace="20s")  # any event: it is looked at again by itself a little later
    db.wait_placed([0, 1], [2])


def test_the_policy_goes_while_it_is_split(placed: Placed, sandbox: Sandbox) -> None:
    """One move tells that the policy does not act, and nobody else is moved; with it, all is as ever."""
    uids = placed.uids()
    # When it is at rest it looks for the policy, and not again for five minutes: it has to have seen it.
    placed.wait_steady()
    placed.annotate(grace="20s")
    placed.shop.until(lambda: placed.status()["policy"]["grace"] == "20s", "it to have looked around")
    sandbox.kubectl("delete", "-f", POLICY)
    try:
        placed.shop.until(
            lambda: steadily(lambda: not placed.is_mutated()), "the API server to place nobody any more"
        )
        placed.annotate(on_demand_base="4")
        placed.reported("MoveUndone", "db-3 was to start on on-demand, and was created without the label")
        assert placed.born()[3] is None
        assert stayed(placed, uids) == {0, 1, 2, 4}
    finally:
        sandbox.kubectl("apply", "-f", POLICY)
    placed.wait_placed([0, 1, 2, 3], [4])
    assert stayed(placed, uids) == {0, 1, 2, 4}


def test_volumes_narrow_the_choice(shop: Shop) -> None:
    """A member whose volume only spot nodes reach stays on spot, and another takes its place."""
    db = Placed(shop)
    spot_only = [
        {"matchExpressions": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]}
    ]
    named = [volume(shop, k, spot_only if k == 1 else None) for k in range(5)]
    try:
        db.create(5, volumeClaimTemplates=[CLAIM])
        uids = db.uids()
        db.label()
        db.wait_placed([0, 2, 3], [1, 4])
        assert 1 in stayed(db, uids)
        db.reported("VolumeZoneConflict", "db-1 is not moved")
    finally:
        shop.kubectl("delete", "persistentvolume", "--wait=false", *named)


def stayed(db: Placed, before: dict[str, str]) -> set[int]:
    """Return the ordinals whose pods are still those of before."""
    now = db.uids()
    return {int(name.rpartition("-")[2]) for name, uid in before.items() if now.get(name) == uid}
