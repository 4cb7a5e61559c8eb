"""Pods that may not be let go: what a policy refuses in the rehearsal, at whatever moment (H18, H52)."""

import pytest

from splitter.core.actions import Action, OrphanPods, SetPaused
from splitter.core.deployment import unowned
from stories.counting import Story

N = 6


def keeps(story: Story, until_s: int) -> list[Action]:
    """Have a policy keep pods from being let go for so long; return the list of all writes to come."""
    writes, judge = list[Action](), story.splitter.judge
    story.splitter.keeps_owners = lambda: story.cluster.now < until_s

    def judged(action: Action) -> None:
        judge(action)
        writes.append(action)

    story.splitter.judge = judged
    return writes


def workload() -> Story:
    """Return a story of a workload that is not split yet."""
    return Story("Pods may not be let go", replicas=N, surge=1, unavailable=1)


@pytest.mark.parametrize("until_s", [90, 700])
def test_a_take_over_that_is_refused_for_a_while(until_s: int) -> None:
    """The source goes on by itself meanwhile; the next pause is splitter's own, and no conflict."""
    story = workload()
    writes = keeps(story, until_s)
    story.label(on_demand_base="3")
    story.wait(1800)
    assert [one.paused for one in writes if isinstance(one, SetPaused)] == [True, False, True]
    assert story.cluster.split is not None
    assert "ForeignUnpause" not in {one.reason for one in story.cluster.split.read().decisions}
    assert [twin.replicas for twin in story.cluster.twins.values()] == [3, 3]
    assert (story.available(), story.promises.least_available) == (N, N)


def test_a_policy_that_comes_and_goes() -> None:
    """A source that is paused and resumed again and again by splitter alone ends in no Conflict."""
    story = workload()
    writes = keeps(story, 0)
    answers = iter([True, False] * 5)  # not at the pause, but when its pods are let go
    story.splitter.keeps_owners = lambda: next(answers, False)
    story.label(on_demand_base="3")
    story.wait(1800)
    assert sum(isinstance(one, SetPaused) for one in writes) > 6
    assert story.cluster.split is not None
    assert story.cluster.split.read().state == "Steady"


def test_half_of_it_is_let_go_on_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the other half may not be any more: the source is resumed once, and makes its own pods."""
    story = workload()
    story.label(on_demand_base="3")
    story.wait(900)
    story.set_image("v2")  # whose pods have the twins' hashes: no ReplicaSet of the source adopts them
    story.wait(900)
    writes, write_next = keeps(story, 0), story.splitter.write_next
    begun = story.cluster.instant(story.cluster.now)
    monkeypatch.setattr(unowned, "let_go_at", lambda _: begun)

    def loses_the_second() -> bool:
        done = write_next()
        if isinstance(writes[-1], OrphanPods) and not story.splitter.keeps_owners():
            story.splitter.keeps_owners = lambda: True
            story.splitter.pending.clear()
            return False
        return done

    story.splitter.write_next = loses_the_second  # type: ignore[method-assign]
    story.unlabel()
    story.wait(600)
    assert [one.paused for one in writes if isinstance(one, SetPaused)] == [False]
    assert story.cluster.split is None
    assert not [pod for pod in story.cluster.pods.values() if not pod.owner]
    assert (story.available(), story.promises.least_available) == (N, N)
    assert story.promises.most_placed <= 2 * N
