"""What splitter's own account tries where the policy alone holds it, and on what.

`ATTEMPTS` is what has to be refused, with a sentence for each. The account is bound to cluster-admin in the
namespace of the test, so that no missing right answers in the policy's place.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from e2e.support.account import api_of
from e2e.support.admission import steadily
from lab.fixtures.controller import Controller
from lab.fixtures.namespaces import open_shop
from lab.fixtures.shop import DEADLINE_S, JsonObject, Shop, manifest
from lab.sandbox import Api, ApiError, PatchKind, Sandbox
from lab.sandbox.waiting import wait_until
from splitter.core.desired.manifest import mapping_at, mappings
from splitter.core.desired.placeholder import idle_pod
from splitter.core.desired.scheduling import NodePresets, ReservationRules

POLICY = "splitter-own-account"
_RULES = ReservationRules(NodePresets((), ()), "i")
ACCOUNT = "system:serviceaccount:splitter-system:splitter"


@dataclass(slots=True)
class Stage:
    """A namespace with one split workload, others, and the account that would like to."""

    shop: Shop
    account: Api
    controller: Controller
    names: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=lambda: {"dryRun": "All", "fieldManager": "splitter"})
    options: JsonObject = field(default_factory=dict)

    @contextmanager
    def asked_with(self, **options: object) -> Iterator[None]:
        """Put these fields into the options of each deletion and each eviction."""
        self.options = options
        try:
            yield
        finally:
            self.options = {}

    @contextmanager
    def for_good(self) -> Iterator[None]:
        """Have what is tried done, and not in a dry run."""
        asked, self.query = self.query, {"fieldManager": "splitter"}
        try:
            yield
        finally:
            self.query = asked

    def path(self, kind: str, name: str = "") -> str:
        """Return where objects of a kind are; `{parked}` and the like stand for names found."""
        group = {
            "pods": "/api/v1",
            "splits": "/apis/splitter.io/v1alpha1",
            "placements": "/apis/splitter.io/v1alpha1",
            "poddisruptionbudgets": "/apis/policy/v1",
        }.get(kind, "/apis/apps/v1")
        home = f"{group}/namespaces/{self.shop.namespace}/{kind}"
        return f"{home}/{name.format(**self.names)}" if name else home

    def read(self, kind: str, name: str) -> JsonObject:
        """Return an object as it is."""
        return self.shop.sandbox.api.get(self.path(kind, name))

    def create(self, kind: str, body: JsonObject) -> None:
        """Try to create."""
        self.account.request("POST", self.path(kind), body=body, query=self.query)

    def patch(self, kind: str, name: str, body: object, how: PatchKind = PatchKind.MERGE) -> None:
        """Try to patch."""
        self.account.request("PATCH", self.path(kind, name), body=body, query=self.query, content_type=how)

    def patch_for_good(self, kind: str, name: str, body: object, how: PatchKind = PatchKind.MERGE) -> None:
        """Try to patch, and not in a dry run."""
        with self.for_good():
            self.patch(kind, name, body, how)

    def put(self, kind: str, name: str, body: JsonObject) -> None:
        """Try to replace."""
        self.account.request("PUT", self.path(kind, name), body=body, query=self.query)

    def evict(self, name: str, **options: object) -> None:
        """Try to evict a pod; with its UID unless told otherwise."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name.format(**self.names)},
            "deleteOptions": self._options("pods", name, options),
        }
        self.account.request("POST", f"{self.path('pods', name)}/eviction", body=body, query=self.query)

    def delete(self, kind: str, name: str, **options: object) -> None:
        """Try to delete; with the object's UID unless told otherwise."""
        body = self._options(kind, name, options)
        self.account.request("DELETE", self.path(kind, name), body=body)

    def _options(self, kind: str, name: str, options: JsonObject) -> JsonObject:
        dry = {"dryRun": ["All"]} if "dryRun" in self.query else {}
        there = {"preconditions": {"uid": self.read(kind, name)["metadata"]["uid"]}}
        asked = {**dry, **there, **options, **self.options}
        return {key: value for key, value in asked.items() if value is not None}

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Keep splitter itself from mending anything meanwhile."""
        self.controller.stop()
        try:
            yield
        finally:
            self.controller.start()

    def wait_held(self) -> None:
        """Wait until the policy refuses what nothing else would."""

        def is_refused() -> bool:
            try:
                self.delete("deployments", "plain")
            except ApiError as refusal:
                return f"ValidatingAdmissionPolicy '{POLICY}'" in str(refusal)
            return False

        wait_until(lambda: steadily(is_refused), what="the policy to be in force", deadline_s=DEADLINE_S)

    def refusal(self, attempt: Callable[["Stage"], object]) -> str:
        """Return in which words the policy refuses an attempt."""
        with pytest.raises(ApiError) as caught:
            attempt(self)
        assert caught.value.status == HTTPStatus.FORBIDDEN  # 422 would pass for a lost race
        assert f"ValidatingAdmissionPolicy '{POLICY}'" in str(caught.value)
        return str(caught.value)


def image(name: str = "evil:1", container: str = "web") -> JsonObject:
    """Return a strategic patch of a workload's image."""
    return {"spec": {"template": {"spec": {"containers": [{"name": container, "image": name}]}}}}


