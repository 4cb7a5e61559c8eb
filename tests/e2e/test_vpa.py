"""The VerticalPodAutoscaler, built from its own module: the pods of both twins are those of its target.

`make test-neighbours PYTEST="-s tests/e2e/test_vpa.py"` also prints how many it evicted and was refused, and
how many replicas were left: figures for docs/how-to/vpa.md.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.fixtures import web
from lab.fixtures.controller import Controller
from lab.fixtures.metrics_api import MetricsApi
from lab.fixtures.shop import POOL, JsonObject, Shop
from lab.fixtures.stage import Stage
from lab.fixtures.vpa import VPAS, reported, vertical_autoscaler, vertical_autoscaling
from lab.sandbox import Instant, Sandbox, upstream
from lab.sandbox.real import world

REFUSED = world.refusal()
pytestmark = pytest.mark.beside

REPLICAS, SURGE = 6, 2
# What each pod uses, far above what it requests; and for how long the updater looks on, every two seconds.
ASKED_M, USED_M = 100, 700
# More than a machine has.
TOO_MUCH_M = 9_000
LOOKS_S = 20
BY_TURNS_S = 180.0


@pytest.fixture(scope="module")
def home(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield where the logs of the running VerticalPodAutoscaler lie; each pod of `web` uses the same."""
    files, folder = upstream.built(upstream.VPA, print), tmp_path_factory.mktemp("vpa")
    with MetricsApi(sandbox) as metrics, vertical_autoscaling(sandbox, files, folder):
        metrics.uses("web", USED_M)
        metrics.uses("huge", TOO_MUCH_M)
        yield folder


def split(
    shop: Shop, mode: str, on_demand: int, name: str = "web", *, pod: JsonObject | None = None, **policy: str
) -> None:
    """Have a Deployment split, under a VerticalPodAutoscaler that recommends."""
    asked = {
        "splitter.io/on-demand-base": str(on_demand),
        **{f"splitter.io/{key}": policy[key] for key in policy},
    }
    template = {} if pod is None else {"template": pod}
    shop.deploy(name, REPLICAS, surge=SURGE, annotations=asked, **template)
    shop.label(name)
    shop.wait_split(on_demand, REPLICAS - on_demand, name)
    shop.wait_steady(name)
    shop.apply(vertical_autoscaler(mode, name))
    shop.until(lambda: recommended_m(shop, name) >= USED_M, "a recommendation", BY_TURNS_S)


def recommended_m(shop: Shop, name: str) -> int:
    """Return the CPU that is recommended for the container, in thousandths of a core."""
    raw = shop.sandbox.api.get(f"{VPAS.format(shop.namespace)}/{name}")
    [container] = raw["status"]["recommendation"]["containerRecommendations"]
    return cpu_m(container["target"]["cpu"])


def cpu_m(text: str) -> int:
    """Return an amount of CPU in thousandths of a core."""
    return int(text.removesuffix("m")) if text.endswith("m") else int(text) * 1000


