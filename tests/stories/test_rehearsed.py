"""Pods that may not be let go: what a policy refuses in the rehearsal, at whatever moment (H18, H52)."""

import pytest

from splitter.kube.client import ApiError
from stories.director import Story
from world.admission import Request
from world.kinds import PODS, REPLICA_SETS
from world.pods import controller_of

N = 6


def pauses(story: Story) -> list[bool]:
    """Return what splitter writes of the source's pause from now on."""
    writes = list[bool]()

    def noted(request: Request) -> None:
        if request.ref == story.ref and request.old is not None and request.new is not None:
            was, now = (bool(one["spec"].get("paused")) for one in (request.old, request.new))
            writes.extend([now] if was is not now else [])

    story.at_write(noted)
    return writes


def loses_owner(request: Request) -> bool:
    """Whether a request takes the owner off a pod."""
    old, new = request.old, request.new
    is_pod = request.ref.kind == PODS and old is not None and new is not None
    return is_pod and controller_of(old or {}) is not None and controller_of(new or {}) is None


def workload() -> Story:
    """Return a story of a workload that is not split yet."""
    return Story("Pods may not be let go", replicas=N, surge=1, unavailable=1)


@pytest.mark.parametrize("until_s", [90, 700])
def test_a_take_over_that_is_refused_for_a_while(until_s: int) -> None:
    """The source goes on by itself meanwhile; the next pause is splitter's own, and no conflict."""
    story = workload()
    writes = pauses(story)
    policy = {"keeps": False}
    story.refuse(lambda request: policy["keeps"] and story.at() < until_s and loses_owner(request))
    # It comes when the source is paused: a take-over that it forbids from the first does not begin.
    story.at_write(lambda request: policy.update(keeps=policy["keeps"] or request.ref == story.ref))
    story.label(on_demand_base="3")
    story.wait(1800)
    assert writes == [True, False, True]
    assert "ForeignWrite" not in story.said()
    assert story.scene.counts() == (3, 3)
    assert (story.available(), story.judge.least_available) == (N, N)


def test_a_policy_that_comes_and_goes() -> None:
    """A source that is paused and resumed again and again by splitter alone ends in no Conflict."""
    story = workload()
    writes = pauses(story)
    # Not before the pause, but when its pods are let go.
    story.refuse(lambda request: len(writes) < 8 and len(writes) % 2 == 1 and loses_owner(request))
    story.label(on_demand_base="3")
    story.wait(1800)
    assert len(writes) > 6
    assert story.scene.status["state"] == "Steady"


def test_half_of_it_is_let_go_on_the_way_back() -> None:
    """And the other half may not be any more: the source is resumed once, and makes its own pods."""
    story = workload()
    story.label(on_demand_base="3")
    story.wait(900)
    story.set_image("web:2")  # whose pods have the twins' hashes: no ReplicaSet of the source adopts them
    story.wait(900)
    writes, gone = pauses(story), list[str]()

    def loses_the_second(request: Request) -> None:
        if request.verb == "delete" and request.ref.kind == REPLICA_SETS:
            gone.append(request.ref.name)
            if len(gone) == 2:
                raise ApiError(409, "Conflict", "it was changed")

    story.at_write(loses_the_second)
    story.refuse(
        lambda request: (
            len(gone) > 1
            and loses_owner(request)
            and (controller_of(request.old or {}) or {})["name"] != gone[0]
        )
    )
    story.unlabel()
    story.wait(600)
    assert writes == [False]
    assert story.scene.split is None
    assert not story.scene.unowned()
    assert (story.available(), story.judge.least_available) == (N, N)
    assert story.judge.most_placed <= 2 * N
