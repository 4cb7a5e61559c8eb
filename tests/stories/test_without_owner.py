"""Spot goes while pods have no owner, and the API server refuses the writes that would give them one."""

from dataclasses import replace

import pytest

from splitter.core.actions import Action, AdoptPods
from splitter.core.model import Pool
from splitter.core.plan import Plan
from stories.director import Story

SPOT = ("spot-a", "spot-b", "spot-c")
STARTS_WITHIN_S = 15


def taking_over() -> Story:
    """Return a story of a workload of 6, half of which stands on spot, that is not split yet."""
    return Story("Spot goes while pods have no owner", replicas=6, surge=1, unavailable=1)


def refused(story: Story, pools: set[Pool], until_s: int) -> None:
    """Have the API server refuse the ReplicaSets that would adopt pods of these pools, for so long."""
    begin, judge = story.splitter.begin, story.splitter.judge

    def planned() -> Plan:
        story.splitter.refused_until = 0
        return begin()

    def judged(action: Action) -> None:
        judge(action)
        if isinstance(action, AdoptPods) and action.pool in pools and story.cluster.now < until_s:
            story.splitter.refused_until = until_s

    story.splitter.begin = planned  # type: ignore[method-assign]
    story.splitter.judge = judged


def test_all_of_it_for_a_while() -> None:
    """The pods are gone before anybody owns them again: their loss is covered all the same, at once."""
    story = taking_over()
    refused(story, set(Pool), until_s=200)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(20)
    assert len(story.cluster.orphans()) == 6
    story.vanish(*SPOT)
    story.wait(200 - story.cluster.now)
    assert story.available() == 3
    story.wait(STARTS_WITHIN_S)
    assert story.available() == 6


@pytest.mark.parametrize("gone", [1, 2])
def test_some_of_it_for_as_long_as_it_takes(gone: int) -> None:
    """What stands on on-demand has its owner, which makes what was lost while the rest of spot waits."""
    story = taking_over()
    refused(story, {Pool.SPOT}, until_s=600)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(20)
    story.vanish(*SPOT[:gone])
    story.wait(60 + STARTS_WITHIN_S)
    assert story.available() == 6
    story.add_spot("spot-d", "spot-e")
    story.wait(600 - story.cluster.now)
    story.wait(3600)
    assert story.available() == 6
    assert [twin.replicas for twin in story.cluster.twins.values()] == [1, 5]


def test_what_never_stood_there_is_no_loss() -> None:
    """A twin that makes a pod more than it adopts, because N has grown, is asked for spot without a soak."""
    story = taking_over()
    refused(story, set(Pool), until_s=100)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(20)
    story.scale(8)
    story.wait(600)
    assert [twin.replicas for twin in story.cluster.twins.values()] == [1, 7]


def test_pods_that_have_finished_leave_no_trace() -> None:
    """A node's shutdown leaves Failed pods behind. Their ReplicaSet goes, and so do they, there and back."""
    story = taking_over()
    _shut_down(story)
    story.label(on_demand_base="1")
    story.wait(900)
    assert not [pod for pod in story.cluster.pods.values() if not pod.owner]
    _shut_down(story)
    story.unlabel()
    story.wait(300)
    assert story.cluster.split is None
    assert not [pod for pod in story.cluster.pods.values() if not pod.owner]
    assert (story.available(), story.promises.least_available) == (6, 6)


def _shut_down(story: Story) -> None:
    """Have what a node's shutdown left behind: two finished pods beside those that took their place."""
    cluster = story.cluster
    for pod in [pod for pod in cluster.pods.values() if pod.active][:2]:
        left = cluster.name(pod.name.rpartition("-")[0])
        cluster.pods[left] = replace(pod, name=left, uid=f"uid-{left}", ready_since=None, finished=True)
    story.happens("a node was shut down and is back: two pods are Failed")
