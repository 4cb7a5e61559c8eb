"""A replica leaves a hot node: one more, wait, one less; and what is more important comes first."""

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, rendered, source
from core.twins.relief_world import (
    ASKED,
    BASE,
    DEFAULTS,
    MEASURED,
    SPOT,
    WANTED,
    WHY,
    N,
    begun,
    calm,
    cluster,
)
from splitter.core.actions import Scale
from splitter.core.hot_nodes import Aim, HotNodes, LeavingReplica
from splitter.core.model import NodeStatus, Pool, Trouble
from splitter.core.plan import Rules, unseen
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.split_status import ReliefStatus

OFF_SPOT = "od-1 is on-demand, and spot has had room for 600 s"
CROWDED = "hot-1 holds 4 of its replicas and cool-1 0 (kubernetes.io/hostname, maxSkew 1)"
TO_SPREAD = HotNodes(
    known=True,
    leaves=LeavingReplica("uid-web-spot-0", CROWDED, aim=Aim.SPREAD),
    crowded=frozenset({"hot-1"}),
)
TO_SPOT = HotNodes(known=True, leaves=LeavingReplica("uid-web-spot-0", OFF_SPOT, aim=Aim.SPOT, stand="so"))


class TestMove:
    def test_make_before_break(self) -> None:
        """One more is made, the one on the hot node goes, and the rest stays as it was."""
        one = cluster()
        one.run()
        assert calm(one)
        assert "uid-web-spot-0" not in one.uids
        assert len(one.uids) == N
        assert (one.fewest, one.most) == (N, N + 1)
        (move,) = one.status.relief.moves
        assert (move.to_node_uid, move.taken_back) == ("uid-cool-1", False)
        assert one.said == [
            f"scale spot 8 -> 9 (+1): web-spot-0 is to leave, {WHY}",
            "scale spot 9 -> 8 (-1): web-spot-0 goes, the new replica is ready elsewhere",
        ]

    def test_of_on_demand_too(self) -> None:
        """The extra replica on on-demand is no cover: no loss is charged for it."""
        one = cluster(hot=replace(WANTED, leaves=LeavingReplica("uid-web-on-demand-0", WHY)))
        one.run()
        assert calm(one)
        assert "uid-web-on-demand-0" not in one.uids
        assert one.status.rebalance.last_loss is None

    def test_from_on_demand_to_spot(self) -> None:
        """A replica that prefers spot leaves a node that was never hot, and the Split remembers why."""
        one = cluster(hot=TO_SPOT)
        one.run()
        assert calm(one)
        assert "uid-web-spot-0" not in one.uids
        assert (one.fewest, one.most) == (N, N + 1)
        (move,) = one.status.relief.moves
        assert (move.to_node_uid, move.aim, move.taken_back) == ("uid-cool-1", Aim.SPOT, False)
        assert one.said[0] == f"scale spot 8 -> 9 (+1): web-spot-0 is to leave, {OFF_SPOT}"

    def test_to_spot_that_lands_on_on_demand_is_taken_back(self) -> None:
        """No node is hot there: that it is no spot is enough. The one that was to leave stays."""
        one = cluster(hot=TO_SPOT, lands_on="od-7")
        one.run()
        assert calm(one)
        assert "uid-web-spot-0" in one.uids
        assert (one.fewest, one.most) == (N, N + 1)
        (move,) = one.status.relief.moves
        assert (move.aim, move.taken_back) == (Aim.SPOT, True)
        assert one.said[-1].endswith("goes, the new replica stands on on-demand, too")

    @pytest.mark.parametrize("crowded", [{"hot-1", "cool-1"}, {"hot-1", "cool-2"}, set()])
    def test_to_be_spread(self, crowded: set[str]) -> None:
        """It is taken back where it would be spread no better. After a restart nobody knows where that is."""
        one = cluster(hot=replace(TO_SPREAD, crowded=frozenset(crowded)))
        one.run()
        assert calm(one)
        assert (one.fewest, one.most) == (N, N + 1)
        (move,) = one.status.relief.moves
        taken_back = "cool-1" in crowded
        assert (move.aim, move.taken_back) == (Aim.SPREAD, taken_back)
        assert ("uid-web-spot-0" in one.uids) is taken_back
        ended = "stands where it is spread no better" if taken_back else "is ready elsewhere"
        assert one.said == [
            f"scale spot 8 -> 9 (+1): web-spot-0 is to leave, {CROWDED}",
            one.said[-1],
        ]
        assert one.said[-1].endswith(f"goes, the new replica {ended}")

    def test_to_be_spread_that_stays_on_its_node(self) -> None:
        """That node is known after a restart, too."""
        one = cluster(hot=replace(TO_SPREAD, crowded=frozenset()), lands_on="hot-1")
        one.run()
        assert calm(one)
        assert one.status.relief.moves[0].taken_back

    def test_off_a_hot_node_may_end_on_on_demand(self) -> None:
        """Where the twin only prefers spot: it was to leave the hot node, and has."""
        one = cluster(lands_on="od-7")
        one.run()
        assert calm(one)
        assert "uid-web-spot-0" not in one.uids

    def test_off_by_default(self) -> None:
        """Who asks for nothing is not moved, and nothing is written about it."""
        one = cluster(source=source(N))
        one.run()
        assert one.written == []
        assert "relief" not in one.status.to_json()

    @pytest.mark.parametrize("hot", [WANTED, TO_SPOT, TO_SPREAD], ids=["hot", "to-spot", "to-spread"])
    @pytest.mark.parametrize("dies_at", range(4))
    @pytest.mark.parametrize("step", range(5))
    def test_survives_a_crash_at_every_write(self, step: int, dies_at: int, hot: HotNodes) -> None:
        """Whatever was written last, the workload comes to rest with its counts, and misses no replica."""
        one = cluster(hot=hot)
        for _ in range(step):
            one.reconcile()
            one.play()
        one.reconcile(dies_at)
        # Three looks later the next leader knows which nodes are hot.
        one.hot = HotNodes()
        one.play()
        one.run(3)
        one.hot = MEASURED
        one.run(20)
        assert calm(one)
        assert len(one.uids) == N
        assert one.fewest == N
        assert one.most <= N + 1
        assert one.status.rebalance.last_loss is None

    def test_a_new_replica_on_a_hot_node_is_taken_back(self) -> None:
        """It is said, the old one stays, and the workload is remembered to rest."""
        one = cluster(lands_on="hot-1")
        one.run()
        assert calm(one)
        assert "uid-web-spot-0" in one.uids
        assert one.status.relief.moves[-1].taken_back
        assert one.said[-1].endswith("goes, the new replica stands on a hot node, too")
        assert one.fewest == N

    @pytest.mark.parametrize(
        ("fields", "stand"),
        [
            ({"lands_on": "hot-1"}, "so"),
            ({"becomes_ready": False}, ""),  # which passes
            ({"lands_on": "hot-1", "hot": replace(TO_SPOT, avoid=frozenset({"hot-1"}))}, ""),  # so does heat
            ({"lands_on": "hot-1", "hot": replace(WANTED, unhinted="no hint: pods is forbidden")}, ""),
            ({"lands_on": "od-7", "hot": replace(TO_SPOT, unhinted="no hint: pods is forbidden")}, "so"),
            ({}, ""),
        ],
        ids=["hot", "unready", "hot on spot", "hot without a hint", "off spot without a hint", "helped"],
    )
    def test_how_all_stood_is_kept_where_it_was_in_vain(self, fields: dict[str, object], stand: str) -> None:
        """For a day, and not a minute longer; who turns relief off has it forgotten."""
        one = cluster(**fields)
        one.run(70)
        assert calm(one)
        (move,) = one.status.relief.moves
        assert move.stand == stand
        asked, one.source = one.source, source(N)
        one.reconcile()
        assert [each.stand for each in one.status.relief.moves] == [""]
        one.source, ended = asked, move.ended
        assert ended is not None
        one.status = replace(one.status, relief=ReliefStatus(moves=(move,)))
        for hours, kept in ((23.9, bool(stand)), (24.1, False)):
            one.now = ended + timedelta(hours=hours)
            one.reconcile()
            assert bool(one.status.relief.moves) is kept

    def test_one_that_does_not_become_ready_is_taken_back(self) -> None:
        """After the time that it may take, and nothing else is touched."""
        one = cluster(becomes_ready=False)
        one.run(70)
        assert calm(one)
        assert "uid-web-spot-0" in one.uids
        assert one.said[-1].endswith("the new replica did not become ready")

    def test_of_a_raise_without_an_answer_nothing_is_taken_for_a_loss(self) -> None:
        """It may come to pass a minute later: until then the move goes on, and the extra one is no cover."""
        one = cluster(hot=replace(WANTED, leaves=LeavingReplica("uid-web-on-demand-0", WHY)))
        one.reconcile(dies_at=1)  # the status is written, and of the raise nothing is heard
        one.hot = MEASURED
        one.reconcile()
        assert one.status.relief.current is not None
        one.specs[Pool.ON_DEMAND] += 1  # now it comes
        one.play()
        one.run()
        assert calm(one)
        assert one.status.rebalance.last_loss is None
        assert (one.fewest, one.most) == (N, N + 1)

    def test_no_node_is_bought_for_one(self) -> None:
        """A new replica that the scheduler finds no node for is taken back at once."""
        one = cluster(becomes_ready=False)
        one.reconcile()
        one.play()
        pods = one.pods[Pool.SPOT]
        pods[-1] = replace(
            pods[-1], node_status=NodeStatus.UNBOUND, node=None, node_uid=None, unschedulable_since=one.now
        )
        one.run(4)
        assert one.specs[Pool.SPOT] == SPOT
        assert one.said[-1].endswith("the new replica did not become ready")

    def test_users_own_cost_is_put_back(self) -> None:
        """A deletion cost of the user's is remembered while ours is set."""
        one = cluster(lands_on="hot-1")
        pods = one.pods[Pool.SPOT]
        pods[0] = replace(pods[0], deletion_cost="5")
        one.run()
        kept = next(pod for pod in one.pods[Pool.SPOT] if pod.uid == "uid-web-spot-0")
        assert (kept.deletion_cost, kept.cost_before) == ("5", None)

    def test_not_beside_a_lower_cost_of_the_users(self) -> None:
        """A ReplicaSet would take that pod in its place: the move does not begin."""
        one = cluster()
        one.pods[Pool.SPOT][5] = replace(one.pods[Pool.SPOT][5], deletion_cost="-5000")
        one.run()
        assert one.written == []
        assert one.status.relief.message.endswith("another replica has as low a pod-deletion-cost")


