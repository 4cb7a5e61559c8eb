"""splitter's own account tries to break out: it may do everything here, and the policy alone holds it.

The account is bound to cluster-admin in the namespace of this test, so that no missing right answers in the
policy's place. That it may do what it has to is shown by all the other end-to-end tests: each runs under
this policy (`e2e.support.controller.install`).
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from e2e.support.account import api_of
from e2e.support.admission import checked, steadily
from e2e.support.controller import Controller
from e2e.support.namespaces import open_shop
from e2e.support.shop import DEADLINE_S, JsonObject, Shop, manifest
from splitter.bundled import bundled_path
from splitter.sandbox import Api, ApiError, PatchKind, Sandbox
from splitter.sandbox.fleet import Fleet
from splitter.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e

POLICY = "splitter-own-account"
ACCOUNT = "system:serviceaccount:splitter-system:splitter"
CREATES_TWINS = "creates twins only"
DELETES_TWINS = "deletes twins only"
OWN_WORKLOADS = "changes only its twins"
OF_A_SOURCE = "changes of a source only the mark splitter.io/taken-over and the pause"
TWIN_STAYS = "leaves a twin its labels and its controller"
WAY_BACK = "creates ReplicaSets only that adopt pods for the Deployment that controls them"
DELETES_PARKED = "deletes ReplicaSets only that have no replicas"
CHANGES_SETS = "changes only ReplicaSets that a Deployment controls or that are parked"
SCALES_PARKED = "scales parked ReplicaSets only"
PARKS = "parks a ReplicaSet by taking labels off"
GIVES_BACK = "gives a parked ReplicaSet labels back"
EVICTS_THIS = "evicts pods with their UID only"
ONLY_COST = "changes the deletion cost of a pod and the labels splitter.io/pool and splitter.io/source"
DELETES_PODS = "deletes only its placeholders, pods that stand on a node"
BUDGETS = "writes and deletes PodDisruptionBudgets only that a Split controls"
OWNED_SPLITS = "writes a Split only as a part of the source"


@dataclass(slots=True)
class Stage:
    """A namespace with one split workload, others, and the account that would like to."""

    shop: Shop
    account: Api
    controller: Controller
    names: dict[str, str] = field(default_factory=dict)

    def path(self, kind: str, name: str = "") -> str:
        """Return where objects of a kind are; `{parked}` and the like stand for names found."""
        group = {
            "pods": "/api/v1",
            "splits": "/apis/splitter.io/v1alpha1",
            "poddisruptionbudgets": "/apis/policy/v1",
        }.get(kind, "/apis/apps/v1")
        home = f"{group}/namespaces/{self.shop.namespace}/{kind}"
        return f"{home}/{name.format(**self.names)}" if name else home

    def read(self, kind: str, name: str) -> JsonObject:
        """Return an object as it is."""
        return self.shop.sandbox.api.get(self.path(kind, name))

    def create(self, kind: str, body: JsonObject) -> None:
        """Try to create."""
        self.account.request("POST", self.path(kind), body=body, query={"dryRun": "All"})

    def patch(self, kind: str, name: str, body: object, how: PatchKind = PatchKind.MERGE) -> None:
        """Try to patch."""
        query = {"dryRun": "All", "fieldManager": "splitter"}
        self.account.request("PATCH", self.path(kind, name), body=body, query=query, content_type=how)

    def patch_for_good(self, kind: str, name: str, body: object, how: PatchKind = PatchKind.MERGE) -> None:
        """Try to patch, and not in a dry run."""
        query = {"fieldManager": "splitter"}
        self.account.request("PATCH", self.path(kind, name), body=body, query=query, content_type=how)

    def put(self, kind: str, name: str, body: JsonObject) -> None:
        """Try to replace."""
        self.account.request("PUT", self.path(kind, name), body=body, query={"dryRun": "All"})

    def evict(self, name: str, **options: object) -> None:
        """Try to evict a pod."""
        made = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name.format(**self.names)},
        }
        path = f"{self.path('pods', name)}/eviction"
        self.account.request("POST", path, body={**made, **options}, query={"dryRun": "All"})

    def delete(self, kind: str, name: str, **options: object) -> None:
        """Try to delete; with the object's UID unless told otherwise."""
        asked = {"preconditions": {"uid": self.read(kind, name)["metadata"]["uid"]}, **options}
        body = {key: value for key, value in asked.items() if value is not None}
        self.account.request("DELETE", self.path(kind, name), body={**body, "dryRun": ["All"]})

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Keep splitter itself from mending anything meanwhile."""
        self.controller.stop()
        yield
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


@pytest.fixture(scope="module")
def stage(sandbox: Sandbox, controller: Controller, kubeconfig: Path, machines: Fleet) -> Iterator[Stage]:
    """Yield `web`, split; `plain`, a StatefulSet, a DaemonSet and a bare pod, which are nobody's business."""
    assert machines.names("spot")
    for shop in open_shop(sandbox, controller, name="broken-out"):
        shop.kubectl("create", "rolebinding", "all", "--clusterrole=cluster-admin", f"--user={ACCOUNT}")
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
        shop.apply({**bare, "metadata": {"name": "mirror"}})
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