def twin_of(owner: str, name: str, **owned: object) -> JsonObject:
    """Return a Deployment that looks like a twin."""
    labels = {"splitter.io/split": "twin", "splitter.io/pool": "spot", "splitter.io/source": "web"}
    made = manifest(name, 0, labels=labels)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": "u", "controller": True}
    made["metadata"]["ownerReferences"] = [{**reference, **owned}]
    return made


def parked_like(stage: Stage, **changes: Any) -> JsonObject:  # noqa: ANN401 (fields of any type)
    """Return another ReplicaSet like the parked one, with changes of spec or metadata."""
    raw = stage.read("replicasets", "{parked}")
    kept = {key: raw["metadata"][key] for key in ("labels", "annotations", "ownerReferences")}
    spec = {**raw["spec"], **{key: value for key, value in changes.items() if key == "replicas"}}
    metadata = {"name": "web-back", **kept, **{k: v for k, v in changes.items() if k != "replicas"}}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def metadata(**fields: object) -> JsonObject:
    """Return a patch of metadata."""
    return {"metadata": fields}


def contained(**fields: object) -> JsonObject:
    """Return the spec of a placeholder with changes of its container; `security` is merged."""
    [container] = mappings(idle_pod(_RULES, [{}])["containers"])
    security = {**mapping_at(container, "securityContext"), **mapping_at(fields, "security")}
    named = {key: value for key, value in fields.items() if key != "security"}
    return {"containers": [{**container, **named, "securityContext": security}]}


STRATEGIC = PatchKind.STRATEGIC
OURS: JsonObject = {"splitter.io/pool": "spot", "splitter.io/source": "plain"}


def adopting_like(stage: Stage, name: str = "plain-1", **owned: object) -> JsonObject:
    """Return a ReplicaSet that would adopt the pods of `plain`, with changes of its owner."""
    raw = stage.read("replicasets", "{attached}")
    owner = {**owner_of("plain"), **owned}
    named = {"name": name, "labels": raw["metadata"]["labels"], "ownerReferences": [owner]}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": named, "spec": raw["spec"]}


def owner_off(stage: Stage) -> JsonObject:
    """Return what the garbage collector sends when a ReplicaSet goes and its pods stay."""
    raw = stage.read("pods", "{pod}")["metadata"]
    owners = raw.get("ownerReferences", ())
    off = [{"$patch": "delete", "uid": owner["uid"]} for owner in owners]
    return metadata(ownerReferences=off, uid=raw["uid"])


def labelled(body: JsonObject, value: str) -> JsonObject:
    """Return a manifest with the label of ours."""
    named = body["metadata"]
    return {**body, "metadata": {**named, "labels": {**named["labels"], "splitter.io/split": value}}}


def orphaning(stage: Stage, name: str) -> JsonObject:
    """Return the options of a deletion that leaves the pods of this very ReplicaSet running."""
    content = stage.read("replicasets", name)["metadata"]
    precondition = {"uid": content["uid"], "resourceVersion": content["resourceVersion"]}
    return {"propagationPolicy": "Orphan", "preconditions": precondition}


def guarding(stage: Stage, **changed: JsonObject) -> JsonObject:
    """Return a budget like that of `web`, of a Split that is not there, with changes of metadata or spec."""
    raw = stage.read("poddisruptionbudgets", "web-guard")
    owners = [{**owner, "name": "new"} for owner in raw["metadata"]["ownerReferences"]]
    named = {"name": "new-guard", "ownerReferences": owners, **changed.get("metadata", {})}
    selector = {"matchLabels": {"splitter.io/source": "new"}}
    spec = {**raw["spec"], "selector": selector, **changed.get("spec", {})}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": named, "spec": spec}


def owner_of(name: str, api: str = "apps/v1") -> JsonObject:
    """Return a reference to a Deployment that controls, of a UID that none has."""
    return {"apiVersion": api, "kind": "Deployment", "name": name, "uid": "u", "controller": True}


def placeholder(stage: Stage, spec: JsonObject | None = None, **changes: object) -> JsonObject:
    """Return a pod as splitter makes them to hold room, with changes of its spec and its metadata."""
    split = stage.read("splits", "web")
    owner = {**owner_of("web", split["apiVersion"]), "kind": "Split", "uid": split["metadata"]["uid"]}
    named = {"name": "held", "labels": {"splitter.io/placeholder": "spot"}, "ownerReferences": [owner]}
    made = idle_pod(_RULES, [{"resources": {}}])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**named, **changes},
        "spec": {**made, **(spec or {})},
    }


