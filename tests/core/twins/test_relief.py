"""What a move is in the plan of one moment: when it begins, what ends it, and what is remembered of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, rendered, source
from core.twins.relief_moment import ASKED, BASE, DEFAULTS, MEASURED, SPOT, WANTED, WHY, N, begun, moment
from splitter.core.actions import HolderKind, Scale, SetDeletionCost
from splitter.core.hot_nodes import Aim, HotNodes, LeavingReplica
from splitter.core.plan import Rules, unseen
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import NodeStatus, Pool, Trouble
from splitter.core.split_status import ReliefStatus
from splitter.core.twins.write_order import OUR_COST

OFF_SPOT = "od-1 is on-demand, and spot has had room for 600 s"
TO_SPOT = HotNodes(known=True, leaves=LeavingReplica("uid-web-spot-0", OFF_SPOT, aim=Aim.SPOT, stand="so"))
NO_HINT = "no hint: pods is forbidden"


class TestAMoveThatGoesWell:
    """The new replica is ready on another node."""

    def test_ends_with_the_replica_that_it_is_for(self) -> None:
        """It is marked as the one to go, also if it is not the first of its twin, which is lowered then."""
        second = LeavingReplica("uid-web-spot-1", WHY, stand="so")
        one = begun(hot=replace(WANTED, leaves=second))
        assert one.planned().actions == (
            SetDeletionCost("web-spot-1", second.pod_uid, OUR_COST, remember=""),
        )
        spot = one.pods[Pool.SPOT]
        spot[1] = replace(spot[1], deletion_cost=OUR_COST, cost_before="")
        lowered = one.planned()
        assert lowered.actions == (Scale(HolderKind.DEPLOYMENT, "web-spot", SPOT + 1, SPOT, "rv-web-spot"),)
        assert lowered.verdict.reason is Reason.RELIEVED
        assert "9 -> 8 (-1): web-spot-1 goes" in lowered.verdict.message


class TestWhereItWasInVain:
    """How all stood is remembered of a move that is taken back, unless what was in its way passes."""

    @pytest.mark.parametrize(
        ("hot", "lands_on", "ready", "stand"),
        [
            (WANTED, "hot-1", True, "so"),
            (WANTED, "cool-1", False, ""),  # which passes
            (replace(TO_SPOT, avoid=frozenset({"hot-1"})), "hot-1", True, ""),  # so does heat
            (replace(WANTED, unhinted=NO_HINT), "hot-1", True, ""),
            (replace(TO_SPOT, unhinted=NO_HINT), "od-7", True, "so"),
        ],
        ids=["hot", "unready", "hot on spot", "hot without a hint", "off spot without a hint"],
    )
    def test_is_known_of_the_move(self, hot: HotNodes, lands_on: str, stand: str, *, ready: bool) -> None:
        """Of one that is going back."""
        one = begun(lands_on, hot=hot, ready=ready)
        one.now += timedelta(seconds=0 if ready else 601)
        [move] = one.relief.moves
        assert (move.taken_back, move.stand) == (True, stand)

    def test_is_kept_for_a_day(self) -> None:
        """And not a minute longer; a workload that turns relief off has it forgotten."""
        one = begun("hot-1")
        [move] = one.relief.moves
        one.specs[Pool.SPOT] = SPOT
        del one.pods[Pool.SPOT][-1]
        one.status = replace(
            one.status, state="Steady", relief=ReliefStatus(moves=(replace(move, ended=one.now),))
        )
        off = replace(one, source=source(N))
        assert [each.stand for each in off.relief.moves] == [""]
        ended = one.now
        for hours, kept in ((23.9, True), (24.1, False)):
            one.now = ended + timedelta(hours=hours)
            assert bool(one.relief.moves) is kept


class TestWhatIsMoreImportant:
    """A move stops for it, in that very reconcile."""

    def test_a_loss(self) -> None:
        """A doomed node is answered as without a move; the extra replica counts as what it is."""
        one = begun()
        pods = one.pods[Pool.SPOT]
        pods[:] = [
            replace(pod, node_status=NodeStatus.DOOMED) if pod.node == "hot-1" else pod for pod in pods
        ]
        planned = one.planned()
        raises = [
            write for write in planned.actions if isinstance(write, Scale) and write.replicas > write.was
        ]
        assert [(write.name, write.replicas) for write in raises] == [("web-on-demand", BASE + 1)]
        assert planned.relief is not None
        assert planned.relief.current is None

    def test_scaling(self) -> None:
        """It says nothing of where the next new replica would be."""
        one = begun()
        one.source = source(N + 4, annotations=ASKED)
        [move] = one.relief.moves
        assert (move.taken_back, move.stand, move.ended) == (True, "", one.now)

    def test_a_move_of_the_future_is_none(self) -> None:
        """A client that writes one into a status keeps no extra replica by it."""
        one = begun()
        [move] = one.status.relief.moves
        one.status = replace(
            one.status, relief=ReliefStatus(moves=(replace(move, at=NOW + timedelta(days=400)),))
        )
        assert one.relief.current is None

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

    @pytest.mark.parametrize(("template", "robbed"), [("v2", False), ("v1", True)])
    def test_a_new_template(self, template: str, robbed: bool) -> None:
        """A rollout that is due ends the move first; so does a twin that is to be written whole again."""
        one = begun()
        observed = one.observed()
        assert observed.spot is not None
        observed = replace(observed, spot=replace(observed.spot, robbed=robbed))
        twins = rendered(template)
        made = plan(observed, policy_in_force(observed, DEFAULTS), twins, Rules(defaults=DEFAULTS))
        assert made.relief is not None
        assert made.relief.current is None

    def test_a_view_that_is_old(self) -> None:
        """While a watch fails, no move begins and none goes on."""
        one = moment()
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
        planned = moment(**fields).planned()
        assert planned.relief is None or planned.relief.current is None
        assert planned.state is not State.MOVING or planned.verdict.reason is not Reason.RELIEVING

    def test_why_it_does_not_begin_is_said(self) -> None:
        """Where nothing else goes on, and a look wants one."""
        one = moment(source=source(N, annotations={**ASKED, "splitter.io/spot-max": "8"}))
        said = "; a move does not begin: web-spot may hold no more than 8"
        assert one.relief.message == f"its replicas stand on hot nodes (hot-1){said}"
        one.hot = replace(WANTED, hot=())
        assert one.relief.message.endswith(said)
        one.hot = MEASURED
        assert "does not begin" not in one.relief.message
