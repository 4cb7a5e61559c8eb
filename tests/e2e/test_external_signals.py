"""What others say beside taints and conditions: Events about nodes, an autoscaler that cannot grow."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.support.external_signals import REPLICAS, SURGE, Say, one_a_node
from lab.fixtures.controller import Controller
from lab.fixtures.shop import Shop
from lab.sandbox import Sandbox
from lab.sandbox.fleet import Fleet
from lab.sandbox.machines import Notice
from splitter.bundled import bundled_path

pytestmark = pytest.mark.e2e

ASKED = {"splitter.io/on-demand-base": "1"}
OPTIONAL_RIGHTS = (
    ("rolebinding", "splitter-events", "default"),
    ("rolebinding", "splitter-autoscaler-status", "kube-system"),
    ("rolebinding", "splitter-template-sets", "splitter-system"),
)


@pytest.fixture
def busy(shop: Shop) -> str:
    """Split 4 replicas into 1 + 3, and return the spot node that holds the most of them."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    nodes = [node for node in shop.nodes() if node.startswith("spot")]
    return max(nodes, key=nodes.count)


@pytest.fixture
def say(sandbox: Sandbox) -> Iterator[Say]:
    """Yield a cloud's voice; what it said is forgotten afterwards."""
    cloud = Say(sandbox)
    yield cloud
    cloud.take_back()


@pytest.fixture
def claims(sandbox: Sandbox, controller: Controller) -> Iterator[str]:
    """Yield the path of Karpenter's NodeClaims, which the controller follows; there is no Karpenter."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    kind = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodeclaims.karpenter.sh"},
        "spec": {
            "group": "karpenter.sh",
            "scope": "Cluster",
            "names": {"kind": "NodeClaim", "plural": "nodeclaims"},
            "versions": [version],
        },
    }
    sandbox.kubectl("apply", "-f", "-", stdin=json.dumps(kind))
    sandbox.kubectl("wait", "--for=condition=Established", "crd/nodeclaims.karpenter.sh")
    controller.stop()
    controller.start()
    yield "/apis/karpenter.sh/v1/nodeclaims"
    sandbox.kubectl("delete", "crd", "nodeclaims.karpenter.sh")


def test_a_machine_that_was_never_asked_for_is_not_missed(
    shop: Shop, sandbox: Sandbox, say: Say, claims: str
) -> None:
    """An invented NodeClaim says nothing about spot, whatever words; one that Karpenter made does."""
    calm = {**ASKED, "splitter.io/grace": "1h"}
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=calm, template=one_a_node())
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    shop.scale(8)
    shop.until(lambda: shop.twins() == (1, 7), "seven to be asked of spot, which has four machines")
    say.refused("invented", "7e6d0c9e-0000-4000-8000-000000000000")
    shop.scale(9)
    shop.until(lambda: shop.twins() == (1, 8), "one more to be asked of spot")
    shop.wait_posted()
    assert shop.events("SpotBlocked") == []
    wanted = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    claim: dict[str, Any] = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}
    claim |= {"metadata": {"name": "spot-x1"}, "spec": {"requirements": [wanted]}}
    made = sandbox.api.create(claims, claim)
    sandbox.api.delete(f"{claims}/spot-x1")
    say.refused("spot-x1", made["metadata"]["uid"])
    shop.until(lambda: shop.twins() == (5, 5), "cover for four, and one probe")
    shop.reported("SpotBlocked", "Karpenter finds no spot machine")
    say.take_back()
    shop.scale(REPLICAS)
    shop.wait_split(on_demand=1, spot=3)


@pytest.fixture
def poor(sandbox: Sandbox, controller: Controller) -> Iterator[Controller]:
    """Yield the controller, started without the optional rights; afterwards it has them again."""
    for kind, name, namespace in OPTIONAL_RIGHTS:
        sandbox.kubectl("delete", kind, name, "--namespace", namespace)
    controller.stop()
    controller.start()
    yield controller
    sandbox.kubectl("apply", "-f", str(bundled_path("manifests") / "rbac.yaml"))
    controller.stop()
    controller.start()


def done_without(controller: Controller) -> list[str]:
    """Return what it has said, since its start, about what it does without."""
    said = controller.said().rsplit("connected to Kubernetes", 1)[-1]
    return [line for line in said.splitlines() if "not there or not allowed (403)" in line]


def test_the_rights_are_optional(shop: Shop, fleet: Fleet, poor: Controller) -> None:
    """Without them it starts, says once what it does without, and goes by taints and conditions."""
    shop.until(lambda: len(done_without(poor)) == 4, "the word about each of the four")
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    busy = next(node for node in shop.nodes() if node.startswith("spot"))
    with shop.watch() as watched:
        fleet.notice(busy, Notice.TAINT)
        shop.until(lambda: shop.available_off(busy) >= REPLICAS, f"{REPLICAS} replicas beside {busy}")
        assert watched.lowest() >= REPLICAS
    refused = done_without(poor)
    assert len(refused) == 4
    assert all("INFO" in line for line in refused)
