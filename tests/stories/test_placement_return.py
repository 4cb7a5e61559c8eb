"""No member is evicted that could not be made again: OrderedReady, rooms that are full, notices of each kind.

Each eviction is judged by the story itself, as it is made.
"""

import pytest

from splitter.core.model import Pool
from stories.placement import Member, Node, PlacementStory

BOTH = ("spot-a", "spot-b")
HOUR_S = 3600
SIZES = (3, 5, 7)
POLICIES = pytest.mark.parametrize("ordered", [True, False], ids=["OrderedReady", "Parallel"])


def ill(story: PlacementStory, ordinal: int = 1, seconds: int = 4 * HOUR_S) -> None:
    """Have a member's readiness probe fail for some hours."""
    story.wait(5)
    story.members[ordinal].unready_until = story.now_s + seconds
    story.tell(f"db-{ordinal} is ill for {seconds} s")
    story.wait(600)


def is_whole(story: PlacementStory) -> bool:
    """Whether all are ready where they are wanted, with no room held."""
    base = story.replicas // 2 + 1
    spot = [k for k, one in sorted(story.members.items()) if one.node and story.nodes[one.node].spot]
    return story.serving == story.replicas and spot == list(range(base, story.replicas))


@pytest.mark.parametrize("replicas", SIZES)
@pytest.mark.parametrize("how", ["cordoned", "doomed"])
def test_a_lower_ordinal_is_ill(replicas: int, how: str) -> None:
    """Under OrderedReady no member above it ends by a cordon, nor by a notice without a deadline."""
    story = PlacementStory(replicas=replicas)
    ill(story)
    story.nodes_are(how, "spot-a")
    story.wait(HOUR_S)
    assert story.ends == []
    assert story.serving == replicas - 1
    said = "db-1 is not ready, and the StatefulSet controller (OrderedReady) would not make"
    assert any(said in line for line in story.lines)
    story.nodes_are("up", "spot-a")
    story.wait(4 * HOUR_S)
    assert story.ends == []
    assert is_whole(story)


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
    story.on_demand_headroom = replicas // 2 + 1
    story.wait(5)
    if spare:
        story.nodes["spot-new"] = Node(spot=True)
    story.nodes_are("cordoned", *BOTH)
    story.wait(HOUR_S)
    assert story.ends == []
    assert story.fewest == replicas
    assert any("WaitingForRoom" in line and "no node has had room" in line for line in story.lines)
    for k in range(replicas // 2 + 1, replicas):  # kubectl drain, one at a time
        story.members[k].ends_at = story.now_s + story.end_s
        story.wait(60)
        if spare:
            assert story.serving == replicas, "drained, it starts on the new spot node at once"
    story.nodes_are("up", *BOTH)
    story.wait(3 * HOUR_S)
    assert is_whole(story)


@pytest.mark.parametrize("replicas", SIZES)
@POLICIES
def test_a_cordon_with_room(replicas: int, ordered: bool) -> None:
    """Room first, one at a time; all return after the soak when the nodes are there again."""
    story = PlacementStory(replicas=replicas, ordered=ordered)
    story.end_s = 60
    story.wait(5)
    story.nodes_are("cordoned", *BOTH)
    story.wait(1200)
    assert {one.node for one in story.members.values()} == {"od"}
    assert story.fewest == replicas - 1
    assert story.placeholders >= replicas - (replicas // 2 + 1)
    story.nodes_are("up", *BOTH)
    story.wait(3 * HOUR_S)
    assert is_whole(story)


@POLICIES
def test_a_cordon_is_withdrawn_before_anyone_moves(ordered: bool) -> None:
    """The ordinals are as they were, and no room is held any more."""
    story = PlacementStory(ordered=ordered)
    story.on_demand_headroom = 3
    story.wait(5)
    story.nodes_are("cordoned", *BOTH)
    story.wait(300)
    assert story.placeholders >= 1
    story.nodes_are("up", *BOTH)
    story.wait(60)
    assert (story.ordinals, story.ends) == ((0, 1, 2), [])
    assert story.held is None


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
    assert is_whole(story)


@pytest.mark.parametrize("replicas", [5, 7])
@POLICIES
def test_a_notice_without_room(replicas: int, ordered: bool) -> None:
    """Of those that stand on spot one tries; the others stay until their own node's end is near."""
    story = PlacementStory(replicas=replicas, ordered=ordered)
    story.on_demand_headroom = replicas // 2 + 1
    story.wait(5)
    story.notice(300, *BOTH)
    story.wait(250)
    assert len({k for _, k in story.ends}) == 1
    assert story.fewest == replicas - 1
    story.wait(49)
    assert len({k for _, k in story.ends}) > 1
    story.on_demand_headroom = 99
    story.wait(300)
    assert story.serving == replicas


@POLICIES
def test_a_notice_is_withdrawn_while_a_member_has_no_node(ordered: bool) -> None:
    """It yields to spot after the grace, and no other was moved."""
    story = PlacementStory(ordered=ordered)
    story.on_demand_headroom = 3
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
    story = PlacementStory()
    story.nodes["od-2"] = Node(spot=False)
    story.members[0] = Member("uid-0-x", Pool.ON_DEMAND, -500, "od-2", -500)
    story.wait(5)
    story.nodes_are("silent", "od-2")
    story.wait(60)
    story.nodes_are("doomed", *BOTH)
    story.wait(120)
    story.nodes_are("up", *BOTH)
    story.wait(1800)
    assert story.ends == []
    assert story.serving == 4


@POLICIES
def test_a_rival_takes_the_room(ordered: bool) -> None:
    """While the member ends, which takes two minutes: it waits for a node, and no other follows it."""
    story = PlacementStory(ordered=ordered)
    story.on_demand_headroom, story.end_s = 4, 120
    story.wait(5)
    story.nodes_are("cordoned", *BOTH)
    while not story.ends:
        story.wait(1)
    story.rivals_waiting = 1
    story.tell("a rival wants room on on-demand")
    story.wait(900)
    assert len({k for _, k in story.ends}) == 1
    assert story.fewest == 4
    story.rivals["od"] = 0
    story.nodes_are("up", *BOTH)
    story.wait(6 * HOUR_S)
    assert is_whole(story)


def test_min_ready_seconds_hold_up_those_above() -> None:
    """OrderedReady waits until a member is available: so does the next eviction."""
    story = PlacementStory()
    story.min_ready_s = 100
    story.wait(5)
    story.notice(600, *BOTH)
    story.wait(500)
    first, second = (at for at, _ in story.ends)
    assert second - first >= story.min_ready_s + story.start_s
    assert story.fewest == 4


@POLICIES
def test_a_slow_end_holds_up_the_next(ordered: bool) -> None:
    """Until it is made again and has a node."""
    story = PlacementStory(ordered=ordered)
    story.end_s = 110
    story.wait(5)
    story.notice(900, *BOTH)
    story.wait(400)
    first, second = (at for at, _ in story.ends)
    assert second - first >= story.end_s
    assert story.fewest == 4
