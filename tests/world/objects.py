"""The API server's objects: versions, conflicts, preconditions, finalizers and grace, and who is told.

Objects are replaced and never changed, so that who has seen one keeps what it has seen. The rules are those
of k8s.io/apiserver (pkg/registry/rest, pkg/registry/generic/registry/store.go) and of the strategies in
pkg/registry of Kubernetes 1.36. Every refusal is an ApiError with Kubernetes' status and reason.
"""

import random
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import count
from typing import Final, NamedTuple

from splitter.kube.client import ApiError
from world import clock
from world.admission import Request, Rule, admitted
from world.apply import with_owner
from world.kinds import (
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    WITH_STATUS,
    WITHOUT_GENERATION,
    Raw,
    Ref,
    defaulted,
    is_custom,
    path_of,
    pruned,
    ref_of,
    typed,
)
from world.validation import must_be_met, must_be_of, must_be_the_same_pod, validate

_FINALIZERS: Final = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # apimachinery, pkg/util/rand
_KEPT_EVENTS: Final = 1000
_FIRST_VERSION: Final = 999
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class Event(NamedTuple):
    """One change of one object."""

    ref: Ref
    old: Raw | None
    new: Raw  # of a deletion: as it was, with the version of its end
    version: int
    deleted: bool = False


Follower = Callable[[Event], None]


