"""Every order of events around a small split StatefulSet: no promise broken, and rest always within reach.

Each line of `COMPLETE` is explored to its end, `BOUNDED` until a number of states, in the order of their
distance from the start. A violation comes with one of the shortest ways to it.
"""

import os

import pytest

from model.quorum import Config, explore
from splitter.core import planner
from splitter.core.handover import Step
from splitter.core.twins import replica_moves

pytestmark = pytest.mark.slow

HANDS = ("scaled", "split-scaled", "image", "twin-deleted")
LABELS = ("unlabelled", "replaced", "split-deleted", "unmarked", "n-removed")

COMPLETE = (
    Config(1, faults=("unlabelled",), crashes=1),
    Config(1, ordered=True, start="split", faults=("replaced",)),
    Config(2, crashes=1),
    Config(2, ordered=True, crashes=1),
    Config(1, start="given-back", faults=("labelled", "split-deleted", "unmarked"), crashes=1),
)
BOUNDED = (
    Config(1, ordered=True, start="split", faults=(*HANDS, *LABELS)),
    Config(3, start="split", faults=(*HANDS, *LABELS), crashes=1),
    Config(3, ordered=True, faults=(*HANDS, *LABELS), crashes=1),
    Config(2, start="given-back", faults=(*HANDS, "labelled"), crashes=1),
)
BOUNDED_STATES = 15_000 if os.environ.get("SPLITTER_EXPLORE") == "full" else 600


@pytest.mark.parametrize("config", COMPLETE, ids=str)
def test_nothing_breaks_in_any_order(config: Config) -> None:
    """Explored to the end: each write keeps the promises, and rest is always within reach."""
    explored = explore(config)
    assert not explored.violations, explored.violations[0]
    assert explored.complete
    assert explored.steady


@pytest.mark.parametrize("config", BOUNDED, ids=str)
def test_nothing_breaks_nearby(config: Config) -> None:
    """Explored as far as the bound allows: the promises hold."""
    explored = explore(config, BOUNDED_STATES)
    assert not explored.violations, explored.violations[0]


class TestTheExplorerItself:
    """An explorer that finds nothing must be able to find something."""

    def test_finds_a_floor_that_is_too_low(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Breaking before making is seen, with the way to it."""
        monkeypatch.setattr(replica_moves, "floor_of", lambda replicas, *_: max(0, replicas - 1))
        assert any("promise 1" in violation for violation in explore(Config(2)).violations)

    def test_finds_a_standstill(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A state that nothing leads home from is seen."""
        steps = planner._STEPS  # noqa: SLF001 - its table of steps, to leave one out
        monkeypatch.setitem(steps, Step.SAVE, steps[Step.WAIT_CONTROLLER])
        assert any("no rest" in violation for violation in explore(Config(1)).violations)
