"""A queue in which namespaces take turns, so that none waits for another's backlog."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

from splitter.reconciler.ranking import Order

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class FairQueue(Generic[K, V]):
    """Entries of one namespace after the other; in a namespace in their order, and as they came.

    The first number of an order chooses the namespace of every second entry only, so namespaces whose number
    is small delay the others, and never starve them (R51).
    """

    def __init__(self, order: Callable[[K], Order] = lambda _: (0, 0)) -> None:
        """`order` is asked when an entry comes."""
        self._order = order
        self._namespaces: OrderedDict[str, dict[Order, OrderedDict[K, V]]] = OrderedDict()
        self._orders: dict[tuple[str, K], Order] = {}
        self._levels: Counter[int] = Counter()  # how many wait of each first number of an order
        self._by_turn = False  # whether the next one is taken by turn alone

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._orders)

    def has(self, namespace: str, key: K) -> bool:
        """Whether it waits."""
        return (namespace, key) in self._orders

    def put(self, namespace: str, key: K, value: V) -> None:
        """Have one wait; what waits already keeps its place."""
        order = self._orders.get((namespace, key))
        if order is None:
            order = self._orders[namespace, key] = self._order(key)
            self._levels[order[0]] += 1
        self._namespaces.setdefault(namespace, {}).setdefault(order, OrderedDict())[key] = value

    def discard(self, namespace: str, key: K) -> None:
        """Let one wait no longer."""
        if (order := self._orders.get((namespace, key))) is not None:
            del self._namespaces[namespace][order][key]
            self._gone(namespace, key, order)

    def namespaces(self) -> Collection[str]:
        """Return the namespaces with entries, the next one first: by turn, or by first number and turn."""
        if self._by_turn or len(self._levels) <= 1:
            return self._namespaces.keys()
        return sorted(self._namespaces, key=lambda name: min(self._namespaces[name])[0])

    def pop(self, namespace: str | None = None) -> tuple[K, V]:
        """Take the first of this namespace, or of the one whose turn it is. Raises KeyError without any."""
        if namespace is None:
            namespace = next(iter(self.namespaces()), "")
        orders = self._namespaces[namespace]
        order = min(orders)
        key, value = orders[order].popitem(last=False)
        self._namespaces.move_to_end(namespace)
        self._by_turn = not self._by_turn
        self._gone(namespace, key, order)
        return key, value

    def first(self) -> K:
        """Return who is taken next. Raises KeyError without any."""
        orders = self._namespaces[next(iter(self.namespaces()), "")]
        return next(iter(orders[min(orders)]))

    def drop(self) -> None:
        """Forget the first of the namespace of which most wait. Raises KeyError when nothing waits."""
        self.pop(max(self._namespaces, key=self._waiting, default=""))

    def _waiting(self, namespace: str) -> int:
        return sum(map(len, self._namespaces[namespace].values()))

    def _gone(self, namespace: str, key: K, order: Order) -> None:
        del self._orders[namespace, key]
        self._levels[order[0]] -= 1
        if not self._levels[order[0]]:
            del self._levels[order[0]]
        orders = self._namespaces[namespace]
        if not orders[order]:
            del orders[order]
        if not orders:
            del self._namespaces[namespace]
