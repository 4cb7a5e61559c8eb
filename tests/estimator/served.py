"""The estimator's server over a real connection, and `splitter estimator` as a process of its own."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

import pytest

from estimator import requests
from lab.checkout import ROOT
from lab.fixtures.controller import environment
from listening import Listening
from splitter.estimator.answers import Estimator
from splitter.estimator.wire import number_field

grpc = pytest.importorskip("grpc")
aio = pytest.importorskip("grpc.aio")
server = pytest.importorskip("splitter.estimator.server")

PAIR: Final = Path(__file__).parents[1] / "worthless.pem"
RAW: Final = requests.max_replicas(cpu="1")


class Answering(Estimator):
    """An estimator that answers 7, or refuses, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[tuple[str, bytes]] = []

    def answer(self, method: str, raw: bytes) -> bytes:
        """Return 7, or raise."""
        self.asked.append((method, raw))
        if self.error is not None:
            raise self.error
        return number_field(1, 7)


def asked(
    estimator: Estimator,
    ask: Callable[[Any], Awaitable[None]],
    tls: Path | None = None,
    client_ca: Path | None = None,
    credentials: Any = None,  # noqa: ANN401 - grpc has no types
) -> None:
    """Serve, and ask by a channel."""

    async def both() -> None:
        serving, port = await server.serve(estimator, "127.0.0.1:0", tls, client_ca)
        address = f"127.0.0.1:{port}"
        channel = aio.secure_channel(address, credentials) if credentials else aio.insecure_channel(address)
        try:
            async with channel:
                await ask(channel)
        finally:
            await serving.stop(None)

    asyncio.run(both())


def method(channel: Any, name: str) -> Any:  # noqa: ANN401 - grpc has no types
    """Return a call as Karmada makes it."""
    return channel.unary_unary(f"/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/{name}")


async def ask_once(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
    """Ask one of the three, and get the bytes of 7."""
    assert await method(channel, "MaxAvailableReplicas")(RAW, timeout=10) == b"\x08\x07"


class ApiServer(BaseHTTPRequestHandler):
    """An API server with one node and nothing else, whose watches tell nothing."""

    _CREATED = "2026-01-05T09:00:00Z"
    NODE = {  # noqa: RUF012 - it is read only
        "metadata": {
            "name": "a",
            "uid": "a",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-05T09:00:00Z",
        },
        "spec": {},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    over = threading.Event()
    asked = threading.Event()  # for nodes
    listed = threading.Event()

    def do_GET(self) -> None:
        """Answer a list, or keep a watch open; of nodes none before `listed` is set."""
        if self.path.startswith("/api/v1/nodes"):
            self.asked.set()
            self.listed.wait(60)
        items = [self.NODE] if self.path.startswith("/api/v1/nodes") else []
        listed = {"gitVersion": "v1.36.3", "metadata": {"resourceVersion": "1"}, "items": items}
        content = b"" if "watch=" in self.path else json.dumps(listed).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if content:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        if not content:
            self.over.wait(60)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@dataclass(frozen=True, slots=True)
class Running:
    """The process, and where it is asked."""

    process: subprocess.Popen[str]
    port: int

    @property
    def address(self) -> str:
        """Return the address of its server."""
        return f"127.0.0.1:{self.port}"

    def end(self) -> str:
        """Tell it to end, and return what it has said. Raises AssertionError if it fails."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, said
        return said


@contextmanager
def running(home: Path, *, listed: bool = True) -> Iterator[Running]:
    """Run `splitter estimator` of the cluster m1, as the manifest does.

    `listed`: whether its API server lists nodes at once, and not only when `ApiServer.listed` is set.
    """
    ApiServer.over.clear()
    ApiServer.listed.clear()
    ApiServer.asked.clear()
    if listed:
        ApiServer.listed.set()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    api = Listening(("127.0.0.1", 0), ApiServer)
    threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    kubeconfig = home / "kubeconfig"
    named = {"name": "a", "cluster": {"server": f"http://127.0.0.1:{api.server_address[1]}"}, "user": {}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    content = {"clusters": [named], "users": [named], "contexts": [context], "current-context": "a"}
    kubeconfig.write_text(json.dumps(content))
    variables = environment(home, kubeconfig, ESTIMATOR_CLUSTER="m1", ESTIMATOR_PORT=str(port))
    # Where grpcio is, if it is not beside everything else.
    variables["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(Path(grpc.__file__).parents[1])])
    process = subprocess.Popen(
        [sys.executable, "-m", "splitter", "estimator"],
        env=variables,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Running(process, port)
    finally:
        process.kill()
        process.communicate()
        ApiServer.listed.set()
        ApiServer.over.set()
        api.shutdown()
        api.server_close()
