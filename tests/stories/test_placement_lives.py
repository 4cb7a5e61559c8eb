"""Random lives of a StatefulSet in placement mode (`placing_lives`); `LIVES=2000` plays more of them."""

import os

import pytest

from splitter.core.placement import disruption
from stories.placement import PlacementStory
from stories.placement_lives import live

LIVES = int(os.environ.get("LIVES", "60"))
FIRST = int(os.environ.get("FIRST_LIFE", "0"))


@pytest.mark.slow
@pytest.mark.parametrize("tens", range((LIVES + 9) // 10))
def test_nobody_is_restarted_for_ever(tens: int) -> None:
    """Ten lives each: four ends an hour at most, never the majority, and rest when all is well again."""
    ended = sum(len(live(FIRST + tens * 10 + one).ends) for one in range(10))
    assert ended, "ten lives in which nobody was moved prove nothing"


def test_a_life_sees_a_member_that_is_ended_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the count and the back-off the story fails, so that it can be believed when it does not."""
    monkeypatch.setattr(disruption, "_too_often", lambda *_: None)
    monkeypatch.setattr(disruption, "_failed_before", lambda *_: None)
    monkeypatch.setattr(disruption, "_unplaceable", lambda *_: None)
    monkeypatch.setattr(disruption, "not_made_again", lambda *_: None)
    story = PlacementStory()
    story.policy_acts = story.cordoned = False
    story.nodes_are("doomed", "spot-a")
    with pytest.raises(AssertionError, match="was ended 5 times within an hour"):
        story.wait(600)


def test_a_life_sees_a_member_that_cannot_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that does not ask is found out by the first notice."""
    monkeypatch.setattr(disruption, "not_made_again", lambda *_: None)
    story = PlacementStory()
    story.members[1].unready_until = story.now_s + 3600
    story.wait(120)
    story.nodes_are("doomed", "spot-a")
    with pytest.raises(AssertionError, match="db-4 is not made again behind db-1"):
        story.wait(60)


def test_a_pod_has_one_end() -> None:
    """Evicted, and removed because its node went before it had ended: the member was restarted once."""
    story = PlacementStory()
    story.nodes_are("doomed", "spot-a")
    story.wait(2)
    assert story.members[4].ends_at is not None
    story.nodes_are("gone", "spot-a")
    story.wait(1)
    assert any("remove db-4" in line for line in story.lines)
    assert story.ends == [(1, 4)]
