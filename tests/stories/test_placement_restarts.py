"""What does not go as planned: no member is restarted again and again, whatever the cluster answers.

The bound on restarts within an hour is checked by the story itself, at every write.
"""

import pytest

from stories.placement import PlacementStory


def test_the_policy_is_gone() -> None:
    """A member that is born without its label is tried again ever later: it would land anywhere."""
    story = PlacementStory()
    story.policy.acts = False
    story.annotate(on_demand_base="4")
    story.wait(6 * 3600)
    assert len(story.ends) <= 10
    story.policy.acts = True
    story.wait(20 * 3600)
    assert story.where()[3] == "od"


def test_the_policy_is_gone_on_notice() -> None:
    """A doomed member that is born on the doomed node again is not evicted again and again."""
    story = PlacementStory(tolerant=True)
    story.policy.acts = False
    story.nodes_are("doomed", "spot-a")
    story.wait(600)
    assert 1 <= len(story.ends) <= 3


def test_the_policy_was_gone_and_a_majority_stands_on_spot() -> None:
    """One try tells that the policy does not act; nobody else is restarted for the same answer."""
    story = PlacementStory(at=dict.fromkeys(range(3), "spot-a"), born=dict.fromkeys(range(3), ""), acts=False)
    story.wait(3600)
    assert 1 <= len(story.ends) <= 6


def test_the_policy_does_not_act_and_nobody_is_moved_on_notice() -> None:
    """What one member's restart has told holds for the next: it would be born anywhere too."""
    story = PlacementStory()
    story.policy.acts = False
    story.annotate(on_demand_base="4")
    story.wait(60)
    before = len(story.ends)
    assert before == 1
    story.nodes_are("doomed", "spot-a")
    story.wait(20)
    assert len(story.ends) == before


def test_room_that_fits_a_placeholder_only() -> None:
    """Each try that finds no room for the member itself doubles the wait before the next."""
    story = PlacementStory()
    story.keep_off("od")
    story.annotate(on_demand_base="4")
    missing_s = 0
    for _ in range(6 * 60):
        story.wait(60)
        missing_s += 60 * (story.serving < 5)
    assert 4 <= len(story.ends) <= 16
    assert missing_s < 40 * 60
    assert not story.held(), "room is held for a move that is hours away"
    story.let_on()
    story.wait(6 * 3600)
    assert story.where()[3] == "od"


def test_room_on_spot_that_fits_a_placeholder_only() -> None:
    """A spread constraint keeps the member off: it is not restarted in vain each hour for ever."""
    story = PlacementStory(at={4: "od"}, labelled=False)
    story.keep_off("spot")
    story.begin()
    story.wait(24 * 3600)
    assert 4 <= len(story.ends) <= 11
    story.wait(3 * 24 * 3600)
    assert len(story.ends) <= 16
    assert not story.held(), "room is held for a move that is hours away"
    story.let_on()
    story.wait(24 * 3600)
    assert 4 in story.on_spot()


def test_a_placeholder_comes_to_a_node_that_goes() -> None:
    """Cordoned for days, and pods tolerate that: others are asked for ever later, and it is no loss."""
    story = PlacementStory(at={4: "od"}, tolerant=True, labelled=False)
    story.nodes_are("cordoned", "spot-a")
    story.begin()
    story.wait(24 * 3600)
    assert 4 <= story.placeholders <= 12
    assert "lastLoss" not in story.scene.rebalance
    story.nodes_are("up", "spot-a")
    story.wait(24 * 3600)
    assert 4 in story.on_spot()


@pytest.mark.parametrize("up", [False, True])
def test_kubelets_take_no_placeholder(up: bool) -> None:
    """One that has failed is deleted, and the next one asked for ever later."""
    elsewhere = {0: "spot-b"} if up else {4: "od"}
    story = PlacementStory(at=elsewhere, born={0: "spot"} if up else {}, labelled=False)
    story.fail_placeholders()
    story.begin()
    story.wait(24 * 3600)
    assert 4 <= story.placeholders <= 12
    story.recover_placeholders()
    story.wait(24 * 3600)
    assert story.on_spot() == [3, 4]


def test_spot_that_goes_every_hour() -> None:
    """No machine is bought each time for a placeholder that never stands for the soak; then all return."""
    story = PlacementStory()
    for _ in range(3 * 24):
        story.nodes_are("gone", "spot-a", "spot-b")
        story.wait(100)
        story.nodes_are("up", "spot-a", "spot-b")
        story.wait(3500)
    assert 10 <= story.placeholders <= 24, "two of them came to nodes in the moment that these went"
    story.wait(26 * 3600)
    assert story.on_spot() == [3, 4]


def test_pods_are_refused_by_a_quota_on_notice() -> None:
    """Nor would the other be made again: it ends when its node does, in order."""
    story = PlacementStory(replicas=7, ordered=False)
    story.limit_pods(0)
    story.member_ends(0)
    story.wait(30)
    story.notice(120, "spot-a")
    story.wait(70)
    assert story.ends == []
    story.wait(20)
    assert {k for _, k in story.ends} >= {4}
    assert story.serving >= 4
