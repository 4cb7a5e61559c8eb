"""A full life of workloads uses each right that manifests/rbac.yaml gives, and asks for no other.

Every request is seen at the gateway. So a right that is taken out of the file is one that was used here, and
one that nobody uses any more is found; what this life has no use for is in `ELSEWHERE`, with the reason.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

import pytest

from e2e.support.template_sets import TemplateSet
from lab.checkout import MANIFESTS
from lab.fixtures.controller import SHORT, Controller
from lab.fixtures.database import Database
from lab.fixtures.gateway import Gateway, Request
from lab.fixtures.namespaces import open_shop, wait_alone
from lab.fixtures.placed import CLAIM, POLICY, Placed, needs_placement, volume
from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox import Sandbox
from lab.sandbox.fleet import Fleet
from lab.sandbox.machines import Notice
from rbac import Right, rules

pytestmark = pytest.mark.e2e

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2
COST = "controller.kubernetes.io/pod-deletion-cost"
GOOD, BAD, MENDED = "web:1", "web:bad", "web:2"

# Not used here, and why it is given all the same.
AGAIN = "said again after a minute: tests/reconciler/test_events.py"
ELSEWHERE = {
    Right("", "karpenter.sh", "nodeclaims", "watch"): "test_karpenter.py has a Karpenter",
    Right("", "events.k8s.io", "events", "patch"): AGAIN,
    Right("splitter-system", "events.k8s.io", "events", "patch"): AGAIN,
}

# Given by a file of its own: what Karmada reads of a source needs it, and nothing else does.
SOURCE_STATUS = MANIFESTS / "source-status.yaml"
UNSAID = "without the condition splitter.io/Available"

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v[^/]+"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[a-z]))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[a-z]+))?)?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def rights_of(request: Request) -> set[Right]:
    """Return what the API server authorises for a request; nothing for what everybody may ask."""
    match = _PATH.fullmatch(request.path)
    if match is None:
        return set()
    resource = "/".join(part for part in (match["resource"], match["sub"]) if part)
    read = "watch" if request.watches else "get" if match["name"] else "list"
    verbs = {_VERBS.get(request.method, read)}
    if request.method == "PATCH" and request.status == HTTPStatus.CREATED:
        verbs.add("create")  # an apply of what was not there
    return {Right(match["namespace"] or "", match["group"] or "", resource, verb) for verb in verbs}


@dataclass(frozen=True, slots=True)
class Seen:
    """A controller behind a gateway, and a namespace."""

    shop: Shop
    gateway: Gateway
    controller: Controller

    @property
    def used(self) -> set[Right]:
        """Return what was asked for so far."""
        return {right for request in self.gateway.requests for right in rights_of(request)}


@pytest.fixture
def seen(
    sandbox: Sandbox, controller: Controller, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Seen]:
    """Yield a controller of the test's own whose requests are all seen; the shared one rests meanwhile."""
    assert fleet.names("spot")
    home = tmp_path_factory.mktemp("seen")
    account = sandbox.service_account_kubeconfig("splitter-system", "splitter")
    wait_alone(sandbox)
    controller.stop()
    with Gateway(account) as gateway:
        sandbox.kubectl("delete", "lease", "splitter", "-n", "splitter-system", "--ignore-not-found")
        settings = {**SHORT, "LEADER_ELECTION": "on", "RESYNC_S": "10"}
        own = Controller(gateway.kubeconfig(home / "kubeconfig"), home, settings)
        try:
            own.start()
            for shop in open_shop(sandbox, own):
                yield Seen(shop, gateway, own)
        finally:
            own.end()
            controller.start()


def live(seen: Seen, fleet: Fleet) -> None:
    """Take a workload over, lose its spot nodes while its new image is broken, mend it, give it back."""
    shop, spot = seen.shop, fleet.names("spot")
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED, image="web:0")
    shop.set_image(GOOD)
    shop.wait_rolled_out()
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    shop.kubectl(
        "patch", "deployment", "web", "--type=merge", "--patch", '{"spec": {"revisionHistoryLimit": 0}}'
    )
    shop.until(lambda: len(shop.replica_sets()) == 1, "the revision before the last to go")
    fleet.notice(busy := next(node for node in shop.nodes() if node in spot), Notice.TAINT)
    # By what was written: who is marked is let go soon, and nobody else is marked after that.
    shop.until(
        lambda: any(write.kind == "pods" and COST in write.body for write in seen.gateway.writes),
        "the doomed ones to be marked",
    )
    fleet.withdraw(busy)
    shop.wait_split(on_demand=1, spot=3)
    shop.set_image(BAD)
    shop.until(lambda: BAD in {image(pod) for pod in shop.pods()}, "the broken roll")
    fleet.kill(spot)
    shop.until(lambda: shop.shape().on_demand == REPLICAS, "the last good template on on-demand")
    shop.until(lambda: shop.bound_to_vanished() == 0, "the pods of the vanished nodes to go")
    shop.set_image(MENDED)
    fleet.restore(spot)
    shop.wait_split(on_demand=1, spot=3)
    budgets = f"/apis/policy/v1/namespaces/{shop.namespace}/poddisruptionbudgets"
    shop.until(lambda: shop.sandbox.api.list(budgets), "the guard")
    shop.annotate(evictions="unguarded")
    shop.until(lambda: not shop.sandbox.api.list(budgets), "the guard to go")
    shop.unlabel()
    shop.wait_given_back()


