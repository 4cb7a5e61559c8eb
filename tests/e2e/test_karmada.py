"""A real Karmada divides workloads between two members, and splitter divides them there.

`make test-karmada KARMADA_ASSETS=FOLDER`. The letters are those of the runs by hand that came before:
docs/adr/0115-karmada-keeps-the-pause-by-its-own-interpreter.md.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab.checkout import MANIFESTS
from lab.federation.assets import Assets
from lab.federation.members import Federation, federation
from lab.federation.watch import Watch
from lab.fixtures.shop import manifest
from lab.sandbox import SandboxError

pytestmark = pytest.mark.karmada

N = 20
NOTICE_S, LOOK_S = 60.0, 60.0
JsonObject = dict[str, Any]
POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces/{}/propagationpolicies"
DYNAMIC: JsonObject = {"dynamicWeight": "AvailableReplicas"}
DATABASE = {
    "splitter.io/mode": "twins",
    "splitter.io/volumes": "disposable",
    "splitter.io/on-demand-base": "1",
}


def static(m1: int, m2: int) -> JsonObject:
    """Return weights that are fixed."""
    shares = (("m1", m1), ("m2", m2))
    return {
        "staticWeightList": [
            {"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in shares
        ]
    }


class Work:
    """One workload in a namespace of its own, in hub and members."""

    def __init__(
        self, world: Federation, namespace: str, kind: str = "Deployment", name: str = "web"
    ) -> None:
        self.world, self.namespace, self.kind, self.name = world, namespace, kind, name
        self.hub = world.hub.api
        self.path = f"/apis/apps/v1/namespaces/{namespace}/{kind.lower()}s/{name}"
        self.split = f"{name}-sts" if kind == "StatefulSet" else name

    def create(self, raw: JsonObject, weights: JsonObject, **more: JsonObject) -> None:
        """Create the namespace, the policy and the workload, without the label; wait until all serve."""
        self.hub.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        selector = {"apiVersion": "apps/v1", "kind": self.kind, "name": self.name}
        placement = {
            "clusterAffinity": {"clusterNames": [member.name for member in self.world.members]},
            "replicaScheduling": {
                "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": "Weighted",
                "weightPreference": weights,
            },
        }
        spec = {"resourceSelectors": [selector], "placement": placement, **more}
        kind = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy"}
        policy = {**kind, "metadata": {"name": self.name}, "spec": spec}
        self.hub.create(POLICIES.format(self.namespace), policy)
        self.hub.create(self.path.rpartition("/")[0], raw)
        self.world.until(lambda: self.serving() == raw["spec"]["replicas"], "all replicas to serve")

    def weigh(self, weights: JsonObject) -> None:
        """Have Karmada divide otherwise."""
        path = f"{POLICIES.format(self.namespace)}/{self.name}"
        scheduling = {"replicaScheduling": {"weightPreference": weights}}
        self.hub.patch(path, {"spec": {"placement": scheduling}})

    def label(self, value: str | None = "enabled") -> None:
        """Label it at the hub, or take the label off."""
        self.hub.patch(self.path, {"metadata": {"labels": {"splitter.io/split": value}}})

    def scale(self, replicas: int) -> None:
        """Scale it at the hub."""
        self.hub.patch(self.path, {"spec": {"replicas": replicas}})

    def watch(self) -> Watch:
        """Return what looks at it."""
        return Watch(self.hub, [member.api for member in self.world.members], self.path)

    def serving(self) -> int:
        """Return how many serve now."""
        return self.watch().look().serving

    def states(self) -> list[str]:
        """Return the state of each member's Split, "" if there is none."""
        path = f"/apis/splitter.io/v1alpha1/namespaces/{self.namespace}/splits/{self.split}"
        seen = [member.api.find(path) or {} for member in self.world.members]
        return [raw.get("status", {}).get("state", "") for raw in seen]

    def counts(self) -> list[int]:
        """Return the replicas that Karmada has given each member."""
        binding = f"{self.name}-{self.kind.lower()}"
        path = f"/apis/work.karmada.io/v1alpha2/namespaces/{self.namespace}/resourcebindings/{binding}"
        clusters = {raw["name"]: raw.get("replicas", 0) for raw in self.hub.get(path)["spec"]["clusters"]}
        return [clusters.get(member.name, 0) for member in self.world.members]

    def evictions(self) -> list[JsonObject]:
        """Return what Karmada is about to evict."""
        binding = f"{self.name}-{self.kind.lower()}"
        path = f"/apis/work.karmada.io/v1alpha2/namespaces/{self.namespace}/resourcebindings/{binding}"
        tasks: list[JsonObject] = self.hub.get(path)["spec"].get("gracefulEvictionTasks") or []
        return tasks

    def wait_steady(self) -> None:
        """Wait until both members have split it, and all replicas serve."""
        wanted = self.hub.get(self.path)["spec"]["replicas"]
        self.world.until(
            lambda: self.states() == ["Steady"] * 2 and self.serving() >= wanted, "both members to be Steady"
        )


