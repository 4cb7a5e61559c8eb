"""What a tenant writes is read, kept and looked at by the one process for all: none of that grows with it.

Beside `test_large`, which is about one workload's own reconcile: here others pay. What is deep keeps nobody
from being seen, to read takes a moment, what was there before is forgotten, and only who is there is woken.
"""

import asyncio
from collections.abc import Iterator

import orjson
import pytest

from cpu import cpu_below
from fuzz import objects
from fuzz.attacker import EVIL, KINDS, VICTIM, in_namespace
from fuzz.lab import MOST_BYTES, MOST_CPU_S, Lab, peak, reset_peak
from fuzz.stages import STAGES, replica_set, split, twin
from kube.raw import Raw
from splitter.core.names import STATEFUL_SET, Key
from splitter.kube import watch
from splitter.kube.paths import ResourcePath

pytestmark = pytest.mark.slow

# orjson reads 1,023 levels, the API server 10,000 (sigs.k8s.io/json).
DEEP = '{"a":' * 1100 + "1" + "}" * 1100
WEB = Key("Deployment", EVIL, "web")
# After so long it is stuck; no claim.
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Yield the lab."""
    result = Lab()
    yield result
    result.close()


def _deep_split() -> Raw:
    raw = in_namespace(EVIL, objects.split())
    raw["status"]["memory"] = {"rebalance": "@@"}
    return raw


def _deep_pod() -> Raw:
    raw = in_namespace(EVIL, objects.pod())
    raw["metadata"]["managedFields"] = [{"manager": "m", "operation": "Apply", "fieldsV1": "@@"}]
    return raw


DEEP_ONES = {
    "split": ("/apis/splitter.io/v1alpha1/splits", _deep_split),
    "pod": ("/api/v1/pods", _deep_pod),
}


@pytest.mark.parametrize("watched", [False, True], ids=["listed", "watched"])
@pytest.mark.parametrize("kind", DEEP_ONES)
def test_what_is_deep_blinds_nobody(
    kind: str, watched: bool, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object that is nested too deeply to be read is left out; all others are seen."""
    monkeypatch.setattr(watch, "_FIRST_WAIT_S", 0.001)
    attacked = lab.attacked()
    path, make = DEEP_ONES[kind]
    odd = orjson.dumps(make()).decode().replace('"@@"', DEEP)
    honest = in_namespace(VICTIM, KINDS[kind][0]())
    good = orjson.dumps(honest).decode()
    items = good if watched else f"{odd},{good}"
    lab.server.texts[path] = f'{{"metadata":{{"resourceVersion":"9"}},"items":[{items}]}}'.encode()
    later = {**honest, "metadata": {**honest["metadata"], "uid": "uid-later", "resourceVersion": "50"}}
    if watched:
        published = orjson.dumps({"type": "ADDED", "object": later})
        lab.server.lines.extend([f'{{"type":"ADDED","object":{odd}}}'.encode(), published])
    store = KINDS[kind][1](attacked.cache)
    lab.server.all_reported.clear()

    async def follow() -> None:
        followed = watch.Reflector(lab.client, ResourcePath.read(path), store)
        task = asyncio.create_task(followed.run())
        try:
            async with asyncio.timeout(DEADLINE_S):
                await followed.synced.wait()
                await lab.server.all_reported.wait()
        finally:
            task.cancel()
            await asyncio.wait((task,))

    lab.loop.run_until_complete(follow())
    known = {record.uid for record in store.values()}
    assert honest["metadata"]["uid"] in known or watched
    assert not watched or "uid-later" in known


