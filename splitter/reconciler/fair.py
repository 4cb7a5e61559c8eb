"""A queue in which namespaces take turns, so that none waits for another's backlog."""

from collections import OrderedDict
from collections.abc import Hashable, KeysView
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class FairQueue(Generic[K, V]):
    """Entries in the order in which they came, of one namespace after the other."""

    def __init__(self) -> None:
        self._namespaces: OrderedDict[str, OrderedDict[K, V]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        """Return how many wait."""
        return self._count

    def has(self, namespace: str, key: K) -> bool:
        """Whether it waits."""
        return key in self._namespaces.get(namespace, ())

    def put(self, namespace: str, key: K, value: V) -> None:
        """Have one wait; what waits already keeps its place."""
        waiting = self._namespaces.setdefault(namespace, OrderedDict())
        self._count += key not in waiting
        waiting[key] = value

    def discard(self, namespace: str, key: K) -> None:
        """Let one wait no longer."""
        waiting = self._namespaces.get(namespace, OrderedDict())
        if key in waiting:
            del waiting[key]
            self._shrunk(namespace)

    def namespaces(self) -> KeysView[str]:
        """Return of whom some wait, in the order of their turns."""
        return self._namespaces.keys()

    def pop(self, namespace: str | None = None) -> tuple[K, V]:
        """Take the oldest of this namespace, or of the one whose turn it is. Raises KeyError without any."""
        if namespace is None:
            namespace = next(iter(self._namespaces), "")
        item = self._namespaces[namespace].popitem(last=False)
        self._namespaces.move_to_end(namespace)
        self._shrunk(namespace)
        return item

    def first(self) -> K:
        """Return the oldest of the one whose turn it is. Raises KeyError without any."""
        return next(iter(self._namespaces[next(iter(self._namespaces), "")]))

    def drop(self) -> None:
        """Forget the oldest of the namespace of which most wait. Raises KeyError when nothing waits."""
        namespace = max(self._namespaces, key=lambda name: len(self._namespaces[name]), default="")
        self._namespaces[namespace].popitem(last=False)
        self._shrunk(namespace)

    def _shrunk(self, namespace: str) -> None:
        self._count -= 1
        if not self._namespaces[namespace]:
            del self._namespaces[namespace]
