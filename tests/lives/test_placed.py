"""The life of a StatefulSet in placement mode, told by its recorded pods.

Its object, names and count are its user's; more than half of its members are ready at every instant, and no
member restarts that need not move.
"""

from collections.abc import Callable, Iterator

import pytest

from e2e.support.external_signals import Status
from e2e.support.mortal import Mortal, every
from lab.fixtures.placed import CLAIM, Placed, volume
from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet
from lab.sandbox.machines import Notice
from lives.terminal import Terminal
from world.placement_policy import PlacementPolicy
from world.sandbox import InMemory, Process


@pytest.fixture(autouse=True)
def policy(sandbox: InMemory) -> PlacementPolicy:
    """Have the API server place pods; in other tests it does not."""
    return sandbox.at_once(lambda: PlacementPolicy(sandbox.cluster.objects))


@pytest.fixture
def db(shop: Shop) -> Placed:
    """Return the StatefulSet of the test's namespace."""
    return Placed(shop)


@pytest.fixture
def placed(db: Placed) -> Placed:
    """Return it split and at rest: 0-2 on on-demand, 3 and 4 on spot."""
    db.create(5)
    db.label()
    db.wait_placed([0, 1, 2], [3, 4])
    return db


@pytest.mark.parametrize("how", [Notice.TAINT, Notice.CONDITION])
def test_notice(placed: Placed, fleet: Fleet, how: Notice) -> None:
    """The doomed move one at a time while their nodes live; when these go, nobody is there any more."""
    uids = placed.uids()
    with placed.watch() as watched:
        fleet.notice(fleet.names("spot"), how)
        placed.wait_placed([0, 1, 2, 3, 4], [])
        fleet.kill(fleet.names("spot"))
        assert len(placed.pools()) == 5
        assert watched.lowest() >= 4
    assert stayed(placed, uids) == {0, 1, 2}
    placed.reported("SpotInterrupted")


def test_spot_that_cannot_be_had_is_not_asked_for(placed: Placed, fleet: Fleet, reported: Status) -> None:
    """While all spot groups back off nobody asks for room there, and the Split says why; then as ever."""
    reported.write({"aks-spotpool-1-vmss": "Backoff", "aks-system-1-vmss": "NoActivity"})
    fleet.kill(fleet.names("spot"))
    placed.says("SpotBlocked", "cluster-autoscaler backs off from aks-spotpool-1-vmss")
    # It is told of the first that is ready on on-demand, and the other may not be yet.
    placed.shop.until(lambda: len(placed.pools()) == 5, "all five to be ready")
    assert placed.placeholders() == []
    reported.remove()
    placed.shop.until(placed.placeholders, "room to be asked for")
    fleet.restore(fleet.names("spot"))
    placed.wait_placed([0, 1, 2], [3, 4])


@pytest.mark.parametrize("replicas", [1, 2])
def test_few(db: Placed, fleet: Fleet, replicas: int) -> None:
    """Never moved, not even on notice, which is told with what to do; made anew when their nodes are gone."""
    db.create(replicas)
    everywhere = fleet.names("on-demand")
    db.shop.kubectl("cordon", *everywhere)
    db.shop.kubectl("delete", "pod", *(f"db-{k}" for k in range(replicas)))
    db.shop.until(lambda: db.pools() == dict.fromkeys(range(replicas), "spot"), "all to stand on spot")
    db.shop.kubectl("uncordon", *everywhere)
    uids = db.uids()
    db.label()
    db.says("QuorumHeld", "scale it to 3 members or more, or split it into twins")
    db.reported("QuorumHeld")
    db.shop.wait_posted()
    assert len(db.events("QuorumHeld")) == 1
    fleet.notice(fleet.names("spot"))
    db.shop.until(lambda: any("on doomed node" in said for said in db.events("QuorumHeld")), "the doom")
    assert db.uids() == uids
    fleet.kill(fleet.names("spot"))
    db.wait_placed(list(range(replicas)), [])


def test_a_silent_node_keeps_its_pod(placed: Placed, fleet: Fleet) -> None:
    """NotReady is not gone: no name runs twice. When the Node object goes, the pod is made anew."""
    uids, node = placed.uids(), placed.node_of(4)
    with placed.watch() as watched:
        fleet.lose(node, seen_at_once=True)
        placed.shop.until(lambda: 4 in (placed.ordinals() or []), "the lost one to be born on on-demand")
        assert stayed(placed, uids) == {0, 1, 2, 3, 4}
        fleet.kill(node)
        placed.shop.until(lambda: placed.pools().get(4) == "on-demand", "db-4 on on-demand")
        assert watched.lowest() >= 4
    assert stayed(placed, uids) == {0, 1, 2, 3}


