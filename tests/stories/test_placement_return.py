"""No member is evicted that could not be made again: OrderedReady, rooms that are full, notices of each kind.

Each eviction is judged by the story itself, as it is made.
"""

import pytest

from stories.placement import BOTH, START_S, PlacementStory

HOUR_S = 3600
SIZES = (3, 5, 7)
POLICIES = pytest.mark.parametrize("ordered", [True, False], ids=["OrderedReady", "Parallel"])


def ill(story: PlacementStory, ordinal: int = 1, seconds: int = 4 * HOUR_S) -> None:
    """Have a member's readiness probe fail for some hours."""
    story.wait(5)
    story.ill(ordinal, seconds)
    story.wait(600)


@pytest.mark.parametrize("replicas", SIZES)
@pytest.mark.parametrize("how", ["cordoned", "leaving"])
def test_a_lower_ordinal_is_ill(replicas: int, how: str) -> None:
    """Under OrderedReady no member above it ends by a cordon, nor by a notice without a deadline."""
    story = PlacementStory(replicas=replicas)
    ill(story)
    story.nodes_are(how, "spot-a")
    story.wait(HOUR_S)
    assert story.ends == []
    assert story.serving == replicas - 1
    said = "db-1 is not ready, and the StatefulSet controller (OrderedReady) would not make"
    assert said in story.message()
    story.nodes_are("up", "spot-a")
    story.wait(4 * HOUR_S)
    assert story.ends == []
    assert story.is_whole()


def test_a_lower_ordinal_is_well_again() -> None:
    """Then the members on the cordoned node move, one at a time."""
    story = PlacementStory()
    ill(story, seconds=1200)
    story.nodes_are("cordoned", *BOTH)
    story.wait(500)
    assert story.ends == []
    story.wait(600)
    assert {k for _, k in story.ends} == {3, 4}
    assert story.fewest == 4


@pytest.mark.parametrize("seconds", [30, 120])
def test_a_lower_ordinal_is_ill_and_the_deadline_is_near(seconds: int) -> None:
    """A member that is lost with its node anyway ends in order, and no earlier than it has to."""
    story = PlacementStory()
    ill(story)
    began = story.now_s
    story.notice(seconds, "spot-a")
    story.wait(seconds - 1)
    assert [k for _, k in story.ends] == [4] or [k for _, k in story.ends] == [3]
    left_s = began + seconds - story.ends[0][0]
    assert min(seconds, 30) <= left_s + 1
    assert left_s <= 45


