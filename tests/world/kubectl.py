"""What kubectl sends, of the commands that users and tests of whole lives give; it prints what is asked for.

Source: k8s.io/kubectl, pkg/cmd, of Kubernetes 1.36: the kinds of patch, and the names of field managers.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from lab.sandbox import Api, ApiError, PatchKind, SandboxError
from world.kinds import PODS, Raw, path_of
from world.pods import owned_by

_LAST: Final = "kubectl.kubernetes.io/last-applied-configuration"
_REVISION: Final = "deployment.kubernetes.io/revision"
_SHORT: Final = {
    "hpa": "horizontalpodautoscaler",
    "pvc": "persistentvolumeclaim",
    "quota": "resourcequota",
}
_GROUPS: Final = {
    "apps/v1": ("deployment", "replicaset", "statefulset", "daemonset", "controllerrevision"),
    "autoscaling/v2": ("horizontalpodautoscaler",),
    "policy/v1": ("poddisruptionbudget",),
    "splitter.io/v1alpha1": ("split", "placement"),
}
_OF_THE_CLUSTER: Final = frozenset({"namespace", "node", "persistentvolume", "priorityclass"})
_WITH_VALUE: Final = frozenset({"-l", "-n", "--namespace", "-p", "--patch", "-o", "-f", "--type"})
# What changes one field: which, and by whom.
_SIMPLE: Final[dict[str, tuple[Raw, str]]] = {
    "cordon": ({"unschedulable": True}, "kubectl-cordon"),
    "uncordon": ({"unschedulable": None}, "kubectl-uncordon"),
    "rollout_pause": ({"paused": True}, "kubectl-rollout"),
    "rollout_resume": ({"paused": None}, "kubectl-rollout"),
}
_WAITS_S: Final = 90.0
_LOOK_S, _EVICT_AGAIN_S = 0.1, 5.0
_BUSY, _GONE = 429, 404


class Kubectl:
    """One command after the other, as administrator."""

    def __init__(self, api: Api, wait: Callable[[float], None]) -> None:
        """Send to an API; `wait` lets so many seconds pass."""
        self._api = api
        self._wait = wait
        self._options: dict[str, str] = {}
        self._stdin = ""

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Do it, and return what is printed. Raises SandboxError."""
        self._stdin = stdin or ""
        words = list(self._words(arguments))
        verb = words.pop(0)
        if verb in {"rollout", "set", "create"}:
            verb = f"{verb}_{words.pop(0)}"
        if verb in _SIMPLE:
            spec, by = _SIMPLE[verb]
            for path in self._paths(["node", *words] if "cordon" in verb else words):
                self._strategic(path, {"spec": spec}, by)
            return ""
        do: Callable[..., str | None] | None = getattr(self, f"_{verb}", None)
        if do is None:
            raise NotImplementedError(f"kubectl {' '.join(arguments)}")
        return do(*words) or ""

    def _words(self, arguments: Sequence[str]) -> Iterator[str]:
        """Take the options, and yield the other words."""
        rest = iter(arguments)
        for word in rest:
            name, equal, value = word.partition("=")
            if not word.startswith("-"):
                yield word
            elif name in _WITH_VALUE and not equal:
                self._options[name.strip("-")] = next(rest)
            else:
                self._options[name.strip("-")] = value or "true"

    def _option(self, *names: str) -> str:
        return next((self._options[name] for name in names if name in self._options), "")

    # --- what is meant ----------------------------------------------------------------------------

    def _collection(self, kind: str) -> str:
        kind = _SHORT.get(kind.lower(), kind.lower().removesuffix("s"))
        group = next((group for group, kinds in _GROUPS.items() if kind in kinds), "v1")
        return self._within(group, kind, self._option("namespace", "n"))

    @staticmethod
    def _within(version: str, kind: str, namespace: str) -> str:
        root = "/api/v1" if version == "v1" else f"/apis/{version}"
        plural = f"{kind}es" if kind.endswith("ss") else f"{kind}s"
        return f"{root}{'' if kind in _OF_THE_CLUSTER else f'/namespaces/{namespace}'}/{plural}"

    def _paths(self, words: Sequence[str]) -> list[str]:
        """Return the objects of TYPE NAME..., TYPE/NAME..., or TYPE with a selector or --all."""
        if "/" in words[0]:
            return [f"{self._collection(kind)}/{name}" for kind, _, name in (w.partition("/") for w in words)]
        collections = [self._collection(kind) for kind in words[0].split(",")]
        if len(words) > 1:
            return [f"{collections[0]}/{name}" for name in words[1:]]
        labels = self._option("l")
        there = [(where, raw) for where in collections for raw in self._api.list(where, labels=labels)]
        return [f"{where}/{raw['metadata']['name']}" for where, raw in there]

    def _of_manifest(self, raw: Raw) -> str:
        namespace = self._option("namespace", "n") or raw["metadata"].get("namespace", "")
        return self._within(raw["apiVersion"], raw["kind"].lower(), namespace)

    def _manifests(self) -> list[Raw]:
        file = self._option("f")
        text = self._stdin if file == "-" else Path(file).read_text(encoding="utf-8")
        said = [one for one in yaml.safe_load_all(text) if one]
        return list(said[0]["items"]) if said[0]["kind"] == "List" else said

    def _merge(self, path: str, patch: Raw, by: str) -> None:
        self._api.patch(path, patch, field_manager=by)

    def _strategic(self, path: str, patch: Raw, by: str) -> None:
        self._api.patch(path, patch, kind=PatchKind.STRATEGIC, field_manager=by)

    # --- whole objects ----------------------------------------------------------------------------

    def _apply(self) -> None:
        for raw in self._manifests():
            collection, name = self._of_manifest(raw), raw["metadata"]["name"]
            if "server-side" in self._options:
                path = f"{collection}/{name}"
                self._api.patch(path, raw, kind=PatchKind.APPLY, field_manager="kubectl")
                continue
            text = json.dumps(raw, separators=(",", ":"), sort_keys=True) + "\n"
            metadata = raw["metadata"]
            noted = {**metadata, "annotations": {**metadata.get("annotations", {}), _LAST: text}}
            new, by = {**raw, "metadata": noted}, "kubectl-client-side-apply"
            live = self._api.find(f"{collection}/{name}")
            if live is None:
                self._api.request("POST", collection, query={"fieldManager": by}, body=new)
                continue
            last = json.loads(live["metadata"].get("annotations", {}).get(_LAST, "{}"))
            self._strategic(f"{collection}/{name}", with_removals(last, new), by)

    def _replace(self) -> None:
        for raw in self._manifests():
            path = f"{self._of_manifest(raw)}/{raw['metadata']['name']}"
            self._api.request("PUT", path, query={"fieldManager": "kubectl-replace"}, body=raw)

    def _get(self, *words: str) -> str:
        """Return what is there, or its names."""
        paths = self._paths(words)
        if self._option("o", "output") == "name":
            return "\n".join("/".join(path.rsplit("/", 2)[1:]) for path in paths)
        return json.dumps({"items": [self._api.get(path) for path in paths]})

    def _delete(self, *words: str) -> None:
        body: Raw = {"propagationPolicy": "Background"}
        if grace := self._option("grace-period"):
            body["gracePeriodSeconds"] = int(grace)
        for path in self._paths(words):
            try:
                uid = self._api.get(path)["metadata"]["uid"]
                self._api.request("DELETE", path, body=body)
            except ApiError as refusal:
                if refusal.status == _GONE and "ignore-not-found" in self._options:
                    continue
                raise
            if self._option("wait") != "false":
                self._until(partial(self._is_another, path, uid), f"{path} to go")

    def _is_another(self, path: str, uid: str) -> bool:
        return self._uid(path) != uid

    def _uid(self, path: str) -> str:
        raw = self._api.find(path)
        return "" if raw is None else str(raw["metadata"]["uid"])

    def _until(self, look: Callable[[], bool], what: str) -> None:
        ends_s = time.monotonic() + _WAITS_S
        while not look():
            if time.monotonic() > ends_s:
                raise SandboxError(f"kubectl waited for {what}")
            self._wait(_LOOK_S)

    def _create_quota(self, name: str) -> None:
        what, _, most = self._options["hard"].partition("=")
        body = {"metadata": {"name": name}, "spec": {"hard": {what: most}}}
        self._api.create(self._collection("quota"), body)

    # --- parts of them ----------------------------------------------------------------------------

    def _label(self, *words: str) -> None:
        self._noted("labels", words, "kubectl-label")

    def _annotate(self, *words: str) -> None:
        self._noted("annotations", words, "kubectl-annotate")

    def _noted(self, field: str, words: Sequence[str], by: str) -> None:
        pairs = [word for word in words if "=" in word or word.endswith("-")]
        written = {
            key if equal else key[:-1]: value if equal else None
            for key, equal, value in (word.partition("=") for word in pairs)
        }
        for path in self._paths([word for word in words if word not in pairs]):
            self._merge(path, {"metadata": {field: written}}, by)

    def _patch(self, *words: str) -> None:
        patch: Any = json.loads(self._option("p", "patch"))
        kind = PatchKind[(self._option("type") or "strategic").upper()]
        for path in self._paths(words):
            self._api.patch(path, patch, kind=kind, field_manager="kubectl-patch")

    def _scale(self, *words: str) -> None:
        for path in self._paths(words):
            self._merge(f"{path}/scale", {"spec": {"replicas": int(self._options["replicas"])}}, "kubectl")

    def _set_image(self, *words: str) -> None:
        images = dict(word.split("=") for word in words if "=" in word)
        containers = [{"name": name, "image": image} for name, image in images.items()]
        self._set([word for word in words if "=" not in word], lambda _: containers)

    def _set_env(self, *words: str) -> None:
        said = [word for word in words[1:] if "=" in word or word.endswith("-")]
        variables: list[Raw] = [
            {"name": word[:-1], "$patch": "delete"}
            if word.endswith("-")
            else dict(zip(("name", "value"), word.split("=", 1), strict=True))
            for word in said
        ]
        self._set(
            [word for word in words if word not in said],
            lambda names: [{"name": name, "env": variables} for name in names],
        )

    def _set_resources(self, *words: str) -> None:
        requests = dict(one.split("=", 1) for one in self._options["requests"].split(","))
        asked = {"resources": {"requests": requests}}
        self._set(list(words), lambda names: [{"name": name, **asked} for name in names])

    def _set(self, words: Sequence[str], containers: Callable[[list[str]], list[Raw]]) -> None:
        for path in self._paths(words):
            there = self._api.get(path)["spec"]["template"]["spec"]["containers"]
            changed = {"containers": containers([one["name"] for one in there])}
            self._strategic(path, {"spec": {"template": {"spec": changed}}}, "kubectl-set")

    # --- rollouts ---------------------------------------------------------------------------------

    def _revisions(self, path: str) -> dict[int, Raw]:
        source = self._api.get(path)
        if source["spec"].get("paused"):
            raise SandboxError(f"{path} is paused: resume it first with 'kubectl rollout resume'")
        there = self._api.list(self._collection("replicaset"))
        owned = [raw for raw in there if owned_by(raw, source["metadata"]["uid"])]
        return {int(raw["metadata"]["annotations"][_REVISION]): raw for raw in owned}

    def _rollout_history(self, *words: str) -> str:
        return "\n".join(str(number) for number in sorted(self._revisions(self._paths(words)[0])))

    def _rollout_undo(self, *words: str) -> None:
        [path] = self._paths(words)
        revisions = self._revisions(path)
        to = int(self._option("to-revision") or sorted(revisions)[-2])
        template = json.loads(json.dumps(revisions[to]["spec"]["template"]))
        del template["metadata"]["labels"]["pod-template-hash"]
        body = [{"op": "replace", "path": "/spec/template", "value": template}]
        self._api.patch(path, body, kind=PatchKind.JSON, field_manager="kubectl")

    # --- nodes ------------------------------------------------------------------------------------

    def _taint(self, *words: str) -> None:
        paths = self._paths([word for word in words if ":" not in word and not word.endswith("-")])
        for path in paths:
            taints = self._api.get(path)["spec"].get("taints", [])
            for word in words:
                key = word.partition("=")[0].removesuffix("-")
                if ":" in word or word.endswith("-"):
                    taints = [one for one in taints if one["key"] != key]
                if ":" in word:
                    value, _, effect = word.partition("=")[2].partition(":")
                    taints += [{"key": key, **({"value": value} if value else {}), "effect": effect}]
            self._merge(path, {"spec": {"taints": taints or None}}, "kubectl-taint")

    def _drain(self, name: str) -> None:
        """Evict until no pod is left, those that a budget refuses every five seconds."""
        self.run("cordon", name)
        pods = self._api.list("/api/v1/pods", fields=f"spec.nodeName={name}")
        metadata = [raw["metadata"] for raw in pods]
        left = {one["uid"]: path_of(PODS, one["namespace"], one["name"]) for one in metadata}
        ends_s = time.monotonic() + float(self._option("timeout").removesuffix("s") or _WAITS_S)
        evicted: set[str] = set()
        while left := {uid: path for uid, path in left.items() if self._uid(path) == uid}:
            if time.monotonic() > ends_s:
                raise SandboxError(f"drain did not complete within timeout: {', '.join(left.values())}")
            for uid, path in left.items():
                if uid not in evicted and self._is_evicted(path):
                    evicted.add(uid)
            self._wait(_LOOK_S if evicted >= left.keys() else _EVICT_AGAIN_S)

    def _is_evicted(self, path: str) -> bool:
        metadata = {"name": path.rpartition("/")[2]}
        try:
            self._api.request("POST", f"{path}/eviction", body={"metadata": metadata})
        except ApiError as refusal:
            if refusal.status not in {_BUSY, _GONE}:
                raise
            return refusal.status == _GONE
        return True


