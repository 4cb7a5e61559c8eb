"""Random lives: the promises hold in any order of events, and a steady state is always reached.

A seed that fails is a story: `Life(seed).run()` plays it again, `life.log` tells its end.
"""

import pytest

from stories.chance import Life
from stories.cluster import LostRaceError
from stories.promises import BrokenPromiseError

LIVES = 240
BATCH = 20


@pytest.mark.parametrize("first", range(0, LIVES, BATCH))
def test_the_promises_hold(first: int) -> None:
    """No write breaks a promise, whoever acts when, and everything comes to rest."""
    for seed in range(first, first + BATCH):
        life = Life(seed)
        try:
            life.run()
        except (BrokenPromiseError, LostRaceError) as broken:
            told = "\n".join(list(life.log)[-40:])
            pytest.fail(f"seed {seed}: {broken}\n{told}")
