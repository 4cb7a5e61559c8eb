"""Whether each pool takes a workload's replicas, of twins as they are rendered and of nodes as they are."""

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from builders import NOW, free_source, observation, pod, twin
from cpu import cpu_below
from kube.raw import node
from splitter.assembly import rules_of
from splitter.core.labels_annotations import twin_name
from splitter.core.model import Observation, RelatedObjects, Rendered
from splitter.core.nodes.pools import PoolFit
from splitter.core.nodes.signals import assess
from splitter.core.placeable import Reach
from splitter.core.replica import NodeStatus, Pool
from splitter.kube.cache import Cache
from splitter.kube.pool_fit import PoolFits
from splitter.settings import Settings

CAPACITY = "karpenter.sh/capacity-type"
TAINT = {"key": "team", "value": "data", "effect": "NoSchedule"}


class World:
    """A cluster, and what is answered about one workload."""

    def __init__(self) -> None:
        self.cache = Cache(partial(assess), lambda *_, **__: None)
        self.fits = PoolFits(self.cache, rules_of(Settings()).reservations)
        self.version = 0
        self.spec: dict[str, Any] = {"containers": [{"name": "web"}]}

    def add(self, name: str, capacity: str = "", *taints: dict[str, str], **labels: str) -> None:
        """Add a node."""
        self.version += 1
        raw = node(name, self.version)
        raw["metadata"]["labels"] = {**({CAPACITY: capacity} if capacity else {}), **labels}
        raw["spec"]["taints"] = list(taints)
        raw["status"]["allocatable"] = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        self.cache.nodes.upsert(raw)

    def observed(self, **fields: Any) -> Observation:  # noqa: ANN401 (fields of an observation)
        """Return what is seen of it."""
        manifest = {"spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": self.spec}}}
        source = free_source(4, manifest_json=json.dumps(manifest), template_hash=json.dumps(self.spec))
        return observation(source, **fields)

    def answer(self, rendered: dict[Pool, Rendered] | None = None, **fields: Any) -> PoolFit:  # noqa: ANN401
        """Return what is answered."""
        fit = self.fits.of(self.observed(**fields), rendered)
        assert fit is not None
        return fit


def two_pools() -> World:
    """Return a cluster of one node of each pool."""
    world = World()
    world.add("od", "on-demand")
    world.add("spot", "spot")
    return world


def test_both_pools_take_it() -> None:
    """Nothing is in the way, whatever else the template asks for."""
    world = two_pools()
    assert world.answer() == PoolFit()
    world.spec["nodeSelector"] = {"kubernetes.io/os": "linux"}
    world.add("od-2", "on-demand", **{"kubernetes.io/os": "linux"})
    world.add("spot-2", "spot", **{"kubernetes.io/os": "linux"})
    assert world.answer() == PoolFit()


def test_pinned_to_spot() -> None:
    """By the node selector that most guides show."""
    world = two_pools()
    world.spec["nodeSelector"] = {CAPACITY: "spot"}
    fit = world.answer()
    assert fit.spot is None
    assert fit.on_demand is not None
    assert (fit.on_demand.certain, fit.on_demand.why) == (True, f"nodeSelector {CAPACITY}=spot")


def test_a_template_set_that_takes_the_selector_away() -> None:
    """The twins count, not the source."""
    world = two_pools()
    world.spec["nodeSelector"] = {CAPACITY: "spot"}
    free = json.dumps({"metadata": {"name": twin_name("web", Pool.SPOT)}, "spec": {"template": {"spec": {}}}})
    assert world.answer({pool: Rendered(free, f"hash-{pool}") for pool in Pool}) == PoolFit()


def test_a_taint_on_every_node_of_a_pool() -> None:
    """It is judged by the nodes that there are; a toleration helps."""
    world = World()
    world.add("od", "on-demand", TAINT)
    world.add("spot", "spot")
    fit = world.answer()
    assert fit.on_demand is not None
    assert not fit.on_demand.certain
    assert "have a taint that it does not tolerate: team=data:NoSchedule" in fit.on_demand.why
    world.spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
    assert world.answer() == PoolFit()


