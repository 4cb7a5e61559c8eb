"""The writes of `kapp deploy` to one object, without kapp, which cannot be had as a module.

It writes whole objects, and notes on each what it applied and how the answer differed from that. While that
has not changed since, it compares with what it applied, and writes nothing.
Source: pkg/kapp/config/default.go, diff/resource_with_history.go and clusterapply/add_or_update_change.go of
github.com/carvel-dev/kapp.
"""

import copy
import hashlib
import json
from typing import Final

from lab.fixtures.shop import JsonObject, Shop

_APPLIED: Final = "kapp.k14s.io/original"
_DIFFERENCE: Final = "kapp.k14s.io/original-diff-md5"
_REVISION: Final = "deployment.kubernetes.io/revision"
_KINDS: Final = {"Deployment": "deployments", "StatefulSet": "statefulsets"}


class Kapp:
    """One application; `rebased` are paths that it copies from the cluster (its rebaseRules)."""

    def __init__(self, shop: Shop, rebased: tuple[tuple[str, ...], ...] = ()) -> None:
        self._shop = shop
        self._rebased = (("metadata", "annotations", _REVISION), ("status",), *rebased)

    def deploy(self, manifest: JsonObject) -> int:
        """Write what has to be written; return how often the object was updated, the note on it left out."""
        api = self._shop.sandbox.api
        home = f"/apis/apps/v1/namespaces/{self._shop.namespace}/{_KINDS[manifest['kind']]}"
        path = f"{home}/{manifest['metadata']['name']}"
        wanted = copy.deepcopy(manifest)
        wanted["metadata"].setdefault("labels", {})["kapp.k14s.io/app"] = "1700000000000000000"
        existing = api.find(path)
        if existing is None:
            self._note(path, api.create(home, wanted), wanted)
            return 0
        if _last_applied(existing) == _text(wanted):
            return 0
        answer = api.request("PUT", path, query={"fieldManager": "kapp"}, body=self._on(existing, wanted))
        self._note(path, answer, wanted)
        return 1

    def _on(self, existing: JsonObject, wanted: JsonObject) -> JsonObject:
        """Return what is wanted, with what is copied from the cluster."""
        made = copy.deepcopy(wanted)
        owned = ("labels", "annotations")
        kept = {name: value for name, value in existing["metadata"].items() if name not in owned}
        made["metadata"] = {**kept, **{name: made["metadata"].get(name, {}) for name in owned}}
        for *above, last in self._rebased:
            there, here = existing, made
            for name in above:
                there, here = there.get(name, {}), here.setdefault(name, {})
            if last in there:
                here[last] = there[last]
        return made

    def _note(self, path: str, answer: JsonObject, wanted: JsonObject) -> None:
        """Write onto the object what was applied, as another update of the whole; again if it has changed."""
        noted = {_APPLIED: _text(wanted), _DIFFERENCE: _difference(answer, _text(wanted))}
        there = answer

        def is_noted() -> bool:
            nonlocal there
            body = copy.deepcopy(there)
            body["metadata"].setdefault("annotations", {}).update(noted)
            there, has_changed = self._put(path, body)
            return not has_changed

        self._shop.until(is_noted, "kapp to note what it has applied")

    def _put(self, path: str, body: JsonObject) -> tuple[JsonObject, bool]:
        api = self._shop.sandbox.api
        there = api.get(path)
        if there["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            return there, True
        return api.request("PUT", path, query={"fieldManager": "kapp"}, body=body), False


def _last_applied(existing: JsonObject) -> str | None:
    """Return what kapp applied last, if nothing has changed since."""
    annotations = existing["metadata"].get("annotations", {})
    text = annotations.get(_APPLIED)
    return text if text and annotations.get(_DIFFERENCE) == _difference(existing, text) else None


def _difference(existing: JsonObject, applied: str) -> str:
    """Return a digest of how an object in the cluster differs from what was applied."""
    bare = {name: value for name, value in existing.items() if name != "status"}
    metadata = {name: existing["metadata"].get(name, {}) for name in ("labels", "annotations")}
    metadata["annotations"] = {
        key: text
        for key, text in metadata["annotations"].items()
        if key not in {_APPLIED, _DIFFERENCE, _REVISION}
    }
    return hashlib.sha256(f"{_text({**bare, 'metadata': metadata})}\n{applied}".encode()).hexdigest()


def _text(value: JsonObject) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
