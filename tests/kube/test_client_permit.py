"""Writes under a permit: none is sent when it has run out, and one that was sent is let end."""

import asyncio
import gc

import pytest

from kube.server import Script, connected, json, silence
from splitter.kube.client import NOT_LEADING, ApiError
from splitter.kube.paths import ResourcePath

PATH = ResourcePath.read("/apis/apps/v1/namespaces/shop/deployments/web")
DEADLINE_S = 20.0


class Granted:
    """A permit that answers what a test tells it to, the last answer again and again."""

    def __init__(self, *left_s: float) -> None:
        self._left_s = list(left_s)
        self.asked = 0

    def left_s(self) -> float:
        """Return the next answer."""
        self.asked += 1
        return self._left_s.pop(0) if len(self._left_s) > 1 else self._left_s[0]


class TestRefuses:
    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    async def test_without_a_permit(self, method: str) -> None:
        """Nothing is sent, and the error says why."""
        script = Script().then(json({}))
        async with connected(script) as client:
            with pytest.raises(ApiError, match="this process does not lead") as caught:
                await client.under(Granted(0)).send(method, PATH, {"a": 1})
        assert caught.value.reason == NOT_LEADING
        assert script.asked == []

    @pytest.mark.parametrize("answers", [(5, 0), (5, 5, 0)])
    async def test_that_runs_out_on_the_way(self, answers: tuple[float, ...]) -> None:
        """A permit that runs out while the write waits for its connection: no byte of it is sent."""
        script = Script().then(json({}))
        permit = Granted(*answers)
        async with connected(script) as client:
            with pytest.raises(ApiError):
                await client.under(permit).send("PATCH", PATH, {"a": 1}, patch="merge")
            assert await client.get(PATH) == {}
        assert permit.asked == len(answers)
        assert [asked.method for asked in script.asked] == ["GET"]

    async def test_only_writes(self) -> None:
        """Reads, and writes of the connection's other users, need none."""
        script = Script().then(json({}))
        async with connected(script) as client:
            assert await client.under(Granted(0)).get(PATH) == {}
            assert await client.send("POST", PATH, {"a": 1}) == {}
        assert [asked.method for asked in script.asked] == ["GET", "POST"]


class TestAllows:
    async def test_for_so_long(self) -> None:
        """A write ends when the permit does, whatever time a request may take otherwise."""
        async with connected(Script().then(silence()), timeout_s=600) as client:
            with pytest.raises(ApiError, match="Timeout"):
                await asyncio.wait_for(client.under(Granted(0.1)).send("PATCH", PATH, {"a": 1}), DEADLINE_S)

    async def test_to_the_end(self) -> None:
        """A write that was sent goes on when its reconcile is cancelled, and can be waited for."""
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def slowly(request: object) -> object:
            arrived.set()
            await go_on.wait()
            return await json({"done": True})(request)  # type: ignore[arg-type]

        async with connected(Script().then(slowly)) as client:  # type: ignore[arg-type]
            writing = client.under(Granted(30))
            passing = asyncio.create_task(writing.send("PATCH", PATH, {"a": 1}))
            await asyncio.wait_for(arrived.wait(), DEADLINE_S)
            passing.cancel()
            await asyncio.wait((passing,))
            assert passing.cancelled()
            assert not await writing.settled(0.01)
            go_on.set()
            assert await writing.settled(DEADLINE_S)

    async def test_to_a_bad_end(self) -> None:
        """One that fails after its reconcile was cancelled is nobody's any more: no traceback in the log."""
        arrived, go_on = asyncio.Event(), asyncio.Event()
        loud: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: loud.append(context))

        async def badly(request: object) -> object:
            arrived.set()
            await go_on.wait()
            return await json({"message": "no"}, 500)(request)  # type: ignore[arg-type]

        async with connected(Script().then(badly)) as client:  # type: ignore[arg-type]
            writing = client.under(Granted(30))
            passing = asyncio.create_task(writing.send("PATCH", PATH, {"a": 1}))
            await asyncio.wait_for(arrived.wait(), DEADLINE_S)
            passing.cancel()
            await asyncio.wait((passing,))
            go_on.set()
            assert await writing.settled(DEADLINE_S)
            del passing  # its traceback holds the write
            gc.collect()
        assert not loud

    async def test_nothing_under_way(self) -> None:
        """With nothing under way there is nothing to wait for."""
        async with connected(Script().then(json({}))) as client:
            assert await client.under(Granted(30)).settled(0)
