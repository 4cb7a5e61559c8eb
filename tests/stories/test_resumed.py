"""A Deployment is given back, and its source is resumed by hand after each write on the way (H47).

Serving pods are counted, whichever controller ends them: the source's own as well.
"""

from collections import deque

import pytest

from stories.cluster import Cluster
from stories.counting import Story
from stories.promises import traces

N = 4


def serving(cluster: Cluster) -> int:
    """Count the pods that answer, doomed or not."""
    return sum(map(cluster.serves, cluster.pods.values()))


def split(*, cordoned: bool, image: str = "") -> Story:
    """Return a story of a split workload, with more pods than N where its nodes are cordoned."""
    story = Story("Resumed by hand on the way back", replicas=N, surge=1, unavailable=0)
    story.cluster.start_s = 30
    story.label(on_demand_base="2", spot_percent="50")
    story.wait(900)
    if image:
        story.set_image(image)
        story.wait(10)
    if cordoned:
        for node in list(story.cluster.nodes.values()):
            node.doomed = node.cordoned = True
        story.cluster.add_node("od-new", spot=False, slots=40)
        story.add_spot("spot-new")
        story.wait(0 if image else 33)
    return story


def resumed(story: Story, after: int, image: str) -> tuple[int, bool]:
    """Resume the source after this many writes; return how few pods served, and whether it was resumed."""
    cluster, left, fewest = story.cluster, deque(["resume"]), serving(story.cluster)
    writes, write_next = 0, story.splitter.write_next

    def counted() -> bool:
        nonlocal writes
        done = write_next()
        writes += 1
        if writes == after and left:
            left.pop()
            with story.promises.world():
                cluster.unpause()
                if image:
                    cluster.change_spec(cluster.source, template=image)
        return done

    story.splitter.write_next = counted  # type: ignore[method-assign]
    story.promises.happened()
    cluster.label(on=False)
    story.promises.happened()
    end = cluster.now + 120
    while cluster.now < end:
        story.wait(1)
        fewest = min(fewest, serving(cluster))
    return fewest, not left


@pytest.mark.slow
@pytest.mark.parametrize("image", ["", "v9", "v9-broken"])
@pytest.mark.parametrize("cordoned", [False, True])
def test_all_that_serve_stay(image: str, cordoned: bool) -> None:
    """With a good and with a bad image; with N pods and with more, after a cordon was covered."""
    after, done = 1, True
    while done:
        story = split(cordoned=cordoned)
        fewest, done = resumed(story, after, image)
        assert fewest >= N, f"resumed after write {after}: {fewest} of {N} served"
        after += 1
    assert after > 5


@pytest.mark.parametrize("image", ["v2", "v2-broken"])
def test_in_mid_roll_on_cordoned_nodes(image: str) -> None:
    """Nothing of the twin's counts as available: what serves stays until the source has as many."""
    story = split(cordoned=True, image=image)
    story.cluster.unpause()
    fewest, _ = resumed(story, 0, "")
    assert fewest >= N


def test_with_a_good_image_no_trace_is_left() -> None:
    """What the source made while it was not paused goes in the end."""
    story = split(cordoned=False)
    resumed(story, 5, "v9")
    story.wait(600)
    assert not traces(story.cluster)
    assert serving(story.cluster) == N
