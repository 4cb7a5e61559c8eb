"""A drain ends although some replicas are in trouble of their own, and waits for the replacements."""

from typing import Any

import pytest

from stories.director import STARTS, Story
from world import clock
from world.controllers.kubelet import Timing
from world.kinds import BUDGETS, PODS, Raw, Ref, path_of
from world.pods import is_ready

SLOW = Timing(start_s=1.0, ready_s=59.0, end_s=2.0)


class Drained(Story):
    """A split workload, half of it on on-demand, of whose nodes people drain some."""

    def __init__(self, replicas: int, timing: Timing = STARTS, **annotations: str) -> None:
        super().__init__("Drains", replicas, max(1, replicas // 4), 0, timing=timing)
        base = str(replicas // 2)
        self.label(on_demand_base=base, spot_percent="100", grace="180s", **annotations)
        self.wait(900)

    def on_pool(self, pool: str) -> list[Raw]:
        """Return the pods that are ready on a pool."""
        return [pod for pod in self.scene.on(pool) if is_ready(pod)]

    def crashes(self, *pods: Raw) -> None:
        """Have replicas crash, again and again."""
        self._ail(self.cluster.machines.crashing.update, dict.fromkeys(map(_uid, pods), clock.START))

    def fails(self, pod: Raw) -> None:
        """Have a replica fail its probe."""
        self._ail(self.cluster.machines.ill.add, _uid(pod))

    def recovers(self, pod: Raw) -> None:
        """Have it serve again."""
        self.cluster.machines.crashing.pop(_uid(pod), None)
        self._ail(self.cluster.machines.ill.discard, _uid(pod))

    def _ail(self, act: Any, what: object) -> None:  # noqa: ANN401 (a method of a set or a mapping)
        def acts() -> None:
            act(what)
            self.cluster.kubelets.look_at()

        self.happens("some replica fails, or recovers", acts)

    def put(self, pods: list[Raw], nodes: tuple[str, ...]) -> None:
        """Have pods been bound elsewhere from the first."""

        def moved() -> None:
            for pod, node in zip(pods, nodes, strict=True):
                path = path_of(PODS, "shop", pod["metadata"]["name"])
                live = self.objects.get(Ref(PODS, "shop", pod["metadata"]["name"]))
                self.objects.put(path, {**live, "spec": {**live["spec"], "nodeName": node}})

        self.act(moved)

    @property
    def keeps(self) -> int:
        """How many pods evictions have to leave."""
        return int(self.objects.get(Ref(BUDGETS, "shop", "web-guard"))["spec"]["minAvailable"])

    @property
    def says(self) -> str:
        """What the Split says of it."""
        return str(self.scene.status["guard"])


def _uid(pod: Raw) -> str:
    return str(pod["metadata"]["uid"])


@pytest.mark.parametrize("evictions", ["one-at-a-time", "surge-first"])
@pytest.mark.parametrize(("replicas", "ill"), [(4, 1), (6, 2), (8, 3)])
def test_some_crash_since_before_it(replicas: int, ill: int, evictions: str) -> None:
    """One node after the other: replacements are waited for, those that crash are not."""
    story = Drained(replicas, evictions=evictions)
    story.crashes(*story.on_pool("spot")[:ill])
    story.wait(600)
    story.judge.begin()
    for node in ("od-1", "od-2", "od-1"):
        story.drain(node)
        story.wait(300)
        assert not story.drains
        assert story.judge.least_serving >= replicas - ill - (evictions == "one-at-a-time")
    assert story.scene.serving() >= replicas - ill
    assert story.keeps == replicas - (evictions == "one-at-a-time")


@pytest.mark.parametrize("evictions", ["one-at-a-time", "surge-first"])
def test_no_replacement_is_asked_for(evictions: str) -> None:
    """On-demand still has one more for an earlier drain. After the grace one goes, and has a successor."""
    story = Drained(4, evictions=evictions)
    story.crashes(story.on_pool("spot")[0])
    story.wait(600)
    story.drain("od-1")
    story.wait(300)
    story.put(story.on_pool("od-"), ("od-1", "od-2", "od-2"))
    story.drain("od-1")
    story.wait(100)
    assert story.drains
    story.wait(300)
    assert not story.drains
    assert story.scene.serving() == 4


def test_one_crashes_in_the_middle() -> None:
    """It was there before the sign, and is not waited for; its node's replacements are."""
    story = Drained(4, SLOW)
    story.drain("od-1")
    story.crashes(story.on_pool("spot")[0])
    story.wait(30)
    assert story.drains
    story.wait(600)
    assert not story.drains
    assert story.scene.serving() >= 3


@pytest.mark.parametrize("why", ["ImagePullFailed", "no node"])
def test_the_replacements_do_not_come_up(why: str) -> None:
    """One goes as at rest, once the time for a start is over. The Split says for whom the others wait."""
    story = Drained(4)
    story.put(story.on_pool("od-"), ("od-1", "od-1"))
    if why == "no node":
        taken = {name.replace("-", "_"): len(story.scene.on(name)) for name in ("od-1", "od-2")}
        story.act(story.headroom(**taken))
    else:
        story.registry(answers=False)
    story.drain("od-1")
    story.wait(120)
    assert (story.scene.serving(), story.keeps) == (4, 4)
    story.wait(3600)
    assert (story.scene.serving(), story.keeps) == (3, 3)
    assert list(story.drains) == ["od-1"]
    assert story.says.startswith("web-guard keeps 3 of 4: evictions wait for web-on-demand-")
    assert f"({why})" in story.says


def test_one_is_unready_for_a_moment() -> None:
    """Which opens nothing."""
    story = Drained(4, SLOW)
    pod = story.on_pool("spot")[0]
    story.fails(pod)
    story.drain("od-1")
    assert story.keeps == 4
    assert story.says.startswith("web-guard keeps 4 of 4: evictions wait for ")
    assert f"{pod['metadata']['name']} (starting)" in story.says
    story.wait(20)
    story.recovers(pod)
    story.wait(30)
    assert story.drains
    story.wait(60)
    assert not story.drains


def test_a_cordon_that_lasts() -> None:
    """It keeps N for the whole time, and less only while a replica crashes."""
    story = Drained(4)
    story.put(story.on_pool("od-"), ("od-1", "od-1"))
    story.happens("od-1 is cordoned", story.cordon("od-1"))
    story.wait(3600)
    pod = story.on_pool("spot")[0]
    story.crashes(pod)
    assert story.keeps >= 3
    story.recovers(pod)
    story.wait(600)
    assert story.scene.serving() >= 4


def test_scaled_up_in_the_middle() -> None:
    """New replicas are waited for, also by drains of nodes that come later."""
    story = Drained(4, SLOW)
    story.drain("od-1")
    story.scale(6)
    story.drain("od-2")
    story.wait(30)
    assert story.keeps == 6
    story.wait(600)
    assert not story.drains
    assert story.scene.serving() == 6
