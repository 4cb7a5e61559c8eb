"""A watch in a bad state: first repeats at once, further ones ever later. No test waits for a real clock."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import cast

import pytest

from kube.things import PATH, Things, thing
from leaping import passing
from splitter.kube.client import ApiError, Client
from splitter.kube.watch import Reflector

pytestmark = pytest.mark.slow

Lines = Callable[[], AsyncIterator[bytes]]
HOUR_S = 3600.0
# More than any bad state takes. Time stands still for who asks on and on, and a test would never end.
MOST = 2000


async def _nothing() -> AsyncIterator[bytes]:
    for line in list[bytes]():
        yield line


async def _expired() -> AsyncIterator[bytes]:
    yield b'{"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}'


async def _breaks() -> AsyncIterator[bytes]:
    async for line in _nothing():
        yield line
    raise ApiError(0, "NoAnswer", "broken")


async def _stays() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    async for line in _nothing():
        yield line


async def _lasts() -> AsyncIterator[bytes]:
    await passing(50.0)
    async for line in _nothing():
        yield line


async def _expires_later() -> AsyncIterator[bytes]:
    await passing(50.0)
    async for line in _expired():
        yield line


class Server:
    """Answers each watch by the script, the last answer again and again; remembers when it was asked.

    `refusals`: what the next lists are answered, one each; `lasting_s`: how long a list takes.
    """

    def __init__(self, *watches: Lines, lasting_s: float = 0.0) -> None:
        self._watches = list(watches)
        self._lasting_s = lasting_s
        self.refusals: list[ApiError] = []
        self.lists: list[float] = []
        self.watches: list[float] = []

    def _note(self, asked: list[float]) -> None:
        asked.append(asyncio.get_running_loop().time())
        if len(asked) > MOST:
            raise AssertionError(f"asked {MOST} times in {asked[-1] - asked[0]:.0f} s")

    async def pages(self, *_: object, **__: str) -> AsyncIterator[object]:
        """List."""
        self._note(self.lists)
        if self._lasting_s:
            await passing(self._lasting_s)
        if self.refusals:
            raise self.refusals.pop(0)
        yield {"metadata": {"resourceVersion": "7"}, "items": [thing("a", 1)]}

    @asynccontextmanager
    async def stream(self, *_: object) -> AsyncIterator[AsyncIterator[bytes]]:
        """Watch."""
        self._note(self.watches)
        lines = self._watches.pop(0) if len(self._watches) > 1 else self._watches[0]
        yield lines()


def reflector_of(server: Server, without: str = "") -> Reflector:
    """Return one that follows the server's only collection; `without`: it may be refused."""
    client = cast("Client", server)  # as much of one as it needs
    return Reflector(client, PATH, Things(), without=without)


async def lived(server: Server, for_s: float) -> Reflector:
    """Let a reflector run for so long."""
    reflector = reflector_of(server)
    running = asyncio.create_task(reflector.run())
    await passing(for_s)
    assert not running.done()
    running.cancel()
    return reflector


def gaps(times: list[float]) -> list[float]:
    """Return the times between."""
    return [later - earlier for earlier, later in pairwise(times)]


BAD: Mapping[str, Lines] = {"ends at once": _nothing, "410 each time": _expired, "broken": _breaks}


@pytest.mark.parametrize("state", BAD)
async def test_repeats_come_ever_later(state: str) -> None:
    """An hour of it is some hundred requests, and after the one repeat no list comes within 10 s."""
    server = Server(BAD[state])
    await lived(server, HOUR_S)
    assert HOUR_S / 20 < len(server.watches) < HOUR_S / 5
    assert all(gap >= 10.0 for gap in gaps(server.lists)[1:])
    if state == "ends at once":
        assert len(server.lists) == 1


async def test_a_watch_that_ends_at_once_is_not_stuck() -> None:
    """The server answers: a new process would be answered the same."""
    reflector = await lived(Server(_nothing), HOUR_S)
    assert not reflector.stuck


