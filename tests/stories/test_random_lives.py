"""Random lives: the promises hold in any order of events, and a steady state is always reached.

A seed that fails is a story: `Life(seed).live()` plays it again, and its lines tell what happened. `make
lives` plays more; `SPLITTER_WORLD_LIVES=first:end` names others.
"""

import os

import pytest

from splitter.core import floor_gate, guard
from splitter.core.replica import Pool
from splitter.core.twins import replica_moves
from stories.chance import POLICY, Life
from stories.reported import BrokenPromiseError

pytestmark = pytest.mark.slow

FIRST, END = map(int, os.environ.get("SPLITTER_WORLD_LIVES", "0:40").split(":"))
BATCH = 10


def live(first: int, end: int) -> None:
    """Play lives. Raises BrokenPromiseError with the seed and what happened last."""
    for seed in range(first, end):
        life = Life(seed)
        try:
            life.live()
        except BrokenPromiseError as broken:
            reported = "\n".join(life.lines[-40:])
            raise BrokenPromiseError(f"seed {seed}: {broken}\n{reported}") from None
        finally:
            life.judge.broken.clear()
            life.close()


@pytest.mark.parametrize("first", range(FIRST, END, BATCH))
def test_the_promises_hold(first: int) -> None:
    """No write breaks a promise, whatever acts when, and everything comes to rest."""
    live(first, min(first + BATCH, END))


def test_a_life_is_the_same_again() -> None:
    """The same seed gives the same life."""
    lives = []
    for _ in range(2):
        life = Life(3)
        life.live()
        life.close()
        lives.append(life.lines)
    assert lives[0] == lives[1]


def test_a_step_without_a_floor_takes_nothing_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate counts again what the step forgot to count, in the lives that break without it."""
    monkeypatch.setattr(replica_moves, "floor_of", lambda *_: 0)
    live(0, 10)


def test_a_life_sees_a_plan_without_a_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the first lives breaks without step and gate, so that they can be believed when they do not."""
    monkeypatch.setattr(replica_moves, "floor_of", lambda *_: 0)
    monkeypatch.setattr(floor_gate, "floor_of", lambda *_: 0)
    with pytest.raises(BrokenPromiseError, match=r"is written: .*promise 1"):
        live(0, 10)


def test_a_life_sees_a_write_below_the_floor() -> None:
    """The judge sees what a lowering of both twins costs, so that it can be believed when it sees nothing."""
    life = Life(3)
    life.label(**POLICY)
    life.wait(600)
    for pool in Pool:
        lowered = life.changed(lambda raw: raw["spec"].update(replicas=0), life.twin(pool))
        life.loop.call_later(1.0, lowered)
    life.wait(10)
    assert "promise 1" in life.judge.broken[0]
    life.judge.broken.clear()


def test_a_life_sees_an_eviction_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget that keeps nothing is no guard."""
    monkeypatch.setattr(guard, "_min_available", lambda *_: (0, ""))
    life = Life(3)
    life.label(**POLICY)
    life.scale(8)
    life.wait(600)
    node = max(life.scene.nodes(), key=lambda name: len(life.scene.on(name)))
    assert len(life.scene.on(node)) > 1
    life.happens(f"kubectl drain {node}", lambda: life.begin_drain(node))
    life.wait(60)
    assert "was evicted" in life.judge.broken[0]
    life.judge.broken.clear()


def test_a_life_sees_a_budget_that_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """At rest it is held against N."""
    monkeypatch.setattr(guard, "_min_available", lambda *_: (0, ""))
    with pytest.raises(BrokenPromiseError, match="web-guard keeps 0, not"):
        live(0, 10)