def live_as_database(database: Database, fleet: Fleet) -> None:
    """The same life for a StatefulSet."""
    spot = fleet.names("spot")
    database.deploy(5)
    database.label()
    database.wait_split(on_demand=3, spot=2)
    database.patch(json.dumps(with_image("db:bad")))
    database.shop.until(lambda: "db:bad" in database.images(), "the broken roll")
    fleet.kill(spot)
    database.shop.until(
        lambda: database.shop.bound_to_vanished() == 0, "the pods of the vanished nodes to go"
    )
    database.patch(json.dumps(with_image("db:2")))
    fleet.restore(spot)
    database.wait_split(on_demand=3, spot=2)
    database.unlabel()
    database.wait_given_back()


def live_as_placed(seen: Seen, fleet: Fleet) -> None:
    """And of one that is placed, with volumes: moved, lost, moved back, let go."""
    shop, db = seen.shop, Placed(seen.shop)
    shop.kubectl("delete", "statefulset", "db")
    named = [volume(shop, ordinal, None) for ordinal in range(5)]
    shop.sandbox.kubectl("apply", "-f", POLICY)
    try:
        db.create(5, volumeClaimTemplates=[CLAIM])
        db.label()
        db.wait_placed([0, 1, 2], [3, 4])
        fleet.notice(fleet.names("spot"))
        db.wait_placed([0, 1, 2, 3, 4], [])
        fleet.withdraw(fleet.names("spot"))
        db.wait_placed([0, 1, 2], [3, 4])
        db.unlabel()
        db.wait_unplaced()
    finally:
        shop.sandbox.kubectl("delete", "-f", POLICY)
        shop.kubectl("delete", "persistentvolume", "--wait=false", *named)


def with_image(image: str) -> JsonObject:
    """Return a patch of the database's image."""
    containers = [
        {"name": "db", "image": image, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    ]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def image(pod: JsonObject) -> str:
    """Return the image of a pod's first container."""
    name: str = pod["spec"]["containers"][0]["image"]
    return name


def with_a_claim(shop: Shop) -> None:
    """Label a workload that mounts a volume which only one node may mount: it is refused."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    shop.apply(claim)
    shop.deploy("disk", replicas=0)
    volume = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
    patch = [{"op": "add", "path": "/spec/template/spec/volumes", "value": [volume]}]
    shop.kubectl("patch", "deployment", "disk", "--type=json", "--patch", json.dumps(patch))
    shop.label("disk")
    shop.until(lambda: shop.status("disk").get("state") == "Refused", "the refusal")


def with_a_broken_set(shop: Shop) -> None:
    """Write a template set that cannot be read: its author is told by an Event."""
    broken = TemplateSet(shop, f"{shop.namespace}-set")
    broken.write("{{ nonsense")
    try:
        shop.until(broken.events, "the Event on the ConfigMap")
    finally:
        broken.delete()


@needs_placement
def test_each_right_is_used_and_no_other(seen: Seen, fleet: Fleet) -> None:
    """What a life asks for is what rbac.yaml gives: nothing is missing from it, nothing in it is idle."""
    live(seen, fleet)
    live_as_database(Database(seen.shop), fleet)
    live_as_placed(seen, fleet)
    with_a_claim(seen.shop)
    with_a_broken_set(seen.shop)
    given = {right for rule in rules() for right in rule.rights}
    used = {right: {right, right._replace(namespace="")} & given for right in seen.used}
    assert not {request for request in seen.gateway.requests if request.status == HTTPStatus.FORBIDDEN}
    assert not {right for right, covering in used.items() if not covering}
    assert given - set().union(*used.values()) <= set(ELSEWHERE)
    assert set(ELSEWHERE) <= given


def available(shop: Shop) -> str | None:
    """Return the status of the source's condition; None without one."""
    source = shop.sandbox.api.get(f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/web")
    conditions = source.get("status", {}).get("conditions") or []
    return next((one["status"] for one in conditions if one["type"] == "splitter.io/Available"), None)


def test_a_right_on_request(seen: Seen, fleet: Fleet) -> None:
    """Without it Karmada's workload is divided, and the log says so once; with it there is a condition."""
    shop, optional = seen.shop, Right("", "apps", "deployments/status", "patch")
    assert optional in {right for rule in rules("source-status.yaml") for right in rule.rights}
    assert fleet.names("spot")
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.kubectl("label", "deployment", "web", "karmada.io/managed=true")
    shop.label()
    shop.wait_split(on_demand=1, spot=3)

    def refused() -> list[Request]:
        return [one for one in seen.gateway.requests if one.status == HTTPStatus.FORBIDDEN]

    shop.until(refused, "the refusal")
    rights = {right for one in refused() for right in rights_of(one)}
    assert {right._replace(namespace="") for right in rights} == {optional}
    assert seen.controller.said().count(UNSAID) == 1
    assert available(shop) is None
    shop.sandbox.kubectl("apply", "-f", str(SOURCE_STATUS))
    try:
        shop.until(lambda: available(shop) == "True", "the condition")
        shop.unlabel()
        shop.wait_given_back()
        assert available(shop) is None
    finally:
        shop.sandbox.kubectl("delete", "-f", str(SOURCE_STATUS))
    assert seen.controller.said().count(UNSAID) == 1