async def test_one_410_is_listed_at_once() -> None:
    """A loss may hide in the gap; neither is the second one an hour later a repeat."""
    server = Server(_expires_later, *([_lasts] * 72), _expires_later, _stays)
    await lived(server, 2 * HOUR_S)
    assert len(server.lists) == 3
    assert gaps(server.lists)[0] == pytest.approx(50.0, abs=0.01)
    assert min(abs(listed - asked) for asked in server.watches for listed in server.lists[2:]) < 0.01


async def test_a_watch_that_lasted_is_followed_by_the_next_at_once() -> None:
    """That is how each of them ends."""
    server = Server(_lasts)
    await lived(server, 20 * 50.0)
    assert all(gap == pytest.approx(50.0, abs=0.01) for gap in gaps(server.watches))
    assert len(server.lists) == 1


async def test_a_watch_that_holds_starts_the_waits_anew() -> None:
    """What broke long ago does not slow down what breaks today."""
    server = Server(*([_nothing] * 12), _lasts, _stays)
    await lived(server, HOUR_S)
    assert gaps(server.watches)[-2] > 4.0
    assert gaps(server.watches)[-1] == pytest.approx(50.0, abs=0.01)


async def test_a_broken_watch_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Until it has held; and its error stands between."""
    reflector = await lived(Server(_breaks), HOUR_S)
    assert reflector.error is not None
    assert len([record for record in caplog.records if "interrupted" in record.getMessage()]) == 1


async def test_opened_again_lists_nothing() -> None:
    """The API server was away for a moment: each watch goes on where it was, every half minute at most."""
    server = Server(_stays)
    reflector = reflector_of(server)
    running = asyncio.create_task(reflector.run())
    for _ in range(360):
        await passing(10.0)
        reflector.reopen(anew=False)
    running.cancel()
    assert len(server.lists) == 1
    assert all(gap >= 29.9 for gap in gaps(server.watches)[1:])
    assert HOUR_S / 31 < len(server.watches) <= HOUR_S / 30 + 1


async def test_opened_anew_is_listed_before_it_is_synced() -> None:
    """It was away for so long that nobody knows what has happened: at once, then every 10 s at most."""
    server = Server(_stays)
    reflector = reflector_of(server)
    running = asyncio.create_task(reflector.run())
    await passing(60.0)
    for _ in range(100):
        reflector.reopen(anew=True)
        assert not reflector.synced.is_set()
        await passing(1.0)
    running.cancel()
    assert gaps(server.lists)[0] == pytest.approx(60.0, abs=0.01)
    assert all(gap >= 9.99 for gap in gaps(server.lists)[2:])
    assert len(server.lists) >= 10


async def test_opened_anew_while_it_is_listed() -> None:
    """That list began before the wish: it does not answer it."""
    server = Server(_stays, lasting_s=2.0)
    reflector = reflector_of(server)
    running = asyncio.create_task(reflector.run())
    await passing(1.0)
    reflector.reopen(anew=True)
    await passing(2.0)
    assert not reflector.synced.is_set()
    await passing(2.0)
    assert reflector.synced.is_set()
    running.cancel()
    assert len(server.lists) == 2


async def test_opened_anew_and_the_list_fails() -> None:
    """It is tried again: no watch that goes on from before stands for it."""
    server = Server(_stays)
    reflector = reflector_of(server)
    running = asyncio.create_task(reflector.run())
    await passing(60.0)
    server.refusals = [ApiError(0, "NoAnswer", "still away")] * 3
    reflector.reopen(anew=True)
    await passing(30.0)
    running.cancel()
    assert reflector.synced.is_set()
    assert len(server.lists) == 1 + 4
    assert len(server.watches) == 2


async def test_opened_anew_where_it_is_done_without() -> None:
    """A leader waits for an answer, and not for the next look in some minutes."""
    server = Server(_stays)
    server.refusals = [ApiError(403, "Forbidden", "no")] * 100
    reflector = reflector_of(server, "we are slower")
    running = asyncio.create_task(reflector.run())
    await passing(HOUR_S)
    reflector.reopen(anew=True)
    assert not reflector.synced.is_set()
    await passing(1.0)
    running.cancel()
    assert reflector.synced.is_set()
