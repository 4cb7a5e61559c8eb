"""Which ordinals stand on on-demand."""

from dataclasses import replace

import pytest

from core.placement.placed_members import MAJORITY, OD, SPOT, five, member, observed, said
from splitter.core.labels_annotations.policy import Policy
from splitter.core.placeable import Reach
from splitter.core.placement.members import Member
from splitter.core.placement.place import place
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus
from splitter.core.split_status import RebalanceState


class TestOrdinals:
    """Which ordinals are on on-demand."""

    @pytest.mark.parametrize(
        ("n", "policy", "wanted"),
        [
            (5, MAJORITY, (0, 1, 2)),
            (1, MAJORITY, (0,)),
            (2, MAJORITY, (0, 1)),
            (7, MAJORITY, (0, 1, 2, 3)),
            (5, Policy(on_demand_base=2), (0, 1)),
            (5, Policy(on_demand_base=1, spot_percent=50), (0, 1, 2)),
            (5, Policy(on_demand_base=0), ()),
            (4, Policy(on_demand_base=9), (0, 1, 2, 3)),
        ],
    )
    def test_the_lowest(self, n: int, policy: Policy, wanted: tuple[int, ...]) -> None:
        """As many as the policy divides, lowest first."""
        members = tuple(Member(k) for k in range(n))
        assert place(observed(*members, in_force=()), policy, RebalanceState()).ordinals == wanted

    def test_ordinals_begin_where_the_user_says(self) -> None:
        """`spec.ordinals.start` is respected."""
        members = tuple(Member(k) for k in range(10, 13))
        placed = place(observed(*members, in_force=()), MAJORITY, RebalanceState())
        assert placed.ordinals == (10, 11)

    def test_a_scale_up_by_anyone_joins_at_once(self) -> None:
        """3 -> 7: the ordinals that a majority of 7 needs join; nothing else is written in that reconcile."""
        members = tuple(member(k, SPOT if k > 1 else OD) for k in range(7))
        placed = place(observed(*members, in_force=(0, 1)), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2, 3)
        assert placed.evict is None
        assert said(placed) == (
            "Scaled: db-2, db-3 will start on on-demand: 4 of 7 are wanted there; on-demand has ordinals"
            " 0-3 now"
        )

    def test_a_scale_down_keeps_who_stands_on_on_demand(self) -> None:
        """7 -> 3: the third stands on on-demand, and leaves the set only when it is moved."""
        members = tuple(member(k, OD) for k in range(3))
        placed = place(observed(*members, in_force=(0, 1, 2, 3)), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2)

    def test_the_doomed_join_at_once(self) -> None:
        """A notice changes where the doomed will be born, before anything is moved."""
        members = five(member(4, SPOT, NodeStatus.DOOMED, signal="PreemptionScheduled"))
        placed = place(observed(*members), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2, 4)
        assert placed.evict is None
        assert said(placed) == (
            "SpotInterrupted: db-4 will start on on-demand: node spot-4 (PreemptionScheduled) is about to"
            " go; on-demand has ordinals 0-2, 4 now"
        )

    def test_the_lost_join_at_once(self) -> None:
        """So does who was lost without a notice; its pod is removed in the next reconcile."""
        members = five(member(3, SPOT, NodeStatus.LOST, vanished=True))
        placed = place(observed(*members), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2, 3)
        assert placed.vanished == ()
        assert placed.verdict.reason is Reason.SPOT_LOST

    def test_a_node_that_goes_by_choice_changes_nothing(self) -> None:
        """Karpenter's consolidation moves its pods itself, and spot is not distrusted."""
        members = five(member(4, SPOT, NodeStatus.DOOMED, voluntary=True))
        placed = place(observed(*members), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2)
        assert placed.evict is None

    def test_a_cap_holds_emergencies_too(self) -> None:
        """`on-demand-max` is kept."""
        policy = Policy(on_demand_base="majority", on_demand_max=3)
        members = five(member(4, SPOT, NodeStatus.DOOMED))
        placed = place(observed(*members), policy, RebalanceState())
        assert placed.ordinals == (0, 1, 2)
        assert placed.evict is None
        assert placed.verdict.reason is Reason.ON_DEMAND_CAPPED

    def test_volumes_narrow_the_choice(self) -> None:
        """An ordinal whose volume no on-demand node can have is passed over, and another takes its place."""
        pinned = Reach(on_demand=False, why="its volume is in zone b, without on-demand nodes")
        members = five(member(1, SPOT, reach=pinned))
        placed = place(observed(*members, in_force=()), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 2, 3)

    def test_freeze_holds_the_set(self) -> None:
        """In an emergency too; only what no node has any more is removed."""
        members = five(member(3, SPOT, NodeStatus.DOOMED), member(4, SPOT, NodeStatus.LOST, vanished=True))
        placed = place(observed(*members), replace(MAJORITY, freeze=True), RebalanceState())
        assert placed.ordinals == (0, 1, 2)
        assert placed.evict is None
        assert [one.name for one in placed.vanished] == ["db-4"]
        assert said(placed) == "Frozen: hold ordinals 0-2 on on-demand: splitter.io/freeze is set"

    def test_a_broken_view_holds_everything(self) -> None:
        """When on-demand looks as bad as spot, it is us who cannot see."""
        members = five(member(3, SPOT, NodeStatus.LOST))
        placed = place(observed(*members, view_broken=True), MAJORITY, RebalanceState())
        assert placed.ordinals == (0, 1, 2)
        assert placed.verdict.reason is Reason.CONTROL_PLANE_VIEW
