"""Labels and fields by which objects are selected, as a client sends them and as an object has them."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from splitter.kube.client import ApiError
from world.kinds import PODS, Raw

_FIELDS = {
    PODS: (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
    ),
    "/api/v1/events": (
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "reason",
        "type",
    ),
}
Matches = Callable[[Mapping[str, str]], bool]

_TERM = re.compile(
    r"\s*(?:!(?P<absent>[^,\s()=!]+)"
    r"|(?P<key>[^,\s()=!]+)\s*(?:(?P<op>\bin\b|\bnotin\b)\s*\((?P<values>[^)]*)\)|(?P<is>==|!=|=)(?P<value>[^,()]*))?)"
    r"\s*(?:,|$)"
)


@lru_cache(maxsize=1024)
def label_terms(text: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Read a label selector as a query has it: key, operator, values.

    >>> label_terms("app=web,tier notin (a, b),!gone")
    (('app', 'In', ('web',)), ('tier', 'NotIn', ('a', 'b')), ('gone', 'DoesNotExist', ()))
    """
    terms: list[tuple[str, str, tuple[str, ...]]] = []
    position = 0
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None:
            raise ValueError(f"no label selector: {text}")
        position = match.end()
        if match["absent"]:
            terms.append((match["absent"], "DoesNotExist", ()))
        elif match["op"] is None and match["is"] is None:
            terms.append((match["key"], "Exists", ()))
        else:
            many = match["values"]
            values = (
                (match["value"].strip(),) if many is None else tuple(one.strip() for one in many.split(","))
            )
            operator = match["op"] or match["is"]
            terms.append((match["key"], "In" if operator in {"=", "==", "in"} else "NotIn", values))
    return tuple(terms)


def fit(terms: Sequence[tuple[str, str, Sequence[str]]], labels: Mapping[str, str]) -> bool:
    """Whether labels meet all terms (pkg/labels/selector.go); NotIn is met by what is not there."""
    for key, operator, values in terms:
        there = labels.get(key)
        match operator:
            case "In":
                met = there in values
            case "NotIn":
                met = there is None or there not in values
            case "Exists":
                met = there is not None
            case "DoesNotExist":
                met = there is None
            case _:
                met = there is not None and _compared(operator, there, values)
        if not met:
            return False
    return True


def _compared(operator: str, there: str, values: Sequence[str]) -> bool:
    """Whether a node's label is greater or less than a number (NodeSelectorRequirement)."""
    try:
        number, bound = int(there), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound


def terms_of(selector: Mapping[str, Any] | None) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the terms of a LabelSelector of an object."""
    selector = selector or {}
    equal = tuple((key, "In", (text,)) for key, text in (selector.get("matchLabels") or {}).items())
    return (*equal, *expressions(selector.get("matchExpressions")))


def selector_text(selector: Mapping[str, Any]) -> str:
    """Return a LabelSelector as a query has it.

    >>> selector_text({"matchLabels": {"app": "web", "tier": "front"}})
    'app=web,tier=front'
    """
    words = {"In": "{} in ({})", "NotIn": "{} notin ({})", "Exists": "{}", "DoesNotExist": "!{}"}
    equal = [f"{key}={text}" for key, text in (selector.get("matchLabels") or {}).items()]
    terms = expressions(selector.get("matchExpressions"))
    return ",".join(sorted([*equal, *(words[op].format(key, ",".join(values)) for key, op, values in terms)]))


def expressions(raw: Sequence[Mapping[str, Any]] | None) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the terms of expressions, of a selector or of an affinity."""
    return tuple((one["key"], one["operator"], tuple(one.get("values") or ())) for one in raw or ())


def selects(selector: Mapping[str, Any] | None, raw: Raw) -> bool:
    """Whether a LabelSelector selects an object; an empty one selects all, none selects none."""
    return selector is not None and fit(terms_of(selector), raw["metadata"].get("labels") or {})


def asked_for(labels: str, fields: str, kind: str = PODS) -> Callable[[Raw], bool]:
    """Return whether an object is one that a query asks for. Raises ApiError (400) for a bad query."""
    try:
        terms = label_terms(labels)
    except ValueError as error:
        raise ApiError(400, "BadRequest", str(error)) from error
    pairs = [one for one in fields.split(",") if one]
    for pair in pairs:
        name = pair.partition("!=" if "!=" in pair else "=")[0]
        if name not in {"metadata.name", "metadata.namespace", *_FIELDS.get(kind, ())}:
            raise ApiError(400, "BadRequest", f"field label not supported: {name}")

    def matches(raw: Raw) -> bool:
        if terms and not fit(terms, raw["metadata"].get("labels") or {}):
            return False
        return all(_has_field(raw, pair) for pair in pairs)

    return matches


def _has_field(raw: Any, pair: str) -> bool:  # noqa: ANN401 (any JSON)
    unequal = "!=" in pair
    path, _, value = pair.partition("!=" if unequal else "=")
    for name in path.split("."):
        raw = raw.get(name) if isinstance(raw, dict) else None
    return (str(raw if raw is not None else "") == value.lstrip("=")) is not unequal
