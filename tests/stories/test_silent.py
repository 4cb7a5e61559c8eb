"""Nodes are silent, or about to go, for ever: pods tolerate it, and nobody removes them."""

import pytest

from splitter.core.model import Pool
from stories.cluster import Pod
from stories.counting import Story
from stories.promises import traces
from stories.reconciles import RESYNC_S


def silent(*names: str, spot_nodes: int) -> Story:
    """Return a story of a workload of 10 that has lost nodes half an hour ago, and is looked at again."""
    story = Story("Nodes fall silent for ever", spot_nodes=spot_nodes)
    story.cluster.tolerates_silence = True
    story.label(on_demand_base="2")
    story.wait(600)
    for name in names:
        story.cluster.unready(name)
    story.happens(f"{' and '.join(names)} fall silent")
    look(story, 1800)
    return story


def look(story: Story, seconds: int) -> None:
    """Let time pass, with a look at everything now and then, as splitter has by itself."""
    for _ in range(seconds // RESYNC_S):
        story.wait(RESYNC_S)
        story.happens("it is looked at again")


def spec(story: Story) -> tuple[int, int]:
    """Return the counts of both twins."""
    return story.cluster.twins[Pool.ON_DEMAND].replicas, story.cluster.twins[Pool.SPOT].replicas


def pods_of(story: Story) -> list[Pod]:
    """Return all pods that there are now."""
    return list(story.cluster.pods.values())


def test_others_take_their_place() -> None:
    """Two spot nodes are left, with room for all: the dead make room, and spot returns after its soak."""
    story = silent("spot-a", spot_nodes=3)
    look(story, 1800)
    assert story.available() == 10
    assert spec(story) == (2, 8)


def test_spot_is_asked_for() -> None:
    """No spot node is left: a replica waits for one, as after any loss, and is no dead one."""
    story = silent("spot-a", spot_nodes=1)
    waiting = [pod for pod in story.cluster.pods.values() if pod.active and pod.node is None]
    assert [pod.label for pod in waiting] == [Pool.SPOT]
    story.add_spot("spot-b")
    look(story, 3600)
    assert spec(story) == (2, 8)


def test_a_dead_node_does_not_get_one_after_the_other() -> None:
    """What tolerates everything is bound to it again: each time it is tried after twice as long."""
    story = Story("The only spot node falls silent, and has room", spot_nodes=1)
    story.cluster.tolerates_silence = story.cluster.tolerates_everything = True
    story.cluster.nodes["spot-a"].slots = 40
    story.label(on_demand_base="2")
    story.wait(600)
    story.cluster.unready("spot-a")
    story.happens("it falls silent")
    on_spot = sum(pod.node == "spot-a" for pod in story.cluster.pods.values())
    look(story, 6 * 3600)
    assert story.available() == 10
    ended = sum(not pod.active for pod in story.cluster.pods.values())
    assert on_spot < ended <= on_spot + 6


def test_who_replaces_it_is_bound_there_too() -> None:
    """A silent on-demand node is the only one with room: N more are tried there, and no more."""
    story = Story("What tolerates everything has nowhere else to go")
    story.cluster.tolerates_silence = story.cluster.tolerates_everything = True
    story.label(on_demand_base="4")
    story.wait(600)
    pods = story.cluster.pods.values()
    story.cluster.nodes["od-1"].slots = 200
    story.cluster.nodes["od-2"].slots = sum(pod.node == "od-2" for pod in pods)
    there = sum(pod.node == "od-1" for pod in pods)
    story.cluster.unready("od-1")
    story.happens("it falls silent")
    look(story, 3600)
    assert spec(story) == (4 + there + 10, 6)
    story.cluster.nodes["od-2"].slots = 40
    story.happens("there is room elsewhere")
    look(story, 3600)
    assert spec(story)[0] <= 4 + there + 10


def test_two_nodes_go_one_after_the_other() -> None:
    """Who replaced those of the first is replaced as well: that is no second try."""
    story = Story("Two on-demand nodes are cordoned in a row", spot_nodes=0)
    story.label(on_demand_base="10")
    story.wait(600)
    story.notice("od-1")
    story.wait(60)
    story.cluster.add_node("od-3", spot=False, slots=40)
    story.notice("od-2")
    story.wait(60)
    assert sum(pod.node == "od-3" and pod.active for pod in pods_of(story)) == 10


@pytest.mark.parametrize("node", ["od-1", "spot-a"])
@pytest.mark.parametrize("frozen", [False, True])
def test_what_is_about_to_go_for_ever(node: str, *, frozen: bool) -> None:
    """A taint that somebody has left behind: it is given back all the same, once nothing is to be covered."""
    story = Story("A notice that nothing comes of")
    story.label(on_demand_base="2", **({"freeze": "true"} if frozen else {}))
    story.wait(600)
    story.notice(node)
    story.unlabel()
    story.wait(120)
    assert traces(story.cluster) == []
    assert len([pod for pod in story.cluster.pods.values() if pod.active]) == 10
    assert story.available() == 10 or frozen


def test_another_that_would_go_first() -> None:
    """A user's own deletion cost is as low as ours: given back at once, a doomed one would stay."""
    story = Story("A notice beside pods that are to go first")
    story.label(on_demand_base="2")
    story.wait(600)
    for pod in story.cluster.pods.values():
        pod.cost = "-2000" if pod.node == "od-1" else None
    story.notice("spot-a")
    story.unlabel()
    story.wait(30)
    assert traces(story.cluster)
    story.wait(90)
    assert traces(story.cluster) == []
    assert story.available() == 10


@pytest.mark.parametrize("spot_nodes", [1, 3])
def test_it_is_given_back(spot_nodes: int) -> None:
    """As soon as what was lost is covered: the dead may stay for ever."""
    story = Story("Nodes fall silent for ever", spot_nodes=spot_nodes)
    story.cluster.tolerates_silence = True
    story.label(on_demand_base="2")
    story.wait(600)
    story.cluster.unready("spot-a")
    story.happens("spot-a falls silent")
    story.wait(60)
    story.unlabel()
    story.wait(60)
    assert traces(story.cluster) == []
    assert story.available() == 10


def test_a_roll_that_finds_no_node() -> None:
    """Its replicas wait for spot, which does not come: it is given back without waiting for them."""
    story = Story("A roll without nodes", surge=3, unavailable=0)
    story.label(on_demand_base="2", grace="60s")
    story.wait(600)
    for name in ("spot-a", "spot-b", "spot-c"):
        story.cluster.unready(name)
    story.happens("all spot falls silent")
    story.wait(30)
    story.set_image("v2")
    story.wait(120)
    spot = story.cluster.twins[Pool.SPOT]
    assert len([rs for rs in story.cluster.owned_by(spot) if rs.spec]) == 2
    story.unlabel()
    look(story, 600)
    assert traces(story.cluster) == []


def test_a_roll_whose_replicas_are_dead() -> None:
    """A node falls silent under the surge: the roll goes on with the source's own maxUnavailable (H64)."""
    story = Story("A node falls silent in a roll", surge=3, unavailable=2)
    story.cluster.tolerates_silence = True
    story.label(on_demand_base="2")
    story.wait(900)
    story.set_image("v2")
    story.wait(15)
    [name] = {
        pod.node
        for pod in story.cluster.pods.values()
        if pod.template == "v2|spot" and pod.ready_since is None and pod.node == "spot-b"
    }
    story.cluster.unready(name or "")
    story.happens("spot-b falls silent")
    look(story, 2 * 3600)
    assert spec(story) == (2, 8)
    assert story.available() == 10
    assert {pod.template.partition("|")[0] for pod in story.cluster.pods.values() if pod.active} == {"v2"}
    assert story.promises.least_available >= 8
