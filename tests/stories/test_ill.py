"""Replicas and rolls that are ill: what the worlds play of it, and what splitter says."""

import pytest

from splitter.core.model import Pool
from stories.cluster import Deployment, Ill, Pod
from stories.counting import Story
from stories.kubelets import CRASHING, NO_IMAGE, fail


@pytest.fixture
def story() -> Story:
    """Return a story of a split workload of 10."""
    made = Story("Ill replicas")
    made.label(on_demand_base="2")
    made.wait(600)
    return made


def one_on_spot(story: Story) -> Pod:
    """Return a replica of spot."""
    return next(pod for pod in story.cluster.pods.values() if pod.label is Pool.SPOT)


def stalled(story: Story) -> list[Deployment]:
    """Return the twins whose roll has made no progress for progressDeadlineSeconds."""
    return [twin for twin in story.cluster.twins.values() if twin.stalled]


def test_an_image_that_cannot_be_pulled_is_said(story: Story) -> None:
    """It is said of the pods at once, of the roll after progressDeadlineSeconds; then nothing is tried."""
    story.set_image("v2-broken")
    story.wait(60)
    assert {pod.trouble for pod in story.cluster.pods.values()} == {None, NO_IMAGE}
    assert story.reason() == "ImagePullFailed"
    assert not stalled(story)
    story.wait(600)
    assert [twin.template for twin in stalled(story)] == ["v2-broken|on-demand"]
    assert "progressDeadlineSeconds" in "\n".join(story.lines)
    story.set_image("v3")
    story.wait(600)
    assert not stalled(story)
    assert story.reason() == "Balanced"


def test_a_roll_that_cannot_go_on_is_given_back_at_once(story: Story) -> None:
    """A broken image in mid-roll holds nobody: the source gets its pods within a minute, and serves."""
    story.set_image("v2-broken")
    story.wait(60)
    story.unlabel()
    story.wait(60)
    assert not story.cluster.twins
    assert story.available() >= 8


def test_a_scale_out_is_no_roll(story: Story) -> None:
    """What was completed once is not stalled when replicas find no node (progress.go)."""
    story.taint_spot("team=data:NoSchedule")
    story.scale(20)
    story.wait(1200)
    assert not stalled(story)


def test_a_replica_crashes_again_and_again(story: Story) -> None:
    """It is up for a moment, each time later; splitter says so, and moves nothing."""
    pod = one_on_spot(story)
    pod.ill = Ill.CRASHING
    before = dict.fromkeys(pod.name for pod in story.cluster.pods.values())
    story.happens("a replica begins to crash")
    story.wait(120)
    assert pod.restarts == 4
    assert pod.trouble == CRASHING
    assert story.reason() == "CrashLooping"
    assert dict.fromkeys(story.cluster.pods) == before


@pytest.mark.parametrize("ill", [None, Ill.UNREADY])
def test_a_replica_turns_unready(story: Story, ill: Ill | None) -> None:
    """For a while or for good; a loss of spot is covered all the same."""
    pod = one_on_spot(story)
    pod.ill = ill
    fail(story.cluster, pod, 30)
    story.happens("a replica is not ready any more")
    assert story.available() == 9
    story.wait(400)
    assert story.available() == (9 if ill else 10)
    story.notice(*(node.name for node in story.cluster.nodes.values() if node.spot))
    story.wait(60)
    assert story.available() == 10
