"""Whatever the load and wherever replicas are: few moves at a time, none missing, and an end to it."""

import random

import pytest

from stories.relief.telling import HOUR, MINUTE, ZONE, Story, labelled, playing, spread

_MOST_MOVES = 6  # in ten minutes


async def minutes(story: Story, count: int) -> None:
    """Let time pass, and hold the moves against their bound."""
    begun = [len(story.moves)]
    for _ in range(count):
        await story.wait(MINUTE)
        begun.append(len(story.moves))
        assert begun[-1] - begun[max(0, len(begun) - 10)] <= _MOST_MOVES


@pytest.mark.parametrize("seed", range(4))
async def test_any_load(seed: int) -> None:
    """Loads change for two hours; when they stay as they are, moves end."""
    dice = random.Random(seed)
    names = [f"app-{number}" for number in range(dice.randint(1, 4))]
    workloads = [labelled(name, dice.randint(1, 6)) for name in names]
    async with playing(f"Any load, {seed}", *workloads, on=("spot-0", "spot-1"), seed=seed) as story:
        story.add_nodes(*(f"spot-{number}" for number in range(2, dice.randint(3, 6))))
        for _ in range(12):
            story.uses(**{dice.choice(names).replace("-", "_"): dice.randint(0, 3000)})
            await minutes(story, 10)
        await minutes(story, 180)
        before = len(story.moves)
        await minutes(story, 60)
        assert len(story.moves) == before
        assert story.is_calm()
        story.check()


@pytest.mark.parametrize("seed", range(4))
async def test_any_crowd(seed: int) -> None:
    """No constraint is violated more at the end than at the beginning, and nothing moves for ever."""
    dice = random.Random(seed)
    skew, unless = dice.randint(1, 3), dice.choice(["DoNotSchedule", "ScheduleAnyway"])
    keys = dice.choice([("kubernetes.io/hostname",), ("kubernetes.io/hostname", ZONE)])
    pod = {"topologySpreadConstraints": [spread(key, unless, skew) for key in keys]}
    web = labelled("web", dice.randint(2, 9), pod=pod)
    later = [f"spot-{zone}-{number}" for zone in ("a", "b") for number in range(dice.randint(0, 2))]
    async with playing(f"Any crowd, {seed}", web, on=("spot-0", "spot-1"), seed=seed) as story:
        story.uses(web=100)
        story.add_nodes(*later)
        before = story.violated("web", pod["topologySpreadConstraints"])
        await minutes(story, 240)
        moves = len(story.moves)
        await story.wait(2 * HOUR)
        assert len(story.moves) == moves
        after = story.violated("web", pod["topologySpreadConstraints"])
        assert sum(after) <= sum(before)
        assert len(keys) > 1 or after == [0]
        story.check()
