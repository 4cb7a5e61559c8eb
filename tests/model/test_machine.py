"""The explored world at sizes that cannot be explored to their end: hypothesis chooses what happens next.

The same moves, the same judges as `test_explorer`; N to 12, surge to 4, several faults and crashes. What it
finds it makes short. Left alone at the end, each life must come to rest.
"""

import os
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from model.explore import Explorer, next_world, starts
from model.moves import TIME_MOVES, Move, moves
from model.world import Config, World
from splitter.core import actions as do
from splitter.core.deployment import adoption
from stories.reported import BrokenPromiseError

pytestmark = pytest.mark.slow

FAULTS = (
    *("scaled", "resumed", "twin-deleted", "image", "bad-image", "quota", "labelled", "unlabelled"),
    *("replaced", "split-deleted", "unmarked", "notice", "od-notice", "gone", "unready"),
    *("strategy", "policy", "frozen", "edited"),
)
FULL = os.environ.get("SPLITTER_EXPLORE") == "full"

sizes = st.builds(
    Config,
    replicas=st.integers(4, 12),
    surge=st.integers(0, 4),
    unavailable=st.integers(1, 4),
    faults=st.just(FAULTS),
    faults_max=st.integers(0, 4),
    crashes=st.integers(0, 2),
    start=st.sampled_from(("labelled", "split", "given-back")),
    whole_reconciles=st.booleans(),
)


class Lives(RuleBasedStateMachine):
    """One workload, and everybody who may act on it, in an order that hypothesis chooses."""

    world: World
    config: Config

    @initialize(config=sizes)
    def begin(self, config: Config) -> None:
        """Label a workload, or go on from one that is split."""
        self.config = config
        (self.world,) = starts(config)

    @rule(which=st.integers(0, 1_000_000))
    def somebody_acts(self, which: int) -> None:
        """One of those who may act does; a broken promise is raised from here."""
        possible = [move for move in moves(self.world, self.config) if not move.world]
        self.world = next_world(self.world, possible[which % len(possible)], self.config)

    @rule(which=st.integers(0, 1_000_000))
    def something_happens(self, which: int) -> None:
        """Something that is nobody's answer: a notice, a hand of a stranger, a label."""
        possible = [move for move in moves(self.world, self.config) if move.world]
        if possible:
            self.world = next_world(self.world, possible[which % len(possible)], self.config)

    @rule(rounds=st.integers(1, 5))
    def everybody_acts_in_turn(self, rounds: int) -> None:
        """Some rounds without disturbance, so that lives get beyond their beginnings."""
        for _ in range(rounds):
            self.world = Explorer.quiet_round(self.world, self.config)

    @precondition(lambda self: not self.world.pending)
    @rule(move=st.sampled_from(TIME_MOVES))
    def time_passes(self, move: Move) -> None:
        """Minutes or hours, between two reconciles."""
        self.world = next_world(self.world, move, self.config)

    def teardown(self) -> None:
        """Left alone, it comes to rest."""
        if hasattr(self, "world"):
            why = Explorer(self.config).why_no_rest(self.world)
            assert not why, why


Lives.TestCase.settings = settings(
    max_examples=2_000 if FULL else 15,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestLives = Lives.TestCase


def test_the_machine_finds_a_floor_that_is_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that finds nothing must be able to find something."""
    monkeypatch.setattr(adoption, "do", SimpleNamespace(**vars(do) | {"OrphanPods": do.DeleteReplicaSet}))
    quick = settings(
        max_examples=200,
        stateful_step_count=60,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(BrokenPromiseError, match="promise 1"):
        run_state_machine_as_test(Lives, settings=quick)
