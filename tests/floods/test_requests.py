"""What a whole process asks for in a bad state: few requests a second, and no collection again and again.

The figures of docs/performance.md: `PYTHONPATH=tests pytest -n0 -s tests/floods`.
"""

from itertools import pairwise

import pytest

from floods.figures import reported
from floods.process import cluster, lead, now, standing_by
from leaping import passing
from world.api import Api, Watches

pytestmark = pytest.mark.slow

MINUTES_S = 600.0


async def asked_for(api: Api, *namespaces: str) -> None:
    """Assert that a leader asks for little for ten minutes, from the second on."""
    async with standing_by(api, *namespaces) as operator:
        await lead(operator)
        await passing(60.0)
        began_s = now()
        await passing(MINUTES_S)
        reported(api, began_s, MINUTES_S)
        assert sum(api.rates(began_s).values()) < 5 * MINUTES_S
        for listed in api.lists(began_s).values():
            assert all(later - earlier > 9.99 for earlier, later in pairwise(listed))


@pytest.mark.parametrize("watches", ["stay", "end at once", "are too old", "break"])
async def test_watches(watches: Watches) -> None:
    """Whatever is wrong with all of them at once."""
    api = cluster("a", "b")
    api.watches = watches
    await asked_for(api)


async def test_lease() -> None:
    """Every third request for it times out, for an hour; the leader stays the leader, and lists nothing."""
    api = cluster("a", "b")
    api.lease_fails_every = 3
    began_s = now()
    await asked_for(api)
    assert all(len(at) <= 4 for at in api.lists(began_s).values())


async def test_in_two_namespaces() -> None:
    """Each has watches of its own."""
    api = cluster("a", "b")
    api.watches = "end at once"
    await asked_for(api, "a", "b")
