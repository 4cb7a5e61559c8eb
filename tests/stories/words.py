"""Says in words what splitter has asked of the API server, and what runs: from objects alone, of any kind."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from world.kinds import DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS, Raw, Ref
from world.objects import Event, Objects
from world.pods import controller_of

_OURS = "splitter.io/"
_NEVER_SAID = frozenset({"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"})
_MAKE_NAMES = frozenset({"Deployment", "ReplicaSet"})
_PLAIN = frozenset({DEPLOYMENTS, STATEFUL_SETS, PODS})  # said by their names alone
_WORD = re.compile(r"[a-z0-9][-a-z0-9]*")
_LONGEST = 24


class Written(NamedTuple):
    """A request of splitter's that changes something: the object before and after it."""

    verb: str  # in words, where the change does not say it
    ref: Ref
    old: Raw | None
    new: Raw | None
    is_bound: bool = True  # to the version that was seen of it


class Names:
    """Gives what has a hash or a random word in its name a number instead: the stories outlive a template."""

    def __init__(self, objects: Objects) -> None:
        self._known: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self.given = 0
        for kind in (REPLICA_SETS, PODS):
            objects.follow(kind, self._see)

    def _see(self, event: Event) -> None:
        name = event.ref.name
        if event.old is not None or name in self._known:
            return
        owner = controller_of(event.new)
        if owner is not None and owner["kind"] in _MAKE_NAMES:
            prefix = self.of(owner["name"])
        elif event.ref.kind == REPLICA_SETS and (owners := event.new["metadata"].get("ownerReferences")):
            prefix = f"{owners[0]['name']}-revision"
        else:
            return
        self._counts[prefix] += 1
        self.given += 1
        self._known[name] = f"{prefix}-{self._counts[prefix]}"

    def of(self, text: str) -> str:
        """Return a text with these names in it."""
        return _WORD.sub(lambda name: self._known.get(name[0], name[0]), text)


def said(written: list[Written]) -> str:
    """Return one line for a batch; what is the same for several pods is said once."""
    pods = Counter(_change(one) for one in written if _is_one_of_many(one))
    lines = [
        f"{one.verb} {_called(one.ref)}{_at(one)}" if one.verb else f"{_called(one.ref)} {_change(one)}"
        for one in written
        if not _is_one_of_many(one)
    ]
    lines += [f"{count} pods {change}" for change, count in pods.items()]
    return "; ".join(lines)


def _is_one_of_many(one: Written) -> bool:
    """Whether it is a pod whose name tells nothing."""
    owner = controller_of(one.old or one.new or {"metadata": {}})
    has_name = one.ref.name.endswith("-placeholder") or (owner or {}).get("kind") == "StatefulSet"
    return one.ref.kind == PODS and not has_name


def _called(ref: Ref) -> str:
    kind = ref.kind.rpartition("/")[2].removesuffix("s")
    return ref.name if ref.kind in _PLAIN else f"{kind} {ref.name}"


def _at(one: Written) -> str:
    spec = (one.new or {}).get("spec") or {}
    return f" at {spec['replicas']}" if "replicas" in spec and one.verb == "create" else ""


def _change(one: Written) -> str:
    if one.verb or one.old is None or one.new is None:
        return one.verb
    return " ".join(_changes(one.old, one.new)) or "is as it was"


def _changes(old: Raw, new: Raw) -> Iterator[str]:
    before, after = old["metadata"], new["metadata"]
    for part in ("labels", "annotations"):
        yield from _keys(before.get(part) or {}, after.get(part) or {})
    yield from _fields(before, after, _NEVER_SAID | {"labels", "annotations"})
    yield from _fields(old.get("spec") or {}, new.get("spec") or {}, frozenset())


def _keys(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield f"{'-' if key not in new else '+' if key not in old else '~'}{key.removeprefix(_OURS)}"


def _fields(old: Raw, new: Raw, hidden: frozenset[str]) -> Iterator[str]:
    for name in sorted({*old, *new} - hidden):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        plain = all(one is None or isinstance(one, int | str) for one in (before, after))
        if name == "template":
            yield f"template of {images(new)}"
        elif plain and len(f"{before}{after}") < _LONGEST:
            yield f"{name} {before} -> {after}"
        else:
            yield f"{'-' if after is None else '+' if before is None else '~'}{name}"


def images(spec: Raw) -> str:
    """Return what a template, or a pod, runs."""
    inner = spec.get("template", {}).get("spec", spec)
    return ",".join(one.get("image", "") for one in inner.get("containers") or ())