STRATEGIC = PatchKind.STRATEGIC
ATTEMPTS: dict[str, tuple[str, Callable[[Stage], object]]] = {
    # --- Deployments and StatefulSets that are nobody's business ---
    "create a workload": (CREATES_TWINS, lambda s: s.create("deployments", manifest("evil", 1))),
    "create a twin that nobody controls": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("web", "web-spot-2", controller=False)),
    ),
    "create a twin under another name": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("web", "evil")),
    ),
    "create a twin of a DaemonSet": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("daemonset", "daemonset-spot", kind="DaemonSet")),
    ),
    "create a twin of a path": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("../../shop/deployments/web", "web-spot")),
    ),
    "create a twin of a StatefulSet of another kind": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("statefulset", "statefulset-spot", kind="StatefulSet")),
    ),
    "create a twin of an older API": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("plain", "plain-spot", apiVersion="apps/v1beta1")),
    ),
    "create a twin of somebody's API": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("plain", "plain-spot", apiVersion="apps.example/v1")),
    ),
    "apply a workload": (
        CREATES_TWINS,
        lambda s: s.patch("deployments", "evil", manifest("evil", 1), PatchKind.APPLY),
    ),
    "change an image": (OWN_WORKLOADS, lambda s: s.patch("deployments", "plain", image(), STRATEGIC)),
    "scale": (OWN_WORKLOADS, lambda s: s.patch("deployments", "plain", {"spec": {"replicas": 0}})),
    "pause": (OWN_WORKLOADS, lambda s: s.patch("deployments", "plain", {"spec": {"paused": True}})),
    "label it a source": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "plain", metadata(labels={"splitter.io/split": "enabled"})),
    ),
    "mark it taken over": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "plain", metadata(annotations={"splitter.io/taken-over": "{}"})),
    ),
    "label it a twin": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "plain", metadata(labels={"splitter.io/pool": "spot"})),
    ),
    # --- what a tenant calls a twin ---
    "change what is not called as a twin": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "copied", image(), STRATEGIC),
    ),
    "delete what is not called as a twin": (DELETES_TWINS, lambda s: s.delete("deployments", "copied")),
    "change what is called as the twin of another": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "other-spot", image(), STRATEGIC),
    ),
    "scale what is called as the twin of another": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "other-spot", {"spec": {"replicas": 3}}),
    ),
    "delete what is called as the twin of another": (
        DELETES_TWINS,
        lambda s: s.delete("deployments", "other-spot"),
    ),
    "change a Deployment that is a StatefulSet's": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "statefulset-spot", image(), STRATEGIC),
    ),
    "delete a Deployment that is a StatefulSet's": (
        DELETES_TWINS,
        lambda s: s.delete("deployments", "statefulset-spot"),
    ),
    "delete it": (DELETES_TWINS, lambda s: s.delete("deployments", "plain")),
    "change a StatefulSet's image": (
        OWN_WORKLOADS,
        lambda s: s.patch("statefulsets", "statefulset", image(), STRATEGIC),
    ),
    "scale a StatefulSet": (
        OWN_WORKLOADS,
        lambda s: s.patch("statefulsets", "statefulset", {"spec": {"replicas": 0}}),
    ),
    "delete a StatefulSet": (DELETES_TWINS, lambda s: s.delete("statefulsets", "statefulset")),
    # --- a source ---
    "delete a source": (DELETES_TWINS, lambda s: s.delete("deployments", "web")),
    "change a source's image": (OF_A_SOURCE, lambda s: s.patch("deployments", "web", image(), STRATEGIC)),
    "scale a source": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", {"spec": {"replicas": 0}}),
    ),
    "change a source's strategy": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", {"spec": {"strategy": None, "minReadySeconds": 9}}),
    ),
    "change a source's labels": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", metadata(labels={"splitter.io/split": None})),
    ),
    "change a source's annotations": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", metadata(annotations={"splitter.io/spot-max": "9"})),
    ),
    "put a finalizer on a source": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", metadata(finalizers=["splitter.io/keep"])),
    ),
    "save a Deployment's count": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", metadata(annotations={"splitter.io/replicas": "4"})),
    ),
    "give a source an owner": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", metadata(ownerReferences=[_owner("plain")])),
    ),
    "replace a source": (
        OF_A_SOURCE,
        lambda s: s.put("deployments", "web", {**manifest("web", 4), "metadata": _same(s, "web")}),
    ),
    # --- a twin ---
    "take a twin's label": (
        TWIN_STAYS,
        lambda s: s.patch("deployments", "web-spot", metadata(labels={"splitter.io/split": None})),
    ),
    "turn a twin into the other": (
        TWIN_STAYS,
        lambda s: s.patch("deployments", "web-spot", metadata(labels={"splitter.io/pool": "on-demand"})),
    ),
    "take a twin's controller": (
        TWIN_STAYS,
        lambda s: s.patch("deployments", "web-spot", metadata(ownerReferences=None)),
    ),
    "give a twin another controller": (
        TWIN_STAYS,
        lambda s: s.patch("deployments", "web-spot", metadata(ownerReferences=[_owner("plain")])),
    ),
    # --- ReplicaSets ---
    "create a ReplicaSet with replicas": (
        WAY_BACK,
        lambda s: s.create("replicasets", parked_like(s, replicas=1)),
    ),
    "create a ReplicaSet that is not parked": (
        WAY_BACK,
        lambda s: s.create("replicasets", parked_like(s, labels={"app": "web"})),
    ),
    "create a ReplicaSet under another name": (
        WAY_BACK,
        lambda s: s.create("replicasets", parked_like(s, name="evil")),
    ),
    "create a ReplicaSet of nobody's": (
        WAY_BACK,
        lambda s: s.create("replicasets", parked_like(s, ownerReferences=[])),
    ),
    "create a ReplicaSet of an older API": (
        WAY_BACK,
        lambda s: s.create(
            "replicasets",
            parked_like(s, ownerReferences=[{**_owner("web", "apps/v1beta1"), "controller": False}]),
        ),
    ),
    "create a ReplicaSet that adopts under another name": (
        WAY_BACK,
        lambda s: s.create("replicasets", adopting_like(s, name="evil-1")),
    ),
    "create a ReplicaSet that adopts and is called parked": (
        WAY_BACK,
        lambda s: s.create("replicasets", labelled(adopting_like(s), "parked")),
    ),
    "create a ReplicaSet that adopts and is called a twin": (
        WAY_BACK,
        lambda s: s.create("replicasets", labelled(adopting_like(s), "twin")),
    ),
    "create a ReplicaSet that adopts for a StatefulSet": (
        WAY_BACK,
        lambda s: s.create("replicasets", adopting_like(s, kind="StatefulSet")),
    ),
    "create a ReplicaSet that adopts for nobody": (
        WAY_BACK,
        lambda s: s.create("replicasets", adopting_like(s, controller=False)),
    ),
    "orphan the pods of whatever ReplicaSet": (
        DELETES_PARKED,
        lambda s: s.delete("replicasets", "{attached}", propagationPolicy="Orphan", preconditions=None),
    ),
    "orphan the pods of a ReplicaSet as it may be": (
        DELETES_PARKED,
        lambda s: s.delete("replicasets", "{attached}", propagationPolicy="Orphan"),
    ),
    "orphan the pods of nobody's ReplicaSet": (
        DELETES_PARKED,
        lambda s: s.delete("replicasets", "lone", **orphaning(s, "lone")),
    ),
    "delete a twin's ReplicaSet with its pods": (
        DELETES_PARKED,
        lambda s: s.delete("replicasets", s.names["of_twin"]),
    ),
    "create a budget of nobody's": (
        BUDGETS,
        lambda s: s.create(
            "poddisruptionbudgets",
            guarding(s, metadata={"ownerReferences": [], "labels": {"splitter.io/source": "web"}}),
        ),
    ),
    "create a budget of another name": (
        BUDGETS,
        lambda s: s.create("poddisruptionbudgets", guarding(s, metadata={"name": "blocking"})),
    ),
    "create a budget of all pods": (
        BUDGETS,
        lambda s: s.create("poddisruptionbudgets", guarding(s, spec={"selector": {}})),
    ),
    "change a user's budget": (
        BUDGETS,
        lambda s: s.patch("poddisruptionbudgets", "users", {"spec": {"maxUnavailable": 2}}),
    ),
    "delete a user's budget": (BUDGETS, lambda s: s.delete("poddisruptionbudgets", "users")),
    "delete a ReplicaSet": (DELETES_PARKED, lambda s: s.delete("replicasets", "{attached}")),
    "delete a ReplicaSet of nobody's": (DELETES_PARKED, lambda s: s.delete("replicasets", "lone")),
    "park a ReplicaSet of nobody's": (
        CHANGES_SETS,
        lambda s: s.patch("replicasets", "lone", metadata(labels={"splitter.io/split": "parked"})),
    ),
    "change a ReplicaSet's image": (
        CHANGES_SETS,
        lambda s: s.patch("replicasets", "{attached}", image(), STRATEGIC),
    ),
    "change a parked ReplicaSet's image": (
        CHANGES_SETS,
        lambda s: s.patch("replicasets", "{parked}", image(), STRATEGIC),
    ),
    "annotate a ReplicaSet": (
        CHANGES_SETS,
        lambda s: s.patch(
            "replicasets",
            "{attached}",
            metadata(annotations={"deployment.kubernetes.io/revision": "9"}),
        ),
    ),
    "scale a ReplicaSet": (
        SCALES_PARKED,
        lambda s: s.patch("replicasets", "{attached}", {"spec": {"replicas": 0}}),
    ),
    "relabel a ReplicaSet": (
        PARKS,
        lambda s: s.patch("replicasets", "{attached}", metadata(labels={"app": "evil"})),
    ),
    "take a ReplicaSet from its Deployment": (
        PARKS,
        lambda s: s.patch(
            "replicasets",
            "{attached}",
            metadata(ownerReferences=None, labels={"splitter.io/split": "parked"}),
        ),
    ),
    "give a parked ReplicaSet a controller": (
        GIVES_BACK,
        lambda s: s.patch("replicasets", "{parked}", metadata(ownerReferences=[_owner("plain")])),
    ),
    "give a parked ReplicaSet other labels": (
        GIVES_BACK,
        lambda s: s.patch("replicasets", "{parked}", metadata(labels={"app": "evil"})),
    ),
    # --- pods ---
    "evict a pod under whatever UID": (EVICTS_THIS, lambda s: s.evict("{pod}")),
    "change a pod's image": (
        ONLY_COST,
        lambda s: s.patch(
            "pods", "{pod}", {"spec": {"containers": [{"name": "web", "image": "evil:1"}]}}, STRATEGIC
        ),
    ),
    "relabel a pod": (ONLY_COST, lambda s: s.patch("pods", "{pod}", metadata(labels={"app": None}))),
    "change a pod's hash": (
        ONLY_COST,
        lambda s: s.patch("pods", "{pod}", metadata(labels={"pod-template-hash": "evil"})),
    ),
    "annotate a pod": (ONLY_COST, lambda s: s.patch("pods", "{pod}", metadata(annotations={"a": "b"}))),
    "take the owner off a pod": (
        ONLY_COST,
        lambda s: s.patch_for_good("pods", "{pod}", owner_off(s), STRATEGIC),
    ),
    "give a pod another owner in a dry run": (
        ONLY_COST,
        lambda s: s.patch("pods", "{pod}", metadata(ownerReferences=[_owner("plain")])),
    ),
    "relabel a pod whose owner is taken off in a dry run": (
        ONLY_COST,
        lambda s: s.patch("pods", "{pod}", metadata(ownerReferences=None, labels={"app": "evil"})),
    ),
    "put a finalizer on a pod": (
        ONLY_COST,
        lambda s: s.patch("pods", "{pod}", metadata(finalizers=["splitter.io/keep"])),
    ),
    "delete a bare pod": (DELETES_PODS, lambda s: s.delete("pods", "bare")),
    "delete a DaemonSet's pod": (DELETES_PODS, lambda s: s.delete("pods", "{daemon}")),
    "delete a pod by force": (DELETES_PODS, lambda s: s.delete("pods", "{pod}", gracePeriodSeconds=0)),
    "delete a pod under whatever UID": (
        DELETES_PODS,
        lambda s: s.delete("pods", "{pod}", preconditions=None),
    ),
    # --- Splits ---
    "create a Split of nobody's": (
        OWNED_SPLITS,
        lambda s: s.create("splits", _split(s, "plain", owner="web")),
    ),
    "create a Split under another name": (
        OWNED_SPLITS,
        lambda s: s.create("splits", _split(s, "web", owner="web", name="other")),
    ),
    "create a Split of a path": (
        OWNED_SPLITS,
        lambda s: s.create("splits", _split(s, "../../shop/splits/web", owner="web", name="other")),
    ),
    "create a Split of an older API": (
        OWNED_SPLITS,
        lambda s: s.create("splits", _split(s, "plain", owner="web", name="plain", api="apps/v1beta1")),
    ),
    "take a Split from its source": (
        OWNED_SPLITS,
        lambda s: s.patch("splits", "web", metadata(ownerReferences=[_owner("plain")])),
    ),
}