def test_a_cordon_while_a_lower_ordinal_is_ill(db: Placed, fleet: Fleet) -> None:
    """OrderedReady would not make the higher one again: it stays, and the Split says which one hinders it.

    When its node is to end, it goes so late that it would be lost anyway.
    """
    db.create(5, ordered=True)
    db.label()
    db.wait_placed([0, 1, 2], [3, 4])
    uids, node = db.uids(), db.node_of(4)
    db.falls_ill(1)
    fleet.notice(node, Notice.CORDON)
    db.tells("db-1 is not ready, and the StatefulSet controller (OrderedReady) would not make db-4 again")
    db.shop.wait_posted()
    assert db.uids() == uids
    fleet.notice(node, Notice.CONDITION, deadline_s=45)
    db.tells("so that it ends before its node does")
    assert db.uids() == uids
    db.shop.until(lambda: "db-4" not in db.uids(), "its end")
    db.recovers(1)
    db.shop.until(lambda: db.pools().get(4) == "on-demand", "it to be made again")


def test_a_cordon_without_room(placed: Placed, fleet: Fleet) -> None:
    """On-demand is full: none is evicted. Drained, one starts on other spot; with room, the rest move."""
    shop, uids, full = placed.shop, placed.uids(), fleet.names("on-demand")
    shop.kubectl("taint", "nodes", *full, "full=:NoSchedule")
    try:
        for node in {placed.node_of(3), placed.node_of(4)}:
            fleet.notice(node, Notice.CORDON)
        placed.says("WaitingForRoom", "no node has had room since")
        shop.wait_posted()
        assert placed.uids() == uids
        shop.kubectl("delete", "pod", "db-4")
        shop.until(lambda: placed.pools().get(4) == "spot", "the drained one to start on another spot node")
    finally:
        shop.kubectl("taint", "nodes", *full, "full-")
    with placed.watch() as watched:
        shop.until(lambda: placed.pools().get(3) == "on-demand", "the other to move")
        assert watched.lowest() >= 4


def test_flapping(placed: Placed, fleet: Fleet) -> None:
    """Spot goes and comes again and again: never under 3, and those on on-demand never restart."""
    uids = placed.uids()
    with placed.watch() as watched:
        for _ in range(3):
            fleet.kill(fleet.names("spot"))
            placed.shop.until(lambda: len(placed.pools()) == 5, "all five to be ready")
            fleet.restore(fleet.names("spot"))
        placed.wait_placed([0, 1, 2], [3, 4])
        assert watched.lowest() >= 3
    assert stayed(placed, uids) == {0, 1, 2}


def test_update_beside_a_notice(placed: Placed, fleet: Fleet) -> None:
    """The StatefulSet rolls and its spot nodes go at the same time: never under 3 of 5."""
    with placed.watch() as watched:
        image = '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "db:2"}]'
        placed.shop.kubectl("patch", "statefulset", "db", "--type=json", "-p", image)
        fleet.notice(fleet.names("spot"))
        placed.shop.until(lambda: placed.images() == {"db:2"}, "the new image")
        placed.wait_placed([0, 1, 2, 3, 4], [])
        fleet.kill(fleet.names("spot"))
        fleet.restore(fleet.names("spot"))
        placed.wait_placed([0, 1, 2], [3, 4])
        assert watched.lowest() >= 3


def test_scaled_by_anyone(placed: Placed) -> None:
    """5 -> 3 -> 7 -> 3: the ordinals follow, and spec.replicas is nobody's but the user's."""
    for replicas, on_demand in ((3, [0, 1]), (7, [0, 1, 2, 3]), (3, [0, 1])):
        with placed.watch() as watched:
            placed.scale(replicas)
            placed.wait_placed(on_demand, list(range(len(on_demand), replicas)))
            assert watched.lowest() > 3 / 2
    writers = {
        entry["manager"]
        for entry in placed.source()["metadata"]["managedFields"]
        if "f:replicas" in entry.get("fieldsV1", {}).get("f:spec", {})
    }
    assert writers == {"kubectl"}


def test_ordinals_begin_elsewhere(db: Placed) -> None:
    """`spec.ordinals.start` is respected."""
    db.create(3, ordinals={"start": 10})
    db.label()
    db.wait_placed([10, 11], [12])


