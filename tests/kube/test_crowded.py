"""A namespace that was over its share is read again, and looked after from then on."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from kube.crowd import have_shares_of_nine, pod
from kube.raw import deployment
from kube.server import Script, connected, page, refusal
from splitter.core.names import Key
from splitter.core.nodes.signals import assess
from splitter.kube import crowded
from splitter.kube.cache import Cache
from splitter.kube.crowded import Crowded


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it look at once, and a share hold nine pods."""
    monkeypatch.setattr(crowded, "_LOOK_S", 0.0)
    have_shares_of_nine(monkeypatch)


async def looked(script: Script, pods: int) -> tuple[Cache, Crowded, list[Key]]:
    """Fill a namespace over its share, leave so many pods of it, and look twice."""
    woken: list[Key] = []

    def enqueue(key: Key, **_: Any) -> None:  # noqa: ANN401
        woken.append(key)

    async with connected(script) as client:
        cache = Cache(assess, enqueue)
        cache.sources.upsert({"kind": "Deployment", **deployment("web", namespace="evil")})
        for number in range(30):
            cache.pods.upsert(pod(number))
        these = Crowded(client, cache, enqueue)
        assert these.blocks("evil")
        assert not these.blocks("shop")
        for number in range(pods, 30):
            cache.pods.remove(pod(number, version=2))
        woken.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await these.run()
    return cache, these, woken


async def test_read_again() -> None:
    """What was not kept is there then, and each workload is looked at."""
    script = Script().then(page(pod(100), version=9), page(version=9))
    cache, these, woken = await looked(script, pods=1)
    assert not these.blocks("evil")
    assert [one.name for one in cache.pods.values()] == ["evil-100"]
    assert Key("Deployment", "evil", "web") in woken
    assert {"/namespaces/evil/" in asked.path for asked in script.asked} == {True}


async def test_still_too_much() -> None:
    """It is not read as long as it is full."""
    script = Script().then(page(version=9))
    _, these, woken = await looked(script, pods=8)
    assert these.blocks("evil")
    assert not script.asked
    assert not woken


async def test_cannot_be_read() -> None:
    """Where the API server refuses, nothing is decided, and it is not asked again at once."""
    script = Script().then(refusal(403, "Forbidden", "no"))
    _, these, woken = await looked(script, pods=1)
    assert these.blocks("evil")
    assert len(script.asked) == 1
    assert not woken
