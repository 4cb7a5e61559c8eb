"""Keeps in little memory what there is much of: statuses compressed, labels as JSON."""

import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

_FAST = 1  # of 9: a twentieth larger than with the default of 6, in half the time


def packed(status: Mapping[str, Any]) -> bytes:
    """Return a status packed; equal statuses are equal when packed, whatever the order of their fields.

    >>> packed({"state": "Steady", "ready": 3}) == packed({"ready": 3, "state": "Steady"})
    True
    """
    return zlib.compress(orjson.dumps(status, option=orjson.OPT_SORT_KEYS), _FAST)


def unpacked(text: bytes) -> dict[str, Any]:
    """Return the status that was packed.

    >>> unpacked(packed({"ready": 3}))
    {'ready': 3}
    """
    content: dict[str, Any] = orjson.loads(zlib.decompress(text))
    return content


def compact(content: object) -> bytes:
    """Return JSON that takes no more memory than its length: what orjson returns may hold a few KB more."""
    return bytes(memoryview(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)))


# Of the labels of one object, as JSON. People write a tenth of it; Kubernetes sets no limit.
MAX_LABELS_BYTES: Final = 16 * 1024


class Labels(Mapping[str, str]):
    """Labels, kept as their JSON: parsed, they would take up to nine times as much.

    More than MAX_LABELS_BYTES are not kept: they are `unknown`, and there seem to be none.

    >>> dict(Labels({"app": "web"})), Labels({"app": "web"}).unknown
    ({'app': 'web'}, False)
    """

    __slots__ = ("_json", "unknown")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._json = compact(labels)
        self.unknown = len(self._json) > MAX_LABELS_BYTES
        if self.unknown:
            self._json = b"{}"

    @property
    def bytes(self) -> int:
        """How many are kept."""
        return len(self._json)

    def __getitem__(self, name: str) -> str:
        """Return the value of a label."""
        return _parsed(self._json)[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(_parsed(self._json))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(_parsed(self._json))

    def __eq__(self, other: object) -> bool:
        """Whether these are the same."""
        if isinstance(other, Labels):
            return (self._json, self.unknown) == (other._json, other.unknown)
        return super().__eq__(other)

    def __lt__(self, other: "Labels") -> bool:
        """Bring labels into an order, any."""
        return self._json < other._json

    def __hash__(self) -> int:
        """Return a hash, so that pods with the same labels are found."""
        return hash(self._json)

    def __repr__(self) -> str:
        """Show the labels."""
        return f"Labels({dict(self)!r})"


# Those of the few workloads whose reconciles are under way.
@lru_cache(maxsize=64)
def _parsed(text: bytes) -> dict[str, str]:
    labels: dict[str, str] = orjson.loads(text)
    return labels
