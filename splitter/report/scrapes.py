"""Serves the metrics, to whoever scrapes them: Prometheus, or a person with curl.

`operator` starts it. Scrapes are answered in a thread of their own, one after the other: a thousand workloads
are some tenths of a second of CPU (docs/performance.md), which many at a time would take from reconciles.
"""

import gzip
from http import HTTPStatus
from pathlib import Path
from typing import Final

from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder

from splitter.report.certificate import Certificate
from splitter.report.serving import LOOPBACK, Answer, Request, listen

_PATH: Final = "/metrics"


def serve(port: int, tls: Path | None = None, client_ca: Path | None = None, address: str = LOOPBACK) -> int:
    """Answer scrapes in a thread that ends with the process; return the port (0: any).

    `tls`: a folder with a certificate; `client_ca`: whose clients are answered. Raises OSError.
    """
    certificate = Certificate(tls, client_ca) if tls is not None else None
    return listen("metrics", port, _answer, tls=certificate, address=address)


def _answer(request: Request) -> Answer:
    if request.path != _PATH:
        return Answer(HTTPStatus.NOT_FOUND, body=f"metrics are at {_PATH}\n".encode())
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    body: bytes = encode(REGISTRY)
    accepted = request.headers.get("accept-encoding", "").lower().split(",")
    if "gzip" not in {one.partition(";")[0].strip() for one in accepted}:
        return Answer(HTTPStatus.OK, content_type, body)
    return Answer(HTTPStatus.OK, content_type, gzip.compress(body), {"Content-Encoding": "gzip"})
