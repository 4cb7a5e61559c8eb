"""One move: one more, wait, one less. Never fewer than wanted, never more than one above it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.relief.move import Moving, Newcomer, Step, next_step

PATIENCE_S = 180.0
BEGIN = Moving(wanted=3, spec=3, ready=3, leaving="old")
RAISED = replace(BEGIN, spec=4, raised=True)
READY = replace(RAISED, ready=4, newcomer=Newcomer("new", ready=True))


class TestAMove:
    """Make before break."""

    @pytest.mark.parametrize(
        ("moving", "step", "replicas", "why"),
        [
            (BEGIN, Step.RAISE, 4, "one more, before one goes"),
            (replace(BEGIN, ready=2), Step.WAIT, 3, "not every replica is ready"),
            (RAISED, Step.WAIT, 4, "the new replica is not there yet"),
            (
                replace(RAISED, newcomer=Newcomer("new", ready=False)),
                Step.WAIT,
                4,
                "the new replica is not ready yet",
            ),
            (READY, Step.MARK, 4, "the new replica is ready elsewhere"),
            (replace(READY, marked="old"), Step.LOWER, 3, "the new replica is ready elsewhere"),
            (
                replace(READY, ready=3),
                Step.WAIT,
                4,
                "the new replica is ready elsewhere; not every other one is ready",
            ),
            (
                replace(READY, spec=3, marked="old"),
                Step.WAIT,
                3,
                "the scale-down goes on",
            ),
            (replace(READY, spec=3, leaving=""), Step.DONE, 3, "the replica has left its node"),
            (replace(READY, leaving=""), Step.DONE, 4, "the replica has left its node by itself"),
        ],
    )
    def test_goes_step_by_step(self, moving: Moving, step: Step, replicas: int, why: str) -> None:
        """Raised, waited for, marked, lowered; with a reason each time."""
        taken = next_step(moving, PATIENCE_S)
        assert (taken.step, taken.replicas, taken.why) == (step, replicas, why)
        assert not taken.taken_back

    def test_that_lands_on_a_hot_node_is_taken_back(self) -> None:
        """The new one bears the cost then, and the move ends."""
        hot = replace(READY, newcomer=Newcomer("new", ready=True, misplaced="stands on a hot node, too"))
        marked = next_step(hot, PATIENCE_S)
        assert (marked.step, marked.pod, marked.taken_back) == (Step.MARK, "new", True)
        lowered = next_step(replace(hot, marked="new"), PATIENCE_S)
        assert (lowered.step, lowered.replicas, lowered.why) == (
            Step.LOWER,
            3,
            "the new replica stands on a hot node, too",
        )
        done = next_step(replace(BEGIN, raised=True, marked="new"), PATIENCE_S)
        assert (done.step, done.replicas, done.taken_back) == (Step.DONE, 3, True)

    def test_whose_replica_does_not_start_is_taken_back(self) -> None:
        """After the patience, and only while all others are ready: else a serving one would go."""
        slow = Newcomer("new", ready=False, waited_s=PATIENCE_S + 1)
        stuck = replace(RAISED, newcomer=slow, marked="new")
        assert next_step(stuck, PATIENCE_S).step is Step.LOWER
        assert next_step(replace(stuck, ready=2), PATIENCE_S).step is Step.WAIT

    @pytest.mark.parametrize("moving", [BEGIN, RAISED, READY, replace(READY, marked="old")])
    def test_stops_when_the_workload_is_busy(self, moving: Moving) -> None:
        """A loss, a notice or a roll: the counts are the division's, nothing is lowered for it."""
        taken = next_step(replace(moving, busy="spot is being lost"), PATIENCE_S)
        assert (taken.step, taken.replicas, taken.why) == (Step.DONE, moving.spec, "spot is being lost")

    @pytest.mark.parametrize(("wanted", "spec"), [(5, 4), (2, 4), (0, 3)])
    def test_stops_when_counts_change(self, wanted: int, spec: int) -> None:
        """Somebody scales the source meanwhile."""
        taken = next_step(replace(READY, wanted=wanted, spec=spec), PATIENCE_S)
        assert (taken.step, taken.replicas) == (Step.DONE, spec)

    @given(
        wanted=st.integers(0, 6),
        spec=st.integers(0, 8),
        ready=st.integers(0, 8),
        leaving=st.sampled_from(["", "old"]),
        new=st.none()
        | st.builds(
            Newcomer,
            st.just("new"),
            ready=st.booleans(),
            misplaced=st.sampled_from(["", "stands on a hot node, too"]),
            waited_s=st.floats(0, 400),
        ),
        marked=st.sampled_from(["", "old", "new"]),
        raised=st.booleans(),
    )
    def test_never_asks_for_too_few_or_too_many(
        self,
        *,
        wanted: int,
        spec: int,
        ready: int,
        leaving: str,
        new: Newcomer | None,
        marked: str,
        raised: bool,
    ) -> None:
        """Whatever is seen: a raise is by one with all ready; a lowering takes one that is not needed."""
        ready = min(ready, spec)
        moving = Moving(wanted, spec, ready, leaving, new, raised=raised, marked=marked)
        taken = next_step(moving, PATIENCE_S)
        if taken.step is Step.RAISE:
            assert (taken.replicas, ready) == (wanted + 1, wanted)
        elif taken.step is Step.LOWER:
            goes_unready = new is not None and not new.ready and taken.pod == "new"
            assert (spec, taken.replicas, taken.pod) == (wanted + 1, wanted, marked)
            assert ready >= (wanted if goes_unready else wanted + 1)
        else:
            assert taken.replicas == spec
