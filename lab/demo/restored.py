"""Compares a Deployment that was given back with what it was before it was labelled, field by field.

`journey` takes a `Portrait` of each Deployment before the label and another after it is removed; `traces`
looks for what splitter may have left elsewhere. Pure. What the user changed meanwhile (a count, an image)
is applied to the first portrait by the demo, so it belongs to what is expected.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]

# Counted up by the Deployment controller with each template, not by anybody who was asked to keep it.
_CONTROLLERS_OWN = frozenset({"deployment.kubernetes.io/revision"})
_SHOWN = 40
# Of splitter's keys those that a user never writes; `test_restored` holds them against splitter's own list.
PREFIX = "splitter.io/"
OWN_ANNOTATIONS = frozenset(
    PREFIX + name for name in ("taken-over", "replicas", "rendered-hash", "made-of", "source", "retried")
)


@dataclass(frozen=True, slots=True)
class Portrait:
    """All that belongs to the user of a Deployment: spec, labels, annotations."""

    name: str
    spec: JsonObject
    labels: JsonObject
    annotations: JsonObject

    @classmethod
    def of(cls, raw: JsonObject) -> "Portrait":
        """Return the portrait of a raw Deployment."""
        metadata = raw["metadata"]
        annotations = {
            name: value
            for name, value in metadata.get("annotations", {}).items()
            if name not in _CONTROLLERS_OWN
        }
        spec, labels = copy.deepcopy(raw["spec"]), dict(metadata.get("labels", {}))
        return cls(metadata["name"], spec, labels, annotations)

    def scaled(self, replicas: int) -> "Portrait":
        """Return what is expected after `kubectl scale`."""
        return Portrait(self.name, {**self.spec, "replicas": replicas}, self.labels, self.annotations)

    def with_image(self, image: str) -> "Portrait":
        """Return what is expected after `kubectl set image` of the first container."""
        spec = copy.deepcopy(self.spec)
        spec["template"]["spec"]["containers"][0]["image"] = image
        return Portrait(self.name, spec, self.labels, self.annotations)


def differences(expected: Portrait, portrait: Portrait) -> list[str]:
    """Return one sentence for each field that is not as it was found; empty: restored.

    Example: `web: spec.paused is true, was absent`.
    """
    pairs = (
        ("spec", expected.spec, portrait.spec),
        ("labels", expected.labels, portrait.labels),
        ("annotations", expected.annotations, portrait.annotations),
    )
    return [
        f"{expected.name}: {path} is {_shown(now)}, was {_shown(was)}"
        for name, before, after in pairs
        for path, was, now in _changed(name, before, after)
    ]


def traces(name: str, left: Sequence[JsonObject]) -> list[str]:
    """Return one sentence for each object of a workload that still carries a mark of splitter's.

    `left` are the Deployments, ReplicaSets, pods and Splits of the namespace that belong to `name`. The
    user's own annotations are no traces, though the Deployment controller copies them to ReplicaSets.
    """
    remaining = []
    for raw in left:
        metadata = raw["metadata"]
        what = f"{raw.get('kind', 'object')} {metadata['name']}"
        if raw.get("kind") == "Split":
            remaining.append(f"{name}: {what} is still there")
            continue
        marks = [key for key in metadata.get("labels", {}) if key.startswith(PREFIX)]
        marks += [key for key in metadata.get("annotations", {}) if key in OWN_ANNOTATIONS]
        if marks:
            remaining.append(f"{name}: {what} still carries {', '.join(sorted(marks))}")
    return remaining


def uncollected(name: str, left: Sequence[JsonObject]) -> list[str]:
    """Return the names of the ReplicaSets that hang on a twin of `name`.

    Once the twins are gone these are Kubernetes' to collect, a moment later, and no traces of splitter's.
    """
    twins = {f"{name}-{pool}" for pool in ("on-demand", "spot")}
    return [
        raw["metadata"]["name"]
        for raw in left
        if raw.get("kind") == "ReplicaSet"
        and any(owner["name"] in twins for owner in raw["metadata"].get("ownerReferences", ()))
    ]


_ABSENT = object()


def _changed(path: str, before: object, after: object) -> Iterator[tuple[str, object, object]]:
    """Yield (path, value before, value after) of each leaf that differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _changed(f"{path}.{key}", before.get(key, _ABSENT), after.get(key, _ABSENT))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (was, now) in enumerate(zip(before, after, strict=True)):
            yield from _changed(f"{path}[{index}]", was, now)
    elif before is _ABSENT or after is _ABSENT or before != after:
        yield path, before, after


def _shown(value: object) -> str:
    if value is _ABSENT:
        return "absent"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
