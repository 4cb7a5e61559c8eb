"""The horizontal autoscaler: how many replicas the load asks for, and what keeps it from writing that.

Source: pkg/controller/podautoscaler/{horizontal,replica_calculator}.go of Kubernetes 1.36, for an autoscaler
of a Deployment that has a `behavior` and one metric: CPU by utilization, or an external one by its average.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil, inf
from typing import Final

from splitter.kube.client import ApiError
from world import clock
from world.controllers.fitting import amount
from world.controllers.loop import Controller, Informers, Key
from world.kinds import AUTOSCALERS, DEPLOYMENTS, PODS, Raw, Ref
from world.metrics import Metrics
from world.pods import condition, with_condition
from world.selectors import selects

_TOLERANCE: Final = 0.1
_STARTS_S: Final = 300.0  # --horizontal-pod-autoscaler-cpu-initialization-period
_FIRST_READY_S: Final = 30.0  # --horizontal-pod-autoscaler-initial-readiness-delay
_PERIOD_S: Final = 15.0  # of the policies that a behavior has by default: +4 or +100 %, -100 %
_UP: Final = 4


class Autoscalers(Controller):
    """Looks at each autoscaler every `period_s`."""

    user = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

    def __init__(self, informers: Informers, metrics: Metrics) -> None:
        super().__init__(informers)
        self.period_s = 15.0
        self._metrics = metrics
        self._autoscalers = informers.of(AUTOSCALERS)
        self._autoscalers.on_change(self._changed)
        self._pods = informers.of(PODS)
        self._advice: dict[Key, list[tuple[float, int]]] = {}  # when, and how many replicas
        self._added: dict[Key, list[tuple[float, int]]] = {}
        self._selectors: dict[Key, Raw] = {}

    def _changed(self, old: Raw | None, new: Raw | None) -> None:
        metadata = (new or old or {})["metadata"]
        key = metadata["namespace"], metadata["name"]
        if new is None:
            for known in (self._advice, self._added, self._selectors):
                known.pop(key, None)
        elif old is None:
            self.enqueue(key)

    async def sync(self, key: Key) -> None:
        """Look once (reconcileAutoscaler)."""
        one = self._autoscalers.seen.get(key)
        if one is None or one["spec"]["scaleTargetRef"]["kind"] != "Deployment":
            return
        self.enqueue(key, self.period_s)
        ref = Ref(DEPLOYMENTS, key[0], one["spec"]["scaleTargetRef"]["name"])
        await self.sent()
        target = self.objects.find(ref)
        if target is None:
            return
        count, selector = target["spec"]["replicas"], target["spec"]["selector"]
        self._selectors[key] = selector
        if count == 0:
            await self._say(one, ("False", "ScalingDisabled"))
            return
        if self._is_shared(key, selector):
            await self._say(one, ("False", "AmbiguousSelector"))
            return
        least, most = one["spec"]["minReplicas"], one["spec"]["maxReplicas"]
        wanted = min(max(count, least), most)
        if wanted == count:
            try:
                asked = await self._asked(key, one["spec"]["metrics"], target)
            except ApiError:
                await self._say(one, ("False", "FailedGetMetric"))
                return
            wanted = self._steady(key, one["spec"], count, asked)
        if wanted != count:
            await self.sent()
            live = self.objects.get(ref)
            scaled = {**live, "spec": {**live["spec"], "replicas": wanted}}
            self.objects.update(ref, scaled, "kube-controller-manager", part="scale", user=self.user)
            self._added.setdefault(key, []).append((self._now_s(), wanted - count))
        await self._say(one, ("True", "ValidMetricFound"), currentReplicas=count, desiredReplicas=wanted)

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()

    def _is_shared(self, key: Key, selector: Raw) -> bool:
        """Whether another autoscaler counts some of the same pods (controllingHPAsForPodsUnderSelector)."""
        pods = [pod for pod in self._pods.of(key[0]) if selects(selector, pod)]
        others = [one for other, one in self._selectors.items() if other != key and other[0] == key[0]]
        return any(selects(other, pod) for other in others for pod in pods)

    async def _say(self, one: Raw, active: tuple[str, str], **numbers: int) -> None:
        status, reason = active
        said = {"type": "ScalingActive", "status": status, "reason": reason}
        made = with_condition({**one, "status": {**one.get("status", {}), **numbers}}, said)
        if made["status"] != one.get("status"):
            await self.update(AUTOSCALERS, made, "status")

    # --- how many are asked for -------------------------------------------------------------------

    async def _asked(self, key: Key, metrics: Sequence[Raw], target: Raw) -> int:
        """Return what the metric asks for. Raises ApiError where there is none."""
        [metric] = metrics
        if metric["type"] == "External":
            external = metric["external"]
            await self.sent()
            usage = self._metrics.queue(key[0], external["metric"]["name"])
            return by_average(
                usage, int(external["target"]["averageValue"]), target.get("status", {}).get("replicas", 0)
            )
        await self.sent()
        selector = target["spec"]["selector"]
        samples = self._metrics.samples(key[0], selector)
        await self.sent()  # it asks for the samples first, and for the pods later
        pods = [pod for pod in self._pods.of(key[0]) if selects(selector, pod)]
        percent = metric["resource"]["target"]["averageUtilization"]
        return by_utilization(pods, samples, percent, target["spec"]["replicas"], clock.now())

    # --- what keeps it from that ------------------------------------------------------------------

    def _steady(self, key: Key, spec: Raw, count: int, asked: int) -> int:
        """Return what may be written now (normalizeDesiredReplicasWithBehaviors)."""
        now_s, advice = self._now_s(), self._advice.setdefault(key, [])
        if not advice:
            advice.append((now_s, count))
        up = self._within(key, now_s, spec["behavior"]["scaleUp"].get("stabilizationWindowSeconds", 0))
        down = self._within(key, now_s, spec["behavior"]["scaleDown"].get("stabilizationWindowSeconds", 300))
        advice.append((now_s, asked))
        wanted = max(count, min([asked, *up]))
        wanted = min(wanted, max([asked, *down]))
        began = count - sum(added for at_s, added in self._added.get(key, ()) if at_s > now_s - _PERIOD_S)
        most = min(int(spec["maxReplicas"]), max(began + _UP, began * 2, count))
        return max(int(spec["minReplicas"]), min(wanted, most) if wanted > count else wanted)

    def _within(self, key: Key, now_s: float, window_s: float) -> list[int]:
        return [count for at_s, count in self._advice[key] if at_s > now_s - window_s]


def _is_tolerated(ratio: float) -> bool:
    return 1.0 - _TOLERANCE <= ratio <= 1.0 + _TOLERANCE  # isWithin


def by_average(usage: int, each: int, there: int) -> int:
    """Return how many replicas carry `usage`; with none there, without tolerance.

    Source: GetExternalPerPodMetricReplicas.
    """
    ratio = usage / (each * there) if there else inf
    return there if _is_tolerated(ratio) else ceil(usage / each)


def by_utilization(
    pods: Sequence[Raw], samples: Mapping[str, Raw], percent: int, count: int, now: datetime
) -> int:
    """Return how many replicas bring the use of CPU to so many percent (GetResourceReplicas).

    Raises ApiError without any sample.
    """
    ignored, unready, missing = _grouped(pods, samples, now)
    requests = {pod["metadata"]["name"]: _requested(pod) for pod in pods}
    used = {name: one["cpu_m"] for name, one in samples.items() if name not in ignored | unready}
    if not used:
        raise ApiError(0, "", "did not receive metrics for any ready pods")
    ratio = _ratio(used, requests, percent)
    if not missing and not (unready and ratio > 1.0):
        return count if _is_tolerated(ratio) else ceil(ratio * len(used))
    if ratio < 1.0:
        used |= {name: requests[name] * max(100, percent) / 100 for name in missing}
    elif ratio > 1.0:
        used |= dict.fromkeys(missing, 0.0) | dict.fromkeys(unready, 0.0)
    again = _ratio(used, requests, percent)
    if _is_tolerated(again) or (ratio < 1.0) is not (again < 1.0):
        return count
    wanted = ceil(again * len(used))
    return count if (again < 1.0 and wanted > count) or (again > 1.0 and wanted < count) else wanted


def _grouped(
    pods: Sequence[Raw], samples: Mapping[str, Raw], now: datetime
) -> tuple[set[str], set[str], set[str]]:
    """Return the pods of which samples do not count: those that go, those not ready, those without one."""
    ignored, unready, missing = set[str](), set[str](), set[str]()
    for pod in pods:
        name, phase = pod["metadata"]["name"], pod.get("status", {}).get("phase")
        if "deletionTimestamp" in pod["metadata"] or phase == "Failed":
            ignored.add(name)
        elif phase == "Pending":
            unready.add(name)
        elif name not in samples:
            missing.add(name)
        elif _is_unready(pod, samples[name], now):
            unready.add(name)
    return ignored, unready, missing


def _is_unready(pod: Raw, sample: Raw, now: datetime) -> bool:
    ready = condition(pod, "Ready")
    if ready is None or "startTime" not in pod["status"]:
        return True
    started, since = clock.instant(pod["status"]["startTime"]), clock.instant(ready["lastTransitionTime"])
    is_false = ready["status"] == "False"
    if started + timedelta(seconds=_STARTS_S) > now:
        return is_false or bool(sample["at"] < since + timedelta(seconds=sample["window_s"]))
    return is_false and started + timedelta(seconds=_FIRST_READY_S) > since


def _requested(pod: Raw) -> float:
    """Return what its containers request, in thousandths of a CPU."""
    containers = pod["spec"]["containers"]
    return sum(float(amount(one["resources"]["requests"]["cpu"])) * 1000 for one in containers)


def _ratio(used: Mapping[str, float], requests: Mapping[str, float], percent: int) -> float:
    there = [name for name in used if name in requests]
    asked = sum(requests[name] for name in there)
    if not asked:
        raise ApiError(0, "", "no metrics returned matched known pods")
    return int(sum(used[name] for name in there) * 100 / asked) / percent