def test_a_placement_that_somebody_changed(placed: Placed) -> None:
    """It is made anew of the Splits at once, edited or deleted; nobody restarts."""
    uids, api = placed.uids(), placed.shop.sandbox.api
    api.patch(placed.placement, {"spec": {"statefulSets": {"nobody": {"name": "x", "onDemandOrdinals": []}}}})
    api.patch(placed.placement, {"spec": {"statefulSets": {placed.source()["metadata"]["uid"]: None}}})
    placed.shop.until(lambda: placed.placed_by() == [0, 1, 2], "the Placement to be mended")
    assert len(api.get(placed.placement)["spec"]["statefulSets"]) == 1
    api.delete(placed.placement)
    placed.shop.until(lambda: placed.placed_by() == [0, 1, 2], "the Placement to be made again")
    assert placed.uids() == uids


@pytest.mark.parametrize("ordinals", [[0, 1, 2, 3, 4], None], ids=["more", "none"])
def test_ordinals_that_somebody_changed(placed: Placed, ordinals: list[int] | None) -> None:
    """By an edit, or out of a backup: they are ordinals still, and become those that were wanted."""
    path = f"/apis/splitter.io/v1alpha1/namespaces/{placed.shop.namespace}/splits/db-sts"
    with placed.watch() as watched:
        placed.shop.sandbox.api.patch(path, {"spec": {"onDemandOrdinals": ordinals}})
        placed.wait_placed([0, 1, 2], [3, 4])
        assert watched.lowest() >= 4
    assert placed.names() == {"db"}


def test_a_budget_is_respected(db: Placed) -> None:
    """A budget that allows no disruption lets nobody move, and the Split says so; a wider one does."""
    db.create(5)
    pools = db.pools()
    db.budget(minAvailable=5)
    db.annotate(on_demand_base="0" if "on-demand" in pools.values() else "5")
    db.label()
    db.says("EvictionRefused", "disruption budget")
    uids = db.uids()
    with db.watch() as watched:
        db.budget(minAvailable=4)
        db.shop.until(lambda: db.uids() != uids, "somebody to move")
        assert watched.lowest() >= 4


def test_two_budgets_are_told(db: Placed) -> None:
    """The eviction API knows no answer to a pod under two budgets; nobody moves, and people can read why."""
    db.create(3)
    pools = db.pools()
    db.budget(maxUnavailable=1)
    db.budget("another", maxUnavailable=1)
    db.annotate(on_demand_base="0" if "on-demand" in pools.values() else "3")
    db.label()
    db.says("EvictionRefused", "more than one PodDisruptionBudget")


def stayed(db: Placed, before: dict[str, str]) -> set[int]:
    """Return the ordinals whose pods are still those of before."""
    now = db.uids()
    return {int(name.rpartition("-")[2]) for name, uid in before.items() if now.get(name) == uid}


class TestWithoutController:
    """Fail static."""

    @pytest.fixture
    def stopped(self, placed: Placed, controller: Process) -> Iterator[Placed]:
        """Yield it at rest, with the controller stopped; it runs again afterwards."""
        controller.stop()
        try:
            yield placed
        finally:
            if not controller.running:
                controller.start()

    def test_every_pod_comes_back(self, stopped: Placed, fleet: Fleet) -> None:
        """Pods deleted by hand, spot gone: each is born by the last split, and none stays Pending."""
        shop = stopped.shop
        fleet.kill(fleet.names("spot"))
        shop.kubectl("delete", "pod", "--grace-period=0", "--force", *(f"db-{k}" for k in range(5)))
        shop.until(lambda: len(stopped.pools()) == 5, "all five to be ready")
        assert set(stopped.pools().values()) == {"on-demand"}
        assert stopped.born() == {
            0: "on-demand",
            1: "on-demand",
            2: "on-demand",
            3: "spot",
            4: "spot",
        }

    def test_split_deleted_too(self, stopped: Placed, controller: Process) -> None:
        """Whoever gives it back by hand leaves the Placement; it goes when splitter is there again."""
        uids = stopped.uids()
        stopped.unlabel()
        stopped.shop.kubectl("delete", "split", "db-sts")
        assert stopped.placed_by() == [0, 1, 2]
        controller.start()
        stopped.wait_unplaced()
        assert stopped.uids() == uids

    def test_label_removed_meanwhile(self, stopped: Placed, controller: Process) -> None:
        """The same end as if it had been there: no trace, no restart."""
        uids = stopped.uids()
        stopped.unlabel()
        assert stopped.split() is not None
        controller.start()
        stopped.wait_unplaced()
        assert stopped.uids() == uids


