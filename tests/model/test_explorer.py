"""Every order of events in a small world: no promise broken, and a steady state always within reach.

Each line of `COMPLETE` is explored to its end. `BOUNDED` are looked into until a number of states, in the
order of their distance from the start. `SPLITTER_EXPLORE=full pytest -s tests/model` goes as far as
`SPLITTER_EXPLORE_SECONDS` (15 minutes when it is not set) allow and says how far that was. A violation
comes with one of the shortest ways to it.
"""

import os
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from model.explore import Explored, Explorer
from model.world import Config
from splitter.core import actions as do
from splitter.core import floor_gate, planner
from splitter.core.deployment import adoption
from splitter.core.handover import Step
from splitter.core.twins import replica_moves
from splitter.kube import payloads

pytestmark = pytest.mark.slow

HANDS = ("scaled", "resumed", "twin-deleted", "image", "bad-image", "quota")
LABELS = ("unlabelled", "replaced", "split-deleted", "unmarked")
NODES = ("notice", "od-notice", "gone", "unready")

COMPLETE = (
    Config(replicas=1, surge=1, faults=("unlabelled",)),
    Config(replicas=2, surge=1, crashes=1),
    Config(replicas=2, surge=0, unavailable=1, crashes=1),
    Config(replicas=2, surge=1, faults=("split-deleted", "unmarked")),
    Config(replicas=2, surge=1, start="split", faults=(*HANDS, *LABELS)),
    Config(replicas=2, surge=0, unavailable=1, start="split", faults=("scaled", *LABELS)),
    Config(replicas=2, surge=1, start="split", faults=("gone",), whole_reconciles=True),
    Config(replicas=1, surge=1, start="given-back", faults=LABELS),
)
# Of a StatefulSet. Its pods end when they like: another one with the name has to wait for that.
QUORUM_HANDS = ("scaled", "split-scaled", "image", "twin-deleted")
QUORUM_LABELS = (*LABELS, "n-removed")


def members(replicas: int, *, ordered: bool = False, **asked: Any) -> Config:  # noqa: ANN401 - as `Config`
    """Return an exploration of a StatefulSet."""
    return Config(replicas, ordered=ordered, lingering=True, **asked)


COMPLETE_MEMBERS = (
    members(1, faults=("unlabelled",), crashes=1),
    members(1, ordered=True, start="split", faults=("replaced",)),
    members(2, crashes=1),
    members(2, ordered=True, crashes=1),
    members(1, start="given-back", faults=("labelled", "split-deleted", "unmarked"), crashes=1),
)
BOUNDED_MEMBERS = (
    members(1, ordered=True, start="split", faults=(*QUORUM_HANDS, *QUORUM_LABELS)),
    members(3, start="split", faults=(*QUORUM_HANDS, *QUORUM_LABELS), crashes=1),
    members(3, ordered=True, faults=(*QUORUM_HANDS, *QUORUM_LABELS), crashes=1),
    members(2, start="given-back", faults=(*QUORUM_HANDS, "labelled"), crashes=1),
)
BOUNDED = (
    Config(replicas=3, surge=1, unavailable=1, faults=(*HANDS, *LABELS, *NODES), crashes=1),
    Config(replicas=2, surge=1, start="split", faults=("notice",), late=True, crashes=1),
    Config(replicas=2, surge=0, unavailable=1, start="given-back", faults=(*HANDS, *NODES, "labelled")),
)
PLANNED = planner._STEPS  # noqa: SLF001 - its table of steps, to leave one out
FULL = os.environ.get("SPLITTER_EXPLORE") == "full"
BOUNDED_STATES = 15_000 if FULL else 600


def explored(config: Config, states_max: int = 10**9, seconds_max: float = 1e9) -> Explored:
    """Explore, say how far it went, and fail with the shortest way to what went wrong."""
    ran = Explorer(config, states_max, seconds_max).run()
    print(ran)  # noqa: T201 - the report of the big exploration
    for violation in ran.violations:
        print(violation)  # noqa: T201 - the same
    return ran


@pytest.mark.parametrize("config", [*COMPLETE, *COMPLETE_MEMBERS], ids=str)
def test_nothing_breaks_in_any_order(config: Config) -> None:
    """Explored to the end: each step keeps the promises, and rest is always within reach."""
    result = explored(config)
    assert not result.violations, result.violations[0]
    assert result.complete
    assert result.steady


