"""Reads the bodies of answers: never more of one than its bound, and few large ones at a time.

`client` owns the one `Answers`. JSON takes up to 25 times its bytes when it is parsed, and a tenant writes as
dense a JSON as it likes. So a page has a bound of its own, and what is large waits for its turn, over all
connections. Nothing here parses an answer. Source: docs/adr/0106.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import aiohttp

# The API server takes requests of 3 MiB, and etcd 1.5 MiB; JSON makes "<" six times as long.
MAX_ANSWER_BYTES: Final = 32 * 1024**2
# A page of more than one object: 80 to 100 MiB when it is parsed.
MAX_PAGE_BYTES: Final = 4 * 1024**2
# What is smaller needs no turn.
LARGE_BYTES = 256 * 1024
AT_ONCE = 4
# Less than a request may take, so that a server that sends a byte at a time holds up no other collection.
TURN_S = 5.0


class TooLargeError(Exception):
    """A body is larger than its bound, or takes longer than its turn; the message says which."""


class Answers:
    """Reads bodies, of all connections to one API server."""

    def __init__(self) -> None:
        self._reading = asyncio.Semaphore(AT_ONCE)

    async def whole(self, response: aiohttp.ClientResponse, most: int = MAX_ANSWER_BYTES) -> bytes:
        """Return the whole body, of at most `most` bytes. Raises TooLargeError."""
        content = bytearray()
        try:
            async with AsyncExitStack() as turn:
                waited = False
                async for chunk in response.content.iter_any():
                    content += chunk
                    _check(len(content), most)
                    if len(content) > LARGE_BYTES and not waited:
                        waited = True
                        await turn.enter_async_context(self._turn())
        except BaseException:
            response.close()
            content.clear()  # else it lives as long as the error's traceback
            raise
        return bytes(content)

    async def lines(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Split a body without an end into its lines, each of at most MAX_ANSWER_BYTES. Raises TooLargeError.

        Nothing of a line is kept when the next one is asked for.
        """
        begun = bytearray()
        async with AsyncExitStack() as turn:
            waits = True
            async for chunk in response.content.iter_any():
                begin = 0
                while (end := chunk.find(b"\n", begin)) >= 0:
                    begun += chunk[begin:end]
                    begin = end + 1
                    await turn.aclose()
                    waits = True
                    if begun:
                        yield bytes(begun)
                        begun = bytearray()
                begun += chunk[begin:]
                _check(len(begun), MAX_ANSWER_BYTES)
                if len(begun) > LARGE_BYTES and waits:
                    waits = False
                    await turn.enter_async_context(self._turn())

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with self._reading:
            try:
                async with asyncio.timeout(TURN_S) as turn:
                    yield
            except TimeoutError as error:
                if turn.expired():
                    raise TooLargeError(f"takes longer than {TURN_S:.0f} s") from error
                raise


def keep_alive(response: aiohttp.ClientResponse) -> None:
    """Have the kernel ask whether the other side is still there: a watch may be silent for a minute.

    A peer that vanished without a word is found after 30 s, and not after the longest silence of a watch.
    """
    transport = response.connection.transport if response.connection is not None else None
    connection = transport.get_extra_info("socket") if transport is not None else None
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # Linux; others keep their own pace
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _check(size: int, most: int) -> None:
    if size > most:
        raise TooLargeError(f"is larger than {most // 1024**2} MiB")
