"""Compares what the API server answered to a write with what was sent, field path by field path.

`rehearsal` does so for each write that it tries, `apply` for each twin that it writes. Policies and webhooks
change what is sent on its way: another image, a container more. What the API server itself does is no change:
defaults, quantities in its own spelling, empty fields left out. Pure; only paths come out, never a value.
Source: H17.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from splitter.core.desired.compare import canonical_json
from splitter.core.drift import shown
from splitter.kube.parse.fields import quantity

Path = tuple[str, ...]

# Preconditions of a write, and what the API server alone writes.
_SERVERS: Final = frozenset({"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp"})
# Only there is an addition said: any client may add labels and annotations to the object itself.
_WHOLE: Final = (("spec", "template"), ("spec", "selector"))
# What the API server puts into a template that does not say it. A source is read with all of them.
_DEFAULTS: Final = frozenset(
    [
        "apiVersion",
        "creationTimestamp",
        "defaultMode",
        "dnsPolicy",
        "enableServiceLinks",
        "failureThreshold",
        "fsType",
        "hostPort",
        "imagePullPolicy",
        "initialDelaySeconds",
        "iscsiInterface",
        "keyring",
        "kind",
        "mode",
        "periodSeconds",
        "pool",
        "protocol",
        "readOnly",
        "restartPolicy",
        "scheme",
        "schedulerName",
        "serviceAccount",
        "storageMode",
        "successThreshold",
        "terminationGracePeriodSeconds",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "timeoutSeconds",
        "type",
        "user",
        "expirationSeconds",
        "volumeMode",
        "status",
    ]
)
_FREE: Final = frozenset({"labels", "annotations", "nodeSelector", "matchLabels", "limits", "requests"})
# What is written as a quantity is read as one.
_QUANTITIES: Final = frozenset(
    {"limits", "requests", "sizeLimit", "divisor", "overhead", "averageValue", "capacity", "storage"}
)
# By which fields the items of a list are told apart: the first that all of them have.
_KEYS: Final = (("name",), ("mountPath",), ("containerPort",), ("topologyKey", "whenUnsatisfiable"))


@dataclass(frozen=True, slots=True)
class Mutations:
    """Which fields differ: what was sent and came back otherwise, and what was added to a template."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Both kinds."""
        return (*self.changed, *self.added)


NONE: Final = Mutations()


def mutations(sent: Mapping[str, Any], answer: Mapping[str, Any], *, merged: bool = False) -> Mutations:
    """Return what became of a body: paths of at most five fields of each kind, and how many more there are.

    A patch is `merged`: what is null there has to be gone.

    >>> mutations({"spec": {"image": "a", "cpu": None}}, {"spec": {"image": "b"}}).changed
    ('spec.image',)
    """
    differing = list(_differing(sent, answer, (), merged=merged))
    changed = [path for path, added in differing if not added]
    return Mutations(shown(changed), shown(path for path, added in differing if added)) if differing else NONE


def _differing(sent: object, got: object, path: Path, *, merged: bool) -> Iterator[tuple[Path, bool]]:
    """Yield each path that differs, with whether it was added."""
    if sent == got and not isinstance(sent, bool) and not isinstance(got, bool):
        return
    if isinstance(sent, Mapping) and (isinstance(got, Mapping) or (got is None and _is_empty(sent))):
        yield from _of_mapping(sent, got or {}, path, merged=merged)
    elif isinstance(sent, list) and isinstance(got, list):
        yield from _of_list(sent, got, path, merged=merged)
    elif not ((_is_empty(sent) and _is_empty(got)) or _is_same_scalar(sent, got, path)):
        yield path, False


def _of_mapping(
    sent: Mapping[str, Any], got: Mapping[str, Any], path: Path, *, merged: bool
) -> Iterator[tuple[Path, bool]]:
    for key, value in sent.items():
        if (path == ("metadata",) and key in _SERVERS) or (value is None and not merged):
            continue
        yield from _differing(value, got.get(key), (*path, key), merged=merged)
    if not any(path[: len(root)] == root for root in _WHOLE):
        return
    for key, value in got.items():
        is_said = key in sent and sent[key] is not None
        is_default = path[-1] not in _FREE and key in _DEFAULTS
        if not (is_said or is_default or _is_empty(value)):
            yield (*path, key), True


def _of_list(
    sent: Sequence[Any], got: Sequence[Any], path: Path, *, merged: bool
) -> Iterator[tuple[Path, bool]]:
    for names in _KEYS:
        keyed, after = _keyed(sent, names), _keyed(got, names)
        if keyed and after:
            for name, item in keyed.items():
                yield from _differing(item, after.get(name), (*path, name), merged=merged)
            yield from (((*path, name), True) for name in after.keys() - keyed.keys())
            return
    before, there = Counter(map(_spelled, sent)), Counter(map(_spelled, got))
    if before == there:
        if not any(isinstance(item, Mapping) for item in sent):  # arguments of a command have an order
            yield path, False
        return
    lacking, more = before - there, there - before
    if lacking:
        yield path, False
    elif more:
        yield path, True


def _keyed(items: Sequence[Any], names: Sequence[str]) -> dict[str, Any] | None:
    """Return the items by the values of their key; None if one has none, or two have the same."""
    if not all(isinstance(item, Mapping) and names[0] in item for item in items):
        return None
    keyed = {"/".join(str(item.get(name, "")) for name in names): item for item in items}
    return keyed if len(keyed) == len(items) else None


def _spelled(item: object) -> str:
    """Return an item of a list without what means nothing, and without defaults."""
    return canonical_json(_plain(item, ()))


def _plain(value: object, path: Path) -> object:
    if isinstance(value, Mapping):
        kept = {key: _plain(one, (*path, key)) for key, one in value.items() if not _is_empty(one)}
        return {key: one for key, one in kept.items() if key not in _DEFAULTS}
    if isinstance(value, list):
        return [_plain(one, path) for one in value]
    if isinstance(value, str | int | float) and not isinstance(value, bool) and _is_quantity(path):
        return quantity("cpu", value)
    return value


def _is_quantity(path: Path) -> bool:
    return not _QUANTITIES.isdisjoint(path)


def _is_same_scalar(sent: object, got: object, path: Path) -> bool:
    if isinstance(sent, bool) or isinstance(got, bool):
        return sent is got
    if sent == got:
        return True
    if not (isinstance(sent, str | int | float) and isinstance(got, str | int | float)):
        return False
    # 500m is 0.5, 1024Ki is 1Mi; in thousandths, whatever it is of.
    return _is_quantity(path) and quantity("cpu", sent) == quantity("cpu", got)


def _is_empty(value: object) -> bool:
    """Whether the API server leaves it out: null, false, 0, an empty text, what has nothing else in it."""
    if isinstance(value, Mapping):
        return all(map(_is_empty, value.values()))
    return not value
