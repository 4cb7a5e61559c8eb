"""The gRPC server in front of the estimator; the one module that knows grpc."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from splitter.core.errors import SplitterError
from splitter.core.reasons import Reason
from splitter.estimator.answers import MAX_BYTES, READERS, Estimator, RefusedError, Status

logger = logging.getLogger("splitter.estimator")

SERVICE: Final = "github.com.karmada_io.karmada.pkg.estimator.service.Estimator"
_AT_ONCE: Final = 64
_OPTIONS: Final = (("grpc.max_receive_message_length", MAX_BYTES), ("grpc.so_reuseport", 0))
# Karmada waits 3 s for an answer. A call that never sends its request would keep its place among the 64.
_SENT_WITHIN_S: Final = 3.0

Handler = Callable[[AsyncIterator[bytes], Any], Awaitable[bytes]]


async def serve(
    estimator: Estimator, address: str, tls: Path | None = None, client_ca: Path | None = None
) -> tuple[grpc.aio.Server, int]:
    """Serve from now on; return the server, and the port that it has.

    `tls`: a folder with tls.crt and tls.key, read for each connection, so that a renewed certificate is used.
    `client_ca`: clients show a certificate of this authority. Raises SplitterError.
    """
    server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=_AT_ONCE)
    handlers = {
        method: grpc.stream_unary_rpc_method_handler(_handler(estimator, method)) for method in READERS
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    try:
        credentials = await asyncio.to_thread(_credentials, tls, client_ca) if tls is not None else None
        port = (
            server.add_secure_port(address, credentials)
            if credentials is not None
            else server.add_insecure_port(address)
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise SplitterError(
            Reason.INVALID_SETTINGS,
            f"cannot serve on {address} ({error}); look at estimator_port, listen_address, estimator_tls and"
            " estimator_client_ca",
        ) from error
    await server.start()
    return server, port


def _handler(estimator: Estimator, method: str) -> Handler:
    # The calls are unary. On the wire a stream of one request is the same, and here it can be waited for.
    async def handle(sent: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> bytes:
        try:
            request = await _first(sent)
            response = estimator.answer(method, request)
        except RefusedError as refused:
            logger.info("%s: %s", method, refused.message)
            await context.abort(grpc.StatusCode[refused.status], refused.message)
            raise
        logger.debug("%s: %s -> %s", method, request.hex(), response.hex())
        return response

    return handle


async def _first(sent: AsyncIterator[bytes]) -> bytes:
    """Return the request. Raises RefusedError if none comes."""
    try:
        async with asyncio.timeout(_SENT_WITHIN_S):
            return await anext(aiter(sent))
    except StopAsyncIteration:
        raise RefusedError(Status.INVALID_ARGUMENT, "the call has no request") from None
    except TimeoutError:
        late = f"the request has not come within {_SENT_WITHIN_S:g} s"
        raise RefusedError(Status.DEADLINE_EXCEEDED, late) from None


def _credentials(tls: Path, client_ca: Path | None) -> grpc.ServerCredentials:
    """Read the certificate; a pair that is none later is told, and the last good one is used."""

    def read() -> Any:  # noqa: ANN401 - a class that grpc keeps to itself
        pair = ((tls / "tls.key").read_bytes(), (tls / "tls.crt").read_bytes())
        return grpc.ssl_server_certificate_configuration(
            [pair], client_ca.read_bytes() if client_ca else None
        )

    def again() -> Any:  # noqa: ANN401 - the same
        try:
            return read()
        except OSError as error:
            logger.warning("the certificate of the estimator stays as it was: %s", error)
            return None

    return grpc.dynamic_ssl_server_credentials(
        read(), again, require_client_authentication=client_ca is not None
    )
