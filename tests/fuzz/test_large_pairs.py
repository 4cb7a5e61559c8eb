"""Two sizes that a tenant chooses, of one object or of two, cost their sum and not their product.

Each place grows one size in the objects of a stage. All pairs of places are tried, and each with itself: a
selector beside the labels of a pod, budgets beside revisions, requirements beside tolerations. Each size
alone costs next to nothing here; the product of two takes seconds.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations_with_replacement

import pytest

from cpu import cpu_below
from fuzz.attacker import EVIL, Attacked, in_namespace, scaler
from fuzz.lab import Lab
from fuzz.stages import STAGES, World, orphans, replica_set
from kube.raw import READY, Raw, metadata, owner

pytestmark = pytest.mark.slow

MANY, LONG = 1_200, 6_000
"""How many objects, and how many entries of one: their product takes seconds, and so does a square."""
# Two linear costs stay below this, so that a product shows which is not yet beyond what is promised.
_MOST_CPU_S = 0.7


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Yield the lab."""
    result = Lab()
    yield result
    result.close()


Place = Callable[[World], None]


def _of(world: World, *kinds: str) -> list[Raw]:
    return [raw for kind, raw in world if kind in kinds]


def _words(count: int, prefix: str = "k") -> dict[str, str]:
    return {f"{prefix}-{number}": "" for number in range(count)}


def _absent(count: int) -> list[Raw]:
    """Return terms that match what has none of these labels: nothing stops early."""
    return [{"key": f"absent-{number}", "operator": "DoesNotExist"} for number in range(count)]


SOURCES, TWINS = ("deployment", "statefulset"), ("twin",)


def _selector(count: int) -> Place:
    def grow(world: World) -> None:
        for raw in _of(world, *SOURCES):
            raw["spec"]["selector"] = {"matchLabels": {"app": "web"}, "matchExpressions": _absent(count)}

    return grow


def _pod_spec(kinds: Iterable[str], **fields: Callable[[], object]) -> Place:
    def grow(world: World) -> None:
        for raw in _of(world, *kinds):
            raw["spec"]["template"]["spec"] |= {name: make() for name, make in fields.items()}

    return grow


def _required(terms: int, each: int) -> Raw:
    """Return required node affinity that no node has, by the last expression of each term."""
    last = {"key": "absent", "operator": "Exists"}
    one = {"matchExpressions": [*_absent(each - 1), last]}
    required = {"nodeSelectorTerms": [one] * terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _containers(count: int) -> list[Raw]:
    return [
        {"name": f"c-{number}", "image": "web:1", "resources": {"requests": {f"example.com/r-{number}": "1"}}}
        for number in range(count)
    ]


def _tolerations(count: int) -> list[Raw]:
    return [{"key": f"k-{number}", "operator": "Exists"} for number in range(count)]


def _spreads() -> list[Raw]:
    one = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchExpressions": _absent(40)},
        "matchLabelKeys": ["pod-template-hash"],
    }
    return [{**one, "topologyKey": f"zone-{number}"} for number in range(3)]


def _template_labels(*kinds: str, count: int) -> Place:
    def grow(world: World) -> None:
        for raw in _of(world, *kinds):
            raw["spec"]["template"]["metadata"]["labels"] |= _words(count)

    return grow


def _annotations(world: World) -> None:
    for raw in _of(world, *SOURCES):
        raw["metadata"]["annotations"] |= _words(LONG, "example.com/a")
        raw["metadata"]["labels"] |= _words(LONG)


