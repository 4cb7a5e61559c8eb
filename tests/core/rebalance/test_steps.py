"""What goes down in one step of a return."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import Decision, RebalanceInput, decide
from splitter.core.split_status import RebalanceState

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


def seen(**fields: object) -> RebalanceInput:
    """Return what is seen of 10 replicas, of which none is there yet, with other fields."""
    made = RebalanceInput(
        now=START, desired=10, max_surge=3, max_unavailable=2, on_demand_spec=0, on_demand_ready=0
    )
    return replace(made, **fields)  # type: ignore[arg-type] # the fields of the input


class TestTogether:
    """Replicas of one step become ready one after the other, and are lowered together (R34)."""

    def ready_for(self, *spot_s: float, on_demand: int = 10, **fields: object) -> RebalanceInput:
        """Return 10 replicas on on-demand, and some on spot that have been ready for so many seconds."""
        since = tuple(START - timedelta(seconds=seconds) for seconds in spot_s)
        counts = {"on_demand_spec": on_demand, "on_demand_ready": on_demand, "spot_spec": len(spot_s)}
        return seen(**counts, spot_ready_since=since, **fields)

    def decided(self, observed: RebalanceInput) -> Decision:
        """Decide after a loss, with two replicas wanted on on-demand."""
        state = RebalanceState(last_loss=START - timedelta(hours=1), lost=True)
        return decide(observed, Policy(on_demand_base=2, soak_s=60.0), state)

    def test_the_first_waits_for_the_next(self) -> None:
        """No step is spent on one replica when another earns a return in a moment."""
        decision = self.decided(self.ready_for(61, 57, 57))
        assert decision.on_demand == 10
        assert decision.requeue_after_s == 3
        assert self.decided(self.ready_for(64, 60, 60)).on_demand == 7

    def test_not_for_long(self) -> None:
        """Nor for one that has to stand for longer, nor for a fourth when a step takes three."""
        assert self.decided(self.ready_for(61, 54, 54)).on_demand == 9
        assert self.decided(self.ready_for(61, 61, 61, 57)).on_demand == 7

    def test_what_is_above_the_surge_goes_at_once(self) -> None:
        """More than N + S is held for no moment."""
        assert self.decided(self.ready_for(61, 57, 57, 57)).on_demand == 9


class TestDead:
    """Pods on silent nodes that nobody removes take no other's place (R44)."""

    def decided(self, **fields: object) -> Decision:
        """Decide about 5 replicas that are ready on spot, and 3 that are dead there and covered."""
        since = (START - timedelta(hours=1),) * 5
        counts = {"on_demand_spec": 5, "on_demand_ready": 5, "spot_spec": 8, "spot_silent": 3, "fit_spot": 10}
        observed = seen(**{**counts, "spot_ready_since": since, **fields})
        state = RebalanceState(last_loss=START - timedelta(minutes=10), lost=True)
        return decide(observed, Policy(on_demand_base=2), state)

    def test_make_room(self) -> None:
        """Nothing is asked for in that moment: a ReplicaSet takes what is Pending before what is dead."""
        decision = self.decided()
        assert (decision.on_demand, decision.spot) == (5, 5)
        why = (
            "scale spot 8 -> 5 (-3): 3 of 8 are on nodes that say nothing any more, and make room for others"
        )
        assert decision.notes[0].message == why

    def test_not_while_another_starts(self) -> None:
        """It would be taken before them, and a new one asked for, without end."""
        assert self.decided(spot_starting=1, spot_spec=9).spot == 8

    def test_then_others_are_asked_for(self) -> None:
        """As much as there is room for."""
        assert self.decided(spot_silent=0, spot_spec=5).spot == 8