def with_removals(last: Any, new: Any) -> Any:  # noqa: ANN401 (any JSON)
    """Return a strategic patch to what is applied now, without what was applied before and is not any more.

    >>> with_removals({"a": 1, "b": {"c": 1}}, {"b": {"d": 2}})
    {'b': {'d': 2, 'c': None}, 'a': None}
    """
    if isinstance(last, dict) and isinstance(new, dict):
        kept = {name: with_removals(last.get(name), value) for name, value in new.items()}
        return {**kept, **{name: None for name in last if name not in new}}
    named = (
        all(isinstance(one, dict) and "name" in one for one in [*(last or ()), *(new or ())])
        if (isinstance(new, list) and isinstance(last, list))
        else False
    )
    if named:
        before = {one["name"]: one for one in last}
        gone = before.keys() - {one["name"] for one in new}
        return [
            *(with_removals(before.get(one["name"]), one) for one in new),
            *({"name": name, "$patch": "delete"} for name in sorted(gone)),
        ]
    return new


def json_patched(raw: Raw, operations: Sequence[Raw]) -> Raw:
    """Return an object after a JSON patch (RFC 6902): add, replace, remove."""
    for one in operations:
        *above, last = [part.replace("~1", "/").replace("~0", "~") for part in one["path"].split("/")[1:]]
        node: Any = raw
        for part in above:
            node = node[int(part) if isinstance(node, list) else part]
        at: Any = int(last) if isinstance(node, list) and last != "-" else last
        if one["op"] == "remove":
            del node[at]
        elif one["op"] == "add" and isinstance(node, list):
            node.insert(len(node) if at == "-" else at, one["value"])
        else:
            node[at] = one["value"]
    return raw