def _edited(count: int) -> Raw:
    """Return a twin of which somebody has applied so many variables."""
    raw = in_namespace(EVIL, objects.twin())
    names = [f"a{number}" for number in range(count)]
    raw["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": name, "value": ""} for name in names]
    env: Raw = {f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:value": {}} for name in names}
    fields = {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:env": env}}}}}}
    raw["metadata"]["managedFields"] = [{"manager": "kubectl", "operation": "Apply", "fieldsV1": fields}]
    return raw


def test_edits_are_read_in_a_moment(lab: Lab) -> None:
    """A twin with very many fields of somebody else's."""
    attacked = lab.attacked()
    raw = _edited(4_000)
    with cpu_below(MOST_CPU_S):
        attacked.put("twin", raw)


def test_edits_are_compared_in_a_moment(lab: Lab) -> None:
    """And in a reconcile of a workload that is split."""
    attacked = lab.attacked()
    for number, (kind, raw) in enumerate(STAGES["roll"].world()):
        mine = in_namespace(EVIL, raw)
        if raw["metadata"]["name"] == "web-spot" and kind == "twin":
            edited = _edited(2_000)
            mine["spec"]["template"] = edited["spec"]["template"]
            mine["metadata"]["managedFields"] = edited["metadata"]["managedFields"]
        mine["metadata"]["resourceVersion"] = str(number + 2)
        attacked.put(kind, mine)
    lab.passed(attacked, WEB)


@pytest.mark.parametrize("owners", [1, 200])
def test_another_split_costs_little(owners: int, lab: Lab) -> None:
    """What all Splits of a namespace say is told to the policy: as much as one, whoever owns it."""
    attacked = lab.attacked()
    for number, (kind, raw) in enumerate(STAGES["evict"].world()):
        mine = in_namespace(EVIL, raw)
        mine["metadata"]["resourceVersion"] = str(number + 2)
        attacked.put(kind, mine)
    other = in_namespace(EVIL, split(STATEFUL_SET, onDemandOrdinals=list(range(0, 20_000, 2))))
    other["spec"]["source"]["name"] = "other"
    other["metadata"] |= {
        "name": "other-sts",
        "uid": "uid-evil-other",
        "ownerReferences": [
            {"apiVersion": "nosuch.io/v1", "kind": "K", "name": "a", "uid": f"uid-evil-{number}"}
            for number in range(owners)
        ],
    }
    attacked.put("statefulset-split", other)
    lab.passed(attacked, STAGES["evict"].workload)


def _asking(count: int, of: str, *, terms: bool = False) -> Raw:
    """Return a twin that asks for nodes in so many ways."""
    raw = in_namespace(EVIL, objects.twin())
    raw["metadata"]["managedFields"] = []
    wanted = [{"key": f"{of}-{number}", "operator": "Exists"} for number in range(count)]
    chosen = [{"matchExpressions": [one]} for one in wanted] if terms else [{"matchExpressions": wanted}]
    required = {"nodeSelectorTerms": chosen}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    raw["spec"]["template"]["spec"]["affinity"] = affinity
    return raw


def test_nothing_is_kept_of_earlier_twins(lab: Lab) -> None:
    """Updates of one object are no more to keep than the object; no quota counts them."""
    attacked = lab.attacked()
    attacked.put("twin", _asking(15_000, "first", terms=True))
    before = reset_peak()
    for number in range(12):
        raw = _asking(15_000, f"of-{number}", terms=True)
        raw["metadata"]["resourceVersion"] = str(number + 2)
        attacked.put("twin", raw)
    assert peak() - before < MOST_BYTES / 2


@pytest.mark.parametrize(("terms", "nodes"), [(False, 3), (True, 200)], ids=["expressions", "terms"])
def test_a_twin_that_asks_for_much(terms: bool, nodes: int, lab: Lab) -> None:
    """A forged twin is measured like a source: a pod of it waits, and a node goes under another."""
    attacked = lab.attacked(nodes)
    asking = _asking(12_000, "k", terms=terms)
    for number, (kind, raw) in enumerate([*STAGES["emergency"].world(), *twin("spot", None, "spot-0")]):
        mine = in_namespace(EVIL, raw)
        if kind == "twin" and raw["metadata"]["name"] == "web-spot":
            mine["spec"]["template"] = asking["spec"]["template"]
        mine["metadata"]["resourceVersion"] = str(number + 2)
        attacked.put(kind, mine)
    attacked.put("replicaset", in_namespace(EVIL, replica_set()))
    for _ in range(2):
        lab.passed(attacked, WEB)


def test_nobody_is_woken_who_is_not_there(lab: Lab) -> None:
    """A Placement may name anybody; only workloads that are known have a reconcile."""
    attacked = lab.attacked()
    for name in ("any-name", "splitter-placement"):
        raw = in_namespace(EVIL, KINDS["placement"][0]())
        raw["metadata"] |= {"name": name, "uid": f"uid-evil-{name}"}
        raw["spec"]["statefulSets"] = {
            f"{number}": {"name": f"n{number}", "onDemandOrdinals": []} for number in range(20_000)
        }
        attacked.put("placement", raw)
    assert not attacked.woken
