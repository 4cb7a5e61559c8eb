"""Replicas and rolls that are ill: what the world plays of it, and what splitter says."""

import pytest

from splitter.core.replica import Pool
from stories.director import Story
from stories.words import images
from world import clock
from world.kinds import Raw
from world.pods import condition, is_ready


@pytest.fixture
def story() -> Story:
    """Return a story of a split workload of 10."""
    made = Story("Ill replicas")
    made.label(on_demand_base="2")
    made.wait(600)
    return made


def one_on_spot(story: Story) -> Raw:
    """Return a replica of spot."""
    return story.scene.on("spot-")[0]


def stalled(story: Story) -> list[Raw]:
    """Return the twins whose roll has made no progress for progressDeadlineSeconds."""
    deadline = ((twin, condition(twin, "Progressing")) for twin in story.scene.twins.values())
    return [twin for twin, said in deadline if said and said["reason"] == "ProgressDeadlineExceeded"]


def test_an_image_that_cannot_be_pulled_is_said(story: Story) -> None:
    """It is said of the pods at once, of the roll after progressDeadlineSeconds; then nothing is tried."""
    story.set_image("web:2-broken")
    story.wait(60)
    assert {is_ready(pod) for pod in story.scene.pods()} == {True, False}
    assert story.reason() == "ImagePullFailed"
    assert not stalled(story)
    story.wait(600)
    assert [images(twin["spec"]) for twin in stalled(story)] == ["web:2-broken"]
    assert "progressDeadlineSeconds" in "\n".join(story.lines)
    story.set_image("web:3")
    story.wait(600)
    assert not stalled(story)
    assert story.reason() == "Balanced"


def test_a_roll_that_cannot_go_on_is_given_back_at_once(story: Story) -> None:
    """A broken image in mid-roll holds nobody: the source gets its pods within a minute, and serves."""
    story.set_image("web:2-broken")
    story.wait(60)
    story.unlabel()
    story.wait(60)
    assert not story.scene.twins
    assert story.available() >= 8


def test_a_scale_out_is_no_roll(story: Story) -> None:
    """What was completed once is not stalled when replicas find no node (progress.go)."""
    story.taint_spot("team=data:NoSchedule")
    story.scale(20)
    story.wait(1200)
    assert not stalled(story)


def test_a_replica_crashes_again_and_again(story: Story) -> None:
    """It is started again, each time later; splitter says so, and moves nothing."""
    uid, before = one_on_spot(story)["metadata"]["uid"], story.pods()

    def crashes() -> None:
        story.cluster.machines.crashing[uid] = clock.now()
        story.cluster.kubelets.look_at()

    story.happens("a replica begins to crash", crashes)
    story.wait(120)
    [pod] = [one for one in story.scene.pods() if one["metadata"]["uid"] == uid]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 3
    assert story.reason() == "CrashLooping"
    assert story.pods() == before


@pytest.mark.parametrize("ill", [False, True])
def test_a_replica_turns_unready(story: Story, ill: bool) -> None:
    """For a while or for good; a loss of spot is covered all the same."""
    uid, sick = one_on_spot(story)["metadata"]["uid"], story.cluster.machines.ill

    def fails() -> None:
        sick.add(uid)
        story.cluster.kubelets.look_at()

    def recovers() -> None:
        sick.discard(uid)
        story.cluster.kubelets.look_at()

    story.happens("a replica is not ready any more", fails)
    assert story.available() == 9
    story.wait(30)
    if not ill:
        story.happens("it is ready again", recovers)
    story.wait(370)
    assert story.available() == (9 if ill else 10)
    story.notice("spot-a", "spot-b", "spot-c")
    story.wait(60)
    assert story.available() == 10
    assert story.scene.twins[Pool.ON_DEMAND]["spec"]["replicas"] == 10
