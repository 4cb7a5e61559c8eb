"""What waits, shared by namespace: each has its turn, however much another has brought.

The lanes of the work queue and the Events that wait are kept so. Within a namespace the first come is the
first served.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, KeysView
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shares(Generic[K, V]):
    """Items by key, each at most once, taken by turns of their namespaces.

    >>> shares = Shares(str.lower)
    >>> for item in ("A", "a", "B"):
    ...     shares.put(item, None)
    >>> [shares.take()[0] for _ in range(len(shares))]
    ['A', 'B', 'a']
    """

    def __init__(self, namespace_of: Callable[[K], str]) -> None:
        self._namespace_of = namespace_of
        self._by_namespace: OrderedDict[str, OrderedDict[K, V]] = OrderedDict()  # whose turn is next, first
        self._size = 0

    def __len__(self) -> int:
        """Return how many items wait."""
        return self._size

    def __contains__(self, key: K) -> bool:
        """Whether this item waits."""
        return key in self._by_namespace.get(self._namespace_of(key), ())

    def namespaces(self) -> KeysView[str]:
        """Return who waits, the next first: as it is whenever it is looked at."""
        return self._by_namespace.keys()

    def put(self, key: K, item: V) -> None:
        """Let an item wait; one that waits already keeps its place."""
        share = self._by_namespace.setdefault(self._namespace_of(key), OrderedDict())
        self._size += key not in share
        share[key] = item

    def take(self, namespace: str | None = None) -> tuple[K, V]:
        """Take the oldest of this namespace, or of the next; what else it has waits for its next turn.

        Raises `KeyError` when nothing waits there.
        """
        chosen = next(iter(self._by_namespace), "") if namespace is None else namespace
        share = self._by_namespace[chosen]
        taken = share.popitem(last=False)
        self._size -= 1
        if share:
            self._by_namespace.move_to_end(chosen)
        else:
            del self._by_namespace[chosen]
        return taken

    def discard(self, key: K) -> None:
        """Take an item out, if it waits."""
        namespace = self._namespace_of(key)
        share = self._by_namespace.get(namespace)
        if share is None or key not in share:
            return
        del share[key]
        self._size -= 1
        if not share:
            del self._by_namespace[namespace]

    def drop(self) -> tuple[K, V]:
        """Take out the oldest of whoever has most; its turn is not lost by that.

        Raises `ValueError` when nothing waits.
        """
        most = max(self._by_namespace, key=lambda name: len(self._by_namespace[name]))
        share = self._by_namespace[most]
        dropped = share.popitem(last=False)
        self._size -= 1
        if not share:
            del self._by_namespace[most]
        return dropped
