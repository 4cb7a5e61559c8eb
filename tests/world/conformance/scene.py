"""What a script can do to a cluster and what it can ask: the same words for both sides.

`script` registers a script with the rule of Kubernetes that it is about; `play` plays one and returns what is
compared: the notes it took, the lives its pods had, and what was there at its end.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from world.conformance import objects, trace
from world.conformance.ground import NODE_LABEL, SHARED, Change, Ground, Policy, Raw, Refused
from world.conformance.objects import FOLLOWED, KINDS

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
DEADLINE_S = 90.0  # generous on a busy machine; what is waited for comes within seconds
_NOTICED_S = 1.0
QUIET_S = 1.5  # how long nothing must happen where nothing may


class Scene:
    """A namespace of its own, what is done in it, and what was seen."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.namespace = ground.namespace
        self.home = SHARED  # whose nodes its pods are bound to
        self.notes: list[str] = []
        self.same_lives = True
        self.same_end = True

    # --- requests ---------------------------------------------------------------------------------

    def path(self, kind: str, name: str = "", subresource: str = "") -> str:
        """Return the path of an object, or of the collection."""
        parts = (KINDS[kind].collection(self.namespace), name, subresource)
        return "/".join(part for part in parts if part)

    def create(self, raw: Raw, **query: str) -> Raw:
        """Create an object."""
        return self.ground.request("POST", self.path(raw["kind"]), query=query, body=raw)

    def get(self, kind: str, name: str) -> Raw:
        """Return an object."""
        return self.ground.request("GET", self.path(kind, name))

    def listed(self, kind: str, **query: str) -> Raw:
        """Return the answer to a LIST."""
        return self.ground.request("GET", self.path(kind), query=query)

    def replace(self, raw: Raw, subresource: str = "") -> Raw:
        """Write an object as it is."""
        path = self.path(raw["kind"], raw["metadata"]["name"], subresource)
        return self.ground.request("PUT", path, body=raw)

    def merge(self, kind: str, name: str, body: Raw, subresource: str = "", **query: str) -> Raw:
        """Send a merge patch."""
        return self.patch(MERGE, kind, name, body, subresource, **query)

    def patch(self, how: str, kind: str, name: str, body: object, subresource: str = "", **query: str) -> Raw:
        """Send a patch of one of the four ways."""
        path = self.path(kind, name, subresource)
        return self.ground.request("PATCH", path, query=query, body=body, content_type=how)

    def apply(
        self, raw: Raw, manager: str, *, force: bool = False, subresource: str = "", **query: str
    ) -> Raw:
        """Apply an object on the server's side."""
        forced = {"force": "true"} if force else {}
        name = raw["metadata"]["name"]
        query = {"fieldManager": manager, **forced, **query}
        return self.patch(APPLY, raw["kind"], name, raw, subresource, **query)

    def delete(self, kind: str, name: str, **options: Any) -> Raw:  # noqa: ANN401 (any JSON)
        """Delete an object, with DeleteOptions."""
        return self.ground.request("DELETE", self.path(kind, name), body=options)

    def evict(self, pod: str, **options: Any) -> Raw:  # noqa: ANN401 (any JSON)
        """Ask for the eviction of a pod."""
        metadata = {"name": pod, "namespace": self.namespace}
        body: Raw = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        if options:
            body["deleteOptions"] = options
        return self.ground.request("POST", self.path("Pod", pod, "eviction"), body=body)

    def scale(self, kind: str, name: str, replicas: int) -> Raw:
        """Write the number of replicas through the subresource, as kubectl and autoscalers do."""
        return self.merge(kind, name, {"spec": {"replicas": replicas}}, "scale")

    def refusal(self, asked: Callable[[], object], *, message: bool = False) -> str:
        """Return how a request is refused, "accepted" when it is not."""
        try:
            asked()
        except Refused as refused:
            said = f": {refused.message.replace(self.namespace, 'NAMESPACE')}" if message else ""
            return f"{refused.status} {refused.reason}{said}"
        return "accepted"

    # --- nodes ------------------------------------------------------------------------------------

    def nodes(self, count: int, taints: Sequence[Raw] = (), pods: int = 110) -> tuple[str, ...]:
        """Add nodes of the scene's own, to which pods are bound that are made from now on."""
        self.home = self.namespace
        return self.ground.add_nodes(count, {NODE_LABEL: self.namespace}, taints, pods)

    def taint(self, node: str, taints: Sequence[Raw]) -> None:
        """Set a node's taints."""
        self.merge("Node", node, {"spec": {"taints": list(taints)}})

    # --- builders ---------------------------------------------------------------------------------

    def template(self, **parts: Any) -> Raw:  # noqa: ANN401 (any JSON)
        """Return a pod template for the scene's nodes (see `objects.template`)."""
        return objects.template(self.home, **parts)

    def deployment(self, replicas: int, name: str = "web", image: str = "web:1", **spec: Any) -> Raw:  # noqa: ANN401 (any JSON)
        """Create a Deployment and wait until it is at rest."""
        parts = spec.pop("pods", {})
        made = objects.workload("Deployment", name, replicas, self.template(image=image, **parts), **spec)
        self.create(made)
        self.at_rest("Deployment", name)
        return self.get("Deployment", name)

    def replicaset(self, replicas: int, name: str = "web", **parts: Any) -> Raw:  # noqa: ANN401 (any JSON)
        """Create a ReplicaSet and wait until it is at rest."""
        self.create(objects.workload("ReplicaSet", name, replicas, self.template(**parts)))
        self.at_rest("ReplicaSet", name)
        return self.get("ReplicaSet", name)

    def set_image(self, kind: str, name: str, image: str) -> Raw:
        """Change the image of a workload, and nothing else."""
        containers = [{"name": "web", "image": image}]
        return self.patch(STRATEGIC, kind, name, {"spec": {"template": {"spec": {"containers": containers}}}})

    # --- what is there ----------------------------------------------------------------------------

    def past(self, kind: str = "Pod") -> Sequence[Change]:
        """Return what has been seen of a kind, oldest first."""
        return self.ground.past(KINDS[kind].plural)

    def every(self, kind: str, **labels: str) -> list[Raw]:
        """Return the objects of a kind with these labels, as last seen, sorted by name."""
        there = trace.present(self.past(kind))
        return [
            there[name]
            for name in sorted(there)
            if labels.items() <= (there[name]["metadata"].get("labels") or {}).items()
        ]

    def pods(self, image: str = "", owner: str = "") -> list[Raw]:
        """Return the pods that are not being deleted: of a template, of a controller ("kind/name")."""
        return [
            pod
            for pod in self.every("Pod")
            if not trace.is_ending(pod)
            and image in {"", trace.image(pod)}
            and owner in {"", trace.controller(pod)}
        ]

    def ready(self, image: str = "", owner: str = "") -> list[str]:
        """Return the names of the pods that serve."""
        return [pod["metadata"]["name"] for pod in self.pods(image, owner) if trace.is_ready(pod)]

    def named(self, kind: str = "Pod") -> list[str]:
        """Return the names of what is there."""
        return [raw["metadata"]["name"] for raw in self.every(kind)]

    def set_of(self, image: str) -> Raw:
        """Return the ReplicaSet of a template."""
        there = [raw for raw in self.every("ReplicaSet") if trace.image(raw) == image]
        assert len(there) == 1, f"{len(there)} ReplicaSets of {image}"
        return there[0]

    def sizes(self) -> dict[str, int]:
        """Return how many replicas each ReplicaSet is asked for, by its template."""
        return {trace.image(raw): raw["spec"]["replicas"] for raw in self.every("ReplicaSet")}

    # --- time -------------------------------------------------------------------------------------

    def until(self, what: str, holds: Callable[[], bool], within_s: float = DEADLINE_S) -> None:
        """Wait until something holds, by what is seen once the past has caught up."""

        def look() -> bool:
            if not holds():
                return False
            self.caught_up()
            return holds()

        self.caught_up()
        try:
            self.ground.until(look, what, within_s)
        except AssertionError as late:
            late.add_note("\n".join(self.last_seen()))
            raise

    def gone(self, kind: str, name: str) -> None:
        """Wait until an object is gone."""
        self.until(f"{kind} {name} to be gone", lambda: name not in self.named(kind))

    def all_ready(self, count: int) -> None:
        """Wait until so many pods serve, and no others are there."""
        self.until(f"{count} pods to serve", lambda: len(self.ready()) == count == len(self.every("Pod")))

    def at_rest(self, kind: str, name: str) -> None:
        """Wait until a workload has what it asks for, its controller has said so, and nothing is ending."""

        def holds() -> bool:
            raw = next((raw for raw in self.every(kind) if raw["metadata"]["name"] == name), None)
            return (
                raw is not None
                and _is_at_rest(kind, raw)
                and self._has_its_pods(kind, raw)
                and not any(map(trace.is_ending, self.every("Pod")))
            )

        self.until(f"{kind} {name} to be at rest", holds)

    def _has_its_pods(self, kind: str, raw: Raw) -> bool:
        """Return whether as many pods serve as a workload's status says, which may be older than they are."""
        owners = {owner := f"{kind}/{raw['metadata']['name']}"}
        if kind == "Deployment":
            sets = [each for each in self.every("ReplicaSet") if trace.controller(each) == owner]
            owners = {f"ReplicaSet/{each['metadata']['name']}" for each in sets}
        ready = [pod for pod in self.pods() if trace.is_ready(pod) and trace.controller(pod) in owners]
        return kind == "DaemonSet" or len(ready) == raw["spec"].get("replicas", 1)

    def quiet(self, seconds: float = QUIET_S) -> None:
        """Let time go by in which no pod may come, go, or change its state or owner."""
        self.caught_up()
        before = trace.standings(self.past())
        self.ground.elapse(seconds)
        self.caught_up()
        after = trace.standings(self.past())
        assert after == before, f"something happened to pods: {after[len(before) :]}"

    def noticed(self) -> None:
        """Let scheduler and controllers notice what was done: they watch each kind apart."""
        self.ground.elapse(_NOTICED_S)

    def caught_up(self) -> None:
        """Wait until what has been seen is what is there."""

        def same() -> bool:
            return all(self._is_seen(kind) for kind in FOLLOWED)

        if not same():
            self.ground.until(same, "the watches to have shown all", DEADLINE_S)

    def _is_seen(self, kind: str) -> bool:
        there = {_version(raw) for raw in self.listed(kind).get("items") or []}
        return there == {_version(raw) for raw in trace.present(self.past(kind)).values()}

    # --- what is compared -------------------------------------------------------------------------

    def note(self, what: str, value: object) -> None:
        """Note something that has to be the same on both sides."""
        self.notes.append(f"{what}: {json.dumps(value, sort_keys=True)}")

    def lives_vary(self) -> None:
        """Leave out the lives of pods: Kubernetes allows several courses here."""
        self.same_lives = False

    def end_varies(self) -> None:
        """Leave out what is there at the end: a controller may not be done yet."""
        self.same_end = False

    def least_ready(self, after: int = 0) -> int:
        """Return the least number of pods that served, from a point of the past on (`mark`)."""
        return min(trace.counts(self.past(), trace.serves)[after:], default=len(self.ready()))

    def most_asked(self) -> int:
        """Return the most pods that all ReplicaSets together were ever asked for.

        Pods may be one or the other more: each ReplicaSet makes and ends its own when it hears of it.
        """
        return max(trace.totals(self.past("ReplicaSet")), default=0)

    def mark(self) -> int:
        """Return the point of the past of pods that is now; the last change is part of what follows."""
        self.caught_up()
        return max(len(self.past()) - 1, 0)

    def last_seen(self) -> list[str]:
        """Return what is there."""
        return trace.end({kind: self.past(kind) for kind in reversed(FOLLOWED)})


