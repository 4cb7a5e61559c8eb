"""A hot node gives replicas to cool ones: one more comes first, and nothing is ever missing."""

import pytest

from stories.relief.telling import HOUR, MINUTE, Story, labelled, playing
from world.admission import refusing
from world.kinds import BUDGETS, NODES, PODS, Ref, path_of
from world.workloads import changed


async def two_leave(story: Story) -> None:
    """Have two cool machines join, and wait until two of six have left a hot one; then nothing moves."""
    story.uses(web=1200)
    story.add_nodes("spot-1", "spot-2")
    await story.says("Relieved")
    await story.says("Relieved")
    await story.wait(HOUR)
    assert story.on() == {"spot-0": 4, "spot-1": 1, "spot-2": 1}
    assert story.is_calm()
    assert len(story.moves) == 2
    story.check()


async def test_one_victim() -> None:
    """Two of six leave, one after the other, until the node is well below its threshold."""
    async with playing("A hot node, and two that are cool", labelled("web", 6)) as story:
        await two_leave(story)
        story.keep("hot-node")


async def test_a_budget_that_allows_nothing() -> None:
    """It is not asked: a ReplicaSet ends the old replica when the new one is ready."""
    async with playing("A hot node under a budget that allows nothing", labelled("web", 6)) as story:
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}
        story.cluster.objects.put(path_of(BUDGETS, "shop", "web"), {"metadata": {}, "spec": spec})
        await two_leave(story)


async def test_on_on_demand() -> None:
    """What covers on-demand is no loss of spot: nothing is charged for it."""
    web = labelled("web", 4, wishes={"on-demand-base": "4"})
    async with playing("A hot on-demand node", web, on=("on-demand-0",), spare=0) as story:
        story.uses(web=1900)
        story.add_nodes("on-demand-1", "spot-0")
        await story.says("Relieved")
        await story.wait(HOUR)
        assert story.on() == {"on-demand-0": 2, "on-demand-1": 2}
        assert "lastLoss" not in story.status("web")["memory"]["rebalance"]
        story.check()


async def test_a_single_replica() -> None:
    """It moves when its node is hot by what others use there, and serves all the time."""
    async with playing("A single replica on a hot node", labelled("web", 1)) as story:
        story.uses(web=2000)
        story.hog("spot-0", 5000)
        story.add_nodes("spot-1")
        await story.says("Relieved")
        await story.wait(HOUR)
        assert story.on() == {"spot-1": 1}
        story.check()
        story.keep("single-replica")


async def test_hot_by_what_nobody_may_move() -> None:
    """A DaemonSet's pod: what would leave is not enough, so nothing does, and that is said."""
    async with playing("A node that is hot by a DaemonSet's pod", labelled("web", 2)) as story:
        story.uses(web=400)
        story.hog("spot-0", 7400)
        story.add_nodes("spot-1")
        await story.says("would not bring it below its threshold")
        await story.wait(2 * HOUR)
        assert story.on() == {"spot-0": 2}
        assert not story.moves
        story.keep("daemonset")


async def test_no_room() -> None:
    """Room by requests is not enough: the other machine would be hot. One that joins is used."""
    async with playing("No node has room by use", labelled("web", 6)) as story:
        story.uses(web=1200)
        story.add_nodes("spot-1")
        story.hog("spot-1", 4500)
        await story.says("no other node of the pool has room, by requests and by use")
        await story.wait(HOUR)
        assert not story.moves
        story.add_nodes("spot-2")
        await story.says("Relieved")
        await story.wait(MINUTE)
        assert story.on() == {"spot-0": 5, "spot-2": 1}
        story.check()
        story.keep("no-room")


async def test_a_quota_that_is_full() -> None:
    """The new replica is refused, and is not waited for; nothing is missing."""
    async with playing("A quota refuses the new replica", labelled("web", 6)) as story:
        story.cluster.quota("pods", 6)
        story.uses(web=1200)
        story.add_nodes("spot-1")
        await story.says("ReliefUndone")
        await story.wait(45 * MINUTE)
        assert story.on() == {"spot-0": 6}
        assert story.is_calm()
        story.check(more=0)
        story.keep("quota")


@pytest.mark.parametrize("hinted", [True, False])
async def test_a_hot_node_that_draws_the_new_replica(*, hinted: bool) -> None:
    """It is asked for least: a placeholder there keeps the new replica off.

    Where none may be made the move is taken back, and is tried again when nodes or replicas have changed.
    """
    own = {"key": "node", "operator": "In", "values": ["spot-0"]}
    drawn = [{"weight": 60, "preference": {"matchExpressions": [own]}}]
    pod = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": drawn}}}
    title = "A hot node draws the new replica" + ("" if hinted else ", and no placeholder may be made")
    async with playing(title, labelled("web", 6, pod=pod)) as story:

        def mark(raw: dict[str, dict[str, dict[str, str]]]) -> None:
            raw["metadata"]["labels"]["node"] = "spot-0"

        changed(story.cluster, Ref(NODES, "", "spot-0"), mark)
        if not hinted:
            rule = refusing("no pause pods", verb="create", kind=PODS, user="splitter")
            story.cluster.objects.rules.append(rule)
        story.uses(web=1200)
        story.add_nodes("spot-1")
        await story.says("Relieved" if hinted else "ReliefUndone")
        await story.wait(5 * MINUTE)
        assert (story.on() == {"spot-0": 5, "spot-1": 1}) is hinted
        story.check()
        if not hinted:
            await story.wait(2 * HOUR)
            assert story.on() == {"spot-0": 6}
            story.check()
        assert story.is_calm()
        story.keep("hint" if hinted else "no-hint")


async def test_several_hot_nodes() -> None:
    """Three at once, of six workloads: six moves in ten minutes at the most, and all come below 70 %."""
    many = [labelled(f"app-{number}", 4) for number in range(6)]
    hot = tuple(f"spot-{number}" for number in range(3))
    async with playing("Three hot nodes, and a limit of six moves in ten minutes", *many, on=hot) as story:
        story.add_nodes(*(f"spot-cool-{number}" for number in range(6)))
        story.uses(**{f"app_{number}": 900 for number in range(6)})
        before = story.use()
        begun: list[int] = []
        for minute in range(60):
            moves = len(story.moves)
            await story.wait(MINUTE)
            begun += [minute] * (len(story.moves) - moves)
        assert max(before[name] for name in hot) > 85
        assert max(story.use().values()) < 70
        assert max(sum(at <= one < at + 10 for one in begun) for at in begun) <= 6
        await story.wait(2 * HOUR)
        assert len(story.moves) == len(begun)
        assert story.is_calm()
        story.check()


async def test_a_restart_forgets_no_bound() -> None:
    """A process each seven minutes: samples are taken again, and moves are remembered by the Splits."""
    async with playing("Restarts all the time", labelled("web", 6)) as story:
        story.uses(web=1200)
        story.add_nodes("spot-1", "spot-2")
        for _ in range(9):
            await story.wait(7 * MINUTE)
            await story.restart()
        assert story.on() == {"spot-0": 4, "spot-1": 1, "spot-2": 1}
        assert len(story.moves) == 2
        story.check()