def requested_m(pod: JsonObject) -> int:
    """Return the CPU that a pod requests."""
    return cpu_m(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def raised(shop: Shop, name: str = "web") -> dict[str, int]:
    """Count the pods of each pool that request what is recommended."""
    pods = [pod for pod in shop.pods(name) if requested_m(pod) > ASKED_M]
    pools = [pod["metadata"]["labels"][POOL] for pod in pods]
    return {pool: pools.count(pool) for pool in ("on-demand", "spot")}


def resized(shop: Shop) -> set[str]:
    """Return the UIDs of the pods that request what is recommended."""
    return {pod["metadata"]["uid"] for pod in shop.pods() if requested_m(pod) > ASKED_M}


def is_skipped(shop: Shop, log: Path) -> bool:
    """Whether the updater has seen that it may not evict for the VerticalPodAutoscaler of `web`."""
    lines = log.read_text().splitlines()
    return any("its mode is not" in line and f'"{shop.namespace}/web"' in line for line in lines)


@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate"])
def test_it_evicts_from_both_twins_one_at_a_time(shop: Shop, home: Path, mode: str) -> None:
    """The updater takes pods of both pools for its target's, and splitter's budget lets one go at a time.

    KWOK's nodes cannot resize a running pod, so `InPlaceOrRecreate` evicts too.
    """
    before = reported(home / "updater.log")
    split(shop, mode, on_demand=2)
    templates = [shop.deployment(twin)["metadata"]["generation"] for twin in ("web-on-demand", "web-spot")]
    with shop.watch() as watched:
        began = Instant.now()
        shop.until(lambda: raised(shop) == {"on-demand": 2, "spot": 4}, "all pods to be raised", BY_TURNS_S)
        shop.wait_split(on_demand=2, spot=4)
        took_s = Instant.now().monotonic_s - began.monotonic_s
        lowest = watched.lowest()
    counted = {key: count - before[key] for key, count in reported(home / "updater.log").items()}
    sys.stdout.write(f"\n{mode}: {counted} in {took_s:.0f} s, never fewer than {lowest} of {REPLICAS}\n")
    assert lowest >= REPLICAS - 1
    assert counted["evicted"] >= REPLICAS
    after = [shop.deployment(twin)["metadata"]["generation"] for twin in ("web-on-demand", "web-spot")]
    assert after == templates, "requests on pods are no drift of a twin"
    assert "lastLoss" not in shop.status()["memory"]["rebalance"]


def test_the_only_replica_of_a_pool_is_left_alone(shop: Shop, home: Path) -> None:
    """It counts replicas for each ReplicaSet, and evicts none if there are fewer than two."""
    split(shop, "Recreate", on_demand=1)
    shop.until(lambda: raised(shop)["spot"] == REPLICAS - 1, "all spot pods to be raised", BY_TURNS_S)
    began = Instant.now().monotonic_s
    shop.until(lambda: Instant.now().monotonic_s > began + LOOKS_S, "the updater to look again")
    assert raised(shop) == {"on-demand": 0, "spot": REPLICAS - 1}
    assert '"Too few replicas"' in (home / "updater.log").read_text()


def test_where_all_have_to_stay_nothing_is_evicted(shop: Shop, home: Path) -> None:
    """With `surge-first` every eviction is refused; `Initial` and a restart bring the requests."""
    before = reported(home / "updater.log")["refused"]
    split(shop, "Recreate", on_demand=2, evictions="surge-first")
    with shop.watch() as watched:
        shop.until(lambda: reported(home / "updater.log")["refused"] >= before + 4, "evictions to be refused")
        assert raised(shop) == {"on-demand": 0, "spot": 0}
        # An eviction that the surge of a roll lets through takes a replica beside those that the roll takes.
        shop.apply(vertical_autoscaler("Initial"))
        shop.until(lambda: is_skipped(shop, home / "updater.log"), "the updater to leave the pods alone")
        shop.annotate(restarted_at="2026-01-01T00:00:00Z")
        shop.until(lambda: raised(shop) == {"on-demand": 2, "spot": 4}, "the restart to raise all")
        shop.wait_split(on_demand=2, spot=4)
        assert watched.lowest() >= REPLICAS
        assert watched.highest() <= REPLICAS + SURGE


def test_initial_waits_for_new_pods(shop: Shop, home: Path) -> None:
    """With `Initial` running pods keep their requests, and those that spot gets next have the new ones."""
    split(shop, "Initial", on_demand=1)
    assert home.exists()
    uids = shop.pod_uids()
    shop.scale(REPLICAS + 2)
    shop.wait_split(on_demand=1, spot=REPLICAS + 1)
    assert raised(shop) == {"on-demand": 0, "spot": 2}
    assert uids < shop.pod_uids()


def test_one_on_a_twin_recommends_nothing(shop: Shop, home: Path) -> None:
    """A twin has an owner, so the VerticalPodAutoscaler refuses it as a target, and leaves its pods alone."""
    assert home.exists()
    split(shop, "Off", on_demand=2)
    shop.apply(vertical_autoscaler("Recreate", "web-spot"))
    path = f"{VPAS.format(shop.namespace)}/web-spot"

    def conditions() -> dict[str, str]:
        return {one["type"]: one["status"] for one in shop.sandbox.api.get(path)["status"]["conditions"]}

    shop.until(lambda: conditions()["ConfigUnsupported"] == "True", "it to be refused")
    assert conditions()["NoPodsMatched"] == "True"
    assert raised(shop) == {"on-demand": 0, "spot": 0}


def test_a_recommendation_that_fits_no_machine(shop: Shop, home: Path) -> None:
    """One replica is evicted, and its cover finds no machine either; the budget keeps all the others."""
    before = reported(home / "updater.log")
    split(shop, "Recreate", on_demand=2, name="huge")
    with shop.watch("huge") as watched:
        shop.says("SpotShort", "on-demand at 3", name="huge")
        refused = reported(home / "updater.log")["refused"]
        shop.until(
            lambda: reported(home / "updater.log")["refused"] >= refused + 8, "evictions to be refused"
        )
        assert watched.lowest() == REPLICAS - 1
    assert reported(home / "updater.log")["evicted"] == before["evicted"] + 1
    assert raised(shop, "huge") == {"on-demand": 1, "spot": 1}


@pytest.mark.skipif(REFUSED is not None, reason=REFUSED or "")
def test_running_pods_are_resized(stage: Stage, real: tuple[Sandbox, Controller], tmp_path: Path) -> None:
    """On nodes that can resize, `InPlaceOrRecreate` patches the pods of both twins, and evicts none.

    These kubelets do not manage cgroups, so the containers themselves keep what they have.
    """
    sandbox, _ = real
    shop = stage.shop
    files = upstream.built(upstream.VPA, print)
    with MetricsApi(sandbox) as metrics, vertical_autoscaling(sandbox, files, tmp_path):
        metrics.uses("web", USED_M)
        split(shop, "Off", on_demand=2, pod=web.template())
        uids = shop.pod_uids()
        shop.apply(vertical_autoscaler("InPlaceOrRecreate"))
        # A kubelet may be NotReady for a moment meanwhile; then its replicas are covered.
        shop.until(lambda: len(resized(shop) & uids) == REPLICAS, "all to be raised", BY_TURNS_S)
        shop.wait_split(on_demand=2, spot=4)
        assert shop.pod_uids() == uids
        containers = [pod["status"]["containerStatuses"][0] for pod in shop.pods()]
        assert [one["restartCount"] for one in containers] == [0] * REPLICAS
        assert reported(tmp_path / "updater.log")["evicted"] == 0
