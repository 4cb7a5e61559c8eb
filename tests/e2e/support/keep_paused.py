"""The optional policy that keeps split workloads paused, and clients that write the whole of one."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from e2e.support.admission import steadily
from e2e.support.appliers import server_side, wanted
from lab.fixtures.shop import LABEL, JsonObject, Shop
from lab.sandbox import PatchKind
from splitter.bundled import bundled_path

FILE = str(bundled_path("manifests/admission/keep-paused.yaml"))
MARK, SAVED = "splitter.io/taken-over", "splitter.io/replicas"

Write = Callable[[Shop, JsonObject], object]


def path_of(shop: Shop, name: str = "web", kind: str = "deployments") -> str:
    """Return where a workload is."""
    return f"/apis/apps/v1/namespaces/{shop.namespace}/{kind}/{name}"


def would_be(shop: Shop, body: JsonObject, name: str = "web", *, manager: str = "user") -> JsonObject:
    """Return what a merge patch would make of a Deployment, in a dry run."""
    query = {"dryRun": "All", "fieldManager": manager}
    path, kind = path_of(shop, name), PatchKind.MERGE
    return shop.sandbox.api.request("PATCH", path, query=query, body=body, content_type=kind)


RESUMED: JsonObject = {"spec": {"paused": None}, "metadata": {"annotations": {MARK: None}}}


@contextmanager
def in_force(shop: Shop, acts: Callable[[], bool]) -> Iterator[None]:
    """Have the policy in force while `acts` says so, a dry run."""
    shop.kubectl("apply", "-f", FILE)
    try:
        shop.until(lambda: steadily(acts), "the policy to be in force")
        yield
    finally:
        shop.kubectl("delete", "-f", FILE, "--ignore-not-found")


def keeps(shop: Shop, name: str = "web") -> bool:
    """Whether a split Deployment would stay paused."""
    return would_be(shop, RESUMED, name)["spec"].get("paused") is True


def put(shop: Shop, body: JsonObject, *, manager: str = "replacing") -> JsonObject:
    """Write a whole object, as clients do that know nothing of what others have added."""
    kind = f"{body['kind'].lower()}s"
    path = path_of(shop, body["metadata"]["name"], kind)
    return shop.sandbox.api.request("PUT", path, query={"fieldManager": manager}, body=body)


def labelled(**more: str) -> JsonObject:
    """Return the manifest that asks for the split itself."""
    made = wanted(**more)
    made["metadata"]["labels"][LABEL] = "enabled"
    return made


def unpaused(made: JsonObject) -> JsonObject:
    """Return a manifest that says `paused: false`."""
    return {**made, "spec": {**made["spec"], "paused": False}}


def as_karmada(shop: Shop, made: JsonObject) -> None:
    """Write the whole template with the annotations that others have added, as Karmada does."""
    there = shop.deployment()["metadata"]
    metadata = {**made["metadata"], "resourceVersion": there["resourceVersion"]}
    kept = {**there["annotations"], **made["metadata"]["annotations"]}
    labels = {**made["metadata"]["labels"], "karmada.io/managed": "true"}
    put(shop, {**made, "metadata": {**metadata, "annotations": kept, "labels": labels}}, manager="karmada")


WRITERS: dict[str, Write] = {
    "kubectl rollout resume": lambda shop, _: shop.kubectl("rollout", "resume", "deployment/web"),
    "kubectl replace": lambda shop, made: shop.kubectl("replace", "-f", "-", stdin=json.dumps(made)),
    "Karmada": as_karmada,
    "a forced apply": lambda shop, made: server_side(shop, unpaused(made)),
    "kubectl apply": lambda shop, made: shop.kubectl("apply", "-f", "-", stdin=json.dumps(unpaused(made))),
    "nothing but the mark": lambda shop, _: shop.kubectl("annotate", "deployment/web", f"{MARK}-"),
}


def autoscaler(least: int, most: int) -> JsonObject:
    """Return an autoscaler of `web`, which has no metrics, and raises to its least count all the same."""
    target = {"type": "Utilization", "averageUtilization": 50}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }
    api = "autoscaling/v2"
    return {"apiVersion": api, "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": spec}
