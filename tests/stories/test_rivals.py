"""Another controller selects the pods too, and ends each that it finds without an owner."""

from splitter.core.actions import Action, LabelPod
from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER
from stories.counting import Story

RIVAL = "DaemonSet agent-node (selector app=web)"


def of_six() -> Story:
    """Return a story of a workload of 6, half of which stands on spot."""
    return Story("Another controller selects the pods too", replicas=6, surge=2, unavailable=0)


def is_untouched(story: Story) -> bool:
    """Whether nothing of splitter's is on the workload but its report."""
    cluster = story.cluster
    marked = ANNOTATION_TAKEN_OVER in cluster.source.annotations
    labelled = any(pod.label for pod in cluster.pods.values())
    return not (cluster.twins or cluster.source.paused or marked or labelled or cluster.released())


def test_that_was_there_before() -> None:
    """The workload is refused, with the name of the other one, and left as it is."""
    story = of_six()
    story.cluster.rival = RIVAL
    story.label(on_demand_base="1")
    story.wait(120)
    assert story.reason() == "SelectorOverlaps"
    assert RIVAL in str(story.cluster.split.status["message"])  # type: ignore[union-attr]
    assert is_untouched(story)


def test_that_comes_while_it_is_taken_over() -> None:
    """It is undone: no pod is restarted, and the take-over goes on when the other one has gone."""
    story = of_six()
    pods, judge = set(story.cluster.pods), story.splitter.judge

    def judged(action: Action) -> None:
        judge(action)
        if isinstance(action, LabelPod):  # the last before they are let go
            story.cluster.rival = RIVAL

    story.splitter.judge = judged
    story.label(on_demand_base="1")
    story.splitter.judge = judge
    story.wait(30)
    assert (story.reason(), is_untouched(story)) == ("SelectorOverlaps", True)
    assert set(story.cluster.pods) == pods
    assert story.promises.least_available == 6
    story.cluster.rival = ""
    story.wait(900)
    assert [twin.replicas for twin in story.cluster.twins.values()] == [1, 5]
    assert story.available() == 6


def test_that_comes_while_it_is_split() -> None:
    """The way back is not refused: pods are replaced by the source's own, and none is without an owner."""
    story = of_six()
    story.label(on_demand_base="1")
    story.wait(900)
    story.cluster.rival = RIVAL
    story.unlabel()
    story.wait(300)
    assert is_untouched(story)
    assert story.cluster.split is None
    assert story.promises.least_available == 6
    assert story.available() == 6
