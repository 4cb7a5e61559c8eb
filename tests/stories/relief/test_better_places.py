"""Replicas that prefer spot come to spot, those that crowd a node or zone are spread; then nothing moves."""

import pytest

from stories.relief.telling import HOUR, MINUTE, ZONE, labelled, playing, spread

PREFERRED = {"spot-affinity": "preferred"}
HELD = ("on-demand-0", "on-demand-1")


async def test_what_prefers_spot_comes_to_spot() -> None:
    """One after the other, when spot has had room for all of its soak; in the hours after nothing moves."""
    web = labelled("web", 4, wishes=PREFERRED)
    async with playing("What prefers spot comes to spot", web, on=HELD, closed=("spot-0",), spare=0) as story:
        story.uses(web=100)
        assert "no spot node has room" in story.lines[-2]
        story.cordon("spot-0", closed=False)
        await story.wait(5 * MINUTE)
        story.cordon("spot-0")
        await story.wait(5 * MINUTE)
        story.cordon("spot-0", closed=False)
        await story.says("spot has had room for 600 s")
        await story.wait(3 * HOUR)
        assert story.on() == {"spot-0": 4}
        assert list(story.moves.values()) == ["spot"] * 4
        story.check()
        story.keep("to-spot")


async def test_to_the_other_pool_and_back() -> None:
    """What is added while spot is full comes to on-demand, and back when spot has had room for the soak."""
    async with playing("To the other pool and back", labelled("web", 4, wishes=PREFERRED)) as story:
        story.uses(web=100)
        story.fill("spot-0")
        story.scale("web", 6)
        await story.wait(HOUR)
        assert story.on()["spot-0"] == 4
        assert len(story.pods()) == 6
        story.fill("spot-0", full=False)
        await story.wait(3 * HOUR)
        assert story.on() == {"spot-0": 6}
        assert set(story.moves.values()) == {"spot"}
        assert story.is_calm()
        story.keep("other-pool")


@pytest.mark.parametrize("unless", ["DoNotSchedule", "ScheduleAnyway"])
async def test_nodes_that_came_later_are_used(unless: str) -> None:
    """As few moves as it takes, and none after that."""
    web = labelled("web", 6, pod={"topologySpreadConstraints": [spread(unless=unless)]})
    async with playing(f"Nodes that came later, {unless}", web, on=("spot-0", "spot-1")) as story:
        story.uses(web=100)
        story.add_nodes("spot-2")
        await story.wait(3 * HOUR)
        assert story.on() == {"spot-0": 2, "spot-1": 2, "spot-2": 2}
        assert list(story.moves.values()) == ["spread"] * 2
        story.check()
        story.keep(f"spread-{unless}".lower())


async def test_a_zone_that_came_later_is_used() -> None:
    """Within the zones the nodes stay as even as they were."""
    web = labelled("web", 6, pod={"topologySpreadConstraints": [spread(), spread(ZONE)]})
    async with playing("A zone that came later", web, on=("spot-0", "spot-1")) as story:
        story.uses(web=100)
        story.add_nodes("spot-b-0", "spot-b-1")
        await story.wait(4 * HOUR)
        assert sorted(story.on().values()) == [1, 1, 2, 2]
        assert story.on()["spot-0"] + story.on()["spot-1"] == 3
        story.check()