@dataclass(frozen=True, slots=True)
class Script:
    """A name in the field's words, the rule that is tried, and what does it."""

    name: str
    rule: str
    act: Callable[[Scene], None]


SCRIPTS: dict[str, Script] = {}


def script(act: Callable[[Scene], None]) -> Callable[[Scene], None]:
    """Register a script under its function's name; its docstring is the rule."""
    name, rule = act.__name__, act.__doc__ or ""
    assert name not in SCRIPTS, f"two scripts are called {name}"
    SCRIPTS[name] = Script(name, rule, act)
    return act


def play(script: Script, ground: Ground) -> list[str]:
    """Play a script and return what is compared."""
    scene = Scene(ground)
    script.act(scene)
    scene.caught_up()
    lived = trace.lives(scene.past()) if scene.same_lives else []
    return [
        *scene.notes,
        *(f"life: {life}" for life in lived),
        *(f"end: {what}" for what in (scene.last_seen() if scene.same_end else ())),
    ]


def _version(raw: Raw) -> tuple[str, str]:
    return raw["metadata"]["uid"], raw["metadata"]["resourceVersion"]


def _is_at_rest(kind: str, raw: Raw) -> bool:
    status: Mapping[str, Any] = raw.get("status", {})
    wanted = raw["spec"].get("replicas", 1)
    if status.get("observedGeneration", 0) < raw["metadata"].get("generation", 0):
        return False
    names: Collection[str] = ("replicas", "readyReplicas", "availableReplicas")
    if kind in {"Deployment", "StatefulSet"}:
        names = (*names, "updatedReplicas")
    if kind == "DaemonSet":
        desired = status.get("desiredNumberScheduled", 0)
        return all(status.get(name, 0) == desired for name in ("numberReady", "numberAvailable"))
    return all(status.get(name, 0) == wanted for name in names)


__all__ = [
    "APPLY",
    "MERGE",
    "SCRIPTS",
    "STRATEGIC",
    "Ground",
    "Policy",
    "Raw",
    "Refused",
    "Scene",
    "Script",
    "play",
    "script",
]
