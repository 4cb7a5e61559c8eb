"""Reads and writes as they are asked for over the wire: paging, patches, subresources."""

import re
from collections.abc import Mapping

from splitter.kube.client import ApiError
from world import clock
from world.apply import applied, merge_patched, strategically_patched
from world.eviction import evict
from world.kinds import PODS, Raw, Ref, is_custom, pruned, typed
from world.objects import Objects
from world.selectors import asked_for, selector_text

_SUCCESS: Raw = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


class Reads:
    """Objects and lists of them, page by page."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._pages: dict[str, tuple[int, list[Raw]]] = {}

    def answer(self, ref: Ref, part: str, query: Mapping[str, str]) -> Raw:
        """Return an object, or a page of a list. Raises ApiError."""
        if ref.name:
            raw = self._objects.get(ref)
            return _scale(raw) if part == "scale" else raw
        limit, token = int(query.get("limit", "0")), query.get("continue", "")
        if token:
            if not re.fullmatch(r"\d+-\d+-\d+", token):
                raise ApiError(400, "BadRequest", "continue key is not valid")
            if token not in self._pages:
                raise ApiError(410, "Expired", "The provided continue parameter is too old")
            version, left = self._pages.pop(token)
        else:
            version = self._objects.version
            chosen = asked_for(query.get("labelSelector", ""), query.get("fieldSelector", ""), ref.kind)
            left = [raw for raw in self._objects.all(ref.kind, ref.namespace) if chosen(raw)]
        items, rest = (left[:limit], left[limit:]) if limit else (left, [])
        metadata: Raw = {"resourceVersion": str(version)}
        if rest:
            metadata["continue"] = f"{version}-{len(rest)}-{len(self._pages)}"
            metadata["remainingItemCount"] = len(rest)
            self._pages[metadata["continue"]] = version, rest
        if not is_custom(ref.kind):  # an item of a list does not say what it is
            items = [{name: raw[name] for name in raw if name not in {"kind", "apiVersion"}} for raw in items]
        named = typed(ref.kind, {})
        return {**named, "kind": f"{named['kind']}List", "metadata": metadata, "items": items}


def _scale(raw: Raw) -> Raw:
    named = {name: raw["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}
    replicas = raw["spec"].get("replicas", 0)
    spec = {"replicas": replicas} if replicas else {}
    status: Raw = {"replicas": raw.get("status", {}).get("replicas", 0)}
    if "selector" in raw["spec"]:
        status["selector"] = selector_text(raw["spec"]["selector"])
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": named,
        "spec": spec,
        "status": status,
    }


class Write:
    """One request that changes something."""

    def __init__(self, objects: Objects, ref: Ref, part: str, query: Mapping[str, str], user: str) -> None:
        self._objects = objects
        self._ref = ref
        self._part = part
        self._dry = "dryRun" in query
        self._force = query.get("force") == "true"
        self._by = query.get("fieldManager") or user
        self._user = user
        self._managed = "fieldManager" in query
        self._strict = query.get("fieldValidation") == "Strict"

    def answer(self, method: str, body: Raw, patch: str) -> Raw:  # noqa: PLR0911 (one line for each verb)
        """Do it. Raises ApiError."""
        if self._strict and pruned(self._ref.kind, body) != body:
            raise ApiError(400, "BadRequest", "strict decoding error: unknown field")
        if method == "DELETE":
            return self._delete(body)
        if method == "POST" and self._part == "eviction":
            return evict(self._objects, self._ref, body, self._user)
        if method == "POST" and self._part == "binding":
            pod = self._objects.get(self._ref)
            bound = {**pod, "spec": {**pod["spec"], "nodeName": body["target"]["name"]}}
            return self._objects.update(self._ref, bound, part="binding", user=self._user, dry=self._dry)
        if method == "POST":
            kind, namespace = self._ref.kind, self._ref.namespace
            return self._objects.create(kind, namespace, body, self._by, user=self._user, dry=self._dry)
        if self._part == "scale":
            return self._set_scale(body)
        if method == "PUT":
            if body["metadata"].get("uid", "") not in {"", self._objects.get(self._ref)["metadata"]["uid"]}:
                raise ApiError(
                    409, "Conflict", "the UID in the precondition does not match the UID in record"
                )
            return self._update(body)
        return self._patch(body, patch)

    def _update(self, new: Raw, *, owned: bool = False) -> Raw:
        by = "" if owned else self._by
        return self._objects.update(self._ref, new, by, part=self._part, user=self._user, dry=self._dry)

    def _patch(self, body: Raw, patch: str) -> Raw:
        if patch == "apply":
            return self._apply(body)
        live = self._objects.get(self._ref)
        return self._update(
            merge_patched(live, body) if patch == "merge" else strategically_patched(live, body)
        )

    def _apply(self, body: Raw) -> Raw:
        ref, said = self._ref, body["metadata"]
        if said.get("managedFields"):
            raise ApiError(400, "BadRequest", "metadata.managedFields must be nil")
        if not self._managed:
            raise ApiError(422, "Invalid", "fieldManager: Required value: is required for apply patch")
        live = self._objects.find(ref)
        if live is None:
            if self._part:
                self._objects.get(ref)
            if said.get("uid") or said.get("resourceVersion"):
                raise ApiError(409, "Conflict", f"{ref.name} is not there, and its version was given")
            bare = {"metadata": {"name": ref.name, "namespace": ref.namespace}}
            made = applied(typed(ref.kind, bare), body, self._by, clock.stamp(), force=True)
            entries = made["metadata"].pop("managedFields", [])
            return self._objects.create(
                ref.kind, ref.namespace, made, owned=entries, user=self._user, dry=self._dry
            )
        made = applied(live, body, self._by, clock.stamp(), force=self._force, part=self._part)
        given = {name: said[name] for name in ("resourceVersion", "uid") if name in said}
        made["metadata"] = {**made["metadata"], **given}
        return self._update(made, owned=True)

    def _set_scale(self, body: Raw) -> Raw:
        live = self._objects.get(self._ref)
        said = body.get("metadata") or {}
        given = {name: said[name] for name in ("uid", "resourceVersion") if name in said}
        scaled = {
            **live,
            "metadata": {**live["metadata"], **given},
            "spec": {**live["spec"], "replicas": body["spec"]["replicas"]},
        }
        made = self._objects.update(self._ref, scaled, self._by, part="scale", user=self._user, dry=self._dry)
        return _scale(made)

    def _delete(self, body: Raw) -> Raw:
        last = self._objects.delete(self._ref, body, user=self._user)
        if self._objects.find(self._ref) is not None or self._ref.kind == PODS:
            return last
        return dict(_SUCCESS)
