"""Metrics are answered in the form that is asked for, packed for who can unpack them."""

import gzip
from http import HTTPStatus

import pytest

from splitter.report import metrics, scrapes
from splitter.report.serving import Answer, Request

BUILD = next(iter(metrics.build_info.collect())).name.encode()


def answered(path: str = "/metrics", **headers: str) -> Answer:
    """Return what is answered to a request."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return scrapes._answer(Request(path, named))  # noqa: SLF001 - as `listen` asks, without a socket


def test_are_at_their_path_only() -> None:
    """And elsewhere it is said where."""
    answer = answered("/")
    assert (answer.status, answer.body) == (HTTPStatus.NOT_FOUND, b"metrics are at /metrics\n")
    assert answered().status is HTTPStatus.OK


@pytest.mark.parametrize(
    ("accept", "content_type", "end"),
    [
        ("", "text/plain; version=0.0.4", b"\n"),
        ("text/html", "text/plain; version=0.0.4", b"\n"),
        ("application/openmetrics-text;version=1.0.0", "application/openmetrics-text", b"# EOF\n"),
    ],
)
def test_are_in_the_form_that_is_asked_for(accept: str, content_type: str, end: bytes) -> None:
    """For a person it is text."""
    answer = answered(accept=accept)
    assert answer.content_type.startswith(content_type)
    assert answer.body.endswith(end)
    assert BUILD in answer.body


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [("gzip", True), ("deflate, GZIP;q=1", True), ("deflate", False), ("", False), ("x-gzip", False)],
)
def test_are_packed_for_who_can_unpack_them(accepted: str, *, is_packed: bool) -> None:
    """A thousand workloads are some megabytes."""
    answer = answered(accept_encoding=accepted)
    assert (answer.headers.get("Content-Encoding") == "gzip") is is_packed
    assert BUILD in (gzip.decompress(answer.body) if is_packed else answer.body)
