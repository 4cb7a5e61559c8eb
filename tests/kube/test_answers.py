"""Bodies: bounded, and the large ones only a few at a time, whatever a server does."""

import asyncio
import gc

import pytest
from aiohttp import web

from kube.server import Answer, Script, client_of, connected, event, json, serve, watch
from splitter.kube import answers
from splitter.kube.client import TOO_LARGE, ApiError
from splitter.kube.paths import ResourcePath

PODS = ResourcePath.read("/api/v1/pods")
LARGE = b"x" * (answers.LARGE_BYTES + 1)


def trickle(begun: asyncio.Queue[None]) -> Answer:
    """Send what needs a turn, and never end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(LARGE)
        begun.put_nowait(None)
        await asyncio.Event().wait()
        return response

    return answer


class TestTurns:
    """What is large is read by a few at a time, and nobody's turn lasts for ever."""

    @pytest.fixture(autouse=True)
    def short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have a turn end soon."""
        monkeypatch.setattr(answers, "TURN_S", 0.3)

    async def test_a_server_that_trickles(self) -> None:
        """It holds up the others for one turn; its own page is asked for with fewer objects."""
        begun: asyncio.Queue[None] = asyncio.Queue()
        script = Script().then(*[trickle(begun)] * answers.AT_ONCE, json({"data": LARGE.decode()}))
        async with connected(script) as client:
            slow = [asyncio.create_task(client.get(PODS, limit="9")) for _ in range(answers.AT_ONCE)]
            for _ in slow:
                await begun.get()
            assert await client.get(PODS, limit="9") == {"data": LARGE.decode()}
            failed = await asyncio.gather(*slow, return_exceptions=True)
        assert [getattr(error, "reason", "") for error in failed] == [TOO_LARGE] * answers.AT_ONCE

    async def test_what_is_small(self) -> None:
        """It needs no turn."""
        begun: asyncio.Queue[None] = asyncio.Queue()
        script = Script().then(*[trickle(begun)] * answers.AT_ONCE, json({"data": "x"}))
        async with connected(script) as client:
            slow = [asyncio.create_task(client.get(PODS, limit="9")) for _ in range(answers.AT_ONCE)]
            for _ in slow:
                await begun.get()
            assert await client.get(PODS) == {"data": "x"}
            assert not any(task.done() for task in slow)
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)

    async def test_a_line_that_never_ends(self) -> None:
        """A watch is given up that sends half an object and no more."""
        begun: asyncio.Queue[None] = asyncio.Queue()
        async with serve(Script().then(trickle(begun)).answer) as address, client_of(address) as client:
            with pytest.raises(ApiError, match="takes longer than") as caught:
                async with client.stream(PODS, {"watch": "true"}, 9.0) as lines:
                    _ = [line async for line in lines]
        assert caught.value.reason == TOO_LARGE


async def test_a_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """No object of a watch is larger than one that is asked for."""
    monkeypatch.setattr(answers, "MAX_ANSWER_BYTES", 1000)
    async with connected(Script().then(watch(b"x" * 3000))) as client:
        with pytest.raises(ApiError, match="is larger than"):
            async with client.stream(PODS, {"watch": "true"}, 9.0) as lines:
                _ = [line async for line in lines]


async def test_a_line_is_not_kept() -> None:
    """The next one may be an hour away."""
    long = event("ADDED", {"data": "x" * 1_000_000})
    async with (
        connected(Script().then(watch(long, event("ADDED", {})))) as client,
        client.stream(PODS, {"watch": "true"}, 9.0) as lines,
    ):
        async for line in lines:
            if len(line) < 1000:
                del line
                gc.collect()
                assert not [one for one in gc.get_objects() if isinstance(one, bytes) and len(one) > 1000]
