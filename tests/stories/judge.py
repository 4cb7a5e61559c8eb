"""Judges what becomes of a workload's pods, by the API server's own events: never by what splitter believes.

A pod that serves may be ended, by splitter or by a controller, only if as many as are promised go on. What
the world takes (a node, a drain, a crash) is no one's doing; from then on nothing may make it worse.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Final

from stories.left import left
from stories.scene import Scene, is_rolling, strategy
from stories.words import Written
from world import clock
from world.kinds import DEPLOYMENTS, PODS, REPLICA_SETS, Raw
from world.objects import Event
from world.pods import condition, is_active, is_ready, ready_since

_REMEMBERED: Final = 30


class Judge:
    """Watches one workload; `broken` tells each promise that did not hold.

    A write of splitter's is judged as it is made, by what it leaves once every controller has done what is
    written; for `late_s` after what the world has done it was chosen before that. What a controller ends is
    judged as it ends; that may have been chosen `excused_s` before.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.broken: list[str] = []
        self.unseen_s = 1.0  # so long its controllers may not have seen that a pod is ready
        self.least_available = self.least_serving = self.most_placed = scene.replicas
        self.late_s = 0.05  # so long splitter may not have seen what the world has done
        self._excused_until_s = self._unseen_until_s = 0.0
        self.guarded = False  # nothing but a drain has happened since it was at rest
        self._allowed = 0
        self._before, self._bound_before = (0, 0), 0
        self._past: deque[str] = deque(maxlen=_REMEMBERED)
        scene.objects.follow(PODS, self._pod_changed)

    def begin(self) -> None:
        """Count from here."""
        self.least_available, self.most_placed = self.scene.available(), self.scene.bound()
        self.least_serving = self.scene.serving()

    def world(self, excused_s: float) -> None:
        """Allow what follows from what the world does now."""
        self.guarded = False
        self._excuse(excused_s)

    def _excuse(self, excused_s: float) -> None:
        at_s = asyncio.get_running_loop().time()
        self._excused_until_s = max(self._excused_until_s, at_s + excused_s)
        self._unseen_until_s = at_s + self.late_s

    def happened(self) -> None:
        """Allow what is asked for by what the world has just done."""
        self._allowed = max(self.ceiling or 0, self.scene.asked_for())
        self.look()

    def before_write(self) -> None:
        """Count what goes on without the write that comes now."""
        if self.scene.ref.kind == DEPLOYMENTS:
            self._before = self._left(lambda pod: self._is_seen(ready_since(pod)))
            self._bound_before = self._bound

    def written(self, written: Written, at_s: float) -> None:
        """Judge a write of splitter's by itself (promise 1, and N is the user's)."""
        if self.scene.ref.kind != DEPLOYMENTS or at_s <= self._unseen_until_s:
            return
        name, old, new = written.ref.name, written.old or {}, written.new or {}
        was, replicas = (one.get("spec", {}).get("replicas") for one in (old, new))
        if written.ref.kind in {DEPLOYMENTS, REPLICA_SETS} and was is not None and replicas is not None:
            if written.ref == self.scene.ref and was != replicas:
                self.break_(at_s, f"the source's replicas are the user's: {was} -> {replicas}")
            if replicas < was and not written.is_bound:
                self.break_(at_s, f"{name} is lowered {was} -> {replicas} without a precondition")
        bound = min(self._bound_before, self._bound)
        for what, before, kept in zip(("available", "serving"), self._before, self._left(), strict=True):
            if kept < before and kept < bound and (what == "available" or not self._min_ready):
                text = f"{name} is written: {what} {before} -> {kept}, {bound} promised (promise 1)"
                self.break_(at_s, text)

    def _left(self, seen: Callable[[Raw], bool] = lambda _: True) -> tuple[int, int]:
        """Count what is left of those that are available, and of those that serve."""
        scene = self.scene
        available = left(scene, lambda pod: scene.stays(pod) and seen(pod))
        return available, left(scene, lambda pod: scene.serves(pod) and seen(pod))

    def _is_seen(self, since: datetime | None) -> bool:
        return since is not None and (clock.now() - since).total_seconds() > self.unseen_s

    @property
    def _min_ready(self) -> bool:
        return "minReadySeconds" in self.scene.source["spec"]

    @property
    def _bound(self) -> int:
        """Return how many are promised: N, or what the user's own strategy allows where a roll uses it."""
        scene, source = self.scene, self.scene.source
        surge, unavailable = strategy(source)
        by_itself = not source["spec"].get("paused")
        if by_itself and not scene.twins:
            return 0  # splitter has no part in it
        rolls = any(is_rolling(scene, one) for one in (source, *scene.twins.values()))
        return max(0, scene.replicas - (unavailable if surge == 0 or by_itself or rolls else 0))

    @property
    def floor(self) -> int:
        """Return how many go on as a pod ends: the ill and the silent may be among the promised."""
        scene, machines = self.scene, self.scene.cluster.machines
        if scene.ref.kind != DEPLOYMENTS:
            return 0
        ill = sum(pod["metadata"]["uid"] in {*machines.ill, *machines.crashing} for pod in scene.pods())
        return max(0, self._bound - ill - sum(map(self._is_silent_unseen, scene.pods())))

    def _is_silent_unseen(self, pod: Raw) -> bool:
        """Whether it is dead and shown as ready: a silent node is known after 40 s."""
        scene = self.scene
        if not is_ready(pod) or pod["spec"].get("nodeName") not in scene.cluster.machines.silent:
            return False
        node = scene.node_of(pod)
        ready = condition(node, "Ready") if node is not None else None
        return ready is not None and bool(ready["status"] == "True")

    @property
    def ceiling(self) -> int | None:
        """Return how many may be placed; None: while the source's own controller is at work, any number."""
        scene, source = self.scene, self.scene.source
        if scene.ref.kind != DEPLOYMENTS or not source["spec"].get("paused") or scene.pods(source):
            return None
        hurt = [pod for pod in scene.objects.all(PODS, scene.ref.namespace) if self._is_hurt(pod)]
        starting = sum(not scene.serves(pod) for pod in scene.pods())
        known = scene.rebalance.keys() & {"lost", "shortSince"}
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
        if is_active(old) and condition(new, "DisruptionTarget") is not None:
            self._excuse(self.unseen_s)  # it was evicted, and splitter does not know yet
        elif not ends and scene.serves(old) and not scene.serves(new):
            self._excuse(self.unseen_s)
        if ends and self._is_seen(ready_since(old)) and at_s > self._excused_until_s:
            floor = self.floor
            if scene.stays(old) and (left := scene.available()) < floor:
                self.break_(at_s, f"{event.ref.name} ends, {left} available, {floor} promised (promise 1)")
            serving = scene.serving()
            if scene.serves(old) and serving < floor and not self._min_ready:
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
