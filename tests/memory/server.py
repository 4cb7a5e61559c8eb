"""An API server on loopback, whose collections hold whatever objects they are given."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import orjson
from aiohttp import web

Collections = Mapping[str, Sequence[bytes]]
# What a watch tells of last; each tells of its first object once more before.
LAST = 1_000_000


def collection_of(request: web.Request) -> str:
    """Return which collection is asked for: its path, and the selector, if any."""
    query = request.query
    selector = query.get("labelSelector", "") + query.get("fieldSelector", "")
    return f"{request.path}?{selector}" if selector else request.path


class DenseServer:
    """Answers lists page by page, by their number of objects alone, as the API server does; and watches."""

    def __init__(self, collections: Collections) -> None:
        self._collections = collections
        self.asked: list[str] = []

    def _items(self, request: web.Request) -> Sequence[bytes]:
        path = collection_of(request)
        return next((items for of, items in self._collections.items() if of == path), ())

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        if "limit" not in request.query:
            return await self._watch(request) if "watch" in request.query else web.Response(status=404)
        self.asked.append(f"{collection_of(request)} {request.query['limit']}")
        items = self._items(request)
        begin = int(request.query.get("continue", "0"))
        end = begin + int(request.query["limit"])
        response = web.StreamResponse()
        await response.prepare(request)
        metadata = {"resourceVersion": "1000", **({"continue": str(end)} if end < len(items) else {})}
        await response.write(b'{"metadata":' + orjson.dumps(metadata) + b',"items":[')
        with suppress(ConnectionError):  # it has read enough
            for number, item in enumerate(items[begin:end]):
                await response.write(b"," * bool(number) + item)
            await response.write(b"]}")
            await response.write_eof()
        return response

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for item in self._items(request)[:1]:
            changed = item.replace(b'"resourceVersion":"1"', b'"resourceVersion":"%d"' % LAST)
            await response.write(b'{"type":"MODIFIED","object":' + changed + b"}\n")
        await asyncio.Event().wait()
        return response
