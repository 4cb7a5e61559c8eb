"""What splitter waits for stops for 20 minutes, at any moment: no wait hides that, or breaks a promise.

kube-controller-manager loses its Lease, the scheduler is upgraded, a kubelet's registry is down: such things
end, and then everything goes on from where it is.
"""

from collections.abc import Callable
from typing import Any

import pytest

from stories.director import Story
from world.controllers.deployment import Deployments
from world.controllers.garbage import Garbage
from world.controllers.kubelet import Kubelets
from world.controllers.loop import Controller, Key
from world.controllers.replica_set import ReplicaSets
from world.controllers.scheduler import Scheduler

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
