"""Judges what becomes of a workload's pods, by the API server's own events: never by what splitter believes.

A pod that serves may be ended, by splitter or by a controller, only if as many as are promised go on. What
the world takes (a node, a drain, a crash) is no one's doing; from then on nothing may make it worse.
"""

import asyncio
from collections import deque
from typing import Final

from stories.scene import Scene, is_rolling, strategy
from stories.words import Written
from world import clock
from world.kinds import DEPLOYMENTS, PODS, Raw
from world.objects import Event
from world.pods import condition, is_active, ready_since

_REMEMBERED: Final = 30


class BrokenPromiseError(AssertionError):
    """Something that must never happen has happened."""


class Judge:
    """Watches one workload; `broken` tells each promise that did not hold.

    So long as `excused_s` after what the world has done, the pods that end were chosen before it.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.broken: list[str] = []
        self.unseen_s = 1.0  # so long its controllers may not have seen that a pod is ready
        self.least_available = self.least_serving = self.most_placed = scene.replicas
        self._excused_until_s = 0.0
        self.guarded = False  # nothing but a drain has happened since it was at rest
        self._allowed = 0
        self._past: deque[str] = deque(maxlen=_REMEMBERED)
        scene.objects.follow(PODS, self._pod_changed)

    def begin(self) -> None:
        """Count from here."""
        self.least_available, self.most_placed = self.scene.available(), self.scene.bound()
        self.least_serving = self.scene.serving()

    def world(self, excused_s: float) -> None:
        """Allow what follows from what the world does now."""
        self.guarded = False
        until_s = asyncio.get_running_loop().time() + excused_s
        self._excused_until_s = max(self._excused_until_s, until_s)

    def happened(self) -> None:
        """Allow what is asked for by what the world has just done."""
        self._allowed = max(self.ceiling or 0, self.scene.asked_for())
        self.look()

    def written(self, written: Written, at_s: float) -> None:
        """Judge a write of splitter's by itself."""

    @property
    def floor(self) -> int:
        """Return how many are promised: N, or what the user's own strategy allows where a roll uses it."""
        scene, source = self.scene, self.scene.source
        if scene.ref.kind != DEPLOYMENTS:
            return 0
        surge, unavailable = strategy(source)
        by_itself = not source["spec"].get("paused")
        if by_itself and not scene.twins:
            return 0  # splitter has no part in it
        rolls = any(is_rolling(scene, one) for one in (source, *scene.twins.values()))
        machines = scene.cluster.machines
        ill = sum(pod["metadata"]["uid"] in {*machines.ill, *machines.crashing} for pod in scene.pods())
        return max(0, scene.replicas - ill - (unavailable if surge == 0 or by_itself or rolls else 0))

    @property
    def ceiling(self) -> int | None:
        """Return how many may be placed; None: while the source's own controller is at work, any number."""
        scene, source = self.scene, self.scene.source
        if scene.ref.kind != DEPLOYMENTS or not source["spec"].get("paused") or scene.pods(source):
            return None
        hurt = [pod for pod in scene.objects.all(PODS, scene.ref.namespace) if self._is_hurt(pod)]
        starting = sum(not scene.serves(pod) for pod in scene.pods())
        known = (scene.status.get("rebalance") or {}).keys() & {"lost", "shortSince"}
        emergency = max(scene.replicas, starting) if hurt or known or self._are_short() else 0
        return scene.replicas + max(1, strategy(source)[0]) + sum(map(is_active, hurt)) + emergency

    def _allow(self) -> int | None:
        """Return how many may be placed: what was allowed once may be there while it is asked for still."""
        if (ceiling := self.ceiling) is None:
            self._allowed = self.scene.asked_for()
            return None
        self._allowed = max(ceiling, min(self._allowed, self.scene.asked_for()))
        return self._allowed

    def _is_hurt(self, pod: Raw) -> bool:
        name = pod["spec"].get("nodeName")
        return bool(name) and (
            name in self.scene.doomed
            or name in self.scene.cluster.machines.silent
            or self.scene.node_of(pod) is None
        )

    def _are_short(self) -> bool:
        return any(not pod["spec"].get("nodeName") for pod in self.scene.pods())

    def _pod_changed(self, event: Event) -> None:
        old, new, scene = event.old, event.new, self.scene
        if event.ref.namespace != scene.ref.namespace or old is None:
            return
        ends = is_active(old) and (event.deleted or "deletionTimestamp" in new["metadata"])
        at_s = asyncio.get_running_loop().time()
        since = ready_since(old)
        seen = since is not None and (clock.now() - since).total_seconds() > self.unseen_s
        if ends and seen and at_s > self._excused_until_s and condition(old, "DisruptionTarget") is None:
            floor = self.floor
            if scene.stays(old) and (left := scene.available()) < floor:
                self.break_(at_s, f"{event.ref.name} ends, {left} available, {floor} promised (promise 1)")
            serving = scene.serving()
            if scene.serves(old) and serving < floor and "minReadySeconds" not in scene.source["spec"]:
                self.break_(at_s, f"{event.ref.name} ends, {serving} serve, {floor} promised (promise 1)")
        if ends and self.guarded and scene.serves(old) and scene.serving() < scene.replicas - 1:
            self.break_(at_s, f"{event.ref.name} was evicted, {scene.serving()} of {scene.replicas} serve")
        if not old["spec"].get("nodeName") and new["spec"].get("nodeName"):
            placed = scene.bound()
            self.most_placed = max(self.most_placed, placed)
            if (most := self._allow()) is not None and placed > most and at_s > self._excused_until_s:
                self.break_(at_s, f"{placed} are placed, {most} may be (promise 2)")
        self.look()
        self._allow()
        self._past.append(f"{at_s:.3f} s: {event.ref.name}{' ends' if ends else ''}")

    def look(self) -> None:
        """Count what there is now."""
        self.least_available = min(self.least_available, self.scene.available())
        self.least_serving = min(self.least_serving, self.scene.serving())

    def break_(self, at_s: float, what: str) -> None:
        """Note that a promise did not hold."""
        self.broken.append("\n".join((*self._past, f"{at_s:.3f} s: {what}")))
