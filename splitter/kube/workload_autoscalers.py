"""Finds which autoscalers scale which workloads; one list serves a namespace for a while.

With 1,000 autoscalers and 1,000 workloads in one namespace, a list for each workload is a million objects.
`related_objects` goes through them for one workload. A kind that the cluster does not know, or a right that
is not given, is no answer and no error: only the autoscaler of the cluster itself is always asked about.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus

from splitter.core.model import seconds_between
from splitter.core.names import DEPLOYMENT
from splitter.kube.client import ApiError
from splitter.kube.listed import Reader
from splitter.kube.parse.fields import Raw
from splitter.kube.paths import ResourcePath, hpas, scaled_objects, vpas

# Of one kind in one namespace; whoever has more has them for somebody else than people.
MAX_AUTOSCALERS = 5000
_HPA, _KEDA, _VPA = "HorizontalPodAutoscaler", "ScaledObject", "VerticalPodAutoscaler"


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """One autoscaler, and the workload that it scales."""

    who: str  # kind/name
    kind: str  # of the workload
    aim: str  # and its name
    resizes: bool = False  # changes what each pod asks for, not how many there are
    tolerant: bool = True  # shrugs off a small difference while the status of the source shows 0 replicas


@dataclass(slots=True)
class _Kept:
    """One list of one namespace, and when it was asked for."""

    at: datetime | None = None
    autoscalers: tuple[Autoscaler, ...] = ()
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_fresh(self, now: datetime, at_most_s: float) -> bool:
        """Whether it is so young; a clock that was set makes it old, either way."""
        return self.at is not None and abs(seconds_between(self.at, now)) <= at_most_s


class WorkloadAutoscalers:
    """The autoscalers of each namespace that was asked about."""

    def __init__(self, client: Reader) -> None:
        self._client = client
        self._kept: defaultdict[tuple[str, str], _Kept] = defaultdict(_Kept)

    async def of(
        self, namespace: str, now: datetime, at_most_s: float, *, resources: bool
    ) -> tuple[Autoscaler, ...]:
        """Return who scales there, as of so many seconds ago or later; `resources`: also those of pods.

        Raises ApiError when the API server does not answer.
        """
        autoscalers = await self._fresh("replicas", self._read_replicas, namespace, now, at_most_s)
        if resources:
            autoscalers += await self._fresh("resources", self._read_resources, namespace, now, at_most_s)
        return autoscalers

    async def _fresh(
        self,
        what: str,
        read: Callable[[str], Awaitable[Iterable[Autoscaler]]],
        namespace: str,
        now: datetime,
        at_most_s: float,
    ) -> tuple[Autoscaler, ...]:
        kept = self._kept[namespace, what]
        async with kept.asking:  # workers ask at the same time: the others wait for the answer to the first
            if not kept.is_fresh(now, at_most_s):
                kept.autoscalers = tuple(await read(namespace))
                kept.at = now
            return kept.autoscalers

    async def _read_replicas(self, namespace: str) -> list[Autoscaler]:
        keda = await self._listed(scaled_objects(namespace), _KEDA, "scaleTargetRef", optional=True)
        return await self._listed(hpas(namespace), _HPA, "scaleTargetRef") + keda

    async def _read_resources(self, namespace: str) -> list[Autoscaler]:
        return await self._listed(vpas(namespace), _VPA, "targetRef", optional=True)

    async def _listed(
        self, path: ResourcePath, kind: str, field_name: str, *, optional: bool = False
    ) -> list[Autoscaler]:
        """Return the autoscalers among MAX_AUTOSCALERS objects of a namespace; none of what is `optional`."""
        autoscalers: list[Autoscaler] = []
        left = MAX_AUTOSCALERS
        try:
            async for page in self._client.pages(path):
                aimed = [_aimed(kind, raw, field_name) for raw in page["items"][:left]]
                autoscalers += (one for one in aimed if one is not None)
                left -= len(page["items"])
                if left <= 0:
                    break
        except ApiError as error:
            if not optional or error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN}:
                raise
        return autoscalers


def _aimed(kind: str, raw: Raw, field_name: str) -> Autoscaler | None:
    """Return what one is aimed at; None of what nobody can read, or what changes no pods that run."""
    try:
        spec = raw.get("spec") or {}
        aim = spec.get(field_name) or {}
        at, name = aim.get("kind", DEPLOYMENT), aim.get("name", "")
        if kind == _VPA and not _acts(spec):
            return None
        who = f"{kind}/{raw['metadata']['name']}"
        return Autoscaler(who, str(at), str(name), resizes=kind == _VPA, tolerant=_tolerates(spec))
    except (AttributeError, KeyError, TypeError):  # a custom resource, of whatever shape its author likes
        return None


def _tolerates(spec: Raw) -> bool:
    """Whether an HPA shrugs off a small difference, which it cannot for External or Object averages.

    It divides those by `status.replicas` of the source, which is 0 while split: no 10 % tolerance.
    """
    window = (spec.get("behavior") or {}).get("scaleUp", {}).get("stabilizationWindowSeconds")
    targets = (
        metric.get(kind, {}).get("target", {})
        for metric in spec.get("metrics") or ()
        for kind in ("external", "object")
    )
    return bool(window) or not any("averageValue" in target for target in targets)


def _acts(spec: Raw) -> bool:
    """Whether it changes pods that run, and does not only recommend."""
    mode = (spec.get("updatePolicy") or {}).get("updateMode", "Auto")
    return mode not in {"Off", "Initial"}
