"""What a StatefulSet in placement mode lives through, as golden files (see `test_stories`)."""

import os
from pathlib import Path

import pytest

from stories.placement import BOTH, PlacementStory

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
    story = PlacementStory("Both spot nodes get a notice, go and come back")
    story.nodes_are("doomed", *BOTH)
    story.wait(110)
    story.nodes_are("gone", *BOTH)
    story.wait(120)
    returned(story)
    assert story.fewest == 4
    golden("placement-notice", story.lines)


def test_loss() -> None:
    """Without a notice the three on on-demand serve; those that were lost are made anew at once."""
    story = PlacementStory("Both spot nodes go, and come back")
    story.nodes_are("gone", *BOTH)
    story.wait(60)
    returned(story)
    assert story.fewest == 3
    golden("placement-loss", story.lines)


def test_flapping() -> None:
    """Each loss soon after the last doubles the soak."""
    story = PlacementStory("Both spot nodes go three times")
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
    story = PlacementStory("A spot node falls silent, and goes")
    story.nodes_are("silent", "spot-a")
    story.wait(60)
    story.nodes_are("gone", "spot-a")
    story.wait(60)
    assert story.fewest == 4
    golden("placement-silent", story.lines)


def test_scaled() -> None:
    """3 -> 7 -> 3."""
    story = PlacementStory("3 members become 7, and 3 again", 3)
    story.scale(7)
    story.wait(300)
    story.scale(3)
    story.wait(300)
    golden("placement-scaled", story.lines)


def test_on_demand_without_room() -> None:
    """A member that finds no room on on-demand yields after the grace, and joins again when there is some."""
    story = PlacementStory("On-demand has no room for a third member, and then has")
    story.on_demand_has(2)
    story.member_ends(1)
    story.wait(300)
    story.on_demand_has(99)
    story.wait(120)
    assert story.fewest == 4
    golden("placement-no-room", story.lines)


@pytest.mark.parametrize("replicas", [1, 2])
def test_few(replicas: int) -> None:
    """One or two members are never moved, not even on notice; a loss is made good, and nothing more."""
    story = PlacementStory(
        f"{replicas} members, none of them wanted on on-demand", replicas, on_demand_base="0"
    )
    story.wait(60)
    story.member_ends(*range(replicas))
    story.wait(60)
    story.nodes_are("doomed", *BOTH)
    story.wait(60)
    story.nodes_are("gone", *BOTH)
    story.wait(60)
    assert len(story.where()) == replicas
    golden(f"placement-few-{replicas}", story.lines)


def test_refused() -> None:
    """While nobody can get a spot machine no room is asked for; when that ends, all is as ever."""
    story = PlacementStory("Both spot nodes go, and Karpenter finds no others")
    story.nodes_are("gone", *BOTH)
    story.refused(by_karpenter=True)
    story.wait(300)
    story.refused(by_karpenter=False)
    story.wait(60)
    returned(story)
    assert story.fewest == 3
    golden("placement-refused", story.lines)


def test_frozen() -> None:
    """In an outage too: only what no node has any more is removed."""
    story = PlacementStory("A notice and a loss while all is frozen")
    story.annotate(freeze="true")
    story.nodes_are("doomed", *BOTH)
    story.wait(30)
    story.nodes_are("gone", *BOTH)
    story.wait(60)
    golden("placement-frozen", story.lines)


@pytest.mark.parametrize(("replicas", "returned_"), [(5, True), (3, False)])
def test_a_node_is_left_cordoned(replicas: int, returned_: bool) -> None:
    """Members return beside one on it, unless no majority would be left if it was drained that moment."""
    elsewhere = {1: "od-2"} | dict.fromkeys(range(replicas // 2 + 1, replicas), "od")
    story = PlacementStory(replicas=replicas, at=elsewhere, nodes=("od-2",), labelled=False)
    story.nodes_are("cordoned", "od-2")
    story.begin()
    story.wait(3500)
    assert story.ends == [], "whoever drains a node has an hour"
    story.wait(3 * 3600)
    assert story.on_spot() == ([3, 4] if returned_ else [])
    assert story.fewest == (4 if returned_ else 3)
    assert any("db-1 is not: node od-2" in line for line in story.lines)
    assert not story.held()


@pytest.mark.parametrize("rolls", [False, True])
def test_no_room_is_held_for_weeks(rolls: bool) -> None:
    """A member that is never ready holds up the return, and no spot node is kept for that."""
    story = PlacementStory(at={4: "od"}, labelled=False)
    story.ill(0, 21_600)
    story.begin()
    if rolls:
        story.set_image("db:2")
    story.wait(120)
    assert story.held(), "it may be ready in a moment"
    story.wait(600)
    assert not story.held()
    story.wait(21_600)
    assert story.on_spot() == [3, 4]
