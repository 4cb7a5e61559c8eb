"""Answers questions about single objects from one list, instead of a request for each.

`related_objects`, `volumes` and `workload_autoscalers` ask a `Reader` about one workload after the other. To
the controller that is the client. `survey` looks at all workloads of a cluster at once, and gives them a
`Listed`. What was not listed is asked of the client, once.
"""

from collections import defaultdict
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Protocol

from splitter.kube.client import Allowing, ApiError, Json
from splitter.kube.paths import ResourcePath


class Reader(Protocol):
    """Reads an API server; `Client` documents what each method does and raises."""

    async def get(self, path: ResourcePath, **query: str) -> Json:
        """GET one object or list."""
        ...

    async def find(self, path: ResourcePath) -> Json | None:
        """GET one object; None when it is not there."""
        ...

    def pages(self, path: ResourcePath, limit: int = 500, **query: str) -> AsyncIterator[Json]:
        """GET a collection page by page."""
        ...


class Listed:
    """A reader that knows some collections whole."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._objects: dict[str, dict[str, dict[str, Json]]] = {}  # by collection, namespace, name
        self._answers: dict[str, Json | ApiError] = {}

    def know(self, path: ResourcePath) -> None:
        """Answer from now on for a collection, of whatever namespace, with nothing but what is kept."""
        self._objects.setdefault(_collection(path), defaultdict(dict))

    def keep(self, path: ResourcePath, raw: Json) -> None:
        """Take an object of a collection that is known."""
        metadata = raw["metadata"]
        collection = self._objects[_collection(path)]
        collection[str(metadata.get("namespace", ""))][str(metadata["name"])] = raw

    async def find(self, path: ResourcePath) -> Json | None:
        """Return an object of a known collection, else what the client finds."""
        known = self._objects.get(_collection(path))
        if known is not None:
            return known.get(path.namespace, {}).get(path.name)
        with Allowing(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            return await self.get(path)
        return None

    async def get(self, path: ResourcePath, **query: str) -> Json:
        """Return an object that is known, else what the client is answered, once. Raises as the client."""
        if path.name and _collection(path) in self._objects and (raw := await self.find(path)) is not None:
            return raw
        # Whether a kind is there is the same in all namespaces.
        asked = f"{path if path.name else _collection(path)} {sorted(query.items())}"
        if asked not in self._answers:
            try:
                self._answers[asked] = await self._reader.get(path, **query)
            except ApiError as error:
                self._answers[asked] = error
        answer = self._answers[asked]
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def pages(self, path: ResourcePath, limit: int = 500, **query: str) -> AsyncIterator[Json]:
        """Yield a known collection of one namespace in one page, any other as the client does."""
        known = self._objects.get(_collection(path))
        if known is not None:
            yield {"items": list(known.get(path.namespace, {}).values())}
            return
        async for page in self._reader.pages(path, limit, **query):
            yield page


def _collection(path: ResourcePath) -> str:
    return f"{path.api}/{path.plural}"