def web(replicas: int = N, cpu: str = "1") -> JsonObject:
    """Return a Deployment of so many CPU a replica."""
    raw = manifest("web", replicas, surge=2, annotations={"splitter.io/on-demand-base": "1"})
    raw["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu}
    return raw


def database(replicas: int) -> JsonObject:
    """Return a StatefulSet in twins mode."""
    raw = manifest("db", replicas, annotations=DATABASE)
    spec = {"serviceName": "db", "podManagementPolicy": "Parallel"}
    kept = {name: raw["spec"][name] for name in ("replicas", "selector", "template")}
    return {**raw, "kind": "StatefulSet", "spec": {**kept, **spec}}


def show(scenario: str, watch: Watch, since_s: float, more: str = "") -> None:
    """Print the figures of a scenario (`PYTEST=-s`)."""
    ledger = watch.ledger
    figures = f"{ledger.lost(since_s):.0f} lost replica-seconds, {ledger.lowest(since_s)} at least{more}"
    sys.stdout.write(f"\n{scenario}: {figures}\n")


def passing(world: Federation, seconds: float, look: Callable[[], object] = lambda: None) -> None:
    """Let time pass, as a notice does, and look again and again meanwhile."""
    until_s = time.monotonic() + seconds

    def over() -> bool:
        look()
        return time.monotonic() >= until_s

    world.until(over, f"{seconds:.0f} s to pass", 2 * seconds + 60)


@pytest.fixture(scope="module")
def untaught(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Yield Karmada and two members, without the interpreters."""
    try:
        assets = Assets.find()
    except SandboxError as missing:
        pytest.skip(str(missing))
    with federation(tmp_path_factory.mktemp("karmada"), assets, print) as world:
        m1, m2 = (member.sandbox.fleet for member in world.members)
        m1.add("on-demand", 1, cpu="4")
        m1.add("spot", 2, cpu="16")
        m2.add("on-demand", 1, cpu="16")
        m2.add("spot", 1, cpu="8")
        yield world


@pytest.fixture(scope="module")
def world(untaught: Federation) -> Federation:
    """Return them with the interpreters."""
    untaught.hub.kubectl("apply", "-f", str(MANIFESTS / "karmada" / "interpreters.yaml"))
    return untaught


def remove(work: Work) -> None:
    """Delete a workload, and wait until its room is free."""
    work.hub.delete(work.path)
    work.world.until(lambda: work.serving() == 0, "its pods to go")


def test_a_without_the_interpreters_it_is_given_back(untaught: Federation) -> None:
    """Karmada takes the pauses away: a conflict in both members, and no replica is missed."""
    work = Work(untaught, "a")
    work.create(web(6, cpu="100m"), static(1, 1))
    with work.watch() as watch:
        began_s = time.monotonic()
        work.label()
        untaught.until(lambda: work.states() == ["Conflict"] * 2, "the conflicts")
        show("A", watch, began_s)
    assert watch.ledger.lost(began_s) == 0
    remove(work)


def test_d_application_failover_leaves_a_split_workload(world: Federation) -> None:
    """It is as healthy as its twins, so it is evicted from no member."""
    work = Work(world, "d")
    failover = {
        "decisionConditions": {"tolerationSeconds": 10},
        "purgeMode": "Gracefully",
        "gracePeriodSeconds": 30,
    }
    work.create(web(6, cpu="100m"), static(1, 1), failover={"application": failover})
    with work.watch() as watch:
        began_s = time.monotonic()
        work.label()
        work.wait_steady()
        seen: list[JsonObject] = []
        rounds_s = LOOK_S + 30  # two of the loop that it was without the interpreters
        passing(world, rounds_s, lambda: seen.extend(work.evictions()))
        show("D", watch, began_s)
    assert not seen
    assert work.states() == ["Steady"] * 2
    assert watch.ledger.lost(began_s) == 0
    remove(work)


def test_e_a_notice_moves_what_has_no_future(world: Federation) -> None:
    """All spot of m1 is announced; its on-demand has room for 4 of its 12. All run elsewhere in time."""
    work, m1 = Work(world, "e"), world.members[0].sandbox.fleet
    work.create(web(), DYNAMIC)
    work.label()
    work.wait_steady()
    before = work.counts()
    with work.watch() as watch:
        began_s = time.monotonic()
        m1.notice(m1.names("spot"))
        world.until(lambda: work.counts()[0] < before[0], "the descheduler", NOTICE_S)
        moved_s = time.monotonic() - began_s
        passing(world, NOTICE_S - moved_s)
        m1.kill(m1.names("spot"))
        passing(world, LOOK_S)
        show("E5", watch, began_s, f"; {before} became {work.counts()} {moved_s:.0f} s after the notice")
    m1.restore(m1.names("spot"))
    assert watch.ledger.lost(began_s) == 0
    remove(work)


def test_s_a_move_between_clusters_loses_nothing(world: Federation) -> None:
    """The policy's weights change from 3:2 to 1:4, and back: what moves stays until it serves elsewhere."""
    work = Work(world, "s")
    work.create(web(), static(3, 2))
    work.label()
    work.wait_steady()
    with work.watch() as watch:
        began_s = time.monotonic()
        for weights, counts in (((1, 4), [4, 16]), ((3, 2), [12, 8])):
            work.weigh(static(*weights))
            world.until(lambda counts=counts: work.counts() == counts, "Karmada to divide again")  # type: ignore[misc]
            work.wait_steady()
        show("S2", watch, began_s)
    assert watch.ledger.lost(began_s) == 0
    assert watch.ledger.lowest(began_s) >= N
    remove(work)


def test_g_a_statefulset_is_split_scaled_and_given_back(world: Federation) -> None:
    """In twins mode: its 0 stays in the members, and no conflict comes of it."""
    work = Work(world, "g", "StatefulSet", "db")
    work.create(database(6), static(1, 1))
    with work.watch() as watch:
        began_s = time.monotonic()
        work.label()
        work.wait_steady()
        scaled_s = time.monotonic()
        split_lost = watch.ledger.lost(began_s)
        work.scale(10)
        world.until(lambda: work.serving() >= 10, "the replicas that were asked for")
        work.wait_steady()
        whole_s = time.monotonic()
        work.label(None)
        world.until(lambda: work.states() == ["", ""], "the way back")
        show("G", watch, began_s, f"; starting after the scale-up: {watch.ledger.lost(scaled_s):.0f}")
    assert (split_lost, watch.ledger.lost(whole_s)) == (0, 0)
    remove(work)
