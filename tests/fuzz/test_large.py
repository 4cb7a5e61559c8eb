"""What is as large as an API server takes it, some 1.5 MiB an object, costs no more than anything else.

Each growth is of one place that a tenant fills: one number, one list, or one number of objects. What is over
a limit is refused or held; what is just within does all the work. To read an object is bounded like a
reconcile.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import pytest

from cpu import cpu_below
from fuzz.attacker import EVIL, KINDS, Attacked, in_namespace
from fuzz.lab import MOST_CPU_S, Lab
from fuzz.stages import STAGES, WELL, World, replica_set
from kube.raw import Raw
from splitter.core.limits import MAX_WRITES
from splitter.core.names import Key

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Yield the lab."""
    result = Lab()
    yield result
    result.close()


def _terms(raw: Raw, count: int) -> None:
    term = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    required = {"nodeSelectorTerms": [term] * count}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    raw["spec"]["template"]["spec"]["affinity"] = affinity


def _containers(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["spec"]["containers"] = [
        {"name": f"c-{number}", "image": "web:1", "resources": {"requests": {"cpu": "1m"}}}
        for number in range(count)
    ]


def _claims(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["spec"]["volumes"] = [
        {"name": f"v-{number}", "persistentVolumeClaim": {"claimName": f"c-{number}"}}
        for number in range(count)
    ]


def _annotation(raw: Raw, count: int) -> None:
    raw["metadata"]["annotations"]["splitter.io/spot-percent"] = "9" * count


def _labels(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["metadata"]["labels"] |= {f"l-{number}": "x" * 60 for number in range(count)}


def _env(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "E", "value": "x" * count}]


def _tolerations(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["spec"]["tolerations"] = [{"key": f"k-{number}"} for number in range(count)]


def _replicas(raw: Raw, count: int) -> None:
    raw["spec"]["replicas"] = count


def _managed_fields(raw: Raw, count: int) -> None:
    owned = {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:annotations": {"f:example.com/a": {}}}}
    raw["metadata"]["managedFields"] = [
        {"manager": f"m-{number}", "operation": "Apply", "fieldsV1": owned} for number in range(count)
    ]


def _annotations(raw: Raw, count: int) -> None:
    raw["metadata"]["annotations"] |= {f"example.com/a-{number}": "x" for number in range(count)}


def _owners(raw: Raw, count: int) -> None:
    raw["metadata"]["ownerReferences"] += [
        {"apiVersion": "a/v1", "kind": "K", "name": f"n-{number}", "uid": f"u-{number}"}
        for number in range(count)
    ]


def _percentage(raw: Raw, count: int) -> None:
    raw["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": f"{'9' * count}%", "maxUnavailable": 1}}


def _ordinals(raw: Raw, count: int) -> None:
    raw["spec"]["onDemandOrdinals"] = list(range(0, 2 * count, 2))


def _depth(raw: Raw, count: int) -> None:
    for _ in range(count):
        raw["spec"] = {"a": raw["spec"]}


# As large as the API server takes them, which is some 1.5 MiB an object.
ALONE = [
    ("free-deployment", _terms, 25_000),
    ("free-deployment", _containers, 15_000),
    ("free-deployment", _claims, 12_000),
    ("free-deployment", _annotation, 250_000),
    ("free-deployment", _labels, 15_000),
    ("free-deployment", _env, 1_400_000),
    ("free-deployment", _tolerations, 60_000),
    ("free-deployment", _replicas, 2**31 - 1),
    ("free-deployment", _managed_fields, 8_000),
    ("free-deployment", _annotations, 9_000),
    ("free-deployment", _owners, 15_000),
    ("free-deployment", _percentage, 5_000),
    ("free-statefulset", _replicas, 3_000),
    ("free-statefulset", _replicas, 2**31 - 1),
    ("free-statefulset", _terms, 25_000),
    ("free-statefulset", _claims, 12_000),
    ("free-statefulset", _owners, 15_000),
    ("twin", _env, 1_400_000),
    ("twin", _containers, 15_000),
    ("twin", _replicas, 2**31 - 1),
    ("statefulset-twin", _replicas, 2**31 - 1),
    ("replicaset", _labels, 15_000),
    ("replicaset", _owners, 15_000),
    ("keda", _depth, 900),
    ("vpa", _depth, 900),
    # Just within the limit, where all the work is done.
    ("free-deployment", _terms, 600),
    ("free-deployment", _containers, 5_500),
    ("free-deployment", _tolerations, 20_000),
    ("free-deployment", _env, 500_000),
    ("free-deployment", _claims, 50),
]


@pytest.mark.parametrize(("kind", "grow", "count"), ALONE)
def test_one_alone(kind: str, grow: Callable[[Raw, int], None], count: int, lab: Lab) -> None:
    """It is refused, or done, within the bounds of any reconcile; reading it is bounded by the same."""
    attacked = lab.attacked()
    raw = in_namespace(EVIL, KINDS[kind][0]())
    grow(raw, count)
    with cpu_below(MOST_CPU_S):
        attacked.put(kind, raw)
    if kind in {"keda", "vpa"}:
        attacked.put("free-deployment", in_namespace(EVIL, KINDS["free-deployment"][0]()))
    for key in list(attacked.woken) * 2:
        lab.passed(attacked, key)
    raw["metadata"]["labels"] = {}
    attacked.cache.sources.remove(raw)


def _grown(stage: str, of: str, grow: Callable[[Raw, int], None], count: int) -> World:
    """Return the objects of a stage, all those of one kind grown."""
    world = STAGES[stage].world()
    for kind, raw in world:
        if kind == of:
            grow(raw, count)
    return world


def _with_replica_sets(stage: str, count: int, **fields: Any) -> World:  # noqa: ANN401
    world = _grown(stage, "deployment", _kept, count)
    sets = (replica_set(f"web-r{number}", 0, image=f"web:{number}", **fields) for number in range(count))
    return [*world, *(("replicaset", raw) for raw in sets)]


def _kept(raw: Raw, count: int) -> None:
    raw["spec"]["revisionHistoryLimit"] = count


def _members(stage: str, count: int, node: str) -> World:
    """Return a stage with so many more pods of its spot twin, or of its StatefulSet."""
    world = STAGES[stage].world()
    kind, like = next((kind, raw) for kind, raw in reversed(world) if kind in {"pod", "member"})
    collected: World = []
    for number in range(count):
        more = {**like, "metadata": dict(like["metadata"]), "spec": {**like["spec"], "nodeName": node}}
        more["metadata"] |= {"name": f"web-{number + 10}", "uid": f"uid-more-{number}"}
        collected.append((kind, more))
    return [*world, *collected]


TOGETHER: Mapping[str, tuple[str, Callable[[], World]]] = {
    "placed, and scaled": ("hold room", lambda: _grown("hold room", "statefulset", _replicas, 2**31 - 1)),
    "placed, and scaled a little": ("hold room", lambda: _grown("hold room", "statefulset", _replicas, 1001)),
    "placed, as large as can be": ("hold room", lambda: _grown("hold room", "statefulset", _replicas, 250)),
    "in twins, and scaled": ("follow", lambda: _grown("follow", "statefulset", _replicas, 2**31 - 1)),
    "twins scaled": ("members lost", lambda: _grown("members lost", "twin", _replicas, 2**31 - 1)),
    "released, and scaled": ("release", lambda: _grown("release", "statefulset", _replicas, 2**31 - 1)),
    "ordinals": ("hold room", lambda: _grown("hold room", "statefulset-split", _ordinals, 10_000)),
    "owners of a Split": ("roll", lambda: _grown("roll", "split", _owners, 10_000)),
    "ReplicaSets of a free one": ("consider", lambda: _with_replica_sets("consider", 2000, parked=False)),
    "ReplicaSets to try in a dry run": (
        "consider",
        lambda: _with_replica_sets("consider", 249, parked=False),
    ),
    "ReplicaSets to park": ("park", lambda: _with_replica_sets("park", 2000, parked=False)),
    "ReplicaSets to give back": ("old revisions", lambda: _with_replica_sets("old revisions", 2000)),
    "ReplicaSets that bear the mark": (
        "last traces",
        lambda: _with_replica_sets(
            "last traces", 500, parked=False, annotations={"splitter.io/taken-over": "x"}
        ),
    ),
    "doomed pods": ("covered", lambda: _members("covered", 2000, "spot-0")),
    "pods of a node that is gone": ("vanished", lambda: _members("vanished", 2000, "spot-gone")),
    "members": ("hold room", lambda: _members("hold room", 2000, WELL)),
}


@pytest.mark.parametrize(("stage", "world"), TOGETHER.values(), ids=TOGETHER)
def test_many_together(stage: str, world: Callable[[], World], lab: Lab) -> None:
    """A workload that is split, or is to be, costs the same whatever is beside it; with 100 nodes."""
    attacked = lab.attacked(100)
    _put(attacked, world())
    key: Key = STAGES[stage].workload
    for _ in range(3):
        asked = lab.passed(attacked, key)
        written = [one for one in asked if one.method != "GET" and "dryRun" not in one.path]
        written = [one for one in written if not one.is_report]
        assert len(written) <= MAX_WRITES + 1  # ordinals are told to the policy, too


# Of pods there may be any number. Of the rest no more than a limit is looked at (docs/limits.md).
GROWING: Mapping[str, tuple[str, Callable[[int], World]]] = {
    "doomed pods": ("covered", lambda count: _members("covered", count, "spot-0")),
    "pods of a node that is gone": ("vanished", lambda count: _members("vanished", count, "spot-gone")),
    "members": ("hold room", lambda count: _members("hold room", count, WELL)),
}


@pytest.mark.parametrize(("stage", "world"), GROWING.values(), ids=GROWING)
def test_twice_as_many_cost_twice(stage: str, world: Callable[[int], World], lab: Lab) -> None:
    """A reconcile calls functions in proportion to the objects, on a busy machine and on an idle one alike.

    In proportion to their square, twice as many would be up to four times the calls.
    """
    _, few, many = (_calls(stage, world(count), lab) for count in (700, 700, 1400))  # the first fills caches
    assert few > 700  # each object was looked at
    assert many < 2.5 * few


def _calls(stage: str, world: World, lab: Lab) -> int:
    """Return how many functions a reconcile calls when the objects of `world` are there."""
    attacked = lab.attacked()
    _put(attacked, world)
    result = 0

    def count(_frame: FrameType, event: str, _of: object) -> None:
        nonlocal result
        result += event in {"call", "c_call"}

    passed = attacked.passed

    async def counted(key: Key) -> None:
        sys.setprofile(count)
        try:
            await passed(key)
        finally:
            sys.setprofile(None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attacked, "passed", counted)  # the reconcile alone, and not what the lab claims of it
        lab.passed(attacked, STAGES[stage].workload)
    return result


def _put(attacked: Attacked, world: World) -> None:
    for number, (kind, raw) in enumerate(world):
        mine = in_namespace(EVIL, raw)
        mine["metadata"]["resourceVersion"] = str(number + 2)
        attacked.put(kind, mine)


def test_updates_of_one_object(lab: Lab) -> None:
    """Nothing is kept of what an object was before."""
    attacked = lab.attacked()
    for number in range(8):
        raw = in_namespace(EVIL, KINDS["free-deployment"][0]())
        _terms(raw, 5_000)
        raw["metadata"] |= {"resourceVersion": str(number + 2), "labels": {"app": "web", "a": str(number)}}
        raw["metadata"]["labels"]["splitter.io/split"] = "enabled"
        attacked.put("free-deployment", raw)
        lab.passed(attacked, Key("Deployment", EVIL, "web"))
    assert len(attacked.cache.sources) == 1
