"""What Karmada is answered by a member in the world, beside the real splitter."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from estimator import requests
from estimator.member import NOTICE, TAINT, Asked, add_spot, estimating, with_nodes, workload
from estimator.requests import field
from lab.fixtures.database import BY_TWINS, manifest
from leaping import passing
from splitter.estimator.answers import MAX_BYTES, RefusedError, Status
from splitter.estimator.wire import number_field
from world.cluster import POOL, Cluster
from world.kinds import DEPLOYMENTS, NODES, PODS, SPLITS, STATEFUL_SETS, Raw, Ref
from world.process import splitting
from world.workloads import WEB, changed, until

pytestmark = pytest.mark.usefixtures("one_clock")

N: Final = 12
MAX: Final = "MaxAvailableReplicas"
SETS: Final = "MaxAvailableComponentSets"
UNSCHEDULABLE: Final = "GetUnschedulableReplicas"
NEVER_S: Final = 10.0**6
ONE_CPU: Final = requests.max_replicas(cpu="1")
WITHOUT_PLACE: Final = requests.unschedulable(threshold_s=30)


def label(raw: Raw) -> None:
    """Have it split."""
    raw["metadata"].setdefault("labels", {})["splitter.io/split"] = "enabled"


def cordon(raw: Raw) -> None:
    """Do what `kubectl cordon` does."""
    raw["spec"]["unschedulable"] = True


def announce(cluster: Cluster) -> None:
    """Have both spot nodes told to go."""
    for number in range(2):
        cluster.taint(f"spot-{number}", [TAINT, NOTICE])


def create_pod(cluster: Cluster, name: str, cpu: str) -> None:
    """Create a pod without an owner."""
    container = {"name": "one", "image": "one:1", "resources": {"requests": {"cpu": cpu}}}
    cluster.objects.create(PODS, "shop", {"metadata": {"name": name}, "spec": {"containers": [container]}})


def is_steady(cluster: Cluster) -> bool:
    """Whether all replicas serve, on spot."""
    on_spot = [pod["spec"]["nodeName"].startswith("spot") for pod in cluster.ready()]
    states = [raw["status"].get("state") for raw in cluster.objects.all(SPLITS)]
    return states == ["Steady"] and on_spot == [True] * N == [True] * len(cluster.objects.all(PODS))


@asynccontextmanager
async def split(cluster: Cluster) -> AsyncIterator[Asked]:
    """Have `web` of 12 x 1 CPU split, all of it on spot, and an estimator beside."""
    async with cluster.running(), splitting(cluster):
        cluster.objects.create(DEPLOYMENTS, "shop", workload(N), "user")
        await until(lambda: bool(cluster.objects.all(DEPLOYMENTS)))
        changed(cluster, WEB, label)
        await until(lambda: is_steady(cluster), 3600.0)
        async with estimating(cluster) as asked:
            yield asked


class TestRoom:
    async def test_is_counted_over_both_pools(self) -> None:
        """A tainted spot node has room for the spot twin, and none once it is announced, cordoned or away."""
        cluster = with_nodes(on_demand=4, spot=3)
        async with cluster.running(), estimating(cluster) as asked:
            assert asked(MAX, ONE_CPU) == 4 + 3 * 16
            assert asked(MAX, requests.max_replicas(cpu="5")) == 3 * 3
            cluster.taint("spot-0", [TAINT, NOTICE])
            changed(cluster, Ref(NODES, "", "spot-1"), cordon)
            await passing(1.0)
            assert asked(MAX, ONE_CPU) == 4 + 16
            cluster.silence("spot-2")
            await until(lambda: asked(MAX, ONE_CPU) == 4)
            cluster.taint("on-demand-0", [TAINT])
            await until(lambda: asked(MAX, ONE_CPU) == 0)

    async def test_is_without_what_runs_and_what_is_on_its_way(self) -> None:
        """Bound pods, and workloads that Karmada's scheduler has given to this cluster."""
        cluster = with_nodes(on_demand=4, spot=2)
        async with split(cluster) as asked:
            assert asked(MAX, ONE_CPU) == 4 + 32 - N
            assert asked(MAX, bytes.fromhex(requests.ASSUMED)) == 4 + 32 - N - 12
            assert asked(SETS, bytes.fromhex(requests.SETS)) == 3

    async def test_is_without_pods_that_the_scheduler_has_still_to_look_at(self) -> None:
        """They get a node in a moment. What the scheduler has refused takes no room."""
        cluster = with_nodes(on_demand=4, spot=0)
        async with estimating(cluster) as asked:
            create_pod(cluster, "new", "3")
            await until(lambda: asked(MAX, ONE_CPU) == 1)
            async with cluster.running():
                await until(lambda: bool(cluster.ready()))
                create_pod(cluster, "large", "9")
                await passing(5.0)
                assert asked(MAX, ONE_CPU) == 1


