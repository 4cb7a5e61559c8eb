"""A Deployment is given back, and its source is resumed by hand after each write on the way (H47).

Serving pods are counted, whichever controller ends them: the source's own as well.
"""

import pytest

from stories.director import Story
from world.admission import Request
from world.cluster import POOL
from world.controllers.kubelet import Timing
from world.kinds import PODS
from world.objects import Event
from world.workloads import set_image

N = 4
NODES = ("od-1", "od-2", "spot-a", "spot-b", "spot-c")


class Serving:
    """Counts the pods that answer, doomed or not, after each change."""

    def __init__(self, story: Story) -> None:
        self.scene = story.scene
        self.fewest = self.now()
        story.objects.follow(PODS, self._changed)

    def now(self) -> int:
        """Return how many answer."""
        return sum(map(self.scene.serves, self.scene.pods()))

    def _changed(self, _: Event) -> None:
        self.fewest = min(self.fewest, self.now())


def split(*, cordoned: bool, image: str = "") -> Story:
    """Return a story of a split workload, with more pods than N where its nodes are cordoned."""
    timing = Timing(start_s=1.0, ready_s=29.0, end_s=2.0)
    story = Story("Resumed by hand on the way back", replicas=N, surge=1, unavailable=0, timing=timing)
    story.label(on_demand_base="2", spot_percent="50")
    story.wait(900)
    if image:
        story.set_image(image)
        story.wait(10)
    if cordoned:
        story.happens("all nodes are cordoned", story.cordon(*NODES))
        story.happens("od-new comes", lambda: story.cluster.add_node("od-new", {POOL: "on-demand"}, pods=40))
        story.add_spot("spot-new")
        story.wait(0 if image else 33)
    return story


def given_back(story: Story, after: int, image: str) -> tuple[int, bool]:
    """Resume the source after this many writes; return how few pods served, and whether it was resumed."""
    serving, left, writes = Serving(story), ["resume"], 0

    def resumes() -> None:
        if story.scene.source["spec"].get("paused"):
            story.changed(lambda raw: raw["spec"].pop("paused"))()
        if image:
            set_image(story.cluster, image)

    def counted(_: Request) -> None:
        nonlocal writes
        writes += 1
        if writes > after and left:
            left.pop()
            story.loop.call_later(0.001, resumes)  # right after this one is written

    story.at_write(counted)
    story.unlabel()
    story.wait(120)
    return serving.fewest, not left


@pytest.mark.slow
@pytest.mark.parametrize("image", ["", "web:9", "web:9-broken"])
@pytest.mark.parametrize("cordoned", [False, True])
def test_all_that_serve_stay(image: str, cordoned: bool) -> None:
    """With a good and with a bad image; with N pods and with more, after a cordon was covered."""
    after, done = 0, True
    while done:
        story = split(cordoned=cordoned)
        fewest, done = given_back(story, after, image)
        story.close()
        assert fewest >= N, f"resumed after write {after}: {fewest} of {N} served"
        after += 1
    assert after > 5


@pytest.mark.parametrize("image", ["web:2", "web:2-broken"])
def test_in_mid_roll_on_cordoned_nodes(image: str) -> None:
    """Nothing of the twin's counts as available: what serves stays until the source has as many."""
    story = split(cordoned=True, image=image)
    story.act(story.changed(lambda raw: raw["spec"].pop("paused")))
    fewest, _ = given_back(story, 1000, "")
    assert fewest >= N


def test_with_a_good_image_no_trace_is_left() -> None:
    """What the source made while it was not paused goes in the end."""
    story = split(cordoned=False)
    given_back(story, 5, "web:9")
    story.wait(600)
    assert not story.traces()
    assert sum(map(story.scene.serves, story.scene.pods())) == N
