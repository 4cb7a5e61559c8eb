"""Placement in every order of events: no eviction takes the majority, no member is restarted for nothing.

Where only spot fails, more than half of the members serve in every state there is; and from every state the
way leads home, with each member ready in its pool, when the world goes quiet.
"""

import os
from dataclasses import replace

import pytest

from model.placed import Config, explore
from splitter.core.labels_annotations.policy import Policy
from splitter.core.placement import disruption
from splitter.core.placement.members import PlacementInput

pytestmark = pytest.mark.slow

# `make explore` goes further.
STATES = 15_000 if os.environ.get("SPLITTER_EXPLORE") == "full" else 600
HALF = Policy(on_demand_base=0, spot_percent=50, soak_s=0.0)
NONE = Policy(soak_s=0.0)

COMPLETE = (
    Config(faults=2),
    Config(faults=2, ordered=True),
    Config(faults=1, kinds=("doom", "take", "crash"), policy=NONE),
    Config(faults=1, kinds=("doom", "update")),
    Config(faults=2, kinds=("cordon", "full"), ordered=True),
    Config(faults=2, kinds=("cordon", "crash")),
    Config(faults=2, kinds=("take", "refuse")),
    Config(replicas=1, faults=2, policy=NONE, kinds=("doom", "silence", "take", "crash")),
    Config(replicas=2, faults=1, policy=NONE, kinds=("doom", "silence", "take", "crash")),
)
ANSWERS = (
    Config(faults=1, kinds=("policy", "doom")),
    Config(faults=2, kinds=("take", "anew")),
    Config(faults=2, kinds=("doom", "spent")),
    Config(faults=2, kinds=("take", "quota")),
    Config(faults=2, kinds=("take", "lies")),
)
LEADERS = (
    Config(faults=3, kinds=("doom", "late", "crash"), policy=NONE),
    Config(faults=3, kinds=("doom", "late")),
)
BOUNDED = (
    Config(faults=3, kinds=("doom", "take", "policy", "anew", "lies", "spent", "quota")),
    Config(faults=3, kinds=("doom", "take", "policy", "anew", "crash"), replicas=5, ordered=True),
    Config(faults=3, kinds=("doom", "silence", "take", "full")),
    Config(faults=2, kinds=("doom", "take"), scales=(1, 4, 5)),
    Config(replicas=5, faults=2),
    Config(replicas=5, faults=3, kinds=("doom", "cordon", "drain", "full", "crash"), ordered=True),
    Config(replicas=5, faults=3, kinds=("doom", "cordon", "drain", "full", "crash")),
    Config(replicas=5, faults=2, kinds=("doom", "crash", "update"), policy=HALF),
)


def _named(config: Config) -> str:
    order = "-ordered" if config.ordered else ""
    faults = "+".join(config.kinds)
    return f"{config.replicas}{order}-{config.policy.on_demand_base}-{config.faults}x{faults}"


@pytest.mark.parametrize("config", COMPLETE, ids=_named)
def test_nothing_breaks_in_any_order(config: Config) -> None:
    """Explored to the end."""
    explored = explore(config)
    assert explored.complete
    assert explored.states > 5


@pytest.mark.parametrize("config", BOUNDED, ids=_named)
def test_nothing_breaks_nearby(config: Config) -> None:
    """Looked into, in the order of the distance from the start."""
    explore(config, states_max=STATES)


@pytest.mark.parametrize("config", ANSWERS, ids=_named)
def test_nobody_is_ended_too_often(config: Config) -> None:
    """Whatever the cluster answers, in any order: so many ends of one member an hour, and no more."""
    explore(config, states_max=6_000)


@pytest.mark.parametrize("config", LEADERS, ids=_named)
def test_two_leaders_end_one_at_a_time(config: Config) -> None:
    """An eviction that arrives when another leads, which has acted by then, takes no majority."""
    explore(config, states_max=4_000)


def test_the_explorer_sees_a_member_that_is_ended_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that does not count is found out where the policy does not act."""
    monkeypatch.setattr(disruption, "_too_often", lambda *_: None)
    with pytest.raises(AssertionError, match="was ended 3 times within an hour"):
        explore(Config(faults=2, kinds=("policy", "doom")))


@pytest.mark.parametrize("ordered", [True, False])
def test_the_explorer_sees_a_member_that_cannot_be_made_again(
    monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    """A gate that does not ask is found out, by an ill member or by one that found no node."""
    monkeypatch.setattr(disruption, "not_made_again", lambda *_: None)
    kinds = ("doom", "crash") if ordered else ("doom", "full")
    with pytest.raises(AssertionError, match="is not made again behind" if ordered else "had no node"):
        explore(Config(replicas=5, faults=3, kinds=kinds, ordered=ordered), states_max=20_000)


def test_the_explorer_sees_a_broken_majority(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mover that does not count finds the way to a lost majority, and the explorer tells it."""
    monkeypatch.setattr(PlacementInput, "keeps_majority_without", lambda *_: True)
    config = Config(faults=2, kinds=("doom", "crash"), policy=NONE)
    with pytest.raises(AssertionError, match="an eviction took the majority"):
        explore(replace(config, replicas=3))
