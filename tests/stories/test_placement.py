"""What a StatefulSet in placement mode lives through, as golden files (see `test_stories`)."""

import os
from pathlib import Path

import pytest

from splitter.core.model import Pool
from stories.placement import Member, Node, PlacementStory

BOTH = ("spot-a", "spot-b")

FOLDER = Path(__file__).parent


def golden(name: str, lines: list[str]) -> None:
    """Compare a story with its golden file, or write that anew."""
    path = FOLDER / f"{name}.golden"
    text = "\n".join(lines) + "\n"
    if os.environ.get("SPLITTER_REGENERATE"):
        path.write_text(text, encoding="utf-8")
    assert path.exists(), "no golden file yet: run with SPLITTER_REGENERATE=1"
    assert text == path.read_text(encoding="utf-8")


def returned(story: PlacementStory) -> None:
    """Let spot come back, and wait until all is as it was."""
    story.nodes_are("up", *BOTH)
    story.wait(1800)


def test_notice() -> None:
    """Doomed members move one at a time, 4 of 5 ready throughout; after the soak they return."""
    story = PlacementStory()
    story.nodes_are("doomed", *BOTH)
    story.wait(110)
    story.nodes_are("gone", *BOTH)
    story.wait(120)
    returned(story)
    assert story.fewest == 4
    golden("placement-notice", story.lines)


def test_loss() -> None:
    """Without a notice the three on on-demand serve; those that were lost are made anew at once."""
    story = PlacementStory()
    story.nodes_are("gone", *BOTH)
    story.wait(60)
    returned(story)
    assert story.fewest == 3
    golden("placement-loss", story.lines)


def test_flapping() -> None:
    """Each loss soon after the last doubles the soak."""
    story = PlacementStory()
    for _ in range(3):
        story.nodes_are("gone", *BOTH)
        story.wait(60)
        story.nodes_are("up", *BOTH)
        story.wait(700)
    story.wait(6000)
    assert story.fewest == 3
    golden("placement-flapping", story.lines)


def test_silent() -> None:
    """A node that says nothing keeps its pod until it is gone."""
    story = PlacementStory()
    story.nodes_are("silent", "spot-a")
    story.wait(60)
    story.nodes_are("gone", "spot-a")
    story.wait(60)
    assert story.fewest == 4
    golden("placement-silent", story.lines)


def test_scaled() -> None:
    """3 -> 7 -> 3."""
    story = PlacementStory(replicas=3)
    story.scale(7)
    story.wait(300)
    story.scale(3)
    story.wait(300)
    golden("placement-scaled", story.lines)


def test_on_demand_without_room() -> None:
    """A member that finds no room on on-demand yields after the grace, and joins again when there is some."""
    story = PlacementStory()
    story.on_demand_headroom = 2
    story.members[1].ends_at = 0
    story.tell("db-1 ends by itself, and on-demand has room for no third member")
    story.wait(300)
    story.on_demand_headroom = 99
    story.tell("on-demand has room again")
    story.wait(120)
    assert story.fewest == 4
    golden("placement-no-room", story.lines)


@pytest.mark.parametrize("replicas", [1, 2])
def test_few(replicas: int) -> None:
    """One or two members are never moved, not even on notice; a loss is made good, and nothing more."""
    story = PlacementStory(replicas=replicas, annotations={"splitter.io/on-demand-base": "0"})
    story.wait(60)
    for k in range(replicas):
        story.members[k].ends_at = story.now_s
    story.tell("all end by themselves")
    story.wait(60)
    story.nodes_are("doomed", *BOTH)
    story.wait(60)
    story.nodes_are("gone", *BOTH)
    story.wait(60)
    assert len(story.members) == replicas
    golden(f"placement-few-{replicas}", story.lines)


def test_refused() -> None:
    """While nobody can get a spot machine no room is asked for; when that ends, all is as ever."""
    story = PlacementStory()
    story.nodes_are("gone", *BOTH)
    story.refused("Karpenter finds no spot machine")
    story.wait(300)
    story.refused("")
    story.wait(60)
    returned(story)
    assert story.fewest == 3
    golden("placement-refused", story.lines)


def test_frozen() -> None:
    """In an outage too: only what no node has any more is removed."""
    story = PlacementStory(annotations={"splitter.io/freeze": "true"})
    story.nodes_are("doomed", *BOTH)
    story.wait(30)
    story.nodes_are("gone", *BOTH)
    story.wait(60)
    golden("placement-frozen", story.lines)


@pytest.mark.parametrize(("replicas", "returned_"), [(5, True), (3, False)])
def test_a_node_is_left_cordoned(replicas: int, returned_: bool) -> None:
    """Members return beside one on it, unless no majority would be left if it was drained that moment."""
    story = PlacementStory(replicas=replicas)
    story.nodes["od-2"] = Node(spot=False)
    story.members[1] = Member("uid-1-x", Pool.ON_DEMAND, -500, "od-2", -500)
    for k in range(replicas // 2 + 1, replicas):
        story.members[k] = Member(f"uid-{k}-x", Pool.SPOT, -500, "od", -500)
    story.nodes_are("cordoned", "od-2")
    story.wait(3500)
    assert story.ends == [], "whoever drains a node has an hour"
    story.wait(3 * 3600)
    on_spot = [k for k, one in sorted(story.members.items()) if story.nodes[one.node].spot]
    assert on_spot == ([3, 4] if returned_ else [])
    assert story.fewest == (4 if returned_ else 3)
    assert any("db-1 is not: node od-2" in line for line in story.lines)
    assert story.held is None


@pytest.mark.parametrize("rolls", [False, True])
def test_no_room_is_held_for_weeks(rolls: bool) -> None:
    """A member that is never ready holds up the return, and no spot node is kept for that."""
    story = PlacementStory()
    story.members[4] = Member("uid-4-x", Pool.SPOT, -500, "od", -500)
    story.members[0] = Member("uid-0-x", Pool.ON_DEMAND, 0, "od", 0, unready_until=21_600)
    story.updated_s = 0 if rolls else story.updated_s
    story.wait(120)
    early = story.held
    assert early is not None, "it may be ready in a moment"
    story.wait(600)
    assert story.held is None
    story.wait(21_600)
    assert story.members[4].node == "spot-a"
