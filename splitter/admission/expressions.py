"""Small pieces of CEL, and what every policy object has in common.

`annotations` and `placement` write their policies with it. An expression is text for the API server; nothing
here evaluates one.
"""

import json
from collections.abc import Mapping, Sequence

Manifest = dict[str, object]

_API_VERSION = "admissionregistration.k8s.io/v1"


def literal(value: object) -> str:
    """Return a value as CEL writes it: JSON, but that all of a list or map are of one type.

    >>> literal({"key": ["a", "b"], "of": "c"}), literal({"a": "b"})
    ('{"key": dyn(["a", "b"]), "of": dyn("c")}', '{"a": "b"}')
    """
    match value:
        case dict():
            named = zip(value, _loose(list(value.values())), strict=True)
            return f"{{{', '.join(f'{json.dumps(key)}: {one}' for key, one in named)}}}"
        case list() | tuple():
            return f"[{', '.join(_loose(value))}]"
        case _:
            return json.dumps(value)


def _loose(values: Sequence[object]) -> list[str]:
    """Return values whose types need not agree, as CEL's dyn."""
    if all(isinstance(value, str) for value in values):
        return [literal(value) for value in values]
    return [f"dyn({literal(value)})" for value in values]


def lines(values: Sequence[object]) -> str:
    """Return a list in CEL with one value a line; an empty one is of anything."""
    if not values:
        return "dyn([])"
    return "[\n" + ",\n".join(f"  {one}" for one in _loose(values)) + "\n]"


def policy(kind: str, name: str, spec: Mapping[str, object], binding: Mapping[str, object]) -> list[Manifest]:
    """Return a policy of a kind (such as ValidatingAdmissionPolicy) and the binding that puts it in force."""
    metadata = {"name": name, "labels": {"app.kubernetes.io/name": "splitter"}}
    return [
        {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": dict(spec)},
        {
            "apiVersion": _API_VERSION,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "spec": {"policyName": name, **binding},
        },
    ]


def variables(**expressions: str) -> list[Manifest]:
    """Return named expressions, in their order."""
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]
