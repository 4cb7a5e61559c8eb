"""Pods change their owner beside a change of the template: in the end all run what their owner says."""

import pytest

from splitter.core.actions import Action, AdoptPods, OrphanPods
from splitter.core.model import Pool
from splitter.core.plan import Plan
from stories.cluster import Cluster
from stories.counting import Story
from stories.promises import stale, traces, unsettled


def deployed_at(story: Story, moment: type[Action], template: str) -> None:
    """Set an image when the next write of a kind is planned, and not done yet: nobody can have seen it."""
    cluster, begin, left = story.cluster, story.splitter.begin, [template]

    def interrupted() -> Plan:
        result = begin()
        if left and any(isinstance(action, moment) for action in result.actions):
            with story.promises.world():
                cluster.change_spec(cluster.source, template=left.pop())
        return result

    story.splitter.begin = interrupted  # type: ignore[method-assign]


def made_of(cluster: Cluster) -> set[str]:
    """Return what all pods are made of."""
    return {pod.template.partition("|")[0] for pod in cluster.pods.values() if pod.active}


@pytest.fixture(params=["v1", "v1 again", "v2", "v2 again"])
def story(request: pytest.FixtureRequest) -> Story:
    """Return a story of a split workload: its pods are its own or made by twins, adopted once or twice."""
    reported = Story("An image, in the moment in which the pods change their owner")
    reported.label(on_demand_base="2", spot_percent="80")
    reported.wait(600)
    if "v2" in request.param:
        reported.set_image("v2")
        reported.wait(600)
    if "again" in request.param:
        reported.unlabel()
        reported.wait(60)
        reported.label()
        reported.wait(600)
    return reported


class TestAnImage:
    """It is set while pods have no owner."""

    @pytest.mark.parametrize("moment", [OrphanPods, AdoptPods])
    def test_on_the_way_back(self, story: Story, moment: type[Action]) -> None:
        """Taken for current, its pods would never be replaced: the rollout would be said to be done."""
        deployed_at(story, moment, "v3")
        story.unlabel()
        story.wait(600)
        assert not traces(story.cluster)
        assert made_of(story.cluster) == {"v3"}

    @pytest.mark.parametrize("moment", [OrphanPods, AdoptPods])
    def test_on_the_way_there(self, story: Story, moment: type[Action]) -> None:
        """The same in the twins."""
        story.unlabel()
        story.wait(60)
        deployed_at(story, moment, "v3")
        story.label()
        story.wait(1200)
        assert not unsettled(story.cluster, on_demand=4)
        assert made_of(story.cluster) == {"v3"}


class TestARobbedTwin:
    """Somebody takes the label off the twins, too: `kubectl label deployment --all`."""

    def test_keeps_its_pods(self, story: Story) -> None:
        """They go home as they would without that: none is replaced."""
        before = {pod.uid for pod in story.cluster.pods.values() if pod.active}
        for twin in story.cluster.twins.values():
            twin.robbed, twin.version = True, story.cluster.version()
        story.unlabel()
        story.wait(600)
        assert not traces(story.cluster)
        assert {pod.uid for pod in story.cluster.pods.values() if pod.active} == before


class TestAnEditedTwin:
    """Somebody has edited a twin, and the label goes before that is put back."""

    @pytest.mark.parametrize("seen", [True, False])
    @pytest.mark.parametrize("pool", list(Pool))
    def test_is_mended_by_the_source(self, pool: Pool, seen: bool) -> None:
        """What the editor wanted does not outlive the twin; nor what was added, which is no edit of ours."""
        story = Story("An edited twin is given back")
        story.label(on_demand_base="2", spot_percent="80", freeze="true")
        story.wait(600)
        story.cluster.change_spec(story.cluster.twins[pool], template="by-hand")
        story.happens("somebody edits a twin, and nobody sees it")
        story.wait(60)
        assert not stale(story.cluster)
        story.cluster.twins[pool].edited = seen
        story.unlabel()
        story.wait(600)
        assert not traces(story.cluster)
        assert made_of(story.cluster) == {"v1"}
