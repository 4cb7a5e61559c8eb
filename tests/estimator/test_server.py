"""The server, asked over a real connection with Karmada's bytes."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from estimator import requests
from lab.checkout import ROOT
from lab.fixtures.controller import environment
from listening import Listening
from splitter.core.errors import SplitterError
from splitter.estimator.answers import MAX_BYTES, READERS, Estimator, RefusedError, Status
from splitter.estimator.wire import number_field

grpc = pytest.importorskip("grpc")
aio = pytest.importorskip("grpc.aio")
server = pytest.importorskip("splitter.estimator.server")

PAIR = Path(__file__).parents[1] / "worthless.pem"
RAW = requests.max_replicas(cpu="1")


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


async def is_refused(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
    """Ask, and get no connection."""
    with pytest.raises(aio.AioRpcError) as refused:
        await method(channel, "MaxAvailableReplicas")(RAW, timeout=10)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_answers_the_three_calls() -> None:
    """Bytes in, bytes out, under Karmada's names."""
    estimator = Answering()

    async def ask(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
        for name in READERS:
            assert await method(channel, name)(RAW, timeout=10) == b"\x08\x07"
        with pytest.raises(aio.AioRpcError) as refused:
            await method(channel, "Preempt")(RAW, timeout=10)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED

    asked(estimator, ask)
    assert estimator.asked == [(name, RAW) for name in READERS]


@pytest.mark.parametrize("status", Status)
def test_tells_why_it_refuses(status: Status) -> None:
    """By a status of gRPC and a sentence."""

    async def ask(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
        with pytest.raises(aio.AioRpcError) as refused:
            await method(channel, "GetUnschedulableReplicas")(b"", timeout=10)
        assert (refused.value.code().name, refused.value.details()) == (status, "because")

    asked(Answering(RefusedError(status, "because")), ask)


@pytest.mark.filterwarnings("ignore")
def test_goes_on_after_a_fault_of_its_own_and_what_is_too_large() -> None:
    """One call fails; the next is answered."""
    estimator = Answering(ZeroDivisionError())

    async def ask(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
        for raw, code in (
            (RAW, grpc.StatusCode.UNKNOWN),
            (bytes(MAX_BYTES + 1), grpc.StatusCode.RESOURCE_EXHAUSTED),
        ):
            with pytest.raises(aio.AioRpcError) as refused:
                await method(channel, "MaxAvailableReplicas")(raw, timeout=10)
            assert refused.value.code() is code
        estimator.error = None
        await ask_once(channel)

    asked(estimator, ask)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder as a Secret of a certificate is mounted."""
    for name in ("tls.crt", "tls.key"):
        shutil.copyfile(PAIR, tmp_path / name)
    return tmp_path


def test_answers_over_tls(folder: Path) -> None:
    """A client that trusts the certificate is answered, one in the clear is not; a lost file ends nothing."""
    trusting = grpc.ssl_channel_credentials(PAIR.read_bytes())

    async def ask(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
        (folder / "tls.key").unlink()
        await ask_once(channel)

    asked(Answering(), ask, folder, credentials=trusting)
    shutil.copyfile(PAIR, folder / "tls.key")
    asked(Answering(), is_refused, folder)


def test_answers_certified_clients_only(folder: Path) -> None:
    """With an authority for clients, one that shows no certificate of it gets no connection."""
    pem = PAIR.read_bytes()
    asked(Answering(), ask_once, folder, PAIR, grpc.ssl_channel_credentials(pem, pem, pem))
    asked(Answering(), is_refused, folder, PAIR, grpc.ssl_channel_credentials(pem))


def test_says_what_keeps_it_from_serving(folder: Path) -> None:
    """A port that is taken, an address that is none, a certificate that is not there."""

    async def ask(address: str, tls: Path | None) -> None:
        await server.serve(Answering(), address, tls)

    with pytest.raises(SplitterError, match="look at estimator_port"):
        asyncio.run(ask("300.0.0.1:0", None))
    (folder / "tls.crt").unlink()
    with pytest.raises(SplitterError, match=r"tls\.crt"):
        asyncio.run(ask("127.0.0.1:0", folder))


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

    def do_GET(self) -> None:
        """Answer a list, or keep a watch open."""
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


def test_a_process_answers_and_ends_when_it_is_told(tmp_path: Path) -> None:
    """`splitter estimator` as the manifest runs it; SIGTERM ends it with 0."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    api = Listening(("127.0.0.1", 0), ApiServer)
    threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    kubeconfig = tmp_path / "kubeconfig"
    named = {"name": "a", "cluster": {"server": f"http://127.0.0.1:{api.server_address[1]}"}, "user": {}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    content = {"clusters": [named], "users": [named], "contexts": [context], "current-context": "a"}
    kubeconfig.write_text(json.dumps(content))
    variables = environment(tmp_path, kubeconfig, ESTIMATOR_CLUSTER="m1", ESTIMATOR_PORT=str(port))
    # Where grpcio is, if it is not beside everything else.
    variables["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(Path(grpc.__file__).parents[1])])
    process = subprocess.Popen(
        [sys.executable, "-m", "splitter", "estimator"],
        env=variables,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )

    async def ask() -> bytes:
        async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = method(channel, "MaxAvailableReplicas")
            return bytes(await call(RAW, timeout=60, wait_for_ready=True))

    try:
        assert asyncio.run(ask()) == b"\x08\x04"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        ApiServer.over.set()
        api.shutdown()
        api.server_close()
    assert process.returncode == 0, said
    assert f"answering for the cluster m1 on port {port}" in said
    assert "Traceback" not in said