def _managed(*kinds: str) -> Place:
    owned: Raw = {"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {"f:disk": {}}}}, "f:replicas": {}}}

    def grow(world: World) -> None:
        for raw in _of(world, *kinds):
            raw["metadata"]["managedFields"] += [
                {"manager": f"m-{number}", "operation": "Apply", "fieldsV1": owned} for number in range(MANY)
            ]

    return grow


def _owners(*kinds: str) -> Place:
    def grow(world: World) -> None:
        for raw in _of(world, *kinds):
            raw["metadata"].setdefault("ownerReferences", [])
            raw["metadata"]["ownerReferences"] += [
                owner("Deployment", f"o-{number}", controller=False) for number in range(LONG)
            ]

    return grow


def _pods_labels(world: World) -> None:
    for number, raw in enumerate(_of(world, "pod", "member")):
        raw["metadata"]["labels"] |= {**_words(LONG // 4), "n": str(number)}


def _pods_asking(world: World) -> None:
    for raw in _of(world, "pod", "member"):
        raw["spec"]["containers"] = _containers(MANY // 2)


def _more(kinds: tuple[str, ...], count: int) -> Place:
    """Return what adds more like the first pod of an owner, or like the first one without."""

    def grow(world: World) -> None:
        first = next(((kind, raw) for kind, raw in world if kind in kinds), None)
        if first is None:
            return
        kind, like = first
        for number in range(count):
            raw = {**like, "metadata": copy.deepcopy(like["metadata"])}
            name = f"{like['metadata']['name'].rpartition('-')[0]}-{number + 10}"
            raw["metadata"] |= {"name": name, "uid": f"uid-more-{name}"}
            raw["metadata"]["labels"]["each"] = str(number)
            world.append((kind, raw))

    return grow


def _bare(world: World) -> None:
    """Add pods that nobody controls and that bear our labels."""
    loose = orphans(*(["od-1"] * MANY))
    for number, (_, raw) in enumerate(loose):
        raw["metadata"]["labels"]["each"] = str(number)
    world += loose


def _long_bare(world: World) -> None:
    for number, (kind, raw) in enumerate(orphans("od-1", "od-1", "od-1")):
        raw["metadata"] |= {"name": f"web-1-long-{number}", "uid": f"uid-long-{number}"}
        raw["metadata"]["labels"] |= _words(LONG)
        world.append((kind, raw))


def _revisions(of: str) -> Place:
    """Return what adds ReplicaSets that have replicas, each with a pod."""

    def grow(world: World) -> None:
        for number in range(MANY // 4):
            name = f"{of}-r{number}"
            raw = replica_set(name, 1, parked=False, of=of, image=f"web:{number}")
            raw["spec"]["template"]["metadata"]["labels"] = {"app": "web", "pod-template-hash": f"r{number}"}
            world.append(("replicaset", raw))
            [(_, like), *_] = orphans("od-1")
            pod = {**like, "metadata": copy.deepcopy(like["metadata"])}
            pod["metadata"] |= {"name": f"{name}-a", "uid": f"uid-{name}-a"}
            pod["metadata"]["labels"] |= {"pod-template-hash": f"r{number}"}
            pod["metadata"]["ownerReferences"] = [
                {"kind": "ReplicaSet", "name": name, "uid": f"uid-{name}", "controller": True}
            ]
            world.append(("pod", pod))

    return grow


def _replica_sets_labels(world: World) -> None:
    for raw in _of(world, "replicaset"):
        raw["spec"]["template"]["metadata"]["labels"] |= _words(MANY // 4)
        raw["metadata"]["labels"] |= _words(MANY // 4)


def _replica_sets_hashes(world: World) -> None:
    for raw in _of(world, "replicaset"):
        hashes = [f"h-{number}" for number in range(MANY // 4)]
        term = {"key": "pod-template-hash", "operator": "In", "values": ["1", *hashes]}
        raw["spec"]["selector"] = {"matchLabels": {"app": "web"}, "matchExpressions": [term]}


def _rivals(world: World) -> None:
    """Add ReplicaSets of another Deployment that miss its pods by their last term."""
    for number in range(MANY):
        raw = replica_set(f"other-{number}", 0, parked=False, of="other")
        last = {"key": "absent", "operator": "Exists"}
        raw["spec"]["selector"] = {"matchLabels": {"app": "web"}, "matchExpressions": [*_absent(20), last]}
        world.append(("replicaset", raw))


def _budgets(world: World) -> None:
    for number in range(MANY):
        values = [f"v-{one}" for one in range(8)]
        terms = [{"key": f"absent-{one}", "operator": "NotIn", "values": values} for one in range(20)]
        terms.append({"key": "absent", "operator": "Exists"})
        spec = {"minAvailable": 1, "selector": {"matchExpressions": terms}}
        raw = {"kind": "PodDisruptionBudget", "metadata": metadata(f"b-{number}"), "spec": spec}
        world.append(("budget", raw))


def _ordinals(world: World) -> None:
    for raw in _of(world, "statefulset-split"):
        raw["spec"]["onDemandOrdinals"] = list(range(0, 2 * MANY, 2))


def _remembered(world: World) -> None:
    """Fill what a Split remembers, with what splitter would not write."""
    said = {"time": READY, "at": READY, "type": "Balanced", "status": "True", "reason": "R", "message": "m"}
    for raw in _of(world, "split", "statefulset-split"):
        nodes = [f"node-{number}" for number in range(LONG)]
        raw["status"] |= {"writeConflicts": [READY] * LONG}
        raw["status"] |= {"conditions": [said] * LONG, "decisions": [said] * LONG}
        memory = raw["status"].setdefault("memory", {})
        memory["policyAnnotations"] = _words(LONG)
        memory["rebalance"] = {
            **memory.get("rebalance", {}),
            "chargedNodes": nodes,
            "restarts": [[0, READY, True]] * LONG,
        }


def _replicas(count: int) -> Place:
    def grow(world: World) -> None:
        for raw in _of(world, *SOURCES, *TWINS):
            raw["spec"]["replicas"] = count

    return grow


def _hpas(world: World) -> None:
    world += [("hpa", scaler()) for _ in range(MANY)]


BOTH = (*SOURCES, *TWINS)
# Free, with a loss that is covered, in the moment without owners, on the way home, and a StatefulSet.
WORLDS = {"C": "consider", "V": "covered", "A": "adopt the pods", "L": "let go again", "H": "hold room"}
PLACES: Mapping[str, tuple[Place, str]] = {
    "selector": (_selector(LONG), "CVAH"),
    "selector within": (_selector(99), "CVA"),
    "template labels": (_template_labels(*BOTH, count=LONG), "CVL"),
    "metadata": (_annotations, "CV"),
    "owners": (_owners(*SOURCES, "replicaset"), "CV"),
    "affinity terms": (_pod_spec(BOTH, affinity=lambda: _required(LONG // 3, 3)), "CVH"),
    "tolerations": (_pod_spec(BOTH, tolerations=lambda: _tolerations(LONG)), "CVH"),
    "node selector": (_pod_spec(BOTH, nodeSelector=lambda: _words(LONG)), "CVH"),
    "containers": (_pod_spec(BOTH, containers=lambda: _containers(MANY)), "CVH"),
    "spreads": (_pod_spec(BOTH, topologySpreadConstraints=_spreads), "CVH"),
    "managed fields": (_managed(*BOTH), "CV"),
    "replicas": (_replicas(900), "VH"),
    "labels of pods": (_pods_labels, "CL"),
    "requests of pods": (_pods_asking, "VH"),
    "pods": (_more(("pod", "member"), MANY), "VHC"),
    "bare pods": (_bare, "AVL"),
    "labels of bare pods": (_long_bare, "AVL"),
    "revisions of the source": (_revisions("web"), "CL"),
    "revisions of a twin": (_revisions("web-spot"), "VLA"),
    "labels of ReplicaSets": (_replica_sets_labels, "VLC"),
    "hashes of ReplicaSets": (_replica_sets_hashes, "LAC"),
    "ReplicaSets of others": (_rivals, "CL"),
    "budgets": (_budgets, "VL"),
    "ordinals": (_ordinals, "H"),
    "what a Split remembers": (_remembered, "VH"),
    "autoscalers": (_hpas, "C"),
}
ADDING = {"pods", "bare pods", "labels of bare pods", "revisions of the source", "revisions of a twin"}
PAIRS = [
    (one, other)
    for one, other in combinations_with_replacement(PLACES, 2)
    if set(PLACES[one][1]) & set(PLACES[other][1])
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_pair(one: str, other: str, lab: Lab) -> None:
    """A reconcile takes less than a second of CPU, whatever two sizes a tenant has grown.

    It is tried in the stages in which splitter reads both: in three at most, since all in all are minutes.
    """
    worlds = [world for world in PLACES[one][1] if world in PLACES[other][1]]
    for stage in [WORLDS[world] for world in worlds][:3]:
        world = _grown(stage, *sorted({one, other}))
        attacked = lab.attacked(10)
        _put(attacked, world)
        with cpu_below(_MOST_CPU_S):
            lab.passed(attacked, STAGES[stage].workload)


@pytest.mark.parametrize("place", PLACES)
def test_place(place: str) -> None:
    """Each place grows something in each of its stages."""
    for world in PLACES[place][1]:
        assert _grown(WORLDS[world], place) != STAGES[WORLDS[world]].world(), world


def _grown(stage: str, *places: str) -> World:
    """Return the objects of a stage with these places grown."""
    world = STAGES[stage].world()
    # Those that add objects first: the others grow these as well.
    for name in sorted(places, key=lambda name: name not in ADDING):
        PLACES[name][0](world)
    return world


def _put(attacked: Attacked, world: World) -> None:
    scalers = [in_namespace(EVIL, raw) for kind, raw in world if kind == "hpa"]
    attacked.server.lists[f"/apis/autoscaling/v2/namespaces/{EVIL}/horizontalpodautoscalers"] = scalers
    for number, (kind, raw) in enumerate(world):
        if kind != "hpa":
            mine = in_namespace(EVIL, raw)
            mine["metadata"]["resourceVersion"] = str(number + 2)
            attacked.put(kind, mine)
