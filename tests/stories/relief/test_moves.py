"""A move ends for what is more important, and goes on after the process has died at any of its writes."""

from collections.abc import Callable
from typing import Final

import pytest

from stories.relief.telling import HOUR, MINUTE, Story, labelled, playing, spread
from world.kinds import DEPLOYMENTS, PODS, SPLITS, Raw, Ref
from world.objects import Event
from world.workloads import changed

N: Final = 6
SLOW: Final = {"sandbox.splitter.io/ready-after": "3m"}
COST: Final = "controller.kubernetes.io/pod-deletion-cost"


def rewritten(story: Story, change: Callable[[Raw], None]) -> None:
    """Write the Deployment as its user does."""
    changed(story.cluster, Ref(DEPLOYMENTS, "shop", "web"), change)


def scale(story: Story) -> None:
    """Have ten replicas."""
    story.scale("web", 10)


def roll(story: Story) -> None:
    """Have another image."""
    rewritten(story, lambda raw: raw["spec"]["template"]["spec"]["containers"][0].update(image="web:2"))


def take_surge(story: Story) -> None:
    """Have no room for one more."""
    rolling = {"maxSurge": 0, "maxUnavailable": 1}
    rewritten(story, lambda raw: raw["spec"]["strategy"].update(rollingUpdate=rolling))


def turn_off(story: Story) -> None:
    """Ask for no relief any more."""
    story.annotate("web", relief="")


def give_back(story: Story) -> None:
    """Take the label away."""
    rewritten(story, lambda raw: raw["metadata"]["labels"].clear())


def notice(story: Story) -> None:
    """Announce that the hot node goes."""
    story.cluster.taint("spot-0", [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}])


async def begun(story: Story) -> None:
    """Have a move begin that takes three minutes."""
    story.uses(web=1200)
    story.add_nodes("spot-1", "spot-2")
    await story.says("Relieving")
    await story.wait(30.0)


@pytest.mark.parametrize(
    ("what", "ends"),
    [
        (turn_off, "relief is not asked for any more"),
        (scale, "its counts are changed"),
        (roll, "it is rolled out"),
        (take_surge, "its maxSurge is 0"),
        (notice, "a node under it is going or gone"),
    ],
)
async def test_ends_for_what_is_more_important(what: Callable[[Story], None], ends: str) -> None:
    """The extra replica goes, or is of use; nothing is left of the move, and no replica is missing."""
    async with playing("Something more important", labelled("web", N, of_pods=SLOW)) as story:
        await begun(story)
        before = story.fewest["web"]
        what(story)
        await story.says(ends)
        story.uses(web=100)
        await story.wait(2 * HOUR)
        assert story.is_calm()
        assert before == 0
        assert len(story.moves) == 1
        if what in {turn_off, take_surge, notice}:
            story.check(more=2 * N)


async def test_given_back_in_the_middle() -> None:
    """It has its own replicas, and nothing of a move is on them."""
    async with playing("Given back in the middle of a move", labelled("web", N, of_pods=SLOW)) as story:
        await begun(story)
        give_back(story)
        await story.until(lambda: not story.cluster.objects.all(SPLITS), HOUR)
        await story.wait(10 * MINUTE)
        pods = story.cluster.objects.all(PODS, "shop")
        assert len(pods) == N
        written = [key for pod in pods for key in pod["metadata"].get("annotations") or {}]
        assert set(written) == set(SLOW)
        story.check()


async def test_frozen_in_the_middle() -> None:
    """All counts stay while it is frozen; afterwards the extra one goes."""
    async with playing("Frozen in the middle of a move", labelled("web", N, of_pods=SLOW)) as story:
        await begun(story)
        story.annotate("web", freeze="true")
        await story.wait(HOUR)
        assert len(story.pods()) == N + 1
        story.uses(web=100)
        story.annotate("web", freeze="")
        await story.wait(HOUR)
        assert story.is_calm()
        story.check()
        story.keep("frozen")


async def test_a_new_replica_that_is_never_ready() -> None:
    """It goes after the time that it may take, and the old one stays; both twice."""
    async with playing("A new replica that is never ready", labelled("web", N)) as story:

        def fall_ill(event: Event) -> None:
            if event.old is None:
                story.cluster.machines.ill.add(event.new["metadata"]["uid"])

        story.cluster.objects.follow(PODS, fall_ill)
        story.uses(web=1200)
        story.add_nodes("spot-1", "spot-2")
        await story.says("the new replica did not become ready")
        await story.wait(20 * MINUTE)
        assert story.on() == {"spot-0": N}
        assert story.is_calm()
        story.check()
        story.keep("never-ready")


