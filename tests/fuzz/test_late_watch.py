"""The watch of ReplicaSets is behind that of pods: a pod is seen before the ReplicaSet that made it.

No order is promised between two watches. A Deployment's controller makes a ReplicaSet, the ReplicaSet a pod,
and the pod is ready while splitter does not know its owner yet. Then that controller takes an older pod: if
splitter ended the new one meanwhile, the service would lose both.
"""

from collections.abc import Iterator

import pytest

from fuzz.attacker import EVIL, in_namespace
from fuzz.lab import Lab
from fuzz.stages import SPOT, STAGES, WELL, World, pods, replica_set
from kube.raw import CREATED
from splitter.core.split_status import LET_GO

pytestmark = pytest.mark.slow

# Hours ago, when the workload was taken over.
HANDED_OVER = {"time": CREATED, "reason": "HandingOver", "message": f"{LET_GO}: 4"}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Yield the lab."""
    result = Lab()
    yield result
    result.close()


def ended(lab: Lab, stage: str, world: World) -> set[str]:
    """Return the pods that a reconcile ends, and the counts that it writes."""
    attacked = lab.attacked(10)
    for number, (kind, raw) in enumerate(world):
        mine = in_namespace(EVIL, raw)
        if kind in {"split", "statefulset-split"}:
            mine["status"]["decisions"] = [HANDED_OVER]
        mine["metadata"]["resourceVersion"] = str(number + 2)
        attacked.put(kind, mine)
    asked = lab.passed(attacked, STAGES[stage].workload)
    pods_ended = {one.path for one in asked if one.method == "DELETE" or one.path.endswith("/eviction")}
    return pods_ended | {f"{one.path} {one.body}" for one in asked if "/scale" in one.path}


@pytest.mark.parametrize("made_for", ["on-demand", "spot", ""])
@pytest.mark.parametrize("stage", STAGES)
def test_a_pod_before_its_replica_set(lab: Lab, stage: str, made_for: str) -> None:
    """Ready as it is, it lets nothing be ended or lowered, least of all itself."""
    name = f"web-{made_for}-9" if made_for else "web-9"
    unseen = replica_set(name, 1, parked=False, of=name.removesuffix("-9"))
    late = pods(unseen, SPOT if made_for == "spot" else WELL, pool=made_for)
    world = STAGES[stage].world
    assert ended(lab, stage, [*world(), *late]) <= ended(lab, stage, world())


@pytest.mark.parametrize("stage", STAGES)
def test_pods_before_their_owner(lab: Lab, stage: str) -> None:
    """Any one ReplicaSet or twin of the stage is not seen yet: none of its pods is ended for that."""
    world = STAGES[stage].world
    with_all = ended(lab, stage, world())
    for number, (kind, raw) in enumerate(world()):
        if kind in {"replicaset", "twin"}:
            others = [one for place, one in enumerate(world()) if place != number]
            more = {path for path in ended(lab, stage, others) - with_all if "/pods/" in path}
            assert not more, raw["metadata"]["name"]
