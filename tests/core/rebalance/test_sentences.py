"""What is said of a decision: the numbers that it rests on, and instants that stay the same."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.rebalance.moments import NOW, ago, settled
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.reasons import Reason
from splitter.core.rebalance import RebalanceInput, decide
from splitter.core.replica import Trouble
from splitter.core.split_status import RebalanceState

POLICY = Policy(on_demand_base=4)
QUIET = settled(10, POLICY)


def said(
    observed: RebalanceInput, policy: Policy = POLICY, state: RebalanceState | None = None
) -> list[Note]:
    """Return the notes of a decision about 4 + 6 replicas."""
    return list(decide(observed, policy, state or RebalanceState()).notes)


class TestRelease:
    def test_is_told(self) -> None:
        """Until when the doomed are kept, and why no longer."""
        policy = Policy(on_demand_base=4)
        covered = replace(
            settled(10, policy),
            on_demand_spec=10,
            on_demand_ready=10,
            spot_ready_since=(),
            spot_doomed=6,
            spot_stop_after_s=10.0,
        )
        state = RebalanceState(lost=True, cover_since=NOW, doomed_since=ago(5), last_loss=ago(5))
        assert (
            "covered since 10:00:00Z and let go 5 s after that"
            in decide(covered, policy, state).notes[0].message
        )
        (let_go,) = [
            note
            for note in decide(replace(covered, now=NOW + timedelta(seconds=5)), policy, state).notes
            if note.reason is Reason.COVERED
        ]
        assert (
            "the doomed need the rest of their notice to end (terminationGracePeriodSeconds)"
            in let_go.message
        )


class TestReturn:
    """What a return says that it has waited for."""

    @pytest.mark.parametrize("proven", [False, True])
    def test_names_the_soak(self, proven: bool) -> None:
        """At the first replica as well, that has just stood for it; the 60 s are for those after it."""
        policy = Policy(on_demand_base=4)
        covered = replace(
            settled(10, policy), on_demand_spec=9, on_demand_ready=9, spot_ready_since=(ago(601),) * 6
        )
        [note] = decide(covered, policy, RebalanceState(last_loss=ago(700), proven=proven)).notes[:1]
        assert note.reason is Reason.RETURNING
        assert note.message.endswith(
            "6 of 6 spot replicas have been ready for 60 s (one for the soak of 600 s)"
        )

    def test_names_no_other_time_than_its_own(self) -> None:
        """Where the soak is no longer than the time of those after it."""
        policy = Policy(on_demand_base=4, soak_s=60.0)
        covered = replace(
            settled(10, policy), on_demand_spec=9, on_demand_ready=9, spot_ready_since=(ago(61),) * 6
        )
        [note] = decide(covered, policy, RebalanceState(last_loss=ago(90))).notes[:1]
        assert note.message.endswith("6 of 6 spot replicas have been ready for 60 s")


class TestTheSteadyState:
    def test_says_how_many_stand_where(self) -> None:
        """And nothing else."""
        (note,) = said(QUIET)
        assert (note.reason, note.warning, note.move) == (Reason.BALANCED, False, None)
        assert note.message.startswith("4 on on-demand and 6 on spot, as 10 replicas are divided into 4")

    def test_says_that_it_is_frozen(self) -> None:
        """Whatever would be done."""
        (note,) = said(replace(QUIET, desired=20), replace(POLICY, freeze=True))
        assert note.reason is Reason.FROZEN
        assert note.message == "hold on-demand at 4 and spot at 6: splitter.io/freeze is set"


class TestLosses:
    GONE = replace(QUIET, spot_ready_since=(ago(9_000),) * 3, spot_doomed=3)
    NOTICED = RebalanceState(lost=True, interrupted=True, last_loss=ago(5), doomed_since=ago(5))

    def test_are_alarming_where_they_raise(self) -> None:
        """With how many of how many; the move stands in front."""
        note = said(self.GONE, state=self.NOTICED)[0]
        assert (note.reason, note.warning) == (Reason.SPOT_INTERRUPTED, True)
        assert note.message.startswith(
            "scale on-demand 4 -> 7 (+3): 3 of 6 spot replicas are on doomed nodes"
        )

    @pytest.mark.parametrize(
        ("interrupted", "reason", "what"),
        [(True, Reason.SPOT_INTERRUPTED, "notice"), (False, Reason.SPOT_LOST, "loss")],
    )
    def test_afterwards_say_whether_there_was_a_notice(
        self, *, interrupted: bool, reason: Reason, what: str
    ) -> None:
        """While on-demand covers what is missing."""
        state = RebalanceState(lost=True, interrupted=interrupted, last_loss=ago(60), window=3)
        gone = replace(QUIET, spot_ready_since=(ago(9_000),) * 3)
        note = said(gone, state=state)[0]
        assert note.reason is reason
        assert f"3 of 6 spot replicas are ready after a {what}" in note.message

    def test_that_cannot_be_covered_say_by_what(self) -> None:
        """A cap of the user's, and how many are missing."""
        capped = replace(POLICY, on_demand_max=5)
        (note,) = [
            one for one in said(self.GONE, capped, self.NOTICED) if one.reason is Reason.ON_DEMAND_CAPPED
        ]
        assert note.warning
        assert note.message == (
            "2 of 10 replicas are missing: splitter.io/on-demand-max is 5. Raise it to have them covered"
        )

    @pytest.mark.parametrize(
        ("held", "what"),
        [
            (0, "are on doomed nodes"),
            (1, "are on doomed nodes, or do not serve, and hold their names"),
            (2, "do not serve, and hold their names"),
        ],
    )
    def test_of_on_demand_say_what_is_replaced(self, held: int, what: str) -> None:
        """What is doomed may serve; a member that holds its name does not."""
        seen = replace(QUIET, on_demand_ready=2, on_demand_doomed=2, on_demand_held=held)
        assert said(seen)[0].message == f"scale on-demand 4 -> 6 (+2): 2 of 4 on-demand replicas {what}"

    def test_are_no_sentence_that_counts_down(self) -> None:
        """A second later the same is said: else each second would be an Event."""
        state = decide(self.GONE, POLICY, self.NOTICED).state
        covered = replace(self.GONE, on_demand_spec=7)
        later = replace(covered, now=NOW + timedelta(seconds=1))
        assert [one.message for one in said(covered, state=state)] == [
            one.message for one in said(later, state=state)
        ]


