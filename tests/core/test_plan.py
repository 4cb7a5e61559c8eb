"""What of a plan is left when it is held back or not everything is seen."""

from dataclasses import replace

from builders import ago, free_source, observation, pods, replica_set, source, split, twin
from core.one_reconcile import ATTACHED, at_rest, planned
from splitter.core.actions import HolderKind, Scale
from splitter.core.model import Note
from splitter.core.plan import held_back, rolls, unseen
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool
from splitter.core.split_status import RebalanceState


class TestHeldBack:
    """A roll that the API server would refuse."""

    def test_writes_nothing_and_asks_again(self) -> None:
        """No watch tells when a policy or a quota is mended."""
        result = planned(at_rest(), template="v2")
        assert rolls(result)
        denied = Note(Reason.WRITE_DENIED, "no new images today", warning=True)
        held = held_back(result, denied, 7.0)
        assert (held.actions, held.verdict, held.state) == ((), denied, State.HELD)
        assert held.requeue_after_s == 7.0
        assert not rolls(held)
        assert held_back(replace(result, requeue_after_s=3.0), denied, 7.0).requeue_after_s == 3.0
        edited = replace(result, write_conflict=True)
        assert not held_back(edited, denied, 7.0).write_conflict, "what is not put back is no conflict"


class TestUnseen:
    """What a reconcile rests on cannot be listed any more."""

    def test_only_raises(self) -> None:
        """Of a move between the pools the half is left that asks for more."""
        observed = at_rest(spot=twin(Pool.SPOT, pods(4, doomed=2)))
        result = planned(observed)
        assert result.raises
        lowers = Scale(HolderKind.DEPLOYMENT, "web-spot", 6, 5, "7")
        held = unseen(replace(result, actions=(lowers, *result.actions)), observed, "pods")
        assert held.actions == result.raises
        assert held.rebalance is not None
        assert held.rebalance.lost
        assert held.rebalance.decided == result.raises[0].replicas
        assert held.notes == (*result.notes, held.verdict), "what is done is said beside what is not"

    def test_remembers_no_step_that_is_not_taken(self) -> None:
        """Cover stays where it is, and its next step down is not put off."""
        soaked = RebalanceState(last_loss=ago(7000), proven=True).to_json()
        observed = at_rest(
            on_demand=twin(Pool.ON_DEMAND, pods(10)),
            spot=twin(Pool.SPOT, pods(6)),
            split=split(rebalance=soaked),
        )
        result = planned(observed)
        assert [one.replicas < one.was for one in result.actions if isinstance(one, Scale)] == [True]
        held = unseen(result, observed, "pods")
        assert (held.actions, held.notes) == ((), (held.verdict,))
        assert held.rebalance is not None
        assert held.rebalance.last_step is None
        assert held.rebalance.decided is None  # below what is there, it would look like a forgotten raise

    def test_says_so(self) -> None:
        """Whoever looks at the Split reads it, though nothing was to be done."""
        held = unseen(planned(at_rest()), at_rest(), "pods of shop cannot be followed")
        assert (held.state, held.verdict.reason) == (State.HELD, Reason.CONTROL_PLANE_VIEW)
        assert "pods of shop" in held.verdict.message
        assert held.verdict.warning

    def test_counts_no_write_conflict(self) -> None:
        """A foreign unpause is not undone: counted in each reconcile, one would give the workload back."""
        unpaused = observation(source(paused=False), [ATTACHED, replica_set("web-0", spec=0)], split=split())
        result = planned(unpaused)
        assert result.write_conflict
        held = unseen(result, unpaused, "pods")
        assert (held.actions, held.write_conflict) == ((), False)

    def test_is_no_affair_of_who_is_not_split(self) -> None:
        """Nothing of it is held."""
        plain = replace(observation(replace(free_source(), labels={})), split=None)
        result = planned(plain)
        assert unseen(result, plain, "pods") == result