def test_crash_at_every_write(mortal: Mortal, fleet: Fleet) -> None:
    """It dies at each of its writes: split, spot gone, back, notice, let go; never under 3 of 5."""
    db = Placed(mortal.shop)
    db.create(5)
    uids, stood = db.uids(), db.pools()
    mortal.dies_at(every)

    def rests(on_demand: list[int]) -> bool:
        return db.is_placed(on_demand, [k for k in range(5) if k not in on_demand])

    with db.watch() as watched:
        db.label()
        mortal.until(lambda: rests([0, 1, 2]), "the split")
        fleet.kill(fleet.names("spot"))
        mortal.until(lambda: rests([0, 1, 2, 3, 4]), "all on on-demand")
        fleet.restore(fleet.names("spot"))
        mortal.until(lambda: rests([0, 1, 2]), "the return")
        fleet.notice(fleet.names("spot"))
        mortal.until(lambda: rests([0, 1, 2, 3, 4]), "all on on-demand again")
        db.unlabel()
        mortal.until(db.is_unplaced, "no trace")
        assert watched.lowest() >= 3
    mortal.survives()
    deaths = sum(write.fatal for write in mortal.gateway.writes)
    print(f"{deaths} deaths")  # noqa: T201 - a measured figure
    assert deaths >= 10
    right = {k for k in range(3) if stood[k] == "on-demand"}
    assert stayed(db, uids) >= right


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


def test_a_node_that_registers_anew_keeps_its_members(placed: Placed, fleet: Fleet) -> None:
    """Deleted while Ready, and there again under its name: its kubelet runs the pods that are bound to it."""
    uids, node = placed.uids(), placed.node_of(0)
    fleet.restore(node)
    placed.wait_placed([0, 1, 2], [3, 4])
    placed.shop.wait_posted()
    assert placed.uids() == uids
    assert placed.node_of(0) == node


def test_verbs(placed: Placed, fleet: Fleet, admin: Terminal) -> None:
    """status, plan, explain, freeze and uninstall take it; those about twins say what to use instead."""
    where = ("-n", placed.shop.namespace)
    placed.wait_steady()
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
    uids = placed.uids()
    assert admin.splitter("uninstall", *where).returncode == 0
    assert placed.split() is None
    assert placed.uids() == uids


def test_volumes_narrow_the_choice(shop: Shop) -> None:
    """A member whose volume only spot nodes reach stays on spot, and another takes its place."""
    db = Placed(shop)
    spot_only = [
        {"matchExpressions": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]}
    ]
    for k in range(5):
        volume(shop, k, spot_only if k == 1 else None)
    db.create(5, volumeClaimTemplates=[CLAIM])
    uids = db.uids()
    db.label()
    db.wait_placed([0, 2, 3], [1, 4])
    assert 1 in stayed(db, uids)
    db.reported("VolumeZoneConflict", "db-1 is not moved")


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


def test_policy_missing(shop: Shop, sandbox: InMemory, policy: PlacementPolicy) -> None:
    """Without the policy in the API server it is refused, and left alone; with it, it is split."""
    db = Placed(shop)
    sandbox.at_once(policy.remove)
    db.create(3)
    uids = db.uids()
    db.label()
    words = "manifests/admission/placement.yaml"
    assert db.says("PlacementUnsupported", words)["state"] == "Refused"
    db.reported("PlacementUnsupported", words)
    shop.wait_posted()
    assert len(db.events("PlacementUnsupported")) == 1
    assert db.uids() == uids
    sandbox.at_once(policy.install)
    db.annotate(grace="20s")  # any event: it is looked at again by itself a little later
    db.wait_placed([0, 1], [2])


def test_the_policy_goes_while_it_is_split(
    placed: Placed, sandbox: InMemory, policy: PlacementPolicy
) -> None:
    """One move tells that the policy does not act, and nobody else is moved; with it, all is as ever."""
    uids = placed.uids()
    # When it is at rest it looks for the policy, and not again for five minutes: it has to have seen it.
    placed.wait_steady()
    placed.annotate(grace="20s")
    placed.shop.until(lambda: placed.status()["policy"]["grace"] == "20s", "it to have looked around")
    sandbox.at_once(policy.remove)
    assert not placed.is_mutated()
    placed.annotate(on_demand_base="4")
    placed.reported("MoveUndone", "db-3 was to start on on-demand, and was created without the label")
    assert placed.born()[3] is None
    assert stayed(placed, uids) == {0, 1, 2, 4}
    sandbox.at_once(policy.install)
    placed.wait_placed([0, 1, 2, 3], [4])
    assert stayed(placed, uids) == {0, 1, 2, 4}