def adopting_like(stage: Stage, name: str = "plain-1", **owned: object) -> JsonObject:
    """Return a ReplicaSet that would adopt the pods of `plain`, with changes of its owner."""
    raw = stage.read("replicasets", "{attached}")
    owner = {**_owner("plain"), **owned}
    named = {"name": name, "labels": raw["metadata"]["labels"], "ownerReferences": [owner]}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": named, "spec": raw["spec"]}


def owner_off(stage: Stage) -> JsonObject:
    """Return what the garbage collector sends when a ReplicaSet goes and its pods stay."""
    raw = stage.read("pods", "{pod}")["metadata"]
    [owner] = raw["ownerReferences"]
    return metadata(ownerReferences=[{"$patch": "delete", "uid": owner["uid"]}], uid=raw["uid"])


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
    """Return the budget of `web`, with changes of its metadata or its spec."""
    raw = stage.read("poddisruptionbudgets", "web-guard")
    owners = raw["metadata"]["ownerReferences"]
    named = {"name": "new-guard", "ownerReferences": owners, **changed.get("metadata", {})}
    spec = {**raw["spec"], **changed.get("spec", {})}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": named, "spec": spec}


def _owner(name: str, api: str = "apps/v1") -> JsonObject:
    return {"apiVersion": api, "kind": "Deployment", "name": name, "uid": "u", "controller": True}


