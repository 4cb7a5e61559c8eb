"""Another controller selects the pods too, and ends each that it finds without an owner."""

from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER
from stories.director import Story
from world.admission import Request
from world.kinds import DAEMON_SETS, Raw, Ref

RIVAL = "DaemonSet agent-node (selector app=web)"
AGENT = Ref(DAEMON_SETS, "shop", "agent-node")


def of_six() -> Story:
    """Return a story of a workload of 6, half of which is on spot."""
    return Story("Another controller selects the pods too", replicas=6, surge=2, unavailable=0)


def rival(story: Story) -> None:
    """Have a DaemonSet that has no node, and the workload's own labels for its selector."""
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "agent", "image": "agent:1"}]},
    }
    raw: Raw = {
        "metadata": {"name": AGENT.name},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    story.objects.create(DAEMON_SETS, "shop", raw, "user")


def is_untouched(story: Story) -> bool:
    """Whether nothing of splitter's is on the workload but its report."""
    source = story.scene.source
    marked = ANNOTATION_TAKEN_OVER in source["metadata"].get("annotations", {})
    labelled = any("splitter.io/pool" in pod["metadata"]["labels"] for pod in story.scene.pods())
    paused = source["spec"].get("paused")
    return not (story.scene.twins or paused or marked or labelled or story.scene.parked())


def test_that_was_there_before() -> None:
    """The workload is refused, with the name of the other one, and left as it is."""
    story = of_six()
    story.happens("another controller comes", lambda: rival(story))
    story.label(on_demand_base="1")
    story.wait(120)
    assert story.reason() == "SelectorOverlaps"
    assert RIVAL in story.scene.status["message"]
    assert is_untouched(story)


def test_that_comes_while_it_is_taken_over() -> None:
    """It is undone: no pod is restarted, and the take-over goes on when the other one has gone."""
    story = of_six()
    pods, came = story.pods(), list[None]()

    def comes(request: Request) -> None:
        paused = request.ref == story.ref and (request.new or {})["spec"].get("paused")
        if paused and not came:
            came.append(rival(story))

    story.at_write(comes)
    story.cluster.api.latency_s = lambda: 0.4  # what is listed is a second old at most
    story.label(on_demand_base="1")
    story.wait(90)
    assert (story.reason(), is_untouched(story)) == ("SelectorOverlaps", True)
    assert story.pods() == pods
    assert story.judge.least_available == 6
    story.happens("the other controller goes", lambda: story.objects.delete(AGENT))
    story.wait(900)
    assert story.scene.counts() == (1, 5)
    assert story.available() == 6


def test_that_comes_while_it_is_split() -> None:
    """The way back is not refused: pods are replaced by the source's own, and none is without an owner."""
    story = of_six()
    story.label(on_demand_base="1")
    story.wait(900)
    story.happens("another controller comes", lambda: rival(story))
    story.unlabel()
    story.wait(300)
    assert is_untouched(story)
    assert story.scene.split is None
    assert story.judge.least_available == 6
    assert story.available() == 6
