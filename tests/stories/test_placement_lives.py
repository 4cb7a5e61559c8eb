"""Random lives of a StatefulSet in placement mode (`placement_lives`); `LIVES=2000` plays more of them."""

import os

import pytest

from splitter.core.placement import disruption
from stories.placement import PlacementStory
from stories.placement_lives import Life
from stories.reported import BrokenPromiseError

LIVES = int(os.environ.get("LIVES", "20"))
FIRST = int(os.environ.get("FIRST_LIFE", "0"))


@pytest.mark.slow
@pytest.mark.parametrize("fives", range((LIVES + 4) // 5))
def test_nobody_is_restarted_for_ever(fives: int) -> None:
    """Five lives each: four ends an hour at most, never the majority, and rest when all is well again."""
    ended = 0
    for one in range(5):
        story = Life(FIRST + fives * 5 + one).run()
        ended += len(story.ends)
        story.close()
    assert ended, "lives in which no member was moved prove nothing"


def test_a_life_sees_a_member_that_is_ended_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the count and the back-off the story fails, so that it can be believed when it does not."""
    monkeypatch.setattr(disruption, "_too_often", lambda *_: None)
    monkeypatch.setattr(disruption, "_failed_before", lambda *_: None)
    monkeypatch.setattr(disruption, "_unplaceable", lambda *_: None)
    monkeypatch.setattr(disruption, "not_made_again", lambda *_: None)
    story = PlacementStory(tolerant=True)
    story.policy.acts = False
    story.nodes_are("doomed", "spot-a", "spot-b")
    story.wait(600)
    with pytest.raises(BrokenPromiseError, match="was ended 5 times within an hour"):
        story.close()


def test_a_life_sees_a_member_that_cannot_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that does not ask is found out by the first notice."""
    monkeypatch.setattr(disruption, "not_made_again", lambda *_: None)
    story = PlacementStory()
    story.ill(1, 3600)
    story.wait(120)
    story.nodes_are("doomed", "spot-a")
    story.wait(60)
    with pytest.raises(BrokenPromiseError, match="db-4 is not made again behind db-1"):
        story.close()


def test_a_pod_has_one_end() -> None:
    """Evicted, and removed because its node went before it had ended: the member was restarted once."""
    story = PlacementStory()
    story.nodes_are("doomed", "spot-a")
    story.wait(2)
    assert "deletionTimestamp" in story.judge.members()[4]["metadata"]
    story.nodes_are("gone", "spot-a")
    story.wait(1)
    assert any("remove db-4" in line for line in story.lines)
    assert [number for _, number in story.ends] == [4]