class Objects:
    """All objects by kind, namespace and name."""

    def __init__(self, seed: int = 0) -> None:
        self.dice = random.Random(seed)
        self.by_kind: dict[str, dict[tuple[str, str], Raw]] = defaultdict(dict)
        self.rules: list[Rule] = []
        self.refused: list[tuple[str, ApiError]] = []  # who was refused what
        self._versions = count(_FIRST_VERSION + 1)
        self.version = _FIRST_VERSION
        self._history: dict[str, deque[Event]] = defaultdict(lambda: deque(maxlen=_KEPT_EVENTS))
        self._forgotten: dict[str, int] = {}  # by kind: history begins after this version
        self._followers: dict[str, list[Follower]] = defaultdict(list)

    # --- reading ----------------------------------------------------------------------------------

    def get(self, ref: Ref) -> Raw:
        """Return an object. Raises ApiError (404)."""
        raw = self.find(ref)
        if raw is None:
            raise ApiError(404, "NotFound", f'{ref.kind.rpartition("/")[2]} "{ref.name}" not found')
        return raw

    def find(self, ref: Ref) -> Raw | None:
        """Return an object, or None."""
        return self.by_kind[ref.kind].get((ref.namespace, ref.name))

    def all(self, kind: str, namespace: str = "") -> list[Raw]:
        """Return the objects of a kind, in one namespace or in all."""
        there = self.by_kind[kind].items()
        return [raw for (within, _), raw in there if namespace in {"", within}]

    def items(self) -> Iterator[tuple[str, Raw]]:
        """Yield every object with its path."""
        for kind, there in self.by_kind.items():
            for (namespace, name), raw in there.items():
                yield path_of(kind, namespace, name), raw

    def follow(self, kind: str, follower: Follower) -> Callable[[], None]:
        """Tell of each change of a kind from now on; return how to end that."""
        self._followers[kind].append(follower)
        return lambda: self._followers[kind].remove(follower)

    def since(self, kind: str, version: int) -> Iterable[Event] | None:
        """Return the changes after a version; None when some of them are forgotten."""
        if version < max(_FIRST_VERSION, self._forgotten.get(kind, 0)):
            return None
        return [event for event in self._history[kind] if event.version > version]

    def compact(self) -> None:
        """Forget what has happened so far: who goes on from before is answered 410."""
        for kind in list(self._history):
            self._history[kind].clear()
            self._forgotten[kind] = self.version

    # --- writing ----------------------------------------------------------------------------------

    def put(self, path: str, raw: Raw) -> Raw:
        """Hold an object as it is given, with its defaults: what a test begins with, or has happen."""
        return self.put_at(ref_of(path), raw)

    def put_at(self, ref: Ref, raw: Raw) -> Raw:
        """Do the same, also with a name that no path can have."""
        old = self.find(ref)
        metadata = {"uid": f"uid-{ref.path}", "creationTimestamp": "2026-01-05T09:00:00Z", "generation": 1}
        named = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
        held = {**defaulted(ref.kind, raw), "metadata": {**metadata, **named, **raw["metadata"]}}
        return self._keep(ref, old, typed(ref.kind, held))

    def create(
        self,
        kind: str,
        namespace: str,
        body: Raw,
        by: str = "",
        *,
        owned: Sequence[Raw] = (),
        user: str = "",
        dry: bool = False,
    ) -> Raw:
        """Create an object; `by`: the manager of its fields, or those who are `owned` said to be.

        Raises ApiError (409: AlreadyExists).
        """
        said = body["metadata"]
        if said.get("resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        name = said.get("name") or said["generateName"] + "".join(self.dice.choices(_LETTERS, k=5))
        ref = Ref(kind, namespace, name)
        self._must_be_possible(ref)
        raw = typed(kind, defaulted(kind, pruned(kind, body)))
        kept = {field: value for field, value in said.items() if field not in {"uid", "managedFields"}}
        raw["metadata"] = {
            **kept,
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "uid": f"uid-{ref.name}-{self.dice.getrandbits(48):012x}",
            "creationTimestamp": clock.stamp(),
            **({} if kind in WITHOUT_GENERATION else {"generation": 1}),
        }
        if kind == NAMESPACES:
            raw |= {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        if kind in WITH_STATUS:
            raw["status"] = {"phase": "Pending"} if kind == PODS else {}
        raw = self._admitted(Request("create", ref, "", None, raw, user or by, dry)) or raw
        raw = defaulted(kind, raw)
        if self.find(ref) is not None:
            raise ApiError(409, "AlreadyExists", f'{kind.rpartition("/")[2]} "{name}" already exists')
        validate(kind, None, raw)
        if owned:
            raw["metadata"] = {**raw["metadata"], "managedFields": list(owned)}
        elif by:
            raw = with_owner(None, raw, by, clock.stamp())
        return raw if dry else self._keep(ref, None, raw)

    def update(
        self, ref: Ref, new: Raw, by: str = "", *, part: str = "", user: str = "", dry: bool = False
    ) -> Raw:
        """Replace an object, or its `part`: status. Raises ApiError: 404, 409 for a stale version, 422."""
        old = self.get(ref)
        must_be_of(ref, old, new)
        new = self._prepared(ref.kind, old, new, part)
        new = self._admitted(Request("update", ref, part, old, new, user or by, dry)) or new
        validate(ref.kind, old, new)
        if ref.kind == PODS and not part:
            must_be_the_same_pod(old, new)
        if by:
            new = with_owner(old, new, by, clock.stamp(), part)
        if _without_version(new) == _without_version(old):
            return old  # nothing is written, and nobody is told
        new = _with_generation(ref.kind, old, new, part)
        if dry:
            return new
        if _is_over(new):
            return self._remove(ref, new)
        return self._keep(ref, old, new)

    def _prepared(self, kind: str, old: Raw, new: Raw, part: str) -> Raw:
        """Return what an update may write: the server's own fields stay, and status and the rest apart."""
        there = old["metadata"]
        stays = {name: there[name] for name in _SERVERS if name in there}
        metadata = {
            **{name: value for name, value in new["metadata"].items() if name not in _SERVERS},
            **stays,
        }
        has_status = kind in WITH_STATUS
        if part == "status":
            if kind == DEPLOYMENTS:
                metadata["labels"] = there.get("labels", {})  # its annotations are written with it
            elif is_custom(kind):
                metadata = {**there, "managedFields": new["metadata"].get("managedFields", [])}
            metadata["ownerReferences"] = there.get("ownerReferences", [])
            for field in ("labels", "ownerReferences", "managedFields"):
                if not metadata.get(field):
                    metadata.pop(field, None)
            return {**old, "metadata": metadata, "status": new.get("status", {})}
        made = {**defaulted(kind, pruned(kind, new)), "metadata": metadata}
        for field in ("labels", "annotations", "ownerReferences", "finalizers"):
            if not metadata.get(field, True):
                del metadata[field]
        if has_status:
            made["status"] = old.get("status", {})
        return typed(kind, made)

    def delete(self, ref: Ref, options: Raw | None = None, *, user: str = "") -> Raw:
        """Delete an object: at once, or when its grace is over and its finalizers are gone.

        Returns the object as it is then. Raises ApiError (404, 409).
        """
        options = options or {}
        old = self.get(ref)
        must_be_met(options.get("preconditions") or {}, old)
        dry = bool(options.get("dryRun"))
        self._admitted(Request("delete", ref, "", old, None, user, dry))
        metadata = dict(old["metadata"])
        grace_s = _grace_s(old, options) if ref.kind == PODS else 0
        if (added := _FINALIZERS.get(options.get("propagationPolicy", ""))) is not None:
            metadata["finalizers"] = sorted({*(metadata.get("finalizers") or ()), added})
        deleting = "deletionTimestamp" in metadata
        sooner = ref.kind == PODS and grace_s < max(1, metadata.get("deletionGracePeriodSeconds", 0))
        if deleting and metadata == old["metadata"] and not sooner:
            return old
        if not deleting and "generation" in metadata:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = clock.stamp(clock.now() + timedelta(seconds=grace_s))
        metadata["deletionGracePeriodSeconds"] = grace_s
        new = {**old, "metadata": metadata}
        if ref.kind == NAMESPACES:
            new["status"] = {"phase": "Terminating"}
        if dry:
            return new
        if ref.kind == PODS:  # its end is shown before it is gone
            new = self._keep(ref, old, new)
        if _is_over(new):
            return self._remove(ref, new)
        return new if ref.kind == PODS else self._keep(ref, old, new)

    def finalize(self, ref: Ref) -> None:
        """Let a namespace go that is empty."""
        live = self.get(ref)
        self._remove(ref, {**live, "spec": {}})

    def forget(self, path: str) -> None:
        """Remove an object whatever holds it: what a test says that happened."""
        ref = ref_of(path)
        self._remove(ref, self.get(ref))

    def _must_be_possible(self, ref: Ref) -> None:
        """Raise ApiError for a name that no object can have, and where namespaces are held but not this."""
        if not _NAME.fullmatch(ref.name):
            raise ApiError(
                422, "Invalid", f'"{ref.name}" is invalid: metadata.name: a lowercase RFC 1123 subdomain'
            )
        namespaces = self.by_kind[NAMESPACES]
        if ref.namespace and namespaces:
            there = namespaces.get(("", ref.namespace))
            if there is None:
                raise ApiError(404, "NotFound", f'namespaces "{ref.namespace}" not found')
            if "deletionTimestamp" in there["metadata"]:
                said = (
                    f"unable to create new content in namespace {ref.namespace} because it is"
                    " being terminated"
                )
                plural = ref.kind.rpartition("/")[2]
                raise ApiError(403, "Forbidden", f'{plural} "{ref.name}" is forbidden: {said}')

    def _admitted(self, request: Request) -> Raw | None:
        try:
            return admitted(self.rules, request)
        except ApiError as error:
            self.refused.append((request.user, error))
            raise

    def _keep(self, ref: Ref, old: Raw | None, new: Raw) -> Raw:
        self.version = next(self._versions)
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self.version)}}
        self.by_kind[ref.kind][ref.namespace, ref.name] = new
        self._tell(Event(ref, old, new, self.version))
        return new

    def _remove(self, ref: Ref, last: Raw) -> Raw:
        old = self.by_kind[ref.kind].pop((ref.namespace, ref.name))
        self.version = next(self._versions)
        last = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self.version)}}
        self._tell(Event(ref, old, last, self.version, deleted=True))
        return last

    def _tell(self, event: Event) -> None:
        history = self._history[event.ref.kind]
        if len(history) == _KEPT_EVENTS:
            self._forgotten[event.ref.kind] = history[0].version
        history.append(event)
        for follower in list(self._followers[event.ref.kind]):
            follower(event)


