"""Asks a Prometheus by its query API, and other servers that answer in JSON; bounded in time and size.

`prices` and `real_use` ask. These servers are no part of the cluster's API: whoever runs them says what they
like, so what cannot be read is said and counts as none. The form of an answer is the one of
https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import aiohttp
import orjson

_TIMEOUT_S = 10.0
_MOST_BYTES = 32 * 1024**2  # 10,000 nodes, or 100,000 pods, are some 10 MiB
_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]*@")
_ERROR_MAX = 200


class NoAnswerError(Exception):
    """A server that gives no answer that can be used; says which one and why, without credentials."""

    def __init__(self, message: str) -> None:
        super().__init__(without_credentials(message))


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an instant query, as it was at one time."""

    labels: Mapping[str, str]
    at: datetime
    value: float


def without_credentials(text: str) -> str:
    """Return a text with addresses that nobody can log in with.

    >>> without_credentials("http://me:secret@costs:9003/assets")
    'http://…@costs:9003/assets'
    """
    return _CREDENTIALS.sub("…@", text)


async def series(address: str, query: str) -> list[Series]:
    """Return what a query yields now; what of it is none is left out. Raises NoAnswerError."""
    url = f"{address.rstrip('/')}/api/v1/query"
    answer = await answer_of(url, {"query": query})
    data = answer.get("data")
    result = data.get("result") if isinstance(data, Mapping) else None
    if answer.get("status") != "success" or not isinstance(result, list):
        raise NoAnswerError(f"{url}: {_error_in(answer) or 'this is no answer of a Prometheus'}")
    return [one for raw in result if (one := _series(raw)) is not None]


def _series(raw: object) -> Series | None:
    try:
        metric, (at, value) = raw["metric"], raw["value"]  # type: ignore[index] # whatever it is
        labels = {str(name): str(text) for name, text in metric.items()}
        return Series(labels, datetime.fromtimestamp(at, UTC), float(value))
    except (ArithmeticError, AttributeError, KeyError, OSError, TypeError, ValueError):
        return None


async def answer_of(url: str, query: Mapping[str, str]) -> Mapping[str, Any]:
    """GET one JSON object. Raises NoAnswerError."""
    if not url.startswith(("http://", "https://")):
        raise NoAnswerError(f"{url!r}, which is no address: it begins with http:// or https://")
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, params=query) as answer,
        ):
            text = bytearray()
            while chunk := await answer.content.read(_MOST_BYTES):
                text += chunk
                if len(text) > _MOST_BYTES:
                    raise NoAnswerError(f"{url}: it answers with more than {_MOST_BYTES // 1024**2} MiB")
            if answer.status >= HTTPStatus.BAD_REQUEST:
                raise NoAnswerError(f"{url}: {answer.status} {_refusal(bytes(text)) or answer.reason}")
            parsed = await asyncio.to_thread(orjson.loads, bytes(text))
    except TimeoutError as error:
        raise NoAnswerError(f"{url}: no answer within {_TIMEOUT_S:.0f} s") from error
    except (aiohttp.ClientError, ValueError) as error:
        raise NoAnswerError(f"{url}: {error}") from error
    if not isinstance(parsed, Mapping):
        raise NoAnswerError(f"{url}: the answer is no object")
    return parsed


def _refusal(text: bytes) -> str:
    """Return what a Prometheus says of a query that it cannot answer, if it is one that says so."""
    try:
        parsed = orjson.loads(text)
    except ValueError:
        return ""
    return _error_in(parsed) if isinstance(parsed, Mapping) else ""


def _error_in(answer: Mapping[str, Any]) -> str:
    return " ".join(str(answer.get("error", "")).split())[:_ERROR_MAX]
