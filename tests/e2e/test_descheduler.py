"""The descheduler, built from its own module: it evicts without a sign, and splitter's budget bounds it.

`make test-karpenter PYTEST="-s tests/e2e/test_descheduler.py"` also prints how many it evicted, how many it
was refused, and how many replicas were left: the figures of docs/how-to/descheduler.md.
"""

import sys
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from lab.fixtures.descheduler import descheduling, reported
from lab.fixtures.shop import Shop, manifest
from lab.sandbox import upstream
from lab.sandbox.fleet import Fleet
from lab.sandbox.processes import Child

pytestmark = pytest.mark.karpenter

N = 6
# Of the 8 CPUs of each machine.
CPU = "1"
LOOKS_EVERY_S = 2
POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: one
    pluginConfig:
      - name: DefaultEvictor
        args: {nodeFit: true}
"""
UTILIZATION = """\
      - name: LowNodeUtilization
        args:
          thresholds: {cpu: 20}
          targetThresholds: {cpu: 45}
    plugins:
      balance: {enabled: [LowNodeUtilization]}
"""
AFFINITY = """\
      - name: RemovePodsViolatingNodeAffinity
        args:
          nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]
    plugins:
      deschedule: {enabled: [RemovePodsViolatingNodeAffinity]}
"""


@pytest.fixture(scope="module")
def program() -> Path:
    """Return the descheduler."""
    return upstream.built(upstream.DESCHEDULER, print).program


def looking(
    shop: Shop, program: Path, home: Path, plugin: str = UTILIZATION
) -> AbstractContextManager[Child]:
    """Have the descheduler look at the cluster every two seconds."""
    return descheduling(shop.sandbox, program, home, POLICY + plugin, LOOKS_EVERY_S)


def crowded(shop: Shop, fleet: Fleet, evictions: str) -> str:
    """Have a workload split whose replicas all stand on one of the spot machines; return that one."""
    full, *empty = fleet.names("spot")
    for node in empty:
        shop.sandbox.kubectl("cordon", node)
    app = manifest("web", N, annotations={"splitter.io/evictions": evictions})
    app["metadata"]["labels"]["splitter.io/split"] = "enabled"
    app["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": CPU}
    shop.apply(app)
    shop.wait_split(on_demand=0, spot=N)
    assert set(shop.nodes()) == {full}
    guard = "none" if evictions == "unguarded" else "web-guard keeps"
    shop.until(lambda: guard in shop.status().get("guard", ""), "the guard")
    shop.wait_steady()
    for node in empty:
        shop.sandbox.kubectl("uncordon", node)
    return full


LEAST = {"one-at-a-time": N - 1, "unguarded": 0}


@pytest.mark.parametrize("evictions", LEAST)
def test_low_node_utilization(
    shop: Shop, fleet: Fleet, program: Path, tmp_path: Path, evictions: str
) -> None:
    """Replicas leave the full machine for empty ones, and the budget says how many at a time."""
    full = crowded(shop, fleet, evictions)
    with shop.watch() as watched, looking(shop, program, tmp_path) as running:
        shop.until(lambda: Counter(shop.nodes())[full] <= N // 2, "replicas to be moved to empty machines")
        shop.wait_split(on_demand=0, spot=N)
        running.check()
        lowest = watched.lowest()
    sys.stdout.write(f"\n{evictions}: {reported(running.log)}, never fewer than {lowest} of {N}\n")
    assert lowest >= LEAST[evictions]
    assert reported(running.log)["evicted"] >= N // 2


def test_nothing_goes_where_all_have_to_stay(shop: Shop, fleet: Fleet, program: Path, tmp_path: Path) -> None:
    """With `surge-first` every eviction without a sign is refused, look after look."""
    full = crowded(shop, fleet, "surge-first")
    before = shop.pod_uids()
    with shop.watch() as watched, looking(shop, program, tmp_path) as running:
        shop.until(lambda: reported(running.log)["refused"] >= N, "evictions to be refused")
        running.check()
        assert watched.lowest() >= N
    sys.stdout.write(f"\nsurge-first: {reported(running.log)}\n")
    assert shop.pod_uids() == before
    assert set(shop.nodes()) == {full}


def test_the_twins_violate_no_node_affinity(shop: Shop, program: Path, tmp_path: Path) -> None:
    """Replicas that cover for spot stand where their twin lets them: there is nothing to put right."""
    shop.deploy(replicas=N, annotations={"splitter.io/on-demand-base": "2"})
    shop.label()
    shop.wait_split(on_demand=2, spot=N - 2)
    before = shop.pod_uids()
    with looking(shop, program, tmp_path, AFFINITY) as running:
        shop.until(lambda: reported(running.log)["looks"] >= 3, "three looks")
        running.check()
    assert reported(running.log) == {**reported(running.log), "evicted": 0, "refused": 0}
    assert shop.pod_uids() == before
