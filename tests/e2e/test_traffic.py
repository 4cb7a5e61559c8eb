"""Not one request fails: real containers answer real requests while splitter does all that it does.

Other tests ask what the API server sees; here it is asked what the users of a Service see.
"""

from datetime import UTC, datetime

import pytest

from lab.fixtures import web
from lab.fixtures.stage import Stage, is_ready
from lab.sandbox.nodes import LEASES, NODES
from lab.sandbox.real import world

REFUSED = world.refusal()
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(REFUSED is not None, reason=REFUSED or "")]

REPLICAS = 6
ASKED = {"splitter.io/on-demand-base": "2", "splitter.io/spot-percent": "100"}
# A busy machine answers late, and that is no fault of anybody's; where nobody is, no time is enough.
PATIENCE_S = 10


def test_no_request_fails(stage: Stage) -> None:
    """From the label to the end: an image change, all spot machines drained and gone, and the giving back."""
    shop, machines = stage.shop, stage.machines
    shop.apply(web.budget(REPLICAS))
    shop.deploy(replicas=REPLICAS, annotations=ASKED, template=web.template())
    with (
        machines.traffic(shop.namespace, "web", rate=60, timeout_s=PATIENCE_S) as traffic,
        shop.watch() as seen,
    ):
        shop.label()
        shop.wait_split(on_demand=2, spot=4)
        shop.set_image(web.NEW)
        shop.until(lambda: set(shop.images()) == {web.NEW}, "both twins to run the new image")
        shop.wait_split(on_demand=2, spot=4)
        doomed = machines.names("spot")
        machines.notice(doomed)
        stage.drain(doomed)
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


def test_kubelets_fall_silent_and_come_back(stage: Stage) -> None:
    """What counted as lost was there all the time: no request fails while it is replaced and returns."""
    shop, machines = stage.shop, stage.machines
    shop.deploy(replicas=REPLICAS, annotations=ASKED, template=web.template())
    shop.label()
    shop.wait_split(on_demand=2, spot=4)
    spot = machines.names("spot")
    with machines.traffic(shop.namespace, "web", rate=60, timeout_s=PATIENCE_S) as traffic:
        machines.hush(spot)
        shop.until(lambda: shop.shape().on_demand >= REPLICAS, "all to be replaced")
        machines.reconnect(spot)
        shop.wait_split(on_demand=2, spot=4)
    requests = traffic.stop()
    assert requests.failures == ()
    assert requests.by_pod()


def test_lost_requests_are_told(stage: Stage) -> None:
    """A plain Deployment loses requests with a machine: each is seen, and its pod is named."""
    shop, machines = stage.shop, stage.machines
    doomed = machines.names("spot")[0]
    spec = web.template()
    spec["spec"]["nodeSelector"] = {"karpenter.sh/capacity-type": "spot"}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    spec["spec"]["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": {"app": "web"}}}]
    shop.deploy(replicas=REPLICAS, template=spec)
    node_status = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in shop.pods()}
    assert list(node_status.values()).count(doomed) == 2
    with machines.traffic(shop.namespace, "web", rate=60, timeout_s=PATIENCE_S) as traffic:
        began = machines.lose(doomed)

        def is_told() -> bool:
            # Once the Node is NotReady, what waits for an answer gets one elsewhere: its Lease is renewed.
            renewed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            shop.sandbox.api.patch(f"{LEASES}/{doomed}", {"spec": {"renewTime": renewed}})
            # A connection that is kept may by chance lead to a machine that lives.
            return {"pod", "service"} <= {failure.way for failure in traffic.so_far().failures}

        shop.until(is_told, "requests by both ways to be lost")
        # So that what comes after this test is not given a machine that looks well.
        shop.until(lambda: not is_ready(shop.sandbox.api.get(f"{NODES}/{doomed}")), "the Node to be NotReady")
    failures = traffic.stop().failures
    assert [str(failure) for failure in failures if node_status.get(failure.pod) != doomed] == []
    # A machine that is gone does not even refuse.
    assert {failure.reason for failure in failures} <= {"no answer in time", "no route to host"}
    assert failures[0].at >= began.wall_s - PATIENCE_S  # one that the dying machine did not answer any more