async def test_no_node_is_bought() -> None:
    """A new replica that the scheduler finds no node for goes again at once."""
    async with playing("No node is bought for relief", labelled("web", N)) as story:

        def close(event: Event) -> None:
            if (event.new["status"].get("relief") or {}).get("moves"):
                story.cluster.taint("spot-1", [{"key": "full", "effect": "NoSchedule"}])
                story.cluster.taint("spot-0", [{"key": "full", "effect": "NoSchedule"}])

        story.cluster.objects.follow(SPLITS, close)
        story.uses(web=1200)
        story.add_nodes("spot-1")
        await story.says("the new replica did not become ready")
        await story.wait(5 * MINUTE)
        assert story.on() == {"spot-0": N}
        story.check()
        story.keep("no-node")


@pytest.mark.parametrize("cost", ["5", "-5000"])
async def test_costs_of_the_users(cost: str) -> None:
    """A cost is as it was after a move that is taken back; beside one as low as splitter's none begins."""
    async with playing(
        f"A pod-deletion-cost of the user's: {cost}", labelled("web", N, of_pods=SLOW)
    ) as story:
        for pod in story.pods() if cost == "5" else story.pods()[:1]:
            changed(
                story.cluster,
                Ref(PODS, "shop", pod["metadata"]["name"]),
                lambda raw: raw["metadata"].setdefault("annotations", {}).update({COST: cost}),
            )
        await (begun(story) if cost == "5" else story.wait(0.0))
        story.uses(web=1200)
        story.add_nodes("spot-1", "spot-2")
        if cost == "5":
            await story.wait(HOUR / 2)
            turn_off(story)
            await story.wait(HOUR / 2)
            costs = [pod["metadata"]["annotations"].get(COST) for pod in story.pods()]
            assert costs.count("5") >= N - len(story.moves)
            assert set(costs) <= {"5", None}
        else:
            await story.says("another replica has as low a pod-deletion-cost")
            await story.wait(HOUR)
            assert not story.moves
        assert not [pod for pod in story.pods() if "cost-before" in str(pod["metadata"])]
        story.check()


@pytest.mark.parametrize("late", [False, True])
async def test_off_a_hot_node_it_dies_before_each_write(*, late: bool) -> None:
    """A replica goes to and fro as agents heat one node and the other: none is missing, none too many.

    `late`: the write at which the process died comes to pass under the next one.
    """
    async with playing("Death before each write", labelled("web", 1)) as story:
        story.add_nodes("spot-1")
        story.uses(web=2000)
        for write in range(10):
            [there] = story.on()
            [other] = {"spot-0", "spot-1"} - {there}
            story.hog(there, 5000)
            story.hog(other, 100)
            await story.dies_before(write, late=late)
            await story.wait(2 * HOUR)
            assert list(story.on()) == [other]
            assert story.is_calm()
            story.check()
        assert "lastLoss" not in story.status("web")["memory"]["rebalance"]


@pytest.mark.parametrize("aim", ["spot", "spread"])
async def test_for_a_better_place_it_dies_before_each_write(aim: str) -> None:
    """Eight that prefer spot, or six that crowd two of four nodes: each moves, at whatever write it dies."""
    pod = {"topologySpreadConstraints": [spread(unless="ScheduleAnyway")]}
    prefers = labelled("web", 8, wishes={"spot-affinity": "preferred"})
    web = prefers if aim == "spot" else labelled("web", 14, pod=pod)
    on, later = (
        (("on-demand-0", "on-demand-1"), ("spot-0",))
        if aim == "spot"
        else (("spot-0", "spot-1"), ("spot-2", "spot-3"))
    )
    async with playing(f"Death before each write: {aim}", web, on=on, closed=later) as story:
        story.uses(web=100)
        story.cordon(*later, closed=False)
        for write in range(7):
            await story.dies_before(write)
            story.check()
        await story.wait(4 * HOUR)
        assert story.is_calm()
        assert max(story.on().values()) == (8 if aim == "spot" else 4)
        assert set(story.moves.values()) == {aim}
        story.check()
