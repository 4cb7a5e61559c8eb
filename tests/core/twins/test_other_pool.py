"""A pod that stands in the other pool is replaced: one more, then one less, and nobody has to ask for it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from builders import NOW, rendered, source
from core.twins.relief_moment import DEFAULTS, MEASURED, RULES, SPOT, Moment, N, moment, placed
from splitter.core.actions import Scale
from splitter.core.hot_nodes import Aim
from splitter.core.model import SourceView
from splitter.core.plan import PlanInput
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Pool
from splitter.core.split_status import ReliefMove, ReliefStatus
from splitter.core.twins.move_limit import keeps_turn
from splitter.core.twins.other_pool import in_other_pool

UNASKED = source(N)
HELD = "the counts stay as they are (splitter.io/freeze, splitter.io/dry-run)"
ELSE = "Where that does not change, delete them when it suits you: new ones start where they belong"


def restored(on_demand: int = 0, spot: int = 0, **fields: object) -> Moment:
    """Return a workload that asks for no relief, with so many pods of each twin in the other pool."""
    others = {Pool.ON_DEMAND: frozenset({"spot-0"}), Pool.SPOT: frozenset(f"od-{n}" for n in range(SPOT))}
    one = moment(**{"source": UNASKED, "hot": None, "fit_spot": 3, "other_nodes": others} | fields)
    for n in range(on_demand):
        one.pods[Pool.ON_DEMAND][n] = placed(f"web-on-demand-{n}", f"spot-{n}", NOW)
    for n in range(spot):
        one.pods[Pool.SPOT][n] = placed(f"web-spot-{n}", f"od-{n}", NOW)
    return one


def asking(**annotations: str) -> SourceView:
    """Return the source with annotations."""
    return source(
        N, annotations={f"splitter.io/{name.replace('_', '-')}": it for name, it in annotations.items()}
    )


class TestPodsInTheOtherPool:
    def test_of_on_demand_leave_first(self) -> None:
        """Before those of spot: they were to be safe. Where spot has no room they go, too."""
        (begun,) = restored(on_demand=1, spot=1, fit_spot=0).planned().notes
        assert begun.message == (
            "scale on-demand 2 -> 3 (+1): web-on-demand-0 is to leave, it stands on a spot node,"
            " where web-on-demand starts none"
        )


class TestStays:
    @pytest.mark.parametrize(
        ("source", "fit_spot", "why"),
        [
            # Nowhere to go, or nobody knows what spot nodes are.
            (UNASKED, 0, "no spot node has room for them"),
            (asking(freeze="true"), 3, f"{HELD}. {ELSE}"),
            (asking(spot_max="8"), 3, f"web-spot may hold no more than 8. {ELSE}"),
            (
                replace(UNASKED, max_surge=0),
                3,
                f"its maxSurge is 0, so there is no room for one more. {ELSE}",
            ),
        ],
    )
    def test_where_it_has_to(self, source: SourceView, fit_spot: int, why: str) -> None:
        """Nothing is written, and the Split says where they stand, why they stay and what to do."""
        one = restored(spot=3, source=source, fit_spot=fit_spot)
        assert not one.planned().actions
        about = f"pods of web-spot stay on on-demand nodes: {why}"
        says = f"{about} (3: web-spot-0 on od-0, web-spot-1 on od-1 and 1 more)"
        relief = one.relief
        assert (relief.reason, relief.message) == (Reason.PODS_IN_OTHER_POOL.value, says)
        note = next(note for note in one.planned().advice if note.reason is Reason.PODS_IN_OTHER_POOL)
        assert (note.message, note.about, note.warning) == (says, about, False)
        one.other_nodes = dict.fromkeys(Pool, frozenset())
        one.status = replace(one.status, relief=relief)
        assert one.relief == ReliefStatus(), "nothing is said of those that stand where they belong"

    def test_in_a_dry_run(self) -> None:
        """Nothing is written; an Event says why, since the status stays as it is."""
        one = restored(spot=1, source=asking(dry_run="true"))
        assert not one.planned().actions
        assert [note.about for note in one.planned().advice if note.reason is Reason.PODS_IN_OTHER_POOL]

    def test_beside_what_relief_says(self) -> None:
        """Where relief is asked for, its state is the reason, and both stand in the message."""
        one = restored(on_demand=1, source=asking(relief="cpu=85", on_demand_max="2"), hot=MEASURED)
        relief = one.relief
        assert relief.reason == Reason.NODES_MEASURED.value
        assert relief.message == (
            f"pods of web-on-demand stay on spot nodes: web-on-demand may hold no more than 2. {ELSE}"
            " (1: web-on-demand-0 on spot-0); its replicas stand on hot nodes (hot-1)"
        )

    def test_while_something_else_is_done(self) -> None:
        """The Split says so, and no Event: it passes."""
        one = restored(spot=1)
        one.source = replace(one.source, replicas=N + 2)
        planned = one.planned()
        assert planned.actions
        assert planned.relief is not None
        assert "they wait until nothing else is done with their workload" in planned.relief.message
        assert Reason.PODS_IN_OTHER_POOL not in {note.reason for note in planned.advice}

    def test_beside_one_that_bears_a_cost_as_low_as_ours(self) -> None:
        """Whoever its ReplicaSet would take first anyway is the only one that can be replaced."""
        one = restored(spot=3)
        one.pods[Pool.SPOT][2] = replace(one.pods[Pool.SPOT][2], deletion_cost="-2000")
        (begun,) = one.planned().notes
        assert "web-spot-2 is to leave" in begun.message
        one.other_nodes[Pool.SPOT] = frozenset({"od-0", "od-1"})
        planned = one.planned()
        assert not planned.actions
        assert planned.relief is not None
        assert "another replica has as low a pod-deletion-cost" in planned.relief.message

    def test_many_are_asked_about_as_one(self) -> None:
        """What holds a pod holds all of its twin: asked of each of a thousand, a reconcile took seconds."""
        one = restored(on_demand=1, spot=SPOT)
        observed = one.observed()
        this = PlanInput(observed, one.source, policy_in_force(observed, DEFAULTS), rendered(), RULES)
        assert [(twin.pool, len(pods), waits) for twin, pods, waits in in_other_pool(this)] == [
            (Pool.ON_DEMAND, 1, ""),
            (Pool.SPOT, SPOT, ""),
        ]

    @pytest.mark.parametrize(
        ("fields", "rests"),
        [
            ({}, True),
            ({"aim": Aim.COOL}, False),
            ({"pool": "on-demand"}, False),
            ({"taken_back": False}, False),
            ({"ended": NOW - timedelta(seconds=1_801)}, False),
            ({"ended": NOW + timedelta(days=400)}, False),  # a Split that somebody has edited
        ],
    )
    def test_after_what_was_taken_back_of_its_own(self, fields: dict[str, Any], *, rests: bool) -> None:
        """Its twin rests for half an hour; other moves are no reason to."""
        ended = ReliefMove(NOW, "spot", "p", "u", "n", "nu", 8, NOW, ended=NOW, taken_back=True, aim=Aim.POOL)
        one = restored(spot=1)
        one.status = replace(one.status, relief=ReliefStatus(moves=(replace(ended, **fields),)))
        assert bool(one.planned().actions) is not rests

    def test_while_it_is_not_available(self) -> None:
        """What does not serve is the twin's to replace, not ours."""
        one = restored(spot=1)
        one.pods[Pool.SPOT][0] = placed("web-spot-0", "od-0", NOW, ready=False)
        assert not [write for write in one.planned().actions if isinstance(write, Scale)]

    def test_where_the_new_one_comes_to_the_same_pool(self) -> None:
        """A template of one's own may have it so: the new one goes again, and it is tried after a day."""
        one = restored(spot=1)
        one.begin("od-7")
        [move] = one.relief.moves
        assert (move.aim, move.taken_back) == (Aim.POOL, True)
        assert "stands in the other pool, too" in one.planned().verdict.message
        ended = replace(move, ended=one.now)
        one = restored(spot=1, now=one.now + timedelta(seconds=2_000))
        one.status = replace(one.status, relief=ReliefStatus(moves=(ended,)))
        assert not one.planned().actions, "as it stood then, so it stands for a day"
        tomorrow = f"{move.at + timedelta(days=1, seconds=10):%Y-%m-%d %H:%MZ}"
        tried = f"the last try was taken back (ReliefUndone), and the next is made from {tomorrow} on"
        assert tried in one.relief.message
        one.now += timedelta(days=1)
        assert one.planned().actions

    def test_where_a_new_one_takes_too_long(self) -> None:
        """With a minReadySeconds of hours no move ends in time: it is not tried again each half hour."""
        one = restored(spot=1)
        one.begin(ready=False)
        one.now += timedelta(seconds=1_300)
        [move] = one.relief.moves
        assert (move.taken_back, bool(move.stand), move.ended) == (True, True, one.now)

    def test_where_too_many_others_are_moved(self) -> None:
        """A restored namespace does not surge as one; whoever has begun goes on, and counts."""
        one = restored(spot=1)
        waits = replace(one.observed(), others_moving=1)
        policy = policy_in_force(waits, DEFAULTS)
        rules = replace(RULES, max_concurrent_moves=1)
        planned = plan(waits, policy, rendered(), rules)
        assert not planned.actions
        assert planned.relief is not None
        assert "they wait for their turn (max_concurrent_moves)" in planned.relief.message
        begun = plan(replace(waits, others_moving=0), policy, rendered(), rules)
        assert begun.actions
        assert keeps_turn(begun, had=False)

    def test_where_another_may_not_move(self) -> None:
        """The stray of on-demand may not be replaced: that of spot is, all the same."""
        one = restored(on_demand=1, spot=1, source=asking(on_demand_max="2"))
        [raised] = one.planned().actions
        assert isinstance(raised, Scale)
        assert raised.name == "web-spot"

    def test_while_a_node_is_bought_for_on_demand(self) -> None:
        """A base is worth a node: the new pod is waited for. For spot none is bought."""
        for pool, on_demand, spot in ((Pool.ON_DEMAND, 1, 0), (Pool.SPOT, 0, 1)):
            one = restored(on_demand=on_demand, spot=spot)
            one.begin(ready=False)
            new = one.pods[pool][-1]
            pending: dict[str, Any] = {
                "node": None,
                "node_uid": None,
                "on_spot": False,
                "node_status": NodeStatus.UNBOUND,
            }
            one.pods[pool][-1] = replace(new, unschedulable_since=one.now, **pending)
            planned = one.planned()
            lowers = [
                write
                for write in planned.actions
                if not isinstance(write, Scale) or write.replicas < write.was
            ]
            assert bool(lowers) is (pool is Pool.SPOT)

    def test_one_of_the_right_pool(self) -> None:
        """Nothing is written where all stand where they belong."""
        assert not restored().planned().actions