@pytest.mark.parametrize("replicas", SIZES)
@POLICIES
@pytest.mark.parametrize("spare", [True, False], ids=["a new spot node", "no other spot node"])
def test_a_cordon_without_room(replicas: int, ordered: bool, spare: bool) -> None:
    """A fixed on-demand pool that is full: no member ends, and the Split says why."""
    story = PlacementStory(replicas=replicas, ordered=ordered)
    story.on_demand_has(replicas // 2 + 1)
    story.wait(5)
    if spare:
        story.nodes_are("up", "spot-new")
    story.nodes_are("cordoned", *BOTH)
    story.wait(HOUR_S)
    assert story.ends == []
    assert story.fewest == replicas
    assert story.reason() == "WaitingForRoom"
    assert "no node has had room" in story.message()
    for k in range(replicas // 2 + 1, replicas):  # kubectl drain, one at a time
        story.member_ends(k)
        story.wait(60)
        if spare:
            assert story.serving == replicas, "drained, it starts on the new spot node at once"
    story.nodes_are("up", *BOTH)
    story.wait(3 * HOUR_S)
    assert story.is_whole()


@pytest.mark.parametrize("replicas", SIZES)
@POLICIES
def test_a_cordon_with_room(replicas: int, ordered: bool) -> None:
    """Room first, one at a time; all return after the soak when the nodes are there again."""
    story = PlacementStory(replicas=replicas, ordered=ordered, end_s=60)
    story.wait(5)
    story.nodes_are("cordoned", *BOTH)
    story.wait(1200)
    assert set(story.where().values()) == {"od"}
    assert story.fewest == replicas - 1
    assert story.placeholders >= replicas - (replicas // 2 + 1)
    story.nodes_are("up", *BOTH)
    story.wait(3 * HOUR_S)
    assert story.is_whole()


@POLICIES
def test_a_cordon_is_withdrawn_before_anyone_moves(ordered: bool) -> None:
    """The ordinals are as they were, and no room is held any more."""
    story = PlacementStory(ordered=ordered)
    story.on_demand_has(3)
    story.wait(5)
    story.nodes_are("cordoned", *BOTH)
    story.wait(300)
    assert story.placeholders >= 1
    story.nodes_are("up", *BOTH)
    story.wait(60)
    assert (story.ordinals, story.ends) == ([0, 1, 2], [])
    assert not story.held()


@pytest.mark.parametrize("replicas", SIZES)
@POLICIES
@pytest.mark.parametrize("seconds", [30, 120])
def test_a_notice_with_room(replicas: int, ordered: bool, seconds: int) -> None:
    """As ever: at once, one at a time, never fewer than those on on-demand."""
    story = PlacementStory(replicas=replicas, ordered=ordered)
    story.wait(5)
    story.notice(seconds, *BOTH)
    story.wait(2)
    assert len(story.ends) == 1
    story.wait(seconds)
    assert story.fewest >= replicas // 2 + 1
    story.wait(300)
    assert story.serving == replicas
    story.nodes_are("up", *BOTH)
    story.wait(3 * HOUR_S)
    assert story.is_whole()


@pytest.mark.parametrize("replicas", [5, 7])
@POLICIES
def test_a_notice_without_room(replicas: int, ordered: bool) -> None:
    """Of those that stand on spot one tries; the others stay until their own node's end is near."""
    story = PlacementStory(replicas=replicas, ordered=ordered)
    story.on_demand_has(replicas // 2 + 1)
    story.wait(5)
    story.notice(300, *BOTH)
    story.wait(250)
    assert len({k for _, k in story.ends}) == 1
    assert story.fewest == replicas - 1
    story.wait(49)
    assert len({k for _, k in story.ends}) > 1
    story.on_demand_has(99)
    story.wait(300)
    assert story.serving == replicas


@POLICIES
def test_a_notice_is_withdrawn_while_a_member_has_no_node(ordered: bool) -> None:
    """It yields to spot after the grace, and no other was moved."""
    story = PlacementStory(ordered=ordered)
    story.on_demand_has(3)
    story.wait(5)
    story.notice(600, *BOTH)
    story.wait(60)
    story.nodes_are("up", *BOTH)
    story.wait(600)
    assert len(story.ends) <= 2, "one end, and one of the pod that waited for on-demand"
    assert {k for _, k in story.ends} == {3}
    assert story.serving == 5


def test_a_silent_node_and_a_notice_that_is_withdrawn() -> None:
    """The silent member keeps its name, and holds up all above it: these stay where they are."""
    story = PlacementStory(at={0: "od-2"}, nodes=("od-2",))
    story.wait(5)
    story.nodes_are("silent", "od-2")
    story.wait(60)
    story.nodes_are("doomed", *BOTH)
    story.wait(60)
    story.nodes_are("up", *BOTH)
    story.wait(1800)
    assert story.ends == []
    assert story.serving == 4


@POLICIES
def test_a_rival_takes_the_room(ordered: bool) -> None:
    """While the member ends, which takes two minutes: it waits for a node, and no other follows it."""
    story = PlacementStory(ordered=ordered, end_s=120)
    story.on_demand_has(4)
    story.wait(5)
    story.nodes_are("cordoned", *BOTH)
    while not story.ends:
        story.wait(1)
    story.rivals(1)
    story.wait(900)
    assert len({k for _, k in story.ends}) == 1
    assert story.fewest == 4
    story.rivals_go()
    story.nodes_are("up", *BOTH)
    story.wait(6 * HOUR_S)
    assert story.is_whole()


def test_min_ready_seconds_hold_up_those_above() -> None:
    """OrderedReady waits until a member is available: so does the next eviction."""
    story = PlacementStory()
    story.min_ready(100)
    story.wait(5)
    story.notice(600, *BOTH)
    story.wait(500)
    first, second = (at for at, _ in story.ends)
    assert second - first >= 100 + START_S
    assert story.fewest == 4


@POLICIES
def test_a_slow_end_holds_up_the_next(ordered: bool) -> None:
    """Until it is made again and has a node."""
    story = PlacementStory(ordered=ordered, end_s=110)
    story.wait(5)
    story.notice(900, *BOTH)
    story.wait(400)
    first, second = (at for at, _ in story.ends)
    assert second - first >= 110
    assert story.fewest == 4
