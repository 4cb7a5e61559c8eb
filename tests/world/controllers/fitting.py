"""What lets a pod onto a node, as the scheduler's plugins word it.

Source: pkg/scheduler/framework/plugins/{noderesources,tainttoleration,nodeaffinity,nodeunschedulable,
interpodaffinity,podtopologyspread} of Kubernetes 1.36.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

from world.kinds import Raw
from world.selectors import expressions, fit, selects

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_UNITS: Final[Mapping[str, int | Decimal]] = {
    "": 1,
    "m": Decimal("0.001"),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
Amounts = Counter[str]  # of each resource; a Decimal counts as well


class Placed(NamedTuple):
    """A pod, and the node that it is on or will be."""

    pod: Raw
    node: Raw


@lru_cache(maxsize=4096)
def amount(text: str | float) -> Decimal:
    """Return a quantity as a number.

    >>> amount("250m"), amount("2Ki")
    (Decimal('0.250'), Decimal('2048'))
    """
    digits = str(text).rstrip("mkMGTi")
    return Decimal(digits) * _UNITS[str(text)[len(digits) :]]


def asked(pod: Raw) -> Amounts:
    """Return what a pod requests of a node; itself is one of its pods."""
    total: Amounts = Counter({"pods": 1})
    for container in pod["spec"].get("containers") or ():
        for name, text in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] += amount(text)  # type: ignore[assignment] # a Decimal counts as well
    return total


def lacks(pod: Raw, node: Raw, used: Amounts) -> str:
    """Return which resource a node has too little of for a pod beside what is used; empty: none."""
    offered = node.get("status", {}).get("allocatable") or {}
    short = (
        name for name, wanted in asked(pod).items() if used[name] + wanted > amount(offered.get(name, "0"))
    )
    name = next(short, "")
    return "Too many pods" if name == "pods" else name and f"Insufficient {name}"


def tolerates(pod: Raw, taint: Mapping[str, str]) -> bool:
    """Whether a pod tolerates a taint (core/v1 ToleratesTaint)."""
    for one in pod["spec"].get("tolerations") or ():
        if one.get("effect", "") not in {"", taint["effect"]} or one.get("key", "") not in {"", taint["key"]}:
            continue
        if one.get("operator", "Equal") == "Exists" or one.get("value", "") == taint.get("value", ""):
            return True
    return False


def attracts(pod: Raw, node: Raw) -> bool:
    """Whether a pod's node selector and required affinity allow a node."""
    labels, spec = node["metadata"].get("labels") or {}, pod["spec"]
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    return not affinity or any(_matches(term, node) for term in affinity.get("nodeSelectorTerms") or ())


def preference(pod: Raw, node: Raw) -> int:
    """Return the weights of a pod's wishes that a node meets."""
    wishes = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_PREFERRED) or ()
    return sum(one["weight"] for one in wishes if _matches(one["preference"], node))


def reaches(volume: Raw, node: Raw) -> bool:
    """Whether a volume can be attached to a node."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required") or {}
    terms = required.get("nodeSelectorTerms") or ()
    return not terms or any(_matches(term, node) for term in terms)


def _matches(term: Raw, node: Raw) -> bool:
    """Whether a node selector term matches a node; one without anything matches none."""
    labels, named = node["metadata"].get("labels") or {}, {"metadata.name": node["metadata"]["name"]}
    return (
        bool(term.get("matchExpressions") or term.get("matchFields"))
        and fit(expressions(term.get("matchExpressions")), labels)
        and fit(expressions(term.get("matchFields")), named)
    )


def objection(pod: Raw, node: Raw) -> str:
    """Return what of a node alone keeps a pod off it; empty: nothing."""
    if node["spec"].get("unschedulable") and not tolerates(
        pod, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    ):
        return "node(s) were unschedulable"
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] in {"NoSchedule", "NoExecute"} and not tolerates(pod, taint):
            return f"node(s) had untolerated taint(s) {{{taint['key']}: {taint.get('value', '')}}}"
    return "" if attracts(pod, node) else "node(s) didn't match Pod's node affinity/selector"


def companions(pod: Raw, placed: Iterable[Placed], nodes: Iterable[Raw]) -> Callable[[Raw], str]:
    """Return what says which of the pods that are placed keep a pod off a node; empty: none of them."""
    there = [one for one in placed if one.pod["metadata"]["namespace"] == pod["metadata"]["namespace"]]
    apart = set(_apart(pod, there))
    full = set(_full(pod, there, list(nodes)))

    def objects(node: Raw) -> str:
        places = (node["metadata"].get("labels") or {}).items()
        if apart.intersection(places):
            return "node(s) didn't match pod anti-affinity rules"
        return "node(s) didn't match pod topology spread constraints" if full.intersection(places) else ""

    return objects


def _apart(pod: Raw, placed: Iterable[Placed]) -> Iterator[tuple[str, str]]:
    """Yield the labels of nodes on which a pod may not be, by its anti-affinity or another's."""
    for other, node in placed:
        labels = node["metadata"].get("labels") or {}
        for term, of in (
            *((one, other) for one in _repelled(pod)),
            *((one, pod) for one in _repelled(other)),
        ):
            key = term["topologyKey"]
            if key in labels and selects(term.get("labelSelector"), of):
                yield key, labels[key]


def _full(pod: Raw, placed: Iterable[Placed], nodes: list[Raw]) -> Iterator[tuple[str, str]]:
    """Yield the labels of nodes on which one more would be a skew too large (DoNotSchedule)."""
    for spread in pod["spec"].get("topologySpreadConstraints") or ():
        if spread["whenUnsatisfiable"] != "DoNotSchedule":
            continue
        key = spread["topologyKey"]
        domains = {
            text
            for node in nodes
            if attracts(pod, node) and (text := (node["metadata"].get("labels") or {}).get(key)) is not None
        }
        counts: Counter[Any] = Counter(dict.fromkeys(domains, 0))
        for other, node in placed:
            text = (node["metadata"].get("labels") or {}).get(key)
            alike = selects(spread.get("labelSelector"), other)
            counts[text] += text in domains and alike and "deletionTimestamp" not in other["metadata"]
        is_short = len(domains) < spread.get("minDomains", 1)
        least = 0 if is_short or not domains else min(counts[text] for text in domains)
        of_itself = selects(spread.get("labelSelector"), pod)
        yield from ((key, text) for text in domains if counts[text] + of_itself - least > spread["maxSkew"])


def _repelled(pod: Raw) -> list[Raw]:
    """Return the terms of a pod's required anti-affinity."""
    affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    return list(affinity.get(_REQUIRED) or ())
