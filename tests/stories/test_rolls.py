"""Counts change in the middle of a roll: a surge keeps its place in N + S, and what serves stays."""

import pytest

from splitter.core.replica import Pool
from stories.director import Story
from stories.words import images
from world.kinds import PODS, Ref
from world.pods import is_ready

BROKEN = "web:2-broken"


def stuck(order: str, percent: str) -> Story:
    """Return a story of a workload whose rollout stands still in the first twin, beside one surge pod."""
    story = Story("A rollout stands still", replicas=6, surge=1, unavailable=0)
    story.label(on_demand_base="1", spot_percent=percent, rollout_order=order)
    story.wait(1200)
    story.set_image(BROKEN)
    story.wait(300)
    assert sum(images(pod["spec"]) == BROKEN for pod in story.scene.pods()) == 1
    return story


class TestAnotherDivision:
    """The policy asks for another division while a rollout stands still."""

    @pytest.mark.parametrize(("order", "percent"), [("spot-first", "0"), ("on-demand-first", "100")])
    def test_leaves_room_for_the_surge(self, order: str, percent: str) -> None:
        """The surge pod is there, ready or not: nothing else takes its place (promise 2, at every step)."""
        story = stuck(order, "50")
        story.annotate(spot_percent=percent)
        story.wait(600)
        assert story.judge.most_placed == 7
        assert story.judge.least_available == 6

    @pytest.mark.parametrize("order", ["spot-first", "on-demand-first"])
    def test_goes_on_afterwards(self, order: str) -> None:
        """A good image ends the rollout, and the division comes."""
        story = stuck(order, "50")
        story.annotate(spot_percent="0")
        story.set_image("web:3")
        story.wait(3600)
        assert story.scene.counts() == (6, 0)
        assert story.judge.most_placed == 7


@pytest.mark.parametrize(
    ("replicas", "surge", "base"), [(6, 1, 1), (6, 2, 1), (6, 3, 1), (6, 9, 1), (6, 12, 2), (8, 12, 3)]
)
def test_spot_comes_back_while_a_rollout_stands_still(replicas: int, surge: int, base: int) -> None:
    """On-demand is lowered as far as is safe in the middle of a roll, again and again."""
    story = Story("An image that cannot be pulled, and an outage", replicas, surge, unavailable=0)
    story.label(on_demand_base=str(base), rollout_order="on-demand-first")
    story.wait(1200)
    story.set_image(BROKEN)
    story.wait(300)
    story.notice("spot-a", "spot-b", "spot-c")
    story.wait(60)
    story.vanish("spot-a", "spot-b", "spot-c")
    story.wait(600)
    assert story.available() == story.scene.counts()[0] == replicas
    story.judge.least_available = replicas
    story.add_spot("spot-d", "spot-e", "spot-f")
    story.wait(7200)
    assert story.scene.counts() == (base, replicas - base)
    assert story.judge.least_available == replicas


@pytest.mark.parametrize("unavailable", [1, 2])
def test_a_notice_that_lasts_does_not_take_a_roll_back_again_and_again(unavailable: int) -> None:
    """Without a surge a roll begins with fewer than N; that is no reason to put the last template back."""
    story = Story("A roll beside nodes that somebody has cordoned", surge=0, unavailable=unavailable)
    story.label(on_demand_base="2")
    story.wait(600)
    story.notice("spot-a", "spot-b", "spot-c")
    story.wait(30)
    before = len(story.lines)
    story.set_image("web:2")
    story.wait(900)
    assert not [line for line in story.lines[before:] if "put the template" in line]
    assert images(story.scene.twins[Pool.ON_DEMAND]["spec"]) == "web:2"
    assert story.available() == 10


@pytest.mark.parametrize("order", ["on-demand-first", "spot-first"])
@pytest.mark.parametrize("base", ["2", "6"])
@pytest.mark.parametrize("full", ["nodes", "quota"])
def test_a_surge_without_room_does_not_stop_a_roll(full: str, base: str, order: str) -> None:
    """The source's own maxUnavailable lets it go on, in the twin that is rolled first, too (H64)."""
    story = Story("A roll without room", surge=3, unavailable=2)
    story.label(on_demand_base=base, rollout_order=order)
    story.wait(900)
    if full == "quota":
        story.limit_pods(10)
    if full == "nodes":
        names = ("od-1", "od-2", "spot-a", "spot-b", "spot-c")
        taken = {name.replace("-", "_"): len(story.scene.on(name)) for name in names}
        story.act(story.headroom(**taken))
    story.set_image("web:2")
    story.wait(900)
    assert story.scene.images() == {"web:2"}
    assert story.available() == 10
    assert story.judge.least_available >= 8


