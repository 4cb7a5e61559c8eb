"""Nodes are silent, or about to go, for ever: pods tolerate it, and nobody removes them."""

import pytest

from splitter.core.labels_annotations import LABEL_POOL
from stories.director import Story
from stories.scene import is_rolling
from world.cluster import POOL
from world.kinds import PODS, Raw, Ref
from world.workloads import changed, deployment

SILENT_S = 70  # until Kubernetes says so, and it is covered
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
EVERYTHING = {"operator": "Exists"}


def tolerant(title: str, *tolerations: Raw, spot_nodes: int = 3) -> Story:
    """Return a story of a workload of 10 whose pods stay on nodes that are silent."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    raw = deployment(10, strategy=strategy)
    raw["spec"]["template"]["spec"]["tolerations"] = list(tolerations or (UNREACHABLE,))
    return Story(title, workload=raw, spot_nodes=spot_nodes)


def silent(*names: str, spot_nodes: int) -> Story:
    """Return a story of a workload of 10 that has lost nodes half an hour ago."""
    story = tolerant("Nodes fall silent for ever", spot_nodes=spot_nodes)
    story.label(on_demand_base="2")
    story.wait(600)
    story.silence(*names)
    story.wait(1800)
    return story


def test_others_take_their_place() -> None:
    """Two spot nodes are left, with room for all: the dead make room, and spot returns after its soak."""
    story = silent("spot-a", spot_nodes=3)
    story.wait(1800)
    assert story.available() == 10
    assert story.scene.counts() == (2, 8)


def test_spot_is_asked_for() -> None:
    """No spot node is left: a replica waits for one, as after any loss, and is no dead one."""
    story = silent("spot-a", spot_nodes=1)
    waiting = [pod for pod in story.scene.pods() if not pod["spec"].get("nodeName")]
    assert [pod["metadata"]["labels"][LABEL_POOL] for pod in waiting] == ["spot"]
    story.add_spot("spot-b")
    story.wait(3600)
    assert story.scene.counts() == (2, 8)


def test_a_dead_node_does_not_get_one_after_the_other() -> None:
    """What tolerates everything is bound to it again: each time it is tried after twice as long."""
    story = tolerant("The only spot node falls silent, and has room", EVERYTHING, spot_nodes=1)
    story.act(story.headroom(spot_a=40))
    story.label(on_demand_base="2")
    story.wait(600)
    on_spot = len(story.scene.on("spot-a"))
    story.silence("spot-a")
    story.wait(6 * 3600)
    assert story.available() == 10
    ended = sum("deletionTimestamp" in pod["metadata"] for pod in story.objects.all(PODS, "shop"))
    assert on_spot < ended <= on_spot + 6


def test_who_replaces_it_is_bound_there_too() -> None:
    """A silent on-demand node is the only one with room: N more are tried there, and no more."""
    story = tolerant("What tolerates everything has nowhere else to go", EVERYTHING)
    story.label(on_demand_base="4")
    story.wait(600)
    there = len(story.scene.on("od-1"))
    story.act(story.headroom(od_1=200, od_2=len(story.scene.on("od-2"))))
    story.silence("od-1")
    story.wait(3600)
    assert story.scene.counts() == (4 + there + 10, 6)
    story.happens("there is room elsewhere", story.headroom(od_2=40))
    story.wait(3600)
    assert story.scene.counts()[0] <= 4 + there + 10


def test_two_nodes_go_one_after_the_other() -> None:
    """Who replaced those of the first is replaced as well: that is no second try."""
    story = Story("Two on-demand nodes are cordoned in a row", spot_nodes=0)
    story.label(on_demand_base="10")
    story.wait(600)
    story.notice("od-1")
    story.wait(60)
    story.happens("od-3 comes", lambda: story.cluster.add_node("od-3", {POOL: "on-demand"}, pods=40))
    story.notice("od-2")
    story.wait(60)
    assert len(story.scene.on("od-3")) == 10


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
    assert story.traces() == []
    assert len(story.scene.pods()) == 10
    assert story.available() == 10 or frozen


def test_another_that_would_go_first() -> None:
    """A user's own deletion cost is as low as ours: given back at once, a doomed one would stay."""
    story = Story("A notice beside pods that are to go first")
    story.label(on_demand_base="2")
    story.wait(600)
    cost = {"controller.kubernetes.io/pod-deletion-cost": "-2000"}

    def costs() -> None:
        for pod in story.scene.on("od-1"):
            ref = Ref(PODS, "shop", pod["metadata"]["name"])
            changed(
                story.cluster, ref, lambda raw: raw["metadata"].setdefault("annotations", {}).update(cost)
            )

    story.act(costs)
    story.notice("spot-a")
    story.unlabel()
    story.wait(4)
    assert story.traces()
    story.wait(116)
    assert story.traces() == []
    assert story.available() == 10


@pytest.mark.parametrize("spot_nodes", [1, 3])
def test_it_is_given_back(spot_nodes: int) -> None:
    """As soon as what was lost is covered: the dead may stay for ever."""
    story = tolerant("Nodes fall silent for ever", spot_nodes=spot_nodes)
    story.label(on_demand_base="2")
    story.wait(600)
    story.silence("spot-a")
    story.wait(SILENT_S)
    story.unlabel()
    story.wait(120)
    assert story.traces() == []
    assert story.available() == 10


def test_a_roll_that_finds_no_node() -> None:
    """Its replicas wait for spot, which does not come: it is given back without waiting for them."""
    story = Story("A roll without nodes", surge=3, unavailable=0)
    story.label(on_demand_base="2", grace="60s")
    story.wait(600)
    story.silence("spot-a", "spot-b", "spot-c")
    story.wait(SILENT_S)
    story.set_image("web:2")
    story.wait(120)
    spot = [twin for pool, twin in story.scene.twins.items() if pool == "spot"]
    assert [is_rolling(story.scene, twin) for twin in spot] == [True]
    story.unlabel()
    story.wait(600)
    assert story.traces() == []


def test_a_roll_whose_replicas_are_dead() -> None:
    """A node falls silent under the surge: the roll goes on with the source's own maxUnavailable (H64)."""
    story = tolerant("A node falls silent in a roll")
    story.label(on_demand_base="2")
    story.wait(900)
    story.set_image("web:2")
    story.wait(15)
    lost = sum(map(story.scene.serves, story.scene.on("spot-b")))
    story.silence("spot-b")
    story.wait(2 * 3600)
    assert story.scene.counts() == (2, 8)
    assert story.available() == 10
    serving = [pod for pod in story.scene.pods() if story.scene.serves(pod)]
    assert {pod["spec"]["containers"][0]["image"] for pod in serving} == {"web:2"}
    assert story.judge.least_available >= 10 - 2 - lost
