"""Holds many sets of labels against many selectors, at the cost of their sum and not of their product.

Users choose how many PodDisruptionBudgets and revisions there are, and how long each selector and each set of
labels is. Each set is one bit of a number, each label the sum of the bits that bear it; a term of a selector
is then one operation on numbers, however many sets there are. Source: G17.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

Term = tuple[str, str, tuple[str, ...]]
"""A requirement of a label selector: key, operator, values."""


class LabelSets:
    """Sets of labels; `selected` says which of them a selector takes."""

    def __init__(self) -> None:
        self._count = 0
        self._with_key: defaultdict[str, int] = defaultdict(int)
        self._with_label: defaultdict[tuple[str, str], int] = defaultdict(int)

    def add(self, common: Mapping[str, str], *own: Mapping[str, str]) -> None:
        """Add a set for each of `own`: what is `common` to all, in which its own labels replace others."""
        bits = ((1 << len(own)) - 1) << self._count
        replaced: defaultdict[str, int] = defaultdict(int)
        for number, labels in enumerate(own, self._count):
            for key, text in labels.items():
                replaced[key] |= 1 << number
                self._with_label[key, str(text)] |= 1 << number
        for key, those in replaced.items():
            self._with_key[key] |= those
        for key, text in common.items():
            if here := bits & ~replaced.get(key, 0):
                self._with_key[key] |= here
                self._with_label[key, str(text)] |= here
        self._count += len(own)

    @property
    def labels(self) -> Collection[tuple[str, str]]:
        """The labels of all sets, each once."""
        return self._with_label.keys()

    def selected(self, terms: Iterable[Term]) -> int:
        """Return the sets that a selector takes, the first as the lowest bit; without terms it takes all.

        An operator that Kubernetes does not know counts as if it matched.

        >>> sets = LabelSets()
        >>> sets.add({"app": "web"}, {"pool": "spot"}, {"pool": "on-demand"})
        >>> sets.selected([("app", "Exists", ()), ("pool", "NotIn", ("spot",))])
        2
        """
        result = (1 << self._count) - 1
        for key, operator, values in terms:
            match operator:
                case "In" | "NotIn":
                    having = 0
                    for text in values:
                        having |= self._with_label.get((key, text), 0)
                    result &= having if operator == "In" else ~having
                case "Exists":
                    result &= self._with_key.get(key, 0)
                case "DoesNotExist":
                    result &= ~self._with_key.get(key, 0)
                case _:
                    pass
            if not result:
                break
        return result
