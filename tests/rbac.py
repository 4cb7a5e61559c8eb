"""The rules of manifests/rbac.yaml with the comments above them: what tests and the reference are made of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from splitter.bundled import bundled_path

_OPTIONAL = "Optional: "


class Right(NamedTuple):
    """One verb on one resource: in one namespace, or everywhere with namespace ""."""

    namespace: str
    group: str
    resource: str
    verb: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role, and why it is there."""

    kind: str
    role: str
    namespace: str
    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    comment: str

    @property
    def optional(self) -> bool:
        """Whether splitter does without."""
        return self.comment.startswith(_OPTIONAL)

    @property
    def rights(self) -> frozenset[Right]:
        """Return what it gives."""
        return frozenset(
            Right(self.namespace, group, resource, verb)
            for group in self.groups
            for resource in self.resources
            for verb in self.verbs
        )


def rules(file: str = "rbac.yaml") -> list[Rule]:
    """Return every rule of one of the manifests, in the order of the file."""
    text = bundled_path(f"manifests/{file}").read_text(encoding="utf-8")
    return [rule for document in re.split(r"(?m)^---$", text) for rule in _of(document)]


def _of(document: str) -> Iterator[Rule]:
    raw: dict[str, Any] = yaml.safe_load(document)
    above = _comment(document.split("apiVersion:", 1)[0].splitlines())
    lines = document.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("  - apiGroups:")]
    result = raw.get("rules") or ()
    assert len(starts) == len(result), (
        f"a rule of {raw['metadata']['name']} does not begin with its apiGroups"
    )
    for start, rule in zip(starts, result, strict=True):
        yield Rule(
            kind=raw["kind"],
            role=raw["metadata"]["name"],
            namespace=raw["metadata"].get("namespace", ""),
            groups=tuple(rule["apiGroups"]),
            resources=tuple(rule["resources"]),
            verbs=tuple(rule["verbs"]),
            comment=_comment(_just_above(lines, start)) or (above if start == starts[0] else ""),
        )


def _just_above(lines: list[str], start: int) -> list[str]:
    end = start
    while start > 0 and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return lines[start:end]


def _comment(lines: list[str]) -> str:
    return " ".join(line.strip().removeprefix("#").strip() for line in lines if line.strip().startswith("#"))