class TestUnschedulable:
    async def test_tells_at_a_notice(self) -> None:
        """Eight of twelve have no future: on-demand has room for four. The pending pods are never counted."""
        cluster = with_nodes(on_demand=4, spot=2)
        async with split(cluster) as asked:
            never = requests.unschedulable(threshold_s=NEVER_S)
            assert asked(UNSCHEDULABLE, never) == 0
            announce(cluster)
            await passing(0.1)
            answers = []
            for _ in range(20):
                answers.append(asked(UNSCHEDULABLE, never))
                await passing(1.0)
            assert set(answers) == {8}
            assert asked(MAX, ONE_CPU) == 0
            for number in range(2):
                cluster.vanish(f"spot-{number}")
            await passing(20.0)
            assert asked(UNSCHEDULABLE, WITHOUT_PLACE) == 8
            changed(cluster, WEB, lambda raw: raw["spec"].update(replicas=4))
            await until(lambda: asked(UNSCHEDULABLE, WITHOUT_PLACE) == 0, 10.0)
            assert len(cluster.ready()) == 4

    async def test_waits_for_the_threshold_without_a_notice(self) -> None:
        """The time runs without a question; what comes back in time was never short."""
        cluster = with_nodes(on_demand=4, spot=2)
        async with split(cluster) as asked:
            for number in range(2):
                cluster.vanish(f"spot-{number}")
            await passing(25.0)
            assert asked(UNSCHEDULABLE, WITHOUT_PLACE) == 0
            await passing(10.0)
            assert asked(UNSCHEDULABLE, WITHOUT_PLACE) == 8
            add_spot(cluster, 3)
            await until(lambda: asked(UNSCHEDULABLE, WITHOUT_PLACE) == 0, 600.0)

    async def test_says_nothing_if_on_demand_has_room(self) -> None:
        """At a notice splitter covers all of them there."""
        cluster = with_nodes(on_demand=16, spot=2)
        async with split(cluster) as asked:
            announce(cluster)
            for _ in range(30):
                assert asked(UNSCHEDULABLE, requests.unschedulable(threshold_s=20)) == 0
                await passing(1.0)

    async def test_leaves_replicas_on_a_cordoned_node(self) -> None:
        """They serve there, perhaps for long: nothing says that they go."""
        cluster = with_nodes(on_demand=4, spot=2)
        async with split(cluster) as asked:
            for number in range(2):
                changed(cluster, Ref(NODES, "", f"spot-{number}"), cordon)
            await passing(60.0)
            assert asked(UNSCHEDULABLE, requests.unschedulable(threshold_s=0)) == 0

    async def test_of_a_statefulset(self) -> None:
        """Its twins own their pods themselves: two of five are announced, and on-demand is full."""
        cluster = Cluster(1)
        cluster.add_node("on-demand-0", {POOL: "on-demand"}, pods=3)
        cluster.add_node("spot-0", {POOL: "spot"}, [TAINT])
        database = manifest(5, annotations=BY_TWINS, ready_after="1s")
        database["metadata"]["labels"]["splitter.io/split"] = "enabled"
        async with cluster.running(), splitting(cluster), estimating(cluster) as asked:
            cluster.objects.create(STATEFUL_SETS, "shop", database, "user")
            await until(
                lambda: len(cluster.ready()) == 5 and len(cluster.objects.all(STATEFUL_SETS)) == 3, 600.0
            )
            await passing(60.0)
            never = requests.unschedulable("db", "StatefulSet", NEVER_S)
            assert asked(UNSCHEDULABLE, never) == 0
            cluster.taint("spot-0", [TAINT, NOTICE])
            await until(lambda: asked(UNSCHEDULABLE, never) == 2, 5.0)

    async def test_counts_as_karmada_does_without_twins(self) -> None:
        """The pods of a Deployment that is not split, once the scheduler has refused them for so long."""
        cluster = with_nodes(on_demand=4, spot=1)
        async with cluster.running(), estimating(cluster) as asked:
            cluster.objects.create(DEPLOYMENTS, "shop", workload(10, "api"), "user")
            await until(lambda: len(cluster.ready()) == 4)
            assert asked(UNSCHEDULABLE, requests.unschedulable("api")) == 0
            await passing(35.0)
            assert asked(UNSCHEDULABLE, requests.unschedulable("api")) == 6
            with pytest.raises(RefusedError, match="there is no Deployment shop/web") as refused:
                asked(UNSCHEDULABLE, WITHOUT_PLACE)
            assert refused.value.status is Status.NOT_FOUND