def written_by(
    stage: Stage, kind: str, name: str, entries: Callable[[list[JsonObject]], list[JsonObject]]
) -> None:
    """Try to change who wrote which field of an object."""
    there = stage.read(kind, name)["metadata"]["managedFields"]
    stage.patch(kind, name, metadata(managedFields=entries(there)))


def others(entries: list[JsonObject]) -> list[JsonObject]:
    """Return what splitter has not written."""
    return [entry for entry in entries if entry["manager"] != "splitter"]


def same(stage: Stage, name: str) -> JsonObject:
    """Return the metadata by which an object is replaced."""
    raw = stage.read("deployments", name)["metadata"]
    return {key: raw[key] for key in ("name", "namespace", "uid", "resourceVersion", "labels")}


def split_of(stage: Stage, source: str, owner: str, name: str = "", api: str = "apps/v1") -> JsonObject:
    """Return a Split of this source, with the owner of another; with a name, one that says all alike."""
    split = stage.read("splits", owner)
    of: JsonObject = {"apiVersion": api, "kind": "Deployment", "name": source}
    owners = [{**one, "apiVersion": api} for one in split["metadata"]["ownerReferences"]]
    if name:
        owners = [{**one, "name": source} for one in owners]
    named = {"name": name or source, "ownerReferences": owners}
    return {"apiVersion": split["apiVersion"], "kind": "Split", "metadata": named, "spec": {"source": of}}


def staged(sandbox: Sandbox, controller: Controller, kubeconfig: Path) -> Iterator[Stage]:
    """Yield `web`, split; `plain`, a StatefulSet, a DaemonSet and a bare pod, which are nobody's business."""
    for shop in open_shop(sandbox, controller, name="broken-out"):
        shop.kubectl("create", "rolebinding", "all", "--clusterrole=cluster-admin", f"--user={ACCOUNT}")
        shop.kubectl("create", "serviceaccount", "other")
        shop.deploy("plain", replicas=1)
        template = manifest("other", 1)["spec"]["template"]
        for kind in ("StatefulSet", "DaemonSet"):
            name = kind.lower()
            labelled = {**template, "metadata": {"labels": {"app": name}}}
            spec: JsonObject = {"selector": {"matchLabels": {"app": name}}, "template": labelled}
            if kind == "StatefulSet":
                spec |= {"serviceName": name, "replicas": 1}
            shop.apply({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
            shop.kubectl("rollout", "status", f"{kind.lower()}/{name}", "--timeout=90s")
        bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": template["spec"]}
        shop.apply(bare)
        shop.apply({**bare, "metadata": {"name": "labelled", "labels": OURS}})
        let_go = {"name": "loose", "labels": {**OURS, "pod-template-hash": "gone"}}
        shop.apply({**bare, "metadata": let_go, "spec": {**bare["spec"], "nodeName": "on-demand-0"}})
        lone = {**manifest("lone", 0), "kind": "ReplicaSet"}
        del lone["spec"]["strategy"]
        shop.apply(lone)
        for name, owner, kind in (
            ("copied", "plain", "deployments"),
            ("other-spot", "plain", "deployments"),
            ("statefulset-spot", "statefulset", "statefulsets"),
        ):
            raw = sandbox.api.get(f"/apis/apps/v1/namespaces/{shop.namespace}/{kind}/{owner}")
            made = twin_of(owner, name, kind=raw["kind"], uid=raw["metadata"]["uid"])
            if name == "other-spot":  # as one that was robbed of a label
                del made["metadata"]["labels"]["splitter.io/split"]
            shop.apply(made)
        shop.apply(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "users"},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "plain"}}},
            }
        )
        shop.deploy("web", replicas=4, annotations={"splitter.io/on-demand-base": "1"})
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        guard = f"/apis/policy/v1/namespaces/{shop.namespace}/poddisruptionbudgets/web-guard"
        shop.until(partial(sandbox.api.find, guard), "the guard")
        shop.wait_steady()  # from here on nobody writes what is read and then replaced
        names = {
            "parked": shop.replica_sets("web")[0]["metadata"]["name"],
            "of_twin": next(
                rs["metadata"]["name"] for rs in shop.replica_sets("web-spot") if rs["spec"]["replicas"]
            ),
            "attached": shop.replica_sets("plain")[0]["metadata"]["name"],
            "pod": shop.pods("plain")[0]["metadata"]["name"],
            "daemon": shop.pods("daemonset")[0]["metadata"]["name"],
            "stateful": shop.pods("statefulset")[0]["metadata"]["name"],
        }
        stage = Stage(shop, api_of(kubeconfig), controller, names)
        stage.wait_held()
        yield stage
