"""Which pool takes no replica, as it is said: what refuses, what warns, and what is no matter."""

from typing import Any

import pytest

from builders import ago, free_source, observation, split
from splitter.core.eligibility import barriers, no_spot_node, refusal
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Mode, Note
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.nodes.pools import Barrier, PoolFit
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.stateful import StatefulView

PINNED = "nodeSelector karpenter.sh/capacity-type=spot"
CERTAIN, NOW = Barrier(PINNED, certain=True), Barrier("0 of 3 healthy on-demand nodes have disk=ssd")
UNSEEN = PoolFit(no_spot_node="node a has the label node-type=spot")


def said(fit: PoolFit, replicas: int = 4, **policy: Any) -> list[Note]:  # noqa: ANN401 (fields of the policy)
    """Return the warnings."""
    return list(barriers(observation(pools=fit), free_source(replicas), Policy(**policy)))


class TestCover:
    def test_is_refused_where_it_is_certain(self) -> None:
        """With what of the template, and what to do."""
        refused = refusal(observation(pools=PoolFit(on_demand=CERTAIN)), free_source(), Policy(), ())
        assert refused is not None
        assert (refused.reason, refused.warning) == (Reason.COVER_IMPOSSIBLE, True)
        assert refused.message.startswith(f"cover is impossible: the pod template has {PINNED}")
        assert "Remove that from the pod template" in refused.message

    def test_is_a_warning_by_the_nodes_of_now(self) -> None:
        """An autoscaler may bring others."""
        observed = observation(pools=PoolFit(on_demand=NOW))
        assert refusal(observed, free_source(), Policy(), ()) is None
        (note,) = said(PoolFit(on_demand=NOW))
        assert (note.reason, note.cause) == (Reason.COVER_IMPOSSIBLE, VerdictCause.BY_NODES)
        assert note.message == (
            f"cover is impossible with the nodes that there are: {NOW.why}; it is possible only if an"
            " autoscaler, or its administrator, brings other nodes"
        )

    @pytest.mark.parametrize("mode", ["placement", "twins"])
    def test_is_refused_of_a_stateful_set(self, mode: str) -> None:
        """Placed or in twins: none of its members could start on on-demand."""
        key = Key(STATEFUL_SET, "shop", "db")
        members = free_source(3, key=key, stateful=StatefulView(3, 3, 3, ago(9)))
        refused = refusal(observation(pools=PoolFit(on_demand=CERTAIN)), members, Policy(mode=Mode(mode)), ())
        assert refused is not None
        assert refused.reason is Reason.COVER_IMPOSSIBLE

    def test_is_no_matter_where_none_is_wanted(self) -> None:
        """Its user asks for spot alone."""
        observed = observation(pools=PoolFit(on_demand=CERTAIN))
        assert refusal(observed, free_source(), Policy(on_demand_max=0), ()) is None


class TestSpot:
    def test_is_a_warning(self) -> None:
        """All replicas stay on on-demand, and nothing is saved."""
        (note,) = said(PoolFit(spot=Barrier("nodeSelector x=y", certain=True)))
        assert (note.reason, note.cause) == (Reason.SPOT_IMPOSSIBLE, None)
        assert note.message.startswith("spot is impossible: the pod template has nodeSelector x=y")
        (note,) = said(PoolFit(spot=NOW))
        assert note.cause is VerdictCause.BY_NODES

    @pytest.mark.parametrize(("base", "warned"), [(1, True), (2, False)])
    def test_that_holds_what_is_wanted_there(self, base: int, *, warned: bool) -> None:
        """A strict spread leaves room for two of four: that is enough for the policy, or it is not."""
        assert bool(said(PoolFit(spot=Barrier("minDomains", room_for=2)), on_demand_base=base)) is warned

    @pytest.mark.parametrize("policy", [{"on_demand_base": 4}, {"spot_percent": 0}])
    def test_is_no_matter_where_none_is_wanted(self, policy: dict[str, Any]) -> None:
        """The policy has all replicas on on-demand."""
        assert said(PoolFit(spot=NOW), **policy) == []
        assert no_spot_node(observation(pools=UNSEEN), free_source(4), Policy(**policy)) is None


class TestNoSpotNode:
    def test_says_where_spot_is_recognised(self) -> None:
        """And which label looks like it; an autoscaler may bring spot from zero, so nothing is refused."""
        observed = observation(pools=UNSEEN)
        note = no_spot_node(observed, free_source(), Policy())
        assert note is not None
        assert note.reason is Reason.SPOT_UNSEEN
        assert "(node a has the label node-type=spot)" in note.message
        assert "spot_selectors" in note.message
        assert refusal(observed, free_source(), Policy(), ()) is None

    def test_says_nothing_after_a_loss(self) -> None:
        """The outage has taken them all: that is another sentence."""
        lost = observation(pools=UNSEEN, split=split(rebalance={"lastLoss": "2026-01-05T09:00:00Z"}))
        assert no_spot_node(lost, free_source(), Policy()) is None


def test_nobody_knows() -> None:
    """Nothing was compared: nothing is said."""
    assert barriers(observation(), free_source(), Policy()) == ()
    assert no_spot_node(observation(), free_source(), Policy()) is None
