"""Spot goes while pods have no owner, and the API server refuses the writes that would give them one."""

import copy

import pytest

from splitter.core.replica import Pool
from splitter.kube.client import ApiError
from stories.director import Story
from world.admission import Request
from world.controllers.garbage import Garbage
from world.kinds import PODS, REPLICA_SETS, Raw, Ref
from world.pods import controller_of
from world.workloads import changed

SPOT = ("spot-a", "spot-b", "spot-c")
TWINS = {Pool.SPOT: "web-spot", Pool.ON_DEMAND: "web-on-demand"}
STARTS_WITHIN_S = 15
FOR_EVER = 10.0**6


def taking_over() -> Story:
    """Return a story of a workload of 6, half of which is on spot, that is not split yet."""
    return Story("Spot goes while pods have no owner", replicas=6, surge=1, unavailable=1)


def refused(story: Story, adopters: set[str], until_s: float) -> None:
    """Have the API server refuse the ReplicaSets of these owners that would adopt pods, for so long."""

    def judged(request: Request) -> None:
        owner = controller_of(request.new or {"metadata": {}})
        made = request.verb == "create" and request.ref.kind == REPLICA_SETS and owner is not None
        if made and owner is not None and owner["name"] in adopters and story.at() < until_s:
            raise ApiError(403, "Forbidden", "replicasets are forbidden")

    story.at_write(judged)


def test_all_of_it_for_a_while() -> None:
    """The pods are replaced, make before break; spot that goes meanwhile is covered at once."""
    story = taking_over()
    refused(story, {*TWINS.values()}, until_s=200)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(5)
    assert len(story.scene.unowned()) == 6
    story.vanish(*SPOT)
    story.wait(STARTS_WITHIN_S)
    assert story.available() >= 6
    story.add_spot("spot-d", "spot-e")
    story.wait(3600)
    assert story.scene.counts() == (1, 5)
    assert not story.scene.unowned()


@pytest.mark.parametrize(
    "pools", [{Pool.SPOT}, {Pool.ON_DEMAND}, set(Pool)], ids=["spot", "on-demand", "both"]
)
def test_for_as_long_as_it_takes(pools: set[Pool]) -> None:
    """Nothing is waited for: after 10 s pods are made beside those that nothing adopts, and those end."""
    story = taking_over()
    refused(story, {TWINS[pool] for pool in pools}, until_s=FOR_EVER)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(600)
    assert not story.scene.unowned()
    assert story.scene.counts() == (1, 5)
    assert (story.available(), story.judge.least_available) == (6, 6)
    assert story.judge.most_placed <= 6 + 2


@pytest.mark.parametrize("gone", [1, 2])
def test_some_of_it(gone: int) -> None:
    """What was lost is made good while the rest of spot has no owner."""
    story = taking_over()
    refused(story, {TWINS[Pool.SPOT]}, until_s=600)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(5)
    story.vanish(*SPOT[:gone])
    story.wait(STARTS_WITHIN_S)
    assert story.available() >= 6
    story.add_spot("spot-d", "spot-e")
    story.wait(3600)
    assert story.available() == 6
    assert story.scene.counts() == (1, 5)


def test_the_source_takes_them_back() -> None:
    """On the way back the source is resumed: the ReplicaSet that it makes has the hash of its pods."""
    story = taking_over()
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(900)
    refused(story, {"web"}, until_s=FOR_EVER)
    story.unlabel()
    story.wait(300)
    assert story.scene.split is None
    assert (story.available(), story.judge.least_available) == (6, 6)
    assert not story.scene.unowned()


def test_a_garbage_collector_that_is_slow() -> None:
    """Its last pods are let go when most are replaced already: those that are late end, too."""
    story = taking_over()
    story.cluster.garbage.late_s = (25.0, 25.0)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(900)
    assert not story.scene.unowned()
    assert story.scene.counts() == (1, 5)
    assert (story.available(), story.judge.least_available) == (6, 6)


