"""The kubelets of all nodes: pods start, become ready, crash, and end; those of a silent machine do nothing.

Source: pkg/kubelet (kubelet_pods.go, status/generate.go) of Kubernetes 1.36, as far as a pod's status shows.
An image with `broken` or `bad` in its name cannot be pulled, one with `crash` ends again and again.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from splitter.kube.client import ApiError
from world import clock
from world.controllers.loop import Controller, Informers, Key
from world.kinds import PODS, Raw, Ref
from world.pods import condition, is_active, is_ready, with_condition

READY_AFTER: Final = "sandbox.splitter.io/ready-after"
ENDS_AFTER: Final = "sandbox.splitter.io/ends-after"
_BACKOFF_S: Final = (10.0, 300.0)  # of a container that crashes: doubled each time
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Timing:
    """How long pods take, in seconds, unless their annotations say otherwise."""

    start_s: float = 1.0
    ready_s: float = 2.0
    end_s: float = 1.0


@dataclass(slots=True)
class Machines:
    """What is true of nodes and pods beyond what objects say."""

    silent: dict[str, datetime] = field(default_factory=dict)  # since when a machine has sent no heartbeat
    ill: set[str] = field(default_factory=set)  # UIDs of pods whose readiness probe fails
    crashing: dict[str, datetime] = field(default_factory=dict)  # UIDs of pods that crash, since when
    registry_answers: bool = True  # else what has no image yet gets none


def duration_s(text: str) -> float:
    """Read a duration as Go writes it.

    >>> duration_s("1m500ms")
    60.5
    """
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h)", text))


class Kubelets(Controller):
    """Runs the pods that are bound."""

    user = "system:node"

    def __init__(self, informers: Informers, machines: Machines, timing: Timing) -> None:
        super().__init__(informers)
        self._machines = machines
        self.timing = timing
        self._pods = informers.of(PODS)
        self._pods.on_change(self._changed)
        self._accepted: dict[str, datetime] = {}  # by UID
        self._ending: dict[str, datetime] = {}

    def _changed(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            assert old is not None
            self._accepted.pop(old["metadata"]["uid"], None)
            self._ending.pop(old["metadata"]["uid"], None)
        elif new["spec"].get("nodeName"):
            self.enqueue((new["metadata"]["namespace"], new["metadata"]["name"]))

    def look_at(self, node: str = "") -> None:
        """Look at all pods, or at those of a node that is back."""
        for key, pod in self._pods.seen.items():
            if pod["spec"].get("nodeName") and node in {"", pod["spec"]["nodeName"]}:
                self.enqueue(key)

    async def sync(self, key: Key) -> None:
        """Bring one pod on."""
        pod = self._pods.seen.get(key)
        live = self.objects.find(Ref(PODS, *key))
        if pod is None or live is None or live["metadata"]["uid"] != pod["metadata"]["uid"]:
            return
        if not live["spec"].get("nodeName") or live["spec"]["nodeName"] in self._machines.silent:
            return
        if "deletionTimestamp" in pod["metadata"]:
            await self._end(key, live)
        elif is_active(live):
            await self._run(key, live)

    async def _end(self, key: Key, pod: Raw) -> None:
        uid, metadata = pod["metadata"]["uid"], pod["metadata"]
        takes_s = self._annotated(pod, ENDS_AFTER, self.timing.end_s)
        # It was asked to end when its grace began.
        asked = clock.instant(metadata["deletionTimestamp"]) - timedelta(
            seconds=metadata.get("deletionGracePeriodSeconds", 0)
        )
        began = self._ending.setdefault(uid, max(clock.now(), asked))
        due = began + timedelta(seconds=min(takes_s, metadata.get("deletionGracePeriodSeconds", 0)))
        if (left_s := (due - clock.now()).total_seconds()) > 0:
            self.enqueue(key, left_s)
            return
        await self.delete(PODS, pod, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

    async def _run(self, key: Key, pod: Raw) -> None:
        uid, now = pod["metadata"]["uid"], clock.now()
        accepted = self._accepted.setdefault(uid, now)
        passed_s = (now - accepted).total_seconds()
        start_s = self.timing.start_s
        ready_s = start_s + self._annotated(pod, READY_AFTER, self.timing.ready_s)
        image = " ".join(one.get("image", "") for one in pod["spec"].get("containers") or ())
        if passed_s < start_s:
            self.enqueue(key, start_s - passed_s)
        elif "broken" in image or "bad" in image or not self._has_image(pod):
            await self._write(key, pod, "Pending", waiting="ImagePullBackOff")
            self._accepted[uid] = now  # it starts when it has its image
        elif "crash" in image or uid in self._machines.crashing:
            since = self._machines.crashing.get(uid, accepted + timedelta(seconds=start_s))
            restarts, again_s = _crashes((now - since).total_seconds())
            await self._write(key, pod, "Running", waiting="CrashLoopBackOff", restarts=restarts)
            self.enqueue(key, again_s)
        else:
            ready = passed_s >= ready_s and uid not in self._machines.ill
            await self._write(key, pod, "Running", ready=ready)
            if passed_s < ready_s:
                self.enqueue(key, ready_s - passed_s)

    def _has_image(self, pod: Raw) -> bool:
        return self._machines.registry_answers or pod.get("status", {}).get("phase") == "Running"

    async def _write(
        self, key: Key, pod: Raw, phase: str, *, ready: bool = False, waiting: str = "", restarts: int = 0
    ) -> None:
        """Write a pod's status as it is on its node, if it is shown otherwise."""
        there = pod.get("status", {})
        known = (there.get("containerStatuses") or [{}])[0]
        shown = there.get("phase"), is_ready(pod), known.get("restartCount", -1)
        if shown == (phase, ready, restarts) and condition(pod, "Ready") is not None:
            return
        await self.sent()
        live = self.objects.find(Ref(PODS, *key))
        if live is None or live["metadata"]["uid"] != pod["metadata"]["uid"]:
            return
        containers = [
            {
                "name": one["name"],
                "image": one.get("image", ""),
                "ready": ready,
                "started": not waiting,
                "restartCount": restarts,
                **_state(waiting, one.get("image", "")),
            }
            for one in live["spec"]["containers"]
        ]
        status = {
            "startTime": clock.stamp(),
            **live.get("status", {}),
            "phase": phase,
            "containerStatuses": containers,
        }
        made = {**live, "status": status}
        for kind, holds in (("Initialized", True), ("ContainersReady", ready), ("Ready", ready)):
            said = {} if holds else {"reason": "ContainersNotReady"}
            made = with_condition(made, {"type": kind, "status": "True" if holds else "False", **said})
        try:
            self.objects.update(Ref(PODS, *key), made, part="status", user=self.user)
        except ApiError as error:
            if error.status != 404:
                raise

    @staticmethod
    def _annotated(pod: Raw, name: str, otherwise_s: float) -> float:
        text = (pod["metadata"].get("annotations") or {}).get(name)
        return otherwise_s if text is None else duration_s(text)


def _state(waiting: str, image: str) -> Raw:
    """Return the state of a container, and how it ended before it waits to be started again."""
    if not waiting:
        return {"state": {"running": {"startedAt": clock.stamp()}}}
    if waiting == "CrashLoopBackOff":
        ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
        return {"state": {"waiting": {"reason": waiting}}, "lastState": ended}
    said = (
        f'Back-off pulling image "{image}": ErrImagePull: rpc error: code = NotFound desc = failed to'
        f' resolve reference "docker.io/library/{image}": not found'
    )
    return {"state": {"waiting": {"reason": waiting, "message": said}}}


def _crashes(since_s: float) -> tuple[int, float]:
    """Return how often a container has been started again, and after how long it is the next time."""
    wait_s, at_s, restarts = _BACKOFF_S[0], 0.0, 0
    while at_s + wait_s <= since_s:
        at_s += wait_s
        restarts += 1
        wait_s = min(2 * wait_s, _BACKOFF_S[1])
    return restarts, at_s + wait_s - since_s
