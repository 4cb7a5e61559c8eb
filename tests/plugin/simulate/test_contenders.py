"""What a replay plays remembers what it has decided, until it is started anew."""

from core.rebalance.moments import settled
from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import decide
from splitter.core.split_status import RebalanceState
from splitter.plugin.simulate.contenders import Rebalancing

POLICY = Policy(on_demand_base=4)


def test_answers_as_splitter_does_and_remembers() -> None:
    """The state of one answer is that of the next, as in a Split; another game begins without it."""
    quiet = settled(10, POLICY)
    contender = Rebalancing("mine", POLICY)
    lost = decide(quiet, POLICY, RebalanceState(lost=True))
    contender.state = RebalanceState(lost=True)
    assert contender.answer(quiet) == (lost.on_demand, lost.spot, lost.requeue_after_s)
    assert contender.state == lost.state != RebalanceState()
    contender.start()
    assert contender.state == RebalanceState()
    assert contender.answer(quiet)[:2] == (4, 6)
