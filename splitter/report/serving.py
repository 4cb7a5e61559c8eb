"""A small HTTP server for probes and metrics that idle connections cannot block.

`health` and `scrapes` say what is answered. One thread a port, with an event loop of its own, so that the
answers also come while the controller's is stuck. A connection is one request and one answer. There are few
at a time: when one more comes, the oldest of whoever has most goes, so a kubelet that asks is heard, however
many others are silent. Who does not ask within seconds, or does not read the answer, is let go.
"""

import asyncio
import logging
import os
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPMethod, HTTPStatus
from typing import Final

from splitter.report.certificate import Certificate

logger = logging.getLogger("splitter.serving")

LOOPBACK: Final = "127.0.0.1"
_HEAD_BYTES: Final = 16 * 1024
# Connections that nobody has looked at yet; beyond it a kubelet's would wait for a second.
_BACKLOG: Final = 1024
_END: Final = b"\r\n\r\n"
_AT_ONCE: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for: a path, without what follows a question mark, and headers by lower-case names."""

    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered."""

    status: HTTPStatus
    content_type: str = "text/plain"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a connection, and how many: a kubelet asks at once, a Prometheus reads at once."""

    connections: int = 32
    head_s: float = 3.0
    """Until the request is whole."""
    whole_s: float = 15.0
    """Until the answer is read."""


Answering = Callable[[Request], Answer]


def default_address(environment: Mapping[str, str] = os.environ) -> str:
    """Return all addresses in a pod, which the kubelet and Prometheus ask from outside; else loopback.

    The kubelet sets this variable in each container.
    """
    return "0.0.0.0" if "KUBERNETES_SERVICE_HOST" in environment else LOOPBACK  # noqa: S104


def listen(
    name: str,
    port: int,
    answering: Answering,
    limits: Limits | None = None,
    tls: Certificate | None = None,
    *,
    address: str = LOOPBACK,
) -> int:
    """Answer in a thread that ends with the process; return the port (0: any).

    With `tls` over TLS only. `address`: of IPv4 or IPv6. Raises OSError when the port is taken, the address
    is not one of this host or the certificate cannot be read.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.create_server((address, port), family=family, backlog=_BACKLOG)
    server = _Server(answering, limits or Limits(), tls)
    work = server.run(listening)
    threading.Thread(target=asyncio.run, args=(work,), name=name, daemon=True).start()
    return int(listening.getsockname()[1])


class _Server:
    def __init__(self, answering: Answering, limits: Limits, tls: Certificate | None) -> None:
        self._answering = answering
        self._limits = limits
        self._tls = tls
        self._open: dict[asyncio.StreamWriter, str] = {}  # from where; the oldest first

    async def run(self, listening: socket.socket) -> None:
        server = await asyncio.start_server(
            self._converse,
            sock=listening,
            limit=_HEAD_BYTES,
            backlog=_BACKLOG,
            ssl=self._tls.context if self._tls is not None else None,
            ssl_handshake_timeout=self._limits.head_s if self._tls is not None else None,
        )
        async with server:
            if self._tls is not None:
                await self._tls.follow()
            await server.serve_forever()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[writer] = str((writer.get_extra_info("peername") or ("",))[0])
        if len(self._open) > self._limits.connections:
            self._let_one_go()
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(self._limits.whole_s):
                    writer.write(_written(await self._answer(reader)))
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        finally:
            self._open.pop(writer, None)
            _abort(writer)

    def _let_one_go(self) -> None:
        """Abort a connection; whoever waits for something of it sees that it has ended."""
        count = Counter(self._open.values())
        most = max(count.values())
        chosen = next(writer for writer, host in self._open.items() if count[host] == most)
        del self._open[chosen]
        _abort(chosen)

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        try:
            async with asyncio.timeout(self._limits.head_s):
                head = await reader.readuntil(_END)
        except asyncio.LimitOverrunError:
            return Answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        lines = head.decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        target, _, version = rest.partition(" ")
        if not version.startswith("HTTP/1."):
            return Answer(HTTPStatus.BAD_REQUEST)
        if method != HTTPMethod.GET:
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": HTTPMethod.GET})
        fields = (line.partition(":") for line in lines[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in fields}
        try:
            return self._answering(Request(target.partition("?")[0], headers))
        except Exception:
            logger.exception("a request could not be answered, this is a bug of splitter's")
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR)


def _abort(writer: asyncio.StreamWriter) -> None:
    """End a connection, unless it has ended, and have the kernel keep nothing of what was not read."""
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    writer.transport.abort()


def _written(answer: Answer) -> bytes:
    headers = {
        "Content-Type": answer.content_type,
        "Content-Length": str(len(answer.body)),
        "Connection": "close",
        **answer.headers,
    }
    lines = [f"HTTP/1.1 {answer.status.value} {answer.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + _END + answer.body