@pytest.mark.parametrize(("surge", "unavailable"), [(3, 2), (0, 2)])
def test_a_probe_that_a_quota_refuses_stops_no_roll(surge: int, unavailable: int) -> None:
    """Spot is gone, on-demand has all that the quota allows: a new image comes all the same."""
    story = Story("A roll while spot is away and the quota full", surge=surge, unavailable=unavailable)
    story.label(on_demand_base="2")
    story.wait(900)
    story.limit_pods(10)
    story.vanish("spot-a", "spot-b", "spot-c")
    story.wait(300)
    story.set_image("web:2")
    story.wait(900)
    assert {images(pod["spec"]) for pod in story.scene.on("od-")} == {"web:2"}
    assert story.available() == 10


def partly_short(
    surge: int, unavailable: int, order: str, *, replicas: int = 10, on_demand: int = 40
) -> Story:
    """Return a workload of which spot has room for all but two, for good; on-demand covers what it can."""
    story = Story("Spot is partly short, then an image change", replicas, surge, unavailable)
    story.label(on_demand_base="0", rollout_order=order)
    story.wait(900)
    story.act(story.headroom(spot_a=replicas - 2, od_1=on_demand))
    story.vanish("spot-b", "spot-c", "od-2")
    story.wait(1800)
    story.judge.least_available = replicas
    return story


def old(story: Story) -> int:
    """Count the pods of the old image that serve."""
    return sum(images(pod["spec"]) == "web:1" and is_ready(pod) for pod in story.scene.pods())


@pytest.mark.parametrize("order", ["on-demand-first", "spot-first"])
@pytest.mark.parametrize(("surge", "unavailable"), [(3, 2), (3, 1), (1, 1), (0, 1), (0, 2)])
def test_a_roll_ends_while_spot_is_partly_short(surge: int, unavailable: int, order: str) -> None:
    """Kubernetes counts those that are missing already among what may be unavailable (H64)."""
    story = partly_short(surge, unavailable, order)
    story.set_image("web:2")
    story.wait(1800)
    assert old(story) == 0
    assert story.judge.least_available >= 10 - unavailable


@pytest.mark.parametrize("quota", [10, 11, 12])
def test_a_roll_ends_while_spot_is_partly_short_and_the_quota_full(quota: int) -> None:
    """Neither the Pending replicas nor those that are refused keep the old image, if two fit beside N.

    With less the Pending surge replicas of spot may hold what on-demand needs: that is said.
    """
    story = partly_short(3, 2, "on-demand-first")
    story.limit_pods(quota)
    story.set_image("web:2")
    story.wait(3600)
    if quota < 12:
        assert "maxUnavailable 2 keeps 8. It goes on when" in story.scene.status["message"]
        assert story.available() >= 8
        story.limit_pods(16)
        story.wait(1800)
    assert old(story) == 0
    assert story.judge.least_available >= 8


@pytest.mark.parametrize("order", ["on-demand-first", "spot-first"])
def test_a_roll_ends_while_both_pools_are_short(order: str) -> None:
    """It begins with fewer than N, since those that are missing may be so for ever."""
    story = partly_short(3, 2, order, on_demand=1)
    assert story.available() == 9
    story.set_image("web:2")
    story.wait(3600)
    assert old(story) == 0
    assert story.judge.least_available >= 8


def test_a_roll_whose_shortage_grows() -> None:
    """What is missing is counted again: the first number would keep the roll where it is."""
    story = partly_short(3, 2, "on-demand-first")
    story.set_image("web:2")
    story.wait(200)
    story.act(story.headroom(spot_a=7))
    pod = Ref(PODS, "shop", story.scene.on("spot-a")[0]["metadata"]["name"])
    story.happens("spot has room for one less", lambda: story.objects.delete(pod))
    story.wait(3600)
    assert old(story) == 0


@pytest.mark.parametrize(("replicas", "surge", "unavailable"), [(10, 1, 0), (3, 1, 0), (10, 3, 2)])
def test_a_roll_ends_or_says_what_it_waits_for(replicas: int, surge: int, unavailable: int) -> None:
    """Where the source lets no more be unavailable, it says so, and goes on by itself."""
    on_demand = 40 if unavailable == 0 else 0
    story = partly_short(surge, unavailable, "spot-first", replicas=replicas, on_demand=on_demand)
    story.set_image("web:2")
    story.wait(1800)
    assert old(story)
    message = story.scene.status["message"]
    assert story.reason() == "WaitingForReplicas"
    assert "surge replicas found no node for 180 s, and none of the" in message
    assert f"maxUnavailable {unavailable} keeps {replicas - unavailable}." in message
    story.add_spot("spot-d")
    story.wait(1800)
    assert old(story) == 0
    assert story.judge.least_available >= replicas - unavailable
