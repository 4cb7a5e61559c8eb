"""What one of Karmada's questions costs the estimator of a large member, beside reading its nodes once.

No cluster and no gRPC: bytes in, bytes out, as the server carries them.
"""

import time
from collections.abc import Callable

import pytest

from bench.offline import Run, node
from estimator import requests
from lab.bench.figures import Percentiles, machine, show_percentiles
from splitter.core.nodes.signals import assess
from splitter.core.replica import Pool
from splitter.estimator.answers import Estimator
from splitter.estimator.wire import Message
from splitter.kube import parse
from world.kinds import NODES as NODE_KIND

pytestmark = pytest.mark.bench

WORKLOADS, NODES, CALLS = 100, 1000, 300
QUESTIONS = {
    "MaxAvailableReplicas": requests.max_replicas(cpu="1", memory="1Gi"),
    "GetUnschedulableReplicas": requests.unschedulable("app-0", namespace="ns-0"),
}


def seconds(call: Callable[[], object], times: int) -> list[float]:
    """Return the CPU time of each of some calls."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return taken


@pytest.mark.parametrize("method", QUESTIONS)
def test_one_question(method: str) -> None:
    """Of 1,000 nodes: the p99 is printed, and how many readings of all nodes it is."""
    run = Run(WORKLOADS)
    for number in range(NODES - len(run.api.nodes)):
        run.api.put_at(NODE_KIND, node(f"more-{number}", Pool.SPOT))
    run.fill()
    nodes = run.api.nodes
    assert len(nodes) == NODES
    estimator, raw = Estimator("m1", run.cache, ()), QUESTIONS[method]
    read = Percentiles.of(seconds(lambda: [parse.node(assess, one) for one in nodes], 30))
    asked = Percentiles.of(seconds(lambda: estimator.answer(method, raw), CALLS))
    assert (Message(estimator.answer(method, raw)).number(1) > 0) is (method == "MaxAvailableReplicas")
    show_percentiles([("all nodes are read", read, ""), (method, asked, "")])
    ratio = asked.p99_ms / read.p50_ms
    print(f"p99 of {method}: {ratio:.1f} readings of {len(nodes)} nodes; {machine()}")  # noqa: T201