class TestNamesThatAreHeld:
    """Members of a StatefulSet that neither stay nor leave: others are asked for beside them."""

    def decided(self, **fields: object) -> Decision:
        """Decide about 3 of 5 members that serve on on-demand alone after a loss long ago."""
        counts = {"desired": 5, "max_surge": 1, "on_demand_spec": 5, "on_demand_ready": 5}
        counts["spot_by_ordinal"] = True
        lost = RebalanceState(last_loss=START - timedelta(hours=1), lost=True)
        return decide(seen(**{**counts, **fields}), Policy(on_demand_base=3), lost)

    def test_the_dead_stand_in_nobodys_place(self) -> None:
        """The probe is one more than they are, where N + S are held without them."""
        assert self.decided(spot_spec=1, spot_dead=1).spot == 2
        decision = self.decided(spot_spec=3, spot_dead=2)
        assert (decision.on_demand, decision.spot) == (5, 3)

    def test_a_return_ends_beside_them(self) -> None:
        """Spot has what is wanted of it, and two that are dead."""
        since = (START - timedelta(hours=1),) * 2
        result = self.decided(spot_spec=4, spot_dead=2, spot_ready_since=since)
        assert (result.on_demand, result.spot) == (3, 4)
        at_rest = self.decided(
            on_demand_spec=3, on_demand_ready=3, spot_spec=4, spot_dead=2, spot_ready_since=since
        )
        assert (at_rest.on_demand, at_rest.spot) == (3, 4)
        assert at_rest.notes[0].message == (
            "hold spot at 4, 2 wanted: 2 of 4 spot replicas hold their names and cannot run: their nodes say"
            " nothing any more, or no node reaches their volumes"
        )

    def test_who_stands_is_not_let_go_for_the_doomed_below(self) -> None:
        """Covered for long: what is above those that stand goes, and no more; nobody comes beside them."""
        since = (START - timedelta(hours=1),)
        lost = RebalanceState(
            last_loss=START - timedelta(hours=1), lost=True, cover_since=START - timedelta(minutes=9)
        )
        counts = {"desired": 5, "max_surge": 1, "on_demand_spec": 4, "on_demand_ready": 4, "fit_spot": 9}
        counts["spot_by_ordinal"] = True
        held = seen(**counts, spot_spec=2, spot_doomed=1, spot_pinned=1, spot_ready_since=since)
        assert decide(held, Policy(on_demand_base=3), lost).spot == 2
        free = seen(**counts, spot_spec=3, spot_doomed=2, spot_pinned=1, spot_ready_since=since)
        assert decide(free, Policy(on_demand_base=3), lost).spot == 2
        short = replace(held, desired=7, on_demand_spec=6, on_demand_ready=6)
        assert decide(short, Policy(on_demand_base=4), lost).spot == 3, "more is wanted, and asked for"


class TestDoomedOnDemand:
    def test_leaves_room_for_the_probe(self) -> None:
        """On-demand replicas that go are beyond N + S; spot is asked for beside them (R46)."""
        lost = RebalanceState(last_loss=START - timedelta(minutes=10), lost=True)
        counts = {"on_demand_spec": 14, "on_demand_ready": 10, "on_demand_doomed": 4}
        assert decide(seen(**counts), Policy(on_demand_base=2), lost).spot == 1


class TestLate:
    """Pods that were bound to on-demand nodes that go, when others of them were doomed already (R30)."""

    def decided(self, desired: int = 10, **fields: object) -> int:
        """Return what is asked of on-demand, where all replicas are wanted there and none serves."""
        observed = seen(desired=desired, **fields)
        return decide(observed, Policy(on_demand_base=desired), RebalanceState()).on_demand

    def test_n_of_them_are_replaced(self) -> None:
        """The doomed of before are, all of them; who came later as often as there are replicas."""
        assert self.decided(on_demand_spec=20, on_demand_doomed=20, on_demand_late=10) == 30
        assert self.decided(on_demand_spec=30, on_demand_doomed=30, on_demand_late=20) == 30
        assert self.decided(on_demand_spec=90, on_demand_doomed=90, on_demand_late=0) == 100

    def test_of_fewer_than_there_were(self) -> None:
        """After a scale-in the doomed are more than N, and one has to serve all the same."""
        assert self.decided(desired=1, on_demand_spec=3, on_demand_doomed=3, on_demand_late=1) == 4
