"""Not one request fails: real containers answer real requests while splitter does all that it does.

Other tests ask what the API server sees; here it is asked what the users of a Service see.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from e2e.support import web
from e2e.support.controller import SHORT, Controller, install
from e2e.support.namespaces import open_shop
from e2e.support.shop import Shop
from splitter.sandbox import Sandbox
from splitter.sandbox.nodes import NODES
from splitter.sandbox.real import world
from splitter.sandbox.real.fleet import RealFleet

REFUSED = world.refusal()
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(REFUSED is not None, reason=REFUSED or "")]

REPLICAS = 6
ASKED = {"splitter.io/on-demand-base": "2", "splitter.io/spot-percent": "100"}
# A busy machine answers late, and that is no fault of anybody's; where nobody is, no time is enough.
PATIENCE_S = 10


@dataclass(frozen=True)
class Stage:
    """Real machines, and a namespace that splitter looks after."""

    machines: RealFleet
    shop: Shop


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield 2 on-demand and 3 spot machines that run containers, with a controller."""
    with Sandbox.start(progress=print, real=True, node_monitor_grace_s=6) as sandbox:
        sandbox.real.add("on-demand", 2)
        sandbox.real.add("spot", 3)
        controller = Controller(install(sandbox), tmp_path_factory.mktemp("controller"), SHORT)
        try:
            controller.start()
            for shop in open_shop(sandbox, controller):
                yield Stage(sandbox.real, shop)
        finally:
            controller.end()


def test_no_request_fails(stage: Stage) -> None:
    """From the label to the end: an image change, all spot machines drained and gone, and the giving back."""
    shop, machines = stage.shop, stage.machines
    shop.apply(web.service())
    shop.apply(web.budget(REPLICAS))
    shop.deploy(replicas=REPLICAS, annotations=ASKED, template=web.template())
    with (
        machines.traffic(shop.namespace, "web", rate=60, timeout_s=PATIENCE_S) as traffic,
        shop.watch() as seen,
    ):
        shop.label()
        shop.wait_split(on_demand=2, spot=4)
        shop.kubectl("set", "image", "deployment/web", f"web={web.NEW}")
        shop.until(lambda: set(shop.images()) == {web.NEW}, "both twins to run the new image")
        shop.wait_split(on_demand=2, spot=4)
        doomed = machines.names("spot")
        machines.notice(doomed)
        _drain(shop, doomed)
        machines.kill(doomed)
        shop.until(lambda: shop.shape().on_demand == REPLICAS, "all to stand on on-demand")
        shop.unlabel()
        shop.wait_given_back()
        lowest = seen.lowest()
    requests = traffic.stop()
    assert requests.failures == ()
    assert lowest >= REPLICAS
    assert len(requests.by_way()) == 4
    assert len(requests.by_pod()) > 2 * REPLICAS  # the old ones, those of the new image, those of the notice


def test_lost_requests_are_told(stage: Stage) -> None:
    """A plain Deployment loses requests with a machine: each is seen, and its pod is named."""
    shop, machines = stage.shop, stage.machines
    doomed, other = machines.restore(machines.names("spot")[:2])
    shop.apply(web.service("plain"))
    spec = web.template("plain")
    spec["spec"]["nodeSelector"] = {"karpenter.sh/capacity-type": "spot"}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    spec["spec"]["topologySpreadConstraints"] = [
        {**spread, "labelSelector": {"matchLabels": {"app": "plain"}}}
    ]
    shop.deploy("plain", replicas=4, template=spec)
    standing = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in shop.pods("plain")}
    assert Counter(standing.values()) == {doomed: 2, other: 2}
    with machines.traffic(shop.namespace, "plain", rate=60, timeout_s=1) as traffic:
        began = machines.lose(doomed)
        shop.until(lambda: not is_ready(shop, doomed), "the Node to be NotReady")
    failures = traffic.stop().failures
    # A connection that is kept may by chance lead to the machine that lives.
    assert {"pod", "service"} <= {failure.way for failure in failures}
    assert {standing[failure.pod] for failure in failures} == {doomed}
    assert failures[0].at >= began.wall_s - 1  # one that the dying machine did not answer any more


def is_ready(shop: Shop, node: str) -> bool:
    """Whether a Node is Ready."""
    conditions = shop.sandbox.api.get(f"{NODES}/{node}")["status"]["conditions"]
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _drain(shop: Shop, names: tuple[str, ...]) -> None:
    """Drain machines at the same time, as clouds take them."""

    def drain(name: str) -> None:
        shop.kubectl("drain", name, "--ignore-daemonsets", "--timeout=90s")

    with ThreadPoolExecutor() as drains:
        list(drains.map(drain, names))