class TestRefusals:
    @pytest.mark.parametrize(
        ("method", "raw", "status"),
        [
            (MAX, b"\x0a\xff", Status.INVALID_ARGUMENT),
            (MAX, b"", Status.INVALID_ARGUMENT),
            (MAX, requests.max_replicas("m2", cpu="1"), Status.INVALID_ARGUMENT),
            (UNSCHEDULABLE, requests.unschedulable(kind="Job"), Status.INVALID_ARGUMENT),
            (MAX, bytes(MAX_BYTES + 1), Status.RESOURCE_EXHAUSTED),
        ],
    )
    async def test_have_a_status(self, method: str, raw: bytes, status: Status) -> None:
        """No bytes end the process, and none that are wrong are answered with a number."""
        async with estimating(with_nodes(4, 1)) as asked:
            with pytest.raises(RefusedError) as refused:
                asked(method, raw)
            assert refused.value.status is status
            assert asked(MAX, ONE_CPU) == 20, "the next one is answered"

    async def test_bound_what_is_compared(self) -> None:
        """What takes seconds on these nodes is refused; what asks more than people write fits nowhere."""
        terms = field(1, field(1, field(1, "a") + field(2, "In") + field(3, "b") * 9000))
        large = requests.max_replicas(claim=field(4, terms), cpu="1")
        async with estimating(with_nodes(4, 200)) as asked:
            with pytest.raises(RefusedError) as refused:
                asked(MAX, large)
            assert refused.value.status is Status.RESOURCE_EXHAUSTED
            larger = requests.max_replicas(claim=field(4, terms * 2), cpu="1")
            assert asked(MAX, larger) == 0

    async def test_answer_no_more_than_a_number_of_32_bits(self) -> None:
        """Of what asks for nothing, as many as there are pod slots."""
        async with estimating(with_nodes(4, 1)) as asked:
            assert asked(MAX, requests.max_replicas()) == 2 * 110
            component = field(2, field(1, "a") + field(2, b"") + number_field(3, 2**31 - 1))
            assert asked(SETS, field(1, "m1") + component) == 0

    async def test_tell_that_nothing_is_believed(self) -> None:
        """More than half of the on-demand nodes are not Ready: Karmada goes on by its own counts."""
        cluster = with_nodes(4, 1)
        for number in range(1, 4):
            cluster.add_node(f"on-demand-{number}", {"karpenter.sh/capacity-type": "on-demand"})
        async with cluster.running(), estimating(cluster) as asked:
            for number in range(4):
                cluster.silence(f"on-demand-{number}")
            with pytest.raises(RefusedError, match="not Ready"):
                await until(lambda: asked(MAX, ONE_CPU) < 0, 600.0)
