"""Spot goes while pods have no owner, and the API server refuses the writes that would give them one."""

from dataclasses import replace

import pytest

from splitter.core.actions import Action, AdoptPods
from splitter.core.model import Pool
from splitter.core.plan import Plan
from stories.counting import Story

SPOT = ("spot-a", "spot-b", "spot-c")
STARTS_WITHIN_S = 15


def taking_over() -> Story:
    """Return a story of a workload of 6, half of which stands on spot, that is not split yet."""
    return Story("Spot goes while pods have no owner", replicas=6, surge=1, unavailable=1)


def refused(story: Story, pools: set[Pool], until_s: int, *, home: bool = False) -> None:
    """Have the API server refuse the ReplicaSets that would adopt pods of these pools, for so long."""
    begin, judge = story.splitter.begin, story.splitter.judge

    def planned() -> Plan:
        story.splitter.refused_until = 0
        return begin()

    def judged(action: Action) -> None:
        judge(action)
        if isinstance(action, AdoptPods) and (action.pool in pools or (home and action.pool is None)):
            if story.cluster.now >= until_s:
                return
            story.splitter.refused_until = until_s

    story.splitter.begin = planned  # type: ignore[method-assign]
    story.splitter.judge = judged


def test_all_of_it_for_a_while() -> None:
    """The pods are replaced, make before break; spot that goes meanwhile is covered at once."""
    story = taking_over()
    refused(story, set(Pool), until_s=200)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(5)
    assert len(story.cluster.orphans()) == 6
    story.vanish(*SPOT)
    story.wait(STARTS_WITHIN_S)
    assert story.available() >= 6
    story.add_spot("spot-d", "spot-e")
    story.wait(3600)
    assert [twin.replicas for twin in story.cluster.twins.values()] == [1, 5]
    assert not story.cluster.orphans()


@pytest.mark.parametrize(
    "pools", [{Pool.SPOT}, {Pool.ON_DEMAND}, set(Pool)], ids=["spot", "on-demand", "both"]
)
def test_for_as_long_as_it_takes(pools: set[Pool]) -> None:
    """Nothing is waited for: after 10 s pods are made beside those that nothing adopts, and those end."""
    story = taking_over()
    refused(story, pools, until_s=10**6)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(600)
    assert not story.cluster.orphans()
    assert [twin.replicas for twin in story.cluster.twins.values()] == [1, 5]
    assert (story.available(), story.promises.least_available) == (6, 6)
    assert story.promises.most_placed <= 6 + 2


@pytest.mark.parametrize("gone", [1, 2])
def test_some_of_it(gone: int) -> None:
    """What was lost is made good while the rest of spot has no owner."""
    story = taking_over()
    refused(story, {Pool.SPOT}, until_s=600)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(5)
    story.vanish(*SPOT[:gone])
    story.wait(STARTS_WITHIN_S)
    assert story.available() >= 6
    story.add_spot("spot-d", "spot-e")
    story.wait(3600)
    assert story.available() == 6
    assert [twin.replicas for twin in story.cluster.twins.values()] == [1, 5]


def test_the_source_takes_them_back() -> None:
    """On the way back the source is resumed: the ReplicaSet that it makes has the hash of its pods."""
    story = taking_over()
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(900)
    refused(story, set(), until_s=10**6, home=True)
    story.unlabel()
    story.wait(300)
    assert story.cluster.split is None
    assert (story.available(), story.promises.least_available) == (6, 6)
    assert not [pod for pod in story.cluster.pods.values() if not pod.owner]


def test_a_garbage_collector_that_is_slow() -> None:
    """Its last pods are let go when most are replaced already: those that are late end, too."""
    story = taking_over()
    story.cluster.collector_lag_s = 25
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(900)
    assert not story.cluster.orphans()
    assert [twin.replicas for twin in story.cluster.twins.values()] == [1, 5]
    assert (story.available(), story.promises.least_available) == (6, 6)


@pytest.mark.parametrize("loss", [False, True])
@pytest.mark.parametrize("ends_s", [10**6, 200])
def test_a_garbage_collector_that_is_refused(ends_s: int, loss: bool) -> None:
    """By a policy against pods without an owner: that is told, losses are covered, and it ends split."""
    story = taking_over()
    story.cluster.collector_refused_until = ends_s
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(5)
    if loss:
        story.vanish(*SPOT)
        story.wait(STARTS_WITHIN_S)
        assert story.available() >= 6
        story.add_spot("spot-d", "spot-e")
    story.wait(20)
    assert story.promises.least_available == (6 if not loss else story.promises.least_available)
    said = [one.reason for one in story.cluster.split.read().decisions] if story.cluster.split else []
    assert "HandoverHangs" in said
    story.wait(3600)
    assert [twin.replicas for twin in story.cluster.twins.values()] == [1, 5]
    assert story.available() == 6


@pytest.mark.parametrize("after_s", [3, 12, 30, 900])
def test_the_way_back_while_it_is_refused(after_s: int) -> None:
    """The label is removed, at whatever moment: the source gets its own pods, and nothing is below N."""
    story = taking_over()
    story.cluster.collector_refused_until = 10**6
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(after_s)
    story.unlabel()
    story.wait(900)
    assert story.cluster.split is None
    assert not story.cluster.twins
    assert (story.available(), story.promises.least_available) == (6, 6)
    assert not story.cluster.source.paused


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


@pytest.mark.parametrize("pool", list(Pool))
def test_a_pod_that_a_user_took_out(pool: Pool) -> None:
    """It is the user's to look at: it holds up no twin that is paused by hand, no count and no cover."""
    story = taking_over()
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(900)
    cluster = story.cluster
    taken = next(pod for pod in cluster.pods.values() if pod.active and pod.label is pool)
    taken.owner, taken.hash, taken.taken_out = "", "debug", True
    story.happens("a pod is taken out: pod-template-hash=debug")
    for twin in cluster.twins.values():
        cluster.change_spec(twin, paused=True)
        story.happens(f"{twin.name} is paused")
        assert not twin.paused
    story.scale(8)
    story.vanish(*SPOT)
    story.wait(STARTS_WITHIN_S + 60)
    assert sum(cluster.available(pod) for pod in cluster.pods.values() if not pod.taken_out) == 8
    assert pool is Pool.SPOT or taken.name in cluster.pods