_SERVERS: Final = (
    "uid",
    "name",
    "namespace",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def _with_generation(kind: str, old: Raw, new: Raw, part: str) -> Raw:
    """Return an object, of the next generation if its spec has changed, or a Deployment's annotations."""
    if part == "status" or kind in WITHOUT_GENERATION:
        return new
    changed = old.get("spec") != new.get("spec")
    if kind == DEPLOYMENTS:
        changed |= old["metadata"].get("annotations") != new["metadata"].get("annotations")
    if not changed:
        return new
    return {**new, "metadata": {**new["metadata"], "generation": old["metadata"].get("generation", 0) + 1}}


def _without_version(raw: Raw) -> Raw:
    """Return an object without what alone is no change: its version, and when its fields were written."""
    metadata = {name: value for name, value in raw["metadata"].items() if name != "resourceVersion"}
    entries = metadata.get("managedFields") or ()
    metadata["managedFields"] = [{**one, "time": None} for one in entries]
    return {**raw, "metadata": metadata}


def _grace_s(pod: Raw, options: Raw) -> int:
    """Return how long a pod has to end (pkg/registry/core/pod/strategy.go, CheckGracefulDelete)."""
    if not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase") in {"Failed", "Succeeded"}:
        return 0
    asked = options.get("gracePeriodSeconds")
    grace_s: int = pod["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else asked
    return max(1, grace_s) if grace_s < 0 else grace_s


def _is_over(raw: Raw) -> bool:
    """Whether a deleted object goes now."""
    metadata = raw["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if raw.get("kind") == "Namespace" and (raw.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")
