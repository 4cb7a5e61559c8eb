"""A new replica that comes to no better place is taken back, and that is remembered."""

from collections.abc import Callable

import pytest

from stories.relief.telling import HOUR, MINUTE, Story, labelled, playing, spread
from world.cluster import POOL
from world.kinds import NODES, SPLITS, Ref
from world.metrics import GROUP
from world.objects import Event
from world.workloads import changed

PREFERRED = {"spot-affinity": "preferred"}


def when_it_begins(story: Story, happens: Callable[[], None]) -> None:
    """Have something happen between the decision and the raise of the first move."""
    begun: list[str] = []

    def look(event: Event) -> None:
        if not begun and ((event.new.get("status") or {}).get("relief") or {}).get("moves"):
            begun.append(event.ref.name)
            happens()

    story.cluster.objects.follow(SPLITS, look)


async def tried_again_with_another_node(story: Story, aim: str) -> None:
    """Nothing is tried again while all is as it was; another node changes that."""
    await story.wait(2 * HOUR)
    [move] = story.relief()["moves"]
    assert (move["takenBack"], bool(move["stand"]), move["aim"]) == (True, True, aim)
    assert "a move has not helped, and is tried again when" in story.relief()["message"]
    story.check()
    await story.restart()
    await story.wait(HOUR)
    assert len(story.moves) == 1
    story.add_nodes("spot-9")
    await story.says("Relieved")
    await story.wait(MINUTE)
    assert list(story.moves.values()) == [aim] * 2
    assert not story.relief()["moves"][-1].get("takenBack")
    story.check()


async def test_what_was_to_come_to_spot_and_does_not() -> None:
    """Spot is full when it comes: it is on on-demand again."""
    web = labelled("web", 4, wishes=PREFERRED)
    on = ("on-demand-0", "on-demand-1")
    async with playing("To spot, which is full by then", web, on=on, closed=("spot-0",), spare=0) as story:
        story.uses(web=100)
        when_it_begins(story, lambda: story.fill("spot-0"))
        story.cordon("spot-0", closed=False)
        await story.says("stands on on-demand, too")
        story.fill("spot-0", full=False)
        await tried_again_with_another_node(story, "spot")
        story.keep("to-spot-undone")


async def test_what_was_to_be_spread_and_is_not() -> None:
    """The empty node is full when it comes: it is spread no better."""
    web = labelled("web", 6, pod={"topologySpreadConstraints": [spread(unless="ScheduleAnyway")]})
    async with playing("To a node that is full by then", web, on=("spot-0", "spot-1")) as story:
        story.uses(web=100)
        when_it_begins(story, lambda: story.fill("spot-2"))
        story.add_nodes("spot-2")
        await story.says("stands where it is spread no better")
        story.fill("spot-2", full=False)
        await tried_again_with_another_node(story, "spread")
        story.keep("spread-undone")


async def test_off_a_hot_node_it_may_end_on_on_demand() -> None:
    """If the twin only prefers spot: it was to leave the hot node, and has."""
    async with playing("Off a hot node to on-demand", labelled("web", 6, wishes=PREFERRED)) as story:
        story.uses(web=1200)
        when_it_begins(story, lambda: story.fill("spot-1"))
        story.add_nodes("spot-1")
        await story.says("Relieved")
        await story.wait(MINUTE)
        assert story.on()["spot-0"] == 5
        assert sum(count for node, count in story.on().items() if node.startswith("on-demand")) == 1
        story.check()


async def test_a_placeholder_that_finds_no_node() -> None:
    """After ten seconds the move goes on without it."""
    async with playing("A placeholder that finds no node", labelled("web", 6)) as story:
        story.fill("spot-0")
        story.uses(web=1200)
        story.add_nodes("spot-1")
        await story.says("Relieved")
        await story.wait(5 * MINUTE)
        assert story.on() == {"spot-0": 5, "spot-1": 1}
        assert story.is_calm()
        story.check()
        story.keep("no-place-for-a-hint")


async def test_off_by_default() -> None:
    """A workload that asks for nothing is not moved, and nothing is written about it."""
    async with playing("No relief is asked for", labelled("web", 6, relief="")) as story:
        story.uses(web=1200)
        story.add_nodes("spot-1")
        await story.wait(HOUR)
        assert story.on() == {"spot-0": 6}
        assert story.relief() == {}
        assert not [path for _, _, path in story.api.asked if GROUP in path]


def belongs_to(story: Story, pool: str, *names: str) -> None:
    """Have machines be of another pool, with all that runs there."""
    for name in names:
        changed(
            story.cluster, Ref(NODES, "", name), lambda raw: raw["metadata"]["labels"].update({POOL: pool})
        )
        story.say(f"{name} is of {pool}")


@pytest.mark.parametrize("asked", ["", "cpu=85"])
async def test_pods_in_the_other_pool_come_back(asked: str) -> None:
    """One after the other, and no one has to ask for it."""
    async with playing(f"Pods in the other pool, relief {asked}", labelled("web", 4, relief=asked)) as story:
        story.uses(web=100)
        story.add_nodes("spot-1")
        belongs_to(story, "on-demand", "spot-0")
        await story.says("stands on an on-demand node, where web-spot starts none")
        await story.wait(HOUR)
        assert story.on() == {"spot-1": 4}
        assert set(story.moves.values()) == {"pool"}
        assert story.is_calm()
        story.check()
        if not asked:
            story.keep("pool")


async def test_pods_of_on_demand_leave_spot() -> None:
    """They were to be safe; it costs no loss of spot."""
    web = labelled("web", 4, relief="", wishes={"on-demand-base": "4"})
    async with playing("On-demand replicas on spot", web, on=("on-demand-0",), spare=0) as story:
        story.add_nodes("on-demand-1", "spot-0")
        belongs_to(story, "spot", "on-demand-0")
        await story.wait(2 * HOUR)
        assert story.on() == {"on-demand-1": 4}
        assert "lastLoss" not in story.status("web")["memory"]["rebalance"]
        story.check()


async def test_pods_in_the_other_pool_it_dies_before_each_write() -> None:
    """The next process goes on."""
    async with playing("Death among pods in the other pool", labelled("web", 8, relief="")) as story:
        story.add_nodes("spot-1")
        belongs_to(story, "on-demand", "spot-0")
        for write in range(6):
            await story.dies_before(write)
            story.check()
        await story.wait(2 * HOUR)
        assert story.on() == {"spot-1": 8}
        assert story.is_calm()
        story.check()


async def test_pods_in_the_other_pool_stay() -> None:
    """While spot has no room or counts are frozen, nothing moves, and the Split says why."""
    async with playing("Pods that stay in the other pool", labelled("web", 4, relief="")) as story:
        belongs_to(story, "on-demand", "spot-0")
        await story.says("pods of web-spot stay on on-demand nodes: no spot node has room for them")
        story.annotate("web", freeze="true")
        story.add_nodes("spot-1")
        await story.says("the counts stay as they are (splitter.io/freeze, splitter.io/dry-run)")
        await story.wait(HOUR)
        assert not story.moves
        story.annotate("web", freeze="")
        await story.says("Relieved")
        story.check()
        story.keep("pool-stays")
