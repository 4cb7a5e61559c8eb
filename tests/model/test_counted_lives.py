"""Random lives in the abstract world: the promises hold in any order of events, and all comes to rest.

They cost less than those in `stories/test_random_lives.py`, and play what those do not yet: a wrong clock,
an autoscaler, users' budgets. A seed that fails is a story: `Life(seed).run()` plays it again, `life.log`
tells its end. `make lives` plays 20,000; `SPLITTER_LIVES=first:end` names others.
"""

import os

import pytest

from model import budgets
from model.chance import Life
from model.cluster import LostRaceError
from model.promises import BrokenPromiseError
from splitter.core import guard
from splitter.core.twins import replica_moves

pytestmark = pytest.mark.slow

FIRST, END = map(int, os.environ.get("SPLITTER_LIVES", "0:60").split(":"))
BATCH = 20


@pytest.mark.parametrize("first", range(FIRST, END, BATCH))
def test_the_promises_hold(first: int) -> None:
    """No write breaks a promise, whoever acts when, and everything comes to rest."""
    for seed in range(first, min(first + BATCH, END)):
        life = Life(seed)
        try:
            life.run()
        except (BrokenPromiseError, LostRaceError) as broken:
            reported = "\n".join(list(life.log)[-40:])
            pytest.fail(f"seed {seed}: {broken}\n{reported}")


def test_a_life_sees_a_write_below_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a floor one of some lives breaks, so that they can be believed when they do not."""

    def live() -> None:
        for seed in range(20, 60):
            Life(seed).run()

    monkeypatch.setattr(replica_moves, "floor_of", lambda *_: 0)
    with pytest.raises(BrokenPromiseError, match="promise 1"):
        live()


def test_a_life_sees_an_eviction_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget that keeps nothing is no guard."""

    def live() -> None:
        for seed in range(100):
            Life(seed).run()

    monkeypatch.setattr(guard, "_min_available", lambda *_: (0, "", None))
    monkeypatch.setattr(budgets, "unsettled", lambda _: [])
    with pytest.raises(BrokenPromiseError, match="was evicted"):
        live()
