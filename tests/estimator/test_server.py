"""The server, asked over a real connection with Karmada's bytes."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from estimator.served import PAIR, RAW, Answering, aio, ask_once, asked, grpc, method, running, server
from splitter.core.errors import SplitterError
from splitter.estimator.answers import MAX_BYTES, READERS, RefusedError, Status


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
    """A client that trusts the certificate is answered; one that does not, or in the clear, is not.

    A lost file ends nothing.
    """
    trusting = grpc.ssl_channel_credentials(PAIR.read_bytes())

    async def ask(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
        (folder / "tls.key").unlink()
        await ask_once(channel)

    asked(Answering(), ask, folder, credentials=trusting)
    shutil.copyfile(PAIR, folder / "tls.key")
    asked(Answering(), is_refused, folder)
    asked(Answering(), is_refused, folder, credentials=grpc.ssl_channel_credentials())


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


def test_a_process_answers_and_ends_when_it_is_told(tmp_path: Path) -> None:
    """`splitter estimator` as the manifest runs it; SIGTERM ends it with 0."""
    with running(tmp_path) as it:

        async def ask() -> bytes:
            async with aio.insecure_channel(it.address) as channel:
                call = method(channel, "MaxAvailableReplicas")
                return bytes(await call(RAW, timeout=60, wait_for_ready=True))

        assert asyncio.run(ask()) == b"\x08\x04"
        said = it.end()
    assert f"answering for the cluster m1 on port {it.port}" in said
    assert "Traceback" not in said
