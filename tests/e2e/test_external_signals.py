"""What others say beside taints and conditions: Events about nodes, an autoscaler that cannot grow."""

from collections.abc import Iterator

import pytest

from e2e.support.external_signals import REPLICAS, SURGE
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
