"""metrics-server, built from its own module, measures what pods say that they use."""

import json

import pytest

from lab.fixtures.shop import manifest
from lab.sandbox import Sandbox
from lab.sandbox.errors import SandboxError
from lab.sandbox.waiting import wait_until

pytestmark = pytest.mark.karpenter

PODS, USED_M, OWN_M = 4, 720, 10
PODS_PATH = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
NODES_PATH = "/apis/metrics.k8s.io/v1beta1/nodes"


def cores_m(usage: dict[str, str]) -> float:
    """Return an amount of CPU as metrics-server writes it, in thousandths of a core."""
    text = usage["cpu"]
    return float(text.removesuffix("n")) / 1e6 if text.endswith("n") else float(text) * 1000


def test_it_tells_what_is_used() -> None:
    """Of a machine what its pods use and a little of its own; only to whom the API server lets ask."""
    with Sandbox.start() as sandbox:
        server = sandbox.add_metrics_server()
        [name] = sandbox.fleet.add("spot", 1)
        server.measure(name)
        app = manifest("web", PODS)
        usage = {"kwok.x-k8s.io/usage-cpu": f"{USED_M}m"}
        app["spec"]["template"]["metadata"]["annotations"] |= usage
        sandbox.kubectl("apply", "-f", "-", stdin=json.dumps(app))

        def is_known() -> bool:
            pods = [one["containers"][0]["usage"] for one in sandbox.api.list(PODS_PATH)]
            whole = cores_m(sandbox.api.get(f"{NODES_PATH}/{name}")["usage"])
            return sorted(map(cores_m, pods)) == pytest.approx([USED_M] * PODS, rel=0.05) and (
                whole == pytest.approx(PODS * USED_M + OWN_M, rel=0.05)
            )

        # Not at once: a scrape may have come between two pods, and a busy machine measures at odd moments.
        wait_until(is_known, what="what is used to be known", deadline_s=180, check=sandbox.check)
        with pytest.raises(SandboxError, match="Forbidden"):
            sandbox.kubectl("get", "--raw", NODES_PATH, "--as=system:serviceaccount:default:default")