def _placeholder(stage: Stage) -> JsonObject:
    split = stage.read("splits", "web")
    owner = {
        "apiVersion": split["apiVersion"],
        "kind": "Split",
        "name": "web",
        "uid": split["metadata"]["uid"],
        "controller": True,
    }
    named = {"name": "held", "labels": {"splitter.io/placeholder": "spot"}, "ownerReferences": [owner]}
    made = {"containers": [{"name": "a", "image": "i"}], "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": made}


def _same(stage: Stage, name: str) -> JsonObject:
    raw = stage.read("deployments", name)["metadata"]
    return {key: raw[key] for key in ("name", "namespace", "uid", "resourceVersion", "labels")}


def _split(stage: Stage, source: str, owner: str, name: str = "", api: str = "apps/v1") -> JsonObject:
    split = stage.read("splits", owner)
    of: JsonObject = {"apiVersion": api, "kind": "Deployment", "name": source}
    owners = [{**one, "apiVersion": api} for one in split["metadata"]["ownerReferences"]]
    if name:  # one that says all alike
        owners = [{**one, "name": source} for one in owners]
    named = {"name": name or source, "ownerReferences": owners}
    return {"apiVersion": split["apiVersion"], "kind": "Split", "metadata": named, "spec": {"source": of}}


class TestAttempts:
    @pytest.mark.parametrize("what", ATTEMPTS)
    def test_is_refused(self, stage: Stage, what: str) -> None:
        """What is none of splitter's business is refused, with a sentence that says what it may do."""
        words, attempt = ATTEMPTS[what]
        assert words in stage.refusal(attempt)

    def test_somebody_else_may(self, stage: Stage) -> None:
        """The policy is about splitter's account only: an administrator may do all of it."""
        stage.shop.kubectl("scale", "deployment", "plain", "--replicas=1", "--dry-run=server")
        stage.shop.kubectl("delete", "pod", "bare", "--dry-run=server", "--force")
        stage.shop.apply({**manifest("mine", 0), "metadata": {"name": "mine"}})

    def test_what_it_has_to_do(self, stage: Stage) -> None:
        """The same verbs on the same objects go through where they are what splitter does."""
        cost = {"controller.kubernetes.io/pod-deletion-cost": "-1000", "splitter.io/deletion-cost-before": ""}
        stage.patch("pods", "{pod}", metadata(annotations=cost))
        stage.delete("pods", "{pod}")
        stage.delete("pods", "{stateful}", gracePeriodSeconds=0)
        stage.patch("deployments", "web", {"spec": {"paused": None}})
        stage.patch("deployments", "web", metadata(annotations={"splitter.io/taken-over": None}))
        stage.patch("replicasets", "{parked}", {"spec": {"replicas": 2}})
        labels: JsonObject = {"splitter.io/pool": "spot", "splitter.io/source": "plain"}
        stage.patch("pods", "{pod}", metadata(labels=labels))
        stage.patch("pods", "{pod}", metadata(labels=dict.fromkeys(labels)))
        retried: JsonObject = {"splitter.io/retried": "2026-01-05T10:00:00+00:00"}
        stage.patch("replicasets", "{attached}", metadata(annotations=retried))
        stage.delete("replicasets", "{attached}", **orphaning(stage, "{attached}"))
        stage.patch("pods", "{pod}", owner_off(stage), STRATEGIC)
        stage.create("replicasets", adopting_like(stage))
        stage.create("replicasets", labelled(adopting_like(stage), "enabled"))  # as its template has it
        stage.patch("deployments", "web-spot", {"spec": {"paused": True}})
        stage.create("replicasets", parked_like(stage))
        stage.create("pods", _placeholder(stage))
        uid = stage.read("pods", "{pod}")["metadata"]["uid"]
        stage.evict("{pod}", deleteOptions={"preconditions": {"uid": uid}, "dryRun": ["All"]})
        stage.create("poddisruptionbudgets", guarding(stage))
        stage.patch("poddisruptionbudgets", "web-guard", {"spec": {"minAvailable": 4}})
        stage.delete("poddisruptionbudgets", "web-guard")
        stage.delete("replicasets", "{parked}")
        stage.patch("deployments", "web-spot", {"spec": {"replicas": 4}})
        stage.patch("deployments", "web-spot", image(), STRATEGIC)
        stage.delete("deployments", "web-spot")

    def test_what_it_has_to_do_with_a_twin_that_was_robbed(self, stage: Stage) -> None:
        """A twin that somebody has taken its labels and its owner from is scaled, written whole, deleted."""
        path = stage.path("deployments", "web-spot")
        raw = stage.read("deployments", "web-spot")
        stolen = metadata(
            labels={"splitter.io/split": None, "splitter.io/source": None}, ownerReferences=None
        )
        with stage.resting():
            stage.shop.sandbox.api.patch(path, stolen)
            stage.patch("deployments", "web-spot", {"spec": {"replicas": 4}})
            given = metadata(
                labels=raw["metadata"]["labels"], ownerReferences=raw["metadata"]["ownerReferences"]
            )
            stage.patch("deployments", "web-spot", given)
            stage.delete("deployments", "web-spot")

    def test_what_it_has_to_do_with_a_guard_that_lost_its_owner(self, stage: Stage) -> None:
        """One out of a backup, or orphaned with its Split, is written and deleted by its label."""
        path = stage.path("poddisruptionbudgets", "web-guard")
        owners = stage.read("poddisruptionbudgets", "web-guard")["metadata"]["ownerReferences"]
        owned = metadata(ownerReferences=owners)
        with stage.resting():
            stage.shop.sandbox.api.patch(path, metadata(ownerReferences=None))
            stage.patch("poddisruptionbudgets", "web-guard", {**owned, "spec": {"minAvailable": 4}})
            stage.delete("poddisruptionbudgets", "web-guard")
            stage.shop.sandbox.api.patch(path, metadata(labels={"splitter.io/source": None}))
            assert BUDGETS in stage.refusal(lambda s: s.patch("poddisruptionbudgets", "web-guard", owned))
            assert BUDGETS in stage.refusal(lambda s: s.delete("poddisruptionbudgets", "web-guard"))
            stage.shop.sandbox.api.patch(path, metadata(labels={"splitter.io/source": "web"}))

    def test_a_source_as_large_as_they_get(self, stage: Stage) -> None:
        """A template of almost a megabyte is compared within what an expression may cost."""
        body = manifest("huge", 0, labels={"splitter.io/split": "nonsense"})
        [container] = body["spec"]["template"]["spec"]["containers"]
        container["env"] = [{"name": f"V{number}", "value": "x" * 900} for number in range(1000)]
        stage.shop.sandbox.api.create(stage.path("deployments"), body)
        stage.patch("deployments", "huge", {"spec": {"paused": True}})
        container["env"][999]["value"] = "y"
        assert OF_A_SOURCE in stage.refusal(lambda one: one.patch("deployments", "huge", body, STRATEGIC))


class TestThePolicy:
    def test_has_no_mistake_of_types(self, stage: Stage) -> None:
        """The API server finds nothing to complain about in its expressions."""
        status = checked(stage.shop.sandbox, POLICY)["status"]
        assert "expressionWarnings" not in json.dumps(status)

    def test_names_the_account_once(self) -> None:
        """Whoever installs elsewhere changes one line."""
        text = (bundled_path("manifests") / "admission" / "own-account.yaml").read_text()
        assert text.count("splitter-system") == 1
        assert text.count(ACCOUNT) == 1
