"""A drain ends although some replicas are in trouble of their own, and waits for the replacements as before.

Drainers, the disruption controller and the judge are those of the random lives (`budgets`, `chance`).
"""

from collections import deque
from collections.abc import Callable
from random import Random

import pytest

from splitter.core.model import Trouble
from splitter.core.plan import Rules
from splitter.core.reasons import Reason
from stories import budgets
from stories.chance import POLICY, Life
from stories.cluster import Cluster, Pod
from stories.controllers import next_due
from stories.promises import Promises, check_action
from stories.reconciles import Splitter

CRASHES = Trouble(Reason.CRASH_LOOPING, "container c ends with exit code 1")


class Drained(Life):
    """A split workload with drains, budgets and their judge, told by hand."""

    def __init__(self, replicas: int, **annotations: str) -> None:  # another beginning than that of a life
        self.dice = Random(1)
        self.cluster = Cluster(replicas, max(1, replicas // 4), 0)
        self.cluster.start_s, self.cluster.stop_s = 5, 2
        self.cluster.budgets_refused_until = 0
        self.promises, self.guarded = Promises(self.cluster), budgets.Guarded(self.cluster)
        self.splitter = Splitter(self.cluster, Rules(defaults=POLICY))
        self.splitter.judge = lambda action: check_action(self.cluster, action)
        self.seen_turn, self.nodes, self.images, self.log = 0, 0, 1, deque[str](maxlen=80)
        for _ in range(2):
            self._add_node(spot=False, slots=40)
        for _ in range(3):
            self._add_node(spot=True, slots=12)
        self._settle()
        self.cluster.now += 30
        self.cluster.annotate(
            on_demand_base=str(replicas // 2), spot_percent="100", grace="180s", **annotations
        )
        self.cluster.label(on=True)
        self.wait(900)

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        end = self.cluster.now + seconds
        self._settle()
        while self.cluster.now < end:
            due = [at for at in next_due(self.cluster) if at > self.cluster.now]
            if self.splitter.wake_at is not None and self.splitter.wake_at > self.cluster.now:
                due.append(self.splitter.wake_at)
            due += [self.cluster.now + budgets.RETRY_S] if self.cluster.drains else []
            self.cluster.now = min([end, *due])
            self._settle()

    def pods(self, *, spot: bool) -> list[Pod]:
        """Return the pods that serve on a pool."""
        nodes = self.cluster.nodes
        serving = (pod for pod in self.cluster.pods.values() if pod.active and pod.ready_since is not None)
        return [pod for pod in serving if nodes[pod.node or ""].spot is spot]

    def unready(self, pod: Pod, seconds: int | None) -> None:
        """Have a replica be unready for so long; None: it crashes, again and again."""

        def fails() -> None:
            pod.ready_since = None
            pod.ready_due = self.cluster.now + (self.cluster.start_s if seconds is None else seconds)
            if seconds is None:
                pod.template, pod.trouble = "broken", CRASHES

        self.happens(fails)

    def recover(self, pod: Pod) -> None:
        """Have it serve again."""
        self.happens(lambda: vars(pod).update(template="v1", trouble=None, ready_due=self.cluster.now))

    def happens(self, act: Callable[[], None]) -> None:
        """Let something happen, and everybody answer."""
        self._world("something happens", act)
        self._settle()

    def drain(self, node: str) -> None:
        """Cordon a node, then begin to drain it; it comes back when it is empty."""

        def cordoned() -> None:
            self.cluster.nodes[node].doomed = self.cluster.nodes[node].cordoned = True

        self.happens(cordoned)
        self.happens(lambda: self._begin(node, back=True))

    @property
    def keeps(self) -> int | None:
        """How many pods evictions have to leave."""
        return self.cluster.budgets[budgets.GUARD].min_available

    @property
    def says(self) -> str:
        """What the Split says of it."""
        assert self.cluster.split is not None
        return str(self.cluster.split.status["guard"])

    @property
    def serving(self) -> int:
        """How many replicas serve."""
        return len(self.pods(spot=True)) + len(self.pods(spot=False))


@pytest.mark.parametrize("evictions", ["one-at-a-time", "surge-first"])
@pytest.mark.parametrize(("replicas", "ill"), [(4, 1), (6, 2), (8, 3)])
def test_some_crash_since_before_it(replicas: int, ill: int, evictions: str) -> None:
    """One node after the other: replacements are waited for (the judge), those that crash are not."""
    scene = Drained(replicas, evictions=evictions)
    for pod in scene.pods(spot=True)[:ill]:
        scene.unready(pod, None)
    scene.wait(600)
    for node in ("od-1", "od-2", "od-1"):
        scene.drain(node)
        scene.wait(300)
        assert not scene.cluster.drains
        assert scene.serving >= replicas - ill
    assert scene.keeps == replicas - (evictions == "one-at-a-time")


@pytest.mark.parametrize("evictions", ["one-at-a-time", "surge-first"])
def test_no_replacement_is_asked_for(evictions: str) -> None:
    """On-demand still has one more for an earlier drain. After the grace one goes, and has a successor."""
    scene = Drained(4, evictions=evictions)
    scene.unready(scene.pods(spot=True)[0], None)
    scene.wait(600)
    scene.drain("od-1")
    scene.wait(300)

    def one_a_node() -> None:
        for pod, node in zip(scene.pods(spot=False), ("od-1", "od-2", "od-2"), strict=True):
            pod.node = node

    scene.happens(one_a_node)
    scene.drain("od-1")
    scene.wait(100)
    assert scene.cluster.drains
    scene.wait(300)
    assert not scene.cluster.drains
    assert scene.serving == 4


def test_one_crashes_in_the_middle() -> None:
    """It was there before the sign, and is not waited for; its node's replacements are."""
    scene = Drained(4)
    scene.cluster.start_s = 60
    scene.drain("od-1")
    scene.unready(scene.pods(spot=True)[0], None)
    scene.wait(30)
    assert scene.cluster.drains
    scene.wait(600)
    assert not scene.cluster.drains
    assert scene.serving >= 3


@pytest.mark.parametrize("why", ["ImagePullFailed", "no node"])
def test_the_replacements_do_not_come_up(why: str) -> None:
    """One goes as at rest, once the time for a start is over. The Split says for whom the others wait."""
    scene = Drained(4)

    def none_comes_up() -> None:
        scene.cluster.registry_answers = why == "no node"
        for pod in scene.pods(spot=False):
            pod.node = "od-1"
        for node in scene.cluster.nodes.values() if why == "no node" else ():
            node.slots = sum(pod.node == node.name for pod in scene.cluster.pods.values())

    scene.happens(none_comes_up)
    scene.drain("od-1")
    scene.wait(120)
    assert (scene.serving, scene.keeps) == (4, 4)
    scene.wait(3600)
    assert (scene.serving, scene.keeps) == (3, 3)
    assert list(scene.cluster.drains) == ["od-1"]
    assert scene.says.startswith("web-guard keeps 3 of 4: evictions wait for web-on-demand-v1-")
    assert f"({why})" in scene.says


def test_one_is_unready_for_a_moment() -> None:
    """Which opens nothing."""
    scene = Drained(4)
    scene.cluster.start_s = 60
    pod = scene.pods(spot=True)[0]
    scene.unready(pod, 20)
    scene.drain("od-1")
    assert scene.keeps == 4
    assert scene.says.startswith("web-guard keeps 4 of 4: evictions wait for ")
    assert f"{pod.name} (starting)" in scene.says
    scene.wait(50)
    assert scene.cluster.drains
    scene.wait(60)
    assert not scene.cluster.drains


def test_a_cordon_that_lasts() -> None:
    """It keeps N for the whole time, and less only while a replica crashes."""
    scene = Drained(4)

    def cordoned() -> None:
        scene.cluster.nodes["od-1"].doomed = scene.cluster.nodes["od-1"].cordoned = True
        for pod in scene.pods(spot=False):
            pod.node = "od-1"

    scene.happens(cordoned)
    scene.wait(3600)
    [pod, *_] = scene.pods(spot=True)
    scene.unready(pod, None)
    assert scene.keeps is not None
    assert scene.keeps >= 3
    scene.recover(pod)
    scene.wait(600)
    assert scene.serving >= 4


def test_scaled_up_in_the_middle() -> None:
    """New replicas are waited for, also by drains of nodes that come later."""
    scene = Drained(4)
    scene.cluster.start_s = 60
    scene.drain("od-1")
    scene.happens(lambda: scene.cluster.change_spec(scene.cluster.source, replicas=6))
    scene.drain("od-2")
    scene.wait(30)
    assert scene.keeps == 6
    scene.wait(600)
    assert not scene.cluster.drains
    assert scene.serving == 6