class TestShortages:
    SHORT = replace(QUIET, spot_ready_since=(ago(9_000),) * 4, spot_pending_since=ago(60))
    SINCE = RebalanceState(short_since=ago(60))

    def test_say_when_they_are_covered(self) -> None:
        """At an instant, and what spot has placed."""
        (note,) = [one for one in said(self.SHORT, state=self.SINCE) if one.reason is Reason.SPOT_SHORT]
        assert note.message == (
            "hold on-demand at 4: spot has placed 4 of 6; on-demand covers what is missing at 10:02:00Z"
        )

    def test_name_what_keeps_pods_off_the_nodes(self) -> None:
        """That is a reason of its own: more nodes would not help."""
        taint = Trouble(Reason.NODES_UNSUITABLE, "taint a=b is on all 3 of them")
        notes = said(replace(self.SHORT, spot_unplaceable=taint), state=self.SINCE)
        assert any(
            one.reason is Reason.NODES_UNSUITABLE and "4 of 6: taint a=b is on all 3 of them" in one.message
            for one in notes
        )

    def test_of_starting_replicas_are_none(self) -> None:
        """Nobody has looked for a node in vain."""
        starting = replace(self.SHORT, spot_pending_since=None, spot_starting=2)
        assert Reason.SPOT_SHORT not in {one.reason for one in said(starting, state=self.SINCE)}

    def test_of_on_demand_say_what_spot_does(self) -> None:
        """It never takes more than its own share."""
        stuck = replace(QUIET, on_demand_ready=2, on_demand_stuck=2)
        (note,) = [one for one in said(stuck) if one.reason is Reason.ON_DEMAND_SHORT]
        assert note.warning
        assert note.message.startswith(
            "2 of 4 on-demand replicas find no node; spot has all of its 6 and takes no on-demand replica's"
        )


def test_a_broken_view_is_said_instead_of_a_loss() -> None:
    """With what is held."""
    notes = said(replace(QUIET, view_broken=True))
    assert [one.reason for one in notes if one.warning] == [Reason.CONTROL_PLANE_VIEW]
    assert notes[0].message.startswith("hold on-demand at 4 or more and spot at 6: more than half")