def test_machines_of_another_architecture() -> None:
    """Only spot has any."""
    world = World()
    world.add("od", "on-demand", **{"kubernetes.io/arch": "amd64"})
    world.add("spot", "spot", **{"kubernetes.io/arch": "arm64"})
    world.spec["nodeSelector"] = {"kubernetes.io/arch": "arm64"}
    fit = world.answer()
    assert fit.on_demand is not None
    assert fit.on_demand.why == "0 of 1 healthy on-demand nodes have kubernetes.io/arch=arm64"
    assert fit.spot is None


def test_a_volume_that_one_pool_does_not_reach() -> None:
    """All replicas mount it."""
    reach = Reach(on_demand=False, spot=True, why="volume v can be attached in zone a only")
    fit = two_pools().answer(related=RelatedObjects(shared_reach=reach))
    assert fit.on_demand is not None
    assert (fit.on_demand.certain, fit.on_demand.why) == (False, reach.why)


def test_no_node_is_recognised_as_spot() -> None:
    """What looks like spot is named; without any node nobody knows."""
    world = World()
    assert world.answer().no_spot_node == ""
    world.add("od", "on-demand")
    assert (
        world.answer(now=NOW + timedelta(minutes=1)).no_spot_node == "no node has a label that looks like it"
    )
    world.add("cheap", "", **{"node-type": "spot"})
    later = world.answer(now=NOW + timedelta(minutes=2))
    assert later.no_spot_node == "node cheap has the label node-type=spot"


def test_an_answer_lasts_for_a_moment() -> None:
    """And for as long as a node goes under the workload; another template is looked at at once."""
    world = two_pools()
    assert world.answer() == PoolFit()
    world.add("od", "on-demand", TAINT)
    assert world.answer(now=NOW + timedelta(seconds=9)) == PoolFit()
    doomed = twin(Pool.SPOT, [replace(pod(), node_status=NodeStatus.DOOMED)])
    assert world.answer(now=NOW + timedelta(seconds=60), spot=doomed) == PoolFit()
    assert world.answer(now=NOW + timedelta(seconds=60)).on_demand is not None
    world.spec["tolerations"] = [{"operator": "Exists"}]
    assert world.answer(now=NOW + timedelta(seconds=61)) == PoolFit()


def test_nobody_can_say() -> None:
    """Without rules, or of what asks for more than is compared."""
    world = two_pools()
    assert PoolFits(world.cache, None).of(world.observed(), None) is None
    term = {"matchExpressions": [{"key": "t", "operator": "In", "values": [str(n) for n in range(2000)]}]}
    world.spec["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    assert world.fits.of(world.observed(), None) is None


def test_thousands_of_resources_against_thousands_of_nodes() -> None:
    """The user chooses how many a template asks for; the first that a node lacks tells."""
    world = World()
    for number in range(2000):
        world.add(f"n{number}", "spot" if number % 2 else "on-demand", x=str(number))
    world.spec["containers"] = [
        {"name": f"c-{number}", "resources": {"requests": {f"example.com/r{number}": "1"}}}
        for number in range(3000)
    ]
    with cpu_below(1.0):
        fit = world.fits.of(world.observed(), None)
    assert fit is None or fit.on_demand is None or "is large enough" in fit.on_demand.why


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "spec",
    [
        {"topologySpreadConstraints": [{}]},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [7]}}}},
        {"nodeSelector": {"disk": ["ssd"]}, "tolerations": "all"},
    ],
)
def test_a_template_set_that_renders_no_pod(spec: dict[str, Any]) -> None:
    """Nothing has checked it yet: nobody can say, and the dry run tells why."""
    world = two_pools()
    broken = json.dumps({"spec": {"template": {"spec": spec}}})
    made = {pool: Rendered(broken, f"hash-{pool}") for pool in Pool}
    assert world.fits.of(world.observed(), made) is None
