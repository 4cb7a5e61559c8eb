"""A pod that stands in the other pool is replaced: one more, then one less, and nobody has to ask for it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from builders import NOW, rendered, source
from core.twins.relief_world import BASE, DEFAULTS, RULES, SPOT, Cluster, N, calm, cluster, placed
from splitter.core.actions import Scale
from splitter.core.hot_nodes import Aim
from splitter.core.model import NodeStatus, Pool, SourceView
from splitter.core.planner import plan, policy_in_force
from splitter.core.twins.move_limit import keeps_turn

UNASKED = source(N)
RESTED_TICKS = 200  # of ten seconds: more than relief rests


def restored(on_demand: int = 0, spot: int = 0, **fields: object) -> Cluster:
    """Return a workload that asks for no relief, with so many pods of each twin in the other pool."""
    others = {Pool.ON_DEMAND: frozenset({"spot-0"}), Pool.SPOT: frozenset(f"od-{n}" for n in range(SPOT))}
    one = cluster(**{"source": UNASKED, "hot": None, "fit_spot": 3, "other_nodes": others} | fields)
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
    @pytest.mark.parametrize("count", [1, SPOT])
    def test_of_spot_come_to_spot(self, count: int) -> None:
        """One after the other, with never fewer than N and never more than one above."""
        one = restored(spot=count)
        one.run(10 * count)
        assert calm(one)
        assert {pod.node for pod in one.pods[Pool.SPOT]}.isdisjoint(one.other_nodes[Pool.SPOT])
        assert one.uids >= {f"uid-web-spot-{n}" for n in range(count, SPOT)}, "the others stay"
        assert (one.fewest, one.most) == (N, N + 1)
        assert one.said[0] == (
            "scale spot 8 -> 9 (+1): web-spot-0 is to leave, it stands on an on-demand node,"
            " where web-spot starts none"
        )

    def test_of_on_demand_leave_spot(self) -> None:
        """Before those of spot: they were to be safe. Where spot has no room they go, too."""
        one = restored(on_demand=1, spot=1, fit_spot=0, lands_on="od-7")
        one.run(30)
        assert calm(one)
        assert "spot-0" not in {pod.node for pod in one.pods[Pool.ON_DEMAND]}
        assert "uid-web-spot-0" in one.uids
        assert (one.fewest, one.most) == (N, N + 1)
        assert one.status.rebalance.last_loss is None

    def test_survives_a_crash_at_every_write(self) -> None:
        """Whoever comes after it goes on."""
        writes = restored(spot=1)
        writes.run(10)
        for dies_at in range(len(writes.written) + 3):
            one = restored(spot=1)
            for _ in range(3):
                one.reconcile(dies_at)
                one.play()
            one.run(20)
            assert calm(one)
            assert {pod.node for pod in one.pods[Pool.SPOT]}.isdisjoint(one.other_nodes[Pool.SPOT])
            assert (one.fewest, one.most) == (N, N + 1)


class TestStays:
    @pytest.mark.parametrize(
        ("source", "fit_spot"),
        [
            (UNASKED, 0),  # nowhere to go, or nobody knows what spot nodes are
            (asking(freeze="true"), 3),
            (asking(dry_run="true"), 3),
            (replace(UNASKED, max_surge=0), 3),  # no room for one more
        ],
    )
    def test_where_it_has_to(self, source: SourceView, fit_spot: int) -> None:
        """Nothing is written."""
        one = restored(spot=1, source=source, fit_spot=fit_spot)
        one.run()
        assert not one.written

    def test_while_it_is_not_available(self) -> None:
        """What does not serve is the twin's to replace, not ours."""
        one = restored(spot=1, becomes_ready=False)
        one.pods[Pool.SPOT][0] = placed("web-spot-0", "od-0", NOW, ready=False)
        one.run(1)
        assert not [write for write in one.written if isinstance(write, Scale)]

    def test_where_the_new_one_comes_to_the_same_pool(self) -> None:
        """A template of one's own may have it so: the new one goes again, and it is tried after a rest."""
        one = restored(spot=1, lands_on="od-7")
        one.run(20)
        assert calm(one)
        assert "uid-web-spot-0" in one.uids
        (move,) = one.status.relief.moves
        assert (move.aim, move.taken_back) == (Aim.POOL, True)
        assert one.said[-1].endswith("goes, the new replica stands in the other pool, too")
        raises = [one for one in one.written if isinstance(one, Scale) and one.replicas > one.was]
        assert len(raises) == 1
        one.lands_on = "cool-1"
        one.run(RESTED_TICKS)
        assert "uid-web-spot-0" in one.uids, "as it stood then, so it stands for a day"
        one.now += timedelta(days=1)
        one.run(20)
        assert calm(one)
        assert "uid-web-spot-0" not in one.uids

    def test_where_too_many_others_are_moved(self) -> None:
        """A restored namespace does not surge as one; whoever has begun goes on, and counts."""
        one = restored(spot=1)
        waits = replace(one.observed(), others_moving=1)
        policy = policy_in_force(waits, DEFAULTS)
        rules = replace(RULES, max_concurrent_moves=1)
        assert not plan(waits, policy, rendered(), rules).actions
        begun = plan(replace(waits, others_moving=0), policy, rendered(), rules)
        assert begun.actions
        assert keeps_turn(begun, had=False)

    def test_where_another_may_not_move(self) -> None:
        """The stray of on-demand may not be replaced: that of spot is, all the same."""
        one = restored(on_demand=1, spot=1, source=asking(on_demand_max="2"))
        one.run(20)
        assert calm(one)
        assert "uid-web-spot-0" not in one.uids
        assert "uid-web-on-demand-0" in one.uids

    def test_while_a_node_is_bought_for_on_demand(self) -> None:
        """A base is worth a node: the new pod is waited for. For spot none is bought."""
        for pool, on_demand, spot in ((Pool.ON_DEMAND, 1, 0), (Pool.SPOT, 0, 1)):
            one = restored(on_demand=on_demand, spot=spot, becomes_ready=False)
            one.run(2)
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
        one = restored()
        one.run()
        assert not one.written
        assert one.specs == {Pool.ON_DEMAND: BASE, Pool.SPOT: SPOT}