def collector_refused(story: Story, ends_s: float) -> None:
    """Have a policy keep the garbage collector from taking the owner off pods."""
    story.refuse(
        lambda request: (
            request.ref.kind == PODS
            and request.verb == "update"
            and request.user == Garbage.user
            and story.at() < ends_s
        )
    )


@pytest.mark.parametrize("loss", [False, True])
@pytest.mark.parametrize("ends_s", [FOR_EVER, 200])
def test_a_garbage_collector_that_is_refused(ends_s: float, loss: bool) -> None:
    """By a policy against pods without an owner: that is told, losses are covered, and it ends split."""
    story = taking_over()
    collector_refused(story, ends_s)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(5)
    if loss:
        story.vanish(*SPOT)
        story.wait(STARTS_WITHIN_S)
        assert story.available() >= 6
        story.add_spot("spot-d", "spot-e")
    story.wait(20)
    assert loss or story.judge.least_available == 6
    assert "HandoverHangs" in story.said()
    story.wait(3600)
    assert story.scene.counts() == (1, 5)
    assert story.available() == 6


@pytest.mark.parametrize("after_s", [3, 12, 30, 900])
def test_the_way_back_while_it_is_refused(after_s: int) -> None:
    """The label is removed, at whatever moment: the source gets its own pods, and nothing is below N."""
    story = taking_over()
    collector_refused(story, FOR_EVER)
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(after_s)
    story.unlabel()
    story.wait(900)
    assert story.scene.split is None
    assert not story.scene.twins
    assert (story.available(), story.judge.least_available) == (6, 6)
    assert not story.scene.source["spec"].get("paused")


def test_pods_that_have_finished_leave_no_trace() -> None:
    """A node's shutdown leaves Failed pods behind. Their ReplicaSet goes, and so do they, there and back."""
    story = taking_over()
    _shut_down(story)
    story.label(on_demand_base="1")
    story.wait(900)
    assert not _without_owner(story)
    _shut_down(story)
    story.unlabel()
    story.wait(300)
    assert story.scene.split is None
    assert not _without_owner(story)
    assert (story.available(), story.judge.least_available) == (6, 6)


def _without_owner(story: Story) -> list[Raw]:
    return [pod for pod in story.objects.all(PODS, "shop") if controller_of(pod) is None]


def _shut_down(story: Story) -> None:
    """Have what a node's shutdown left behind: two finished pods beside those that took their place."""

    def left_behind() -> None:
        for number, pod in enumerate(story.scene.pods()[:2]):
            raw = copy.deepcopy(pod)
            name = f"{pod['metadata']['name'][:-1]}{number}"
            metadata = {**raw["metadata"], "name": name, "uid": f"uid-{name}"}
            status = {"phase": "Failed", "reason": "Terminated", "conditions": []}
            story.objects.put(
                f"/api/v1/namespaces/shop/pods/{name}", {**raw, "metadata": metadata, "status": status}
            )

    story.happens("a node was shut down and is back: two pods are Failed", left_behind)


@pytest.mark.parametrize("pool", list(Pool))
def test_a_pod_that_a_user_took_out(pool: Pool) -> None:
    """It is the user's to look at: it holds up no twin that is paused by hand, no count and no cover."""
    story = taking_over()
    story.label(on_demand_base="1", spot_percent="100")
    story.wait(900)
    taken = Ref(PODS, "shop", story.scene.pods(story.scene.twins[pool])[0]["metadata"]["name"])

    def take_out() -> None:
        changed(
            story.cluster, taken, lambda raw: raw["metadata"]["labels"].update({"pod-template-hash": "debug"})
        )

    story.happens("a pod is taken out: pod-template-hash=debug", take_out)
    for one in Pool:
        pause = story.changed(lambda raw: raw["spec"].update(paused=True), story.twin(one))
        story.happens(f"{one} is paused", pause)
        story.wait(1)
        assert not story.scene.twins[one]["spec"].get("paused")
    story.scale(8)
    story.vanish(*SPOT)
    story.wait(STARTS_WITHIN_S + 60)
    assert story.available() - (pool is Pool.ON_DEMAND) == 8
    assert pool is Pool.SPOT or story.objects.find(taken) is not None
