"""Pods change their owner beside a change of the template: in the end all run what their owner says."""

import pytest

from splitter.core.replica import Pool
from stories.director import Story
from stories.words import images
from world.admission import Request
from world.kinds import DEPLOYMENTS, REPLICA_SETS
from world.pods import controller_of
from world.workloads import set_image


def deployed_at(story: Story, verb: str, image: str) -> None:
    """Set an image right before the first write of a kind about a ReplicaSet with pods."""
    left = [image]

    def interrupted(request: Request) -> None:
        raw = request.new or request.old or {}
        is_holder = request.ref.kind == REPLICA_SETS and controller_of(raw) is not None
        if left and request.verb == verb and is_holder and raw["spec"].get("replicas"):
            set_image(story.cluster, left.pop())

    story.at_write(interrupted)


LETS_GO, ADOPTS = "delete", "create"


@pytest.fixture(params=["v1", "v1 again", "v2", "v2 again"])
def story(request: pytest.FixtureRequest) -> Story:
    """Return a story of a split workload: its pods are its own or made by twins, adopted once or twice."""
    reported = Story("An image, in the moment in which the pods change their owner")
    reported.label(on_demand_base="2", spot_percent="80")
    reported.wait(600)
    if "v2" in request.param:
        reported.set_image("web:2")
        reported.wait(600)
    if "again" in request.param:
        reported.unlabel()
        reported.wait(60)
        reported.label()
        reported.wait(600)
    return reported


class TestAnImage:
    """It is set while pods have no owner."""

    @pytest.mark.parametrize("moment", [LETS_GO, ADOPTS])
    def test_on_the_way_back(self, story: Story, moment: str) -> None:
        """Taken for current, its pods would never be replaced: the rollout would be said to be done."""
        deployed_at(story, moment, "web:3")
        story.unlabel()
        story.wait(600)
        assert not story.traces()
        assert story.scene.images() == {"web:3"}

    @pytest.mark.parametrize("moment", [LETS_GO, ADOPTS])
    def test_on_the_way_there(self, story: Story, moment: str) -> None:
        """The same in the twins."""
        story.unlabel()
        story.wait(60)
        deployed_at(story, moment, "web:3")
        story.label()
        story.wait(1200)
        assert not story.unsettled(on_demand=4)
        assert story.scene.images() == {"web:3"}


class TestARobbedTwin:
    """Somebody takes the label off the twins, too: `kubectl label deployment --all`."""

    def test_keeps_its_pods(self, story: Story) -> None:
        """They go home as they would without that: none is replaced."""
        before = story.pods()

        def unlabelled() -> None:
            for raw in story.objects.all(DEPLOYMENTS, "shop"):
                ref = story.ref._replace(name=raw["metadata"]["name"])
                story.changed(lambda one: one["metadata"]["labels"].pop("splitter.io/split"), ref)()

        story.happens("the label is taken off all Deployments", unlabelled)
        story.wait(600)
        assert not story.traces()
        assert story.pods() == before


class TestAnEditedTwin:
    """Somebody has edited a twin, and the label goes before that is put back."""

    @pytest.mark.parametrize("away", [True, False])
    @pytest.mark.parametrize("pool", list(Pool))
    def test_is_mended_by_the_source(self, pool: Pool, away: bool) -> None:
        """What the editor wanted does not outlive the twin, whether splitter was there to see it or not."""
        story = Story("An edited twin is given back")
        story.label(on_demand_base="2", spot_percent="80", freeze="true")
        story.wait(600)
        if away:
            story.stop()
        story.edit_twins("web:by-hand", pool)
        story.wait(60 if away else 0)
        story.unlabel()
        if away:
            story.start()
        story.wait(600)
        assert not story.traces()
        assert {images(pod["spec"]) for pod in story.scene.pods()} == {"web:1"}
