"""A collection that nobody else knows, and a store of it: what a reflector is tested with."""

from collections.abc import Iterable

from kube.raw import Raw, metadata
from splitter.kube.paths import ResourcePath

PATH = ResourcePath.read("/api/v1/things")


def thing(name: str, version: int) -> Raw:
    """Return a thing."""
    return {"metadata": metadata(name, version=version)}


class Things:
    """A store that remembers names with their versions, and how it was told."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.lists: list[tuple[list[str], str | None, int]] = []

    def read(self, raw: Raw) -> tuple[str, int]:
        """Keep name and version."""
        return raw["metadata"]["name"], int(raw["metadata"]["resourceVersion"])

    def replace(self, listed: Iterable[tuple[str, int]], namespace: str | None, version: int) -> None:
        """Take a complete list."""
        self.known = dict(listed)
        self.lists.append((sorted(self.known), namespace, version))

    def discard(self, listed: Iterable[tuple[str, int]]) -> None:
        """Nothing was taken."""

    def upsert(self, raw: Raw) -> object:
        """Take an object."""
        self.known[raw["metadata"]["name"]] = int(raw["metadata"]["resourceVersion"])
        return None

    def remove(self, raw: Raw) -> None:
        """Forget an object."""
        self.known.pop(raw["metadata"]["name"], None)