class TestWhatIsMoreImportant:
    """A move stops for it, in that very reconcile."""

    def test_a_loss(self) -> None:
        """A doomed node is answered as without a move; the extra replica counts as what it is."""
        one = begun(2)
        pods = one.pods[Pool.SPOT]
        pods[:] = [
            replace(pod, node_status=NodeStatus.DOOMED) if pod.node == "hot-1" else pod for pod in pods
        ]
        planned = one.reconcile()
        raises = [
            write for write in planned.actions if isinstance(write, Scale) and write.replicas > write.was
        ]
        assert [(write.name, write.replicas) for write in raises] == [("web-on-demand", BASE + 1)]
        assert planned.relief is not None
        assert planned.relief.current is None

    @pytest.mark.parametrize("ticks", [1, 2, 3])
    def test_relief_turned_off(self, ticks: int) -> None:
        """Turned off in the middle, the extra replica goes and nothing is left."""
        one = begun(1)
        for _ in range(ticks - 1):
            one.reconcile()
        one.source = source(N)
        one.run()
        assert one.specs == {Pool.ON_DEMAND: BASE, Pool.SPOT: SPOT}
        assert one.status.relief.current is None
        assert one.fewest == N
        assert all(pod.cost_before is None for pods in one.pods.values() for pod in pods)

    def test_a_surge_that_is_taken_away(self) -> None:
        """There is no room for one more any more: it goes as surplus."""
        one = begun()
        one.becomes_ready = False
        one.source = replace(one.source, max_surge=0)
        one.run(3)
        assert one.specs == {Pool.ON_DEMAND: BASE, Pool.SPOT: SPOT}
        assert one.status.relief.current is None

    def test_a_move_of_the_future_is_none(self) -> None:
        """Whoever writes one into a status keeps no extra replica by it."""
        one = begun()
        (move,) = one.status.relief.moves
        later = replace(move, at=NOW + timedelta(days=400))
        one.status = replace(one.status, relief=ReliefStatus(moves=(later,)))
        one.run(5)
        assert calm(one)

    def test_scaling(self) -> None:
        """Somebody scales: the move ends and the new N is divided at once."""
        one = begun()
        one.source = source(N + 4, annotations=ASKED)
        one.run()
        assert sum(one.specs.values()) == N + 4
        assert one.status.relief.moves[-1].taken_back
        assert one.status.relief.moves[-1].stand == "", "which says nothing of where the next one would be"

    def test_metrics_that_go(self) -> None:
        """Without real use nobody knows whether the new node is hot: the move is broken off."""
        one = begun(2)
        one.hot = HotNodes(paused="this cluster does not serve metrics.k8s.io; install metrics-server")
        one.run()
        assert one.specs[Pool.SPOT] == SPOT
        assert any("it stays, and its workload rests" in said for said in one.said)
        assert one.status.relief.reason == Reason.RELIEF_PAUSED.value

    def test_a_quota_that_is_full(self) -> None:
        """A new replica that the API server refuses is not waited for."""
        one = begun()
        pods = one.pods[Pool.SPOT]
        one.pods[Pool.SPOT] = [pod for pod in pods if "new" not in pod.name]
        observed = one.observed()
        assert observed.spot is not None
        (only,) = observed.spot.replica_sets
        refused = replace(only, refusal=Trouble(Reason.QUOTA_EXCEEDED, "no room"))
        spot = replace(observed.spot, replica_sets=(refused,))
        observed = replace(observed, spot=spot)
        made = plan(observed, policy_in_force(observed, DEFAULTS), rendered(), Rules(defaults=DEFAULTS))
        assert made.relief is not None
        assert made.relief.current is None

    def test_freeze(self) -> None:
        """Frozen in the middle, all counts stay; afterwards the extra one goes."""
        one = begun(2)
        one.source = source(N, annotations={**ASKED, "splitter.io/freeze": "true"})
        one.run(5)
        assert one.specs[Pool.SPOT] == SPOT + 1
        one.source = source(N, annotations=ASKED)
        one.run()
        assert one.specs[Pool.SPOT] == SPOT

    @pytest.mark.parametrize(("template", "robbed"), [("v2", False), ("v1", True)])
    def test_a_new_template(self, template: str, robbed: bool) -> None:
        """A rollout that is due ends the move first; so does a twin that is to be written whole again."""
        one = begun(2)
        observed = one.observed()
        assert observed.spot is not None
        observed = replace(observed, spot=replace(observed.spot, robbed=robbed))
        twins = rendered(template)
        made = plan(observed, policy_in_force(observed, DEFAULTS), twins, Rules(defaults=DEFAULTS))
        assert made.relief is not None
        assert made.relief.current is None

    def test_a_view_that_is_old(self) -> None:
        """While a watch fails, no move begins and none goes on."""
        one = cluster()
        held = unseen(one.planned(), one.observed(), "pods cannot be followed")
        assert held.actions == ()
        assert held.relief is None

    @pytest.mark.parametrize(
        "fields",
        [
            {"source": source(N, annotations=ASKED, max_surge=0)},
            {"source": source(N, annotations={**ASKED, "splitter.io/freeze": "true"})},
            {"source": source(N, annotations={**ASKED, "splitter.io/dry-run": "true"})},
            {"source": source(N + 2, annotations=ASKED)},
            {"source": source(N, annotations={**ASKED, "splitter.io/spot-max": "8"})},
            {"hot": None},
            {"hot": MEASURED},
        ],
    )
    def test_nothing_begins(self, fields: dict[str, object]) -> None:
        """Without room for one more, while counts are held or changed, after a loss, or without a cause."""
        planned = cluster(**fields).planned()
        assert planned.relief is None or planned.relief.current is None
        assert planned.state is not State.MOVING or planned.verdict.reason is not Reason.RELIEVING

    def test_why_it_does_not_begin_is_said(self) -> None:
        """Where nothing else goes on, and a look wants one."""
        one = cluster(source=source(N, annotations={**ASKED, "splitter.io/spot-max": "8"}))
        one.reconcile()
        said = "; a move does not begin: web-spot may hold no more than 8"
        assert one.status.relief.message == f"its replicas stand on hot nodes (hot-1){said}"
        one.hot = replace(WANTED, hot=())
        one.reconcile()
        assert one.status.relief.message.endswith(said)
        one.hot = MEASURED
        one.reconcile()
        assert "does not begin" not in one.status.relief.message
