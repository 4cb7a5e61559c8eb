"""What splitter waits for stops for 20 minutes, at any moment: no wait hides that, or breaks a promise.

kube-controller-manager loses its Lease, the scheduler is upgraded, a kubelet's registry is down: such things
end, and then everything goes on from where it is.
"""

from collections.abc import Callable
from typing import Any

import pytest

from stories.director import Story
from stories.members import Members
from stories.placement import BOTH, PlacementStory
from world.controllers.deployment import Deployments
from world.controllers.garbage import Garbage
from world.controllers.kubelet import Kubelets
from world.controllers.loop import Controller, Key
from world.controllers.replica_set import ReplicaSets
from world.controllers.scheduler import Scheduler
from world.controllers.stateful_set import StatefulSets

ACTORS = (Deployments, ReplicaSets, Garbage, Scheduler, Kubelets)
MOMENTS: dict[str, Callable[[Story], Any]] = {
    "label": Story.label,
    "unlabel": Story.unlabel,
    "image": lambda story: story.set_image("web:2"),
    "more": lambda story: story.scale(14),
    "fewer": lambda story: story.scale(6),
    "notice": lambda story: story.notice("spot-a"),
}
STOPS_S, ENDS_S = 1200.0, 1800.0


class Stopped:
    """A controller that takes keys and does nothing about them, until it goes on."""

    def __init__(self, story: Story, kind: type[Controller]) -> None:
        self._controller = next(one for one in story.cluster.controllers if type(one) is kind)
        self._sync = self._controller.sync
        self._keys = dict[Key, None]()
        self._controller.sync = self._take  # type: ignore[method-assign]

    async def _take(self, key: Key) -> None:
        self._keys[key] = None

    async def goes_on(self) -> None:
        """Do all that was left."""
        self._controller.sync = self._sync  # type: ignore[method-assign]
        for key in self._keys:
            self._controller.enqueue(key)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["before", "amid"])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor.__name__)
def test_no_wait_is_without_an_end(actor: type[Controller], moment: str, *, late: bool) -> None:
    """While it lasts the Split says what it waits for; afterwards all is as if nothing had been."""
    story = Story(f"{actor.__name__} stop, {moment}")
    if moment != "label":
        story.label()
        story.wait(900)
    if late:
        MOMENTS[moment](story)
    stopped = Stopped(story, actor)
    if not late:
        MOMENTS[moment](story)
    story.wait(STOPS_S)
    status, n = story.scene.status, story.scene.replicas
    assert story.scene.available() >= min(n, 7)  # a notice on 3 of 10 that nothing replaces
    if status.get("state") == "Steady":
        assert sum(story.scene.counts()) == n == story.scene.available()
    elif status:
        assert status["message"]
        assert status["reason"] != "Balanced"
    story.run(stopped.goes_on())
    story.wait(ENDS_S)
    assert story.reason() == ("" if moment == "unlabel" else "Balanced")
    assert story.scene.available() == story.scene.replicas


MEMBERS = (StatefulSets, Garbage, Scheduler, Kubelets)
MEMBERS_MOMENTS: dict[str, Callable[[Members], Any]] = {
    "label": Members.label,
    "unlabel": Members.unlabel,
    "image": lambda story: story.set_image("db:2"),
    "more": lambda story: story.scale(7),
    "fewer": lambda story: story.scale(3),
}
PLACED_MOMENTS: dict[str, Callable[[PlacementStory], Any]] = {
    "unlabel": PlacementStory.unlabel,
    "image": lambda story: story.set_image("db:2"),
    "more": lambda story: story.scale(7),
    "fewer": lambda story: story.scale(3),
    "notice": lambda story: story.nodes_are("doomed", *BOTH),
    "loss": lambda story: story.nodes_are("gone", *BOTH),
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MEMBERS_MOMENTS)
@pytest.mark.parametrize("actor", MEMBERS, ids=lambda actor: actor.__name__)
def test_nor_for_the_twins_of_a_stateful_set(actor: type[Controller], moment: str) -> None:
    """The same, with members that keep their names."""
    story = Members(f"{actor.__name__} stop, {moment}")
    if moment != "label":
        story.label()
        story.wait(900)
    stopped = Stopped(story, actor)
    MEMBERS_MOMENTS[moment](story)
    story.wait(STOPS_S)
    story.run(stopped.goes_on())
    story.wait(ENDS_S)
    assert story.reason() == ("" if moment == "unlabel" else "Balanced")
    assert story.available() == story.scene.replicas


@pytest.mark.slow
@pytest.mark.parametrize("moment", PLACED_MOMENTS)
@pytest.mark.parametrize("actor", MEMBERS, ids=lambda actor: actor.__name__)
def test_nor_in_placement(actor: type[Controller], moment: str) -> None:
    """The same for members that are moved one at a time; it stops amid the first move."""
    story = PlacementStory(f"{actor.__name__} stop, {moment}")
    PLACED_MOMENTS[moment](story)
    story.wait(7)
    stopped = Stopped(story, actor)
    story.wait(STOPS_S)
    story.run(stopped.goes_on())
    if moment in {"notice", "loss"}:
        story.nodes_are("up", *BOTH)
    story.wait(4 * ENDS_S)
    assert story.reason() == ("" if moment == "unlabel" else "Balanced")
    assert story.available() == story.scene.replicas
