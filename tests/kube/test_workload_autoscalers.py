"""Who scales what in a namespace: asked for once, for however many workloads."""

import asyncio
from datetime import timedelta
from http import HTTPStatus

import pytest
from aiohttp import web

from builders import NOW
from kube.raw import Raw, metadata
from kube.server import Script, connected, json, refusal
from splitter.kube.client import ApiError
from splitter.kube.workload_autoscalers import Autoscaler, WorkloadAutoscalers

HPAS = "horizontalpodautoscalers"


def hpa(name: str) -> Raw:
    """Return an HPA aimed at a Deployment of its name."""
    return {"metadata": metadata(name), "spec": {"scaleTargetRef": {"kind": "Deployment", "name": name}}}


class Namespaces:
    """An API server whose autoscalers a test changes, and which counts how often each list is asked for."""

    def __init__(self) -> None:
        self.names = ["web"]
        self.refused = False
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer lists; KEDA and the VPA are not there."""
        self.asked.append(request.path.removeprefix("/apis/"))
        if not request.path.endswith(HPAS):
            return await refusal(404, "NotFound", "not here")(request)
        if self.refused:
            return await refusal(403, "Forbidden", "not yours")(request)
        return await json({"items": [hpa(name) for name in self.names]})(request)

    def lists(self, namespace: str = "shop") -> int:
        """Return how often the HPAs of a namespace were asked for."""
        return self.asked.count(f"autoscaling/v2/namespaces/{namespace}/{HPAS}")


async def names(autoscalers: WorkloadAutoscalers, after_s: float, at_most_s: float = 5) -> list[str]:
    """Return who is there, asked so many seconds after NOW."""
    result = await autoscalers.of("shop", NOW + timedelta(seconds=after_s), at_most_s, resources=False)
    return [one.aim for one in result]


async def test_many_at_once() -> None:
    """A hundred workloads ask at the same time: one list, and all get it."""
    there = Namespaces()
    async with connected(Script().then(there.answer)) as client:
        autoscalers = WorkloadAutoscalers(client)
        result = await asyncio.gather(*(names(autoscalers, index / 1000) for index in reversed(range(100))))
    assert result == [["web"]] * 100
    assert there.lists() == 1


async def test_no_older_than_asked_for() -> None:
    """What is kept is given until it is too old, also by a clock that was set back."""
    there = Namespaces()
    async with connected(Script().then(there.answer)) as client:
        autoscalers = WorkloadAutoscalers(client)
        assert await names(autoscalers, 0) == ["web"]
        there.names = ["web", "cart"]
        assert await names(autoscalers, 5) == ["web"]
        assert await names(autoscalers, 5.1) == ["web", "cart"]
        there.names = []
        assert await names(autoscalers, 6.2, at_most_s=1) == []
        there.names = ["web"]
        assert await names(autoscalers, -3600) == ["web"]
    assert there.lists() == 4


async def test_each_namespace_for_itself() -> None:
    """And resources only when they are asked for."""
    there = Namespaces()
    async with connected(Script().then(there.answer)) as client:
        autoscalers = WorkloadAutoscalers(client)
        for namespace in ("shop", "bank", "shop"):
            await autoscalers.of(namespace, NOW, 5, resources=False)
        assert (there.lists("shop"), there.lists("bank")) == (1, 1)
        assert not any("verticalpodautoscalers" in path for path in there.asked)
        await autoscalers.of("shop", NOW, 5, resources=True)
    assert there.asked[-1] == "autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers"
    assert there.lists("shop") == 1


async def test_a_refusal_is_not_kept() -> None:
    """Whoever asks hears of it, and the next one asks again."""
    there = Namespaces()
    there.refused = True
    async with connected(Script().then(there.answer)) as client:
        autoscalers = WorkloadAutoscalers(client)
        for _ in range(2):
            with pytest.raises(ApiError) as refused:
                await names(autoscalers, 0)
            assert refused.value.status == HTTPStatus.FORBIDDEN
        there.refused = False
        assert await names(autoscalers, 0) == ["web"]


@pytest.mark.parametrize(
    ("mode", "acts"), [(None, True), ("Recreate", True), ("Off", False), ("Initial", False)]
)
async def test_who_restarts_pods(mode: str | None, acts: bool) -> None:
    """A VPA that only recommends, or only speaks at the beginning, is nobody to fear."""
    policy = {} if mode is None else {"updatePolicy": {"updateMode": mode}}
    spec = {"targetRef": {"kind": "StatefulSet", "name": "db"}, **policy}

    async def answer(request: web.Request) -> web.StreamResponse:
        collected = [{"metadata": metadata("db"), "spec": spec}] if "vertical" in request.path else []
        return await json({"items": collected})(request)

    async with connected(Script().then(answer)) as client:
        collected = await WorkloadAutoscalers(client).of("shop", NOW, 0, resources=True)
    expected = Autoscaler("VerticalPodAutoscaler/db", "StatefulSet", "db", resizes=True)
    assert collected == ((expected,) if acts else ())