@pytest.mark.parametrize("config", [*BOUNDED, *BOUNDED_MEMBERS], ids=str)
def test_nothing_breaks_nearby(config: Config) -> None:
    """Explored as far as the bound allows: the promises hold, and whatever is left alone comes to rest."""
    result = explored(config, BOUNDED_STATES)
    assert not result.violations, result.violations[0]


class TestTheExplorerItself:
    """An explorer that finds nothing must be able to find something."""

    def test_finds_a_floor_that_is_too_low(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A ReplicaSet that goes with its pods, and not without them, is seen, with the way to it."""
        monkeypatch.setattr(adoption, "do", SimpleNamespace(**vars(do) | {"OrphanPods": do.DeleteReplicaSet}))
        result = explored(Config(replicas=2, surge=1))
        assert any("promise 1" in violation for violation in result.violations)

    def test_finds_too_many_replicas(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A ReplicaSet that adopts pods, and makes more beside them than its owner is to have, is seen."""
        monkeypatch.setattr(payloads, "replicas_of", lambda _: 9)
        result = explored(Config(replicas=2, surge=1))
        assert any("promise 2" in violation for violation in result.violations)

    def test_finds_a_standstill(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A state that nothing leads home from is seen."""
        monkeypatch.setitem(PLANNED, Step.ADOPT_PODS, PLANNED[Step.WAIT_CONTROLLER])
        result = explored(Config(replicas=2, surge=1))
        assert any("no rest" in violation for violation in result.violations)

    def test_finds_a_floor_of_members_that_is_too_low(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Breaking before making is seen, with the way to it."""
        for counted in (replica_moves, floor_gate):
            monkeypatch.setattr(counted, "floor_of", lambda replicas, *_: max(0, replicas - 1))
        assert any("promise 1" in violation for violation in explored(members(2)).violations)

    def test_finds_a_standstill_of_members(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A state that nothing leads home from is seen."""
        monkeypatch.setitem(PLANNED, Step.SAVE, PLANNED[Step.WAIT_CONTROLLER])
        assert any("no rest" in violation for violation in explored(members(1)).violations)


def full() -> list[Config]:
    """Return what the big exploration looks into, the smaller ones first."""
    sizes = ((1, 1, 0), (2, 1, 0), (2, 0, 1), (3, 1, 1), (3, 0, 1))
    collected = [
        # Known: the Split deleted by somebody, and a crash before the last write, leave a copied mark.
        Config(
            replicas=replicas,
            surge=surge,
            unavailable=unavailable,
            start=start,
            faults=kinds,
            crashes=0 if (start, kinds) == ("given-back", LABELS) else 1,
        )
        for replicas, surge, unavailable in sizes
        for start in ("split", "labelled", "given-back")
        for kinds in (LABELS, HANDS, NODES)
    ]
    small = ((2, 1, 0), (2, 0, 1))
    late = [
        Config(replicas=2, surge=surge, unavailable=unavailable, start="split", faults=(kind,), late=True)
        for _, surge, unavailable in small
        for kind in ("notice", "gone")
    ]
    two = [
        Config(
            replicas=2,
            surge=surge,
            unavailable=unavailable,
            start="split",
            faults=(*HANDS, *LABELS, *NODES, "labelled"),
            faults_max=2,
            whole_reconciles=True,
        )
        for _, surge, unavailable in small
    ]
    single = [replace(one, scheduled_late=True, lingering=True) for one in COMPLETE[:3]]
    return [*single, *late, *two, *collected]


@pytest.mark.skipif(not FULL, reason="takes a quarter of an hour: SPLITTER_EXPLORE=full")
def test_nothing_breaks_far_away() -> None:
    """As many states as time allows, fairly divided."""
    end = time.monotonic() + float(os.environ.get("SPLITTER_EXPLORE_SECONDS", "900"))
    configs, states, violations = full(), 0, []
    for number, config in enumerate(configs):
        left_s = (end - time.monotonic()) / (len(configs) - number)
        result = explored(config, seconds_max=max(0.5, left_s))
        states += result.states
        violations += result.violations
    print(f"{states} states in all, {len(violations)} violations")  # noqa: T201 - the report
    assert not violations, violations[0]
