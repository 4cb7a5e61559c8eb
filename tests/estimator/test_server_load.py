"""Many callers, slow ones and broken ones: each gets a status, and the others are answered."""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from estimator import requests
from estimator.requests import field, quantity
from estimator.served import RAW, Answering, ApiServer, Running, aio, ask_once, asked, method, running, server
from lab.bench.figures import memory_mb
from splitter.estimator.answers import MAX_BYTES

MAX: Final = "MaxAvailableReplicas"
UNSCHEDULABLE: Final = "GetUnschedulableReplicas"
AT_ONCE, CALLS, BATCH = 64, 1200, 40
LARGE_MB = CALLS * MAX_BYTES / 1e6
GPU = field(1, "m1") + field(2, field(5, quantity("example.com/gpu", "1")))
_OWN: Final = [("grpc.use_local_subchannel_pool", 1)]  # a connection of its own


async def code_of(call: Any) -> str:  # noqa: ANN401 - grpc has no types
    """Return the name of the status of a call."""
    return str((await call.code()).name)


async def is_answered_again(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
    """Ask until there is a place: a call gives up its own a moment after its caller has left."""
    async with asyncio.timeout(60):
        while (code := await code_of(method(channel, MAX)(RAW, timeout=60))) != "OK":
            assert code == "RESOURCE_EXHAUSTED"


class TestSlow:
    def test_calls_that_send_nothing_keep_no_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As many as there are places: they hear that they are late, and the next one is answered."""
        monkeypatch.setattr(server, "_SENT_WITHIN_S", 1.0)

        async def ask(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
            stream = channel.stream_unary(f"/{server.SERVICE}/{MAX}")
            silent = [stream(timeout=60) for _ in range(AT_ONCE)]
            codes = Counter([await code_of(call) for call in silent])
            assert codes == {"DEADLINE_EXCEEDED": AT_ONCE}
            assert "within 1 s" in await silent[0].details()
            await is_answered_again(channel)

        asked(Answering(), ask)

    def test_calls_beyond_the_bound_are_told_so(self) -> None:
        """They are refused at once, and by no other status."""

        async def ask(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
            stream = channel.stream_unary(f"/{server.SERVICE}/{MAX}")
            silent = [stream(timeout=60) for _ in range(AT_ONCE)]
            for call in silent:
                await call.wait_for_connection()
            over = [method(channel, MAX)(RAW, timeout=60) for _ in range(5)]
            assert {await code_of(call) for call in over} == {"RESOURCE_EXHAUSTED"}
            for call in silent:
                call.cancel()
            await is_answered_again(channel)

        asked(Answering(), ask)

    def test_a_call_without_a_request(self) -> None:
        """It is no request of Karmada's."""

        async def ask(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
            call = channel.stream_unary(f"/{server.SERVICE}/{MAX}")(timeout=60)
            await call.done_writing()
            assert await code_of(call) == "INVALID_ARGUMENT"
            await ask_once(channel)

        asked(Answering(), ask)

    def test_callers_that_hang_up(self) -> None:
        """Before the answer comes, many times: what they asked is no concern of the next one."""

        async def ask(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
            for _ in range(200):
                call = method(channel, MAX)(RAW, timeout=60)
                await call.wait_for_connection()
                call.cancel()
            await ask_once(channel)

        asked(Answering(), ask)

    def test_connections_that_say_nothing(self) -> None:
        """Or that speak another language keep no caller away."""

        async def ask() -> None:
            serving, port = await server.serve(Answering(), "127.0.0.1:0")
            idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
            for one in idle[::2]:
                one.sendall(b"GET / HTTP/1.1\r\n\r\n")
            try:
                async with aio.insecure_channel(f"127.0.0.1:{port}", _OWN) as channel:
                    await ask_once(channel)
            finally:
                for one in idle:
                    one.close()
                await serving.stop(None)

        asyncio.run(ask())


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield a running estimator of a cluster with one node of 4 CPU."""
    with running(tmp_path_factory.mktemp("estimator")) as it:
        yield it


class TestProcess:
    """A whole process, whose caches are a real cluster's."""

    @pytest.mark.parametrize(
        ("name", "raw", "status"),
        [
            (MAX, b"\x0a\xff", "INVALID_ARGUMENT"),
            (MAX, b"", "INVALID_ARGUMENT"),
            (MAX, requests.max_replicas("m2", cpu="1"), "INVALID_ARGUMENT"),
            (MAX, bytes(MAX_BYTES + 1), "RESOURCE_EXHAUSTED"),
            (UNSCHEDULABLE, requests.unschedulable(namespace="nowhere"), "NOT_FOUND"),
            (UNSCHEDULABLE, requests.unschedulable(namespace="../kube-system"), "INVALID_ARGUMENT"),
            (UNSCHEDULABLE, requests.unschedulable(kind="Job"), "INVALID_ARGUMENT"),
            ("Nothing", RAW, "UNIMPLEMENTED"),
        ],
        ids=["no message", "empty", "another cluster", "large", "namespace", "no name", "kind", "method"],
    )
    def test_tells_what_is_wrong(self, process: Running, name: str, raw: bytes, status: str) -> None:
        """By a status of gRPC; the next call is answered."""

        async def ask() -> tuple[str, bytes]:
            async with aio.insecure_channel(process.address) as channel:
                await channel.channel_ready()
                code = await code_of(method(channel, name)(raw, timeout=60))
                return code, bytes(await method(channel, MAX)(RAW, timeout=60))

        assert asyncio.run(ask()) == (status, b"\x08\x04")

    @pytest.mark.parametrize(
        "raw",
        [requests.max_replicas(cpu="999999999999"), GPU],
        ids=["more than a node has", "what no node has"],
    )
    def test_has_no_room_for_what_is_too_large(self, process: Running, raw: bytes) -> None:
        """0, which is an answer."""

        async def ask() -> bytes:
            async with aio.insecure_channel(process.address) as channel:
                return bytes(await method(channel, MAX)(raw, timeout=60, wait_for_ready=True))

        assert asyncio.run(ask()) == b"\x08\x00"

    def test_answers_many_at_once_in_bounded_memory(self, process: Running) -> None:
        """Each is answered, and what has been asked is not kept."""
        large = RAW + field(7, bytes(MAX_BYTES - 100))  # a field that no Karmada has is skipped

        async def ask() -> Counter[str]:
            codes: Counter[str] = Counter()
            async with aio.insecure_channel(process.address, _OWN) as channel:
                await channel.channel_ready()
                for _ in range(CALLS // BATCH):
                    calls = [method(channel, MAX)(large, timeout=60) for _ in range(BATCH)]
                    codes.update([await code_of(call) for call in calls])
            return codes

        assert asyncio.run(ask()) == {"OK": CALLS}
        before = memory_mb(process.process.pid)["resident"]
        assert asyncio.run(ask()) == {"OK": CALLS}
        assert memory_mb(process.process.pid)["resident"] - before < LARGE_MB / 4


class TestStart:
    def test_is_not_served_before_the_caches_are_full(self, tmp_path: Path) -> None:
        """Nothing is said of a cluster that is not known yet, so Karmada goes on by its own counts."""
        with running(tmp_path, listed=False) as it:

            async def ask(*, wait: bool) -> str:
                async with aio.insecure_channel(it.address, _OWN) as channel:
                    return await code_of(method(channel, MAX)(RAW, timeout=60, wait_for_ready=wait))

            assert ApiServer.asked.wait(60)
            assert asyncio.run(ask(wait=False)) == "UNAVAILABLE"
            ApiServer.listed.set()
            assert asyncio.run(ask(wait=True)) == "OK"
