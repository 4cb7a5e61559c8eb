"""What an operator sees of a loss and a return: a real Prometheus scrapes and alerts; the log; an Event."""

import itertools
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from e2e.support.prometheus_server import Prometheus
from lab.fixtures.controller import SHORT, Controller
from lab.fixtures.namespaces import open_shop
from lab.fixtures.shop import JsonObject, Shop, manifest
from lab.sandbox import Sandbox
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant
from lab.sandbox.machines import Notice
from lab.sandbox.ports import LOOPBACK, HeldPorts
from report.shown import served
from splitter.core.model import Note
from splitter.core.names import Key
from splitter.core.nodes.facts import NodeState
from splitter.core.reasons import Reason
from splitter.kube.apply import Writer
from splitter.kube.cache import Cache
from splitter.kube.connect import connect
from splitter.reconciler.events import EventRecorder
from splitter.reconciler.queue import WorkQueue

pytestmark = pytest.mark.e2e

REPLICAS, BASE, SURGE = 5, 1, 2
ASKED = {"splitter.io/on-demand-base": str(BASE)}
SHORT_SOAK_S = float(SHORT["SOAK_S"])
SECRET = "correct-horse-battery-staple"
_NUMBERS = itertools.count()
OF_WEB = 'kind="Deployment",name="web"'


@dataclass(frozen=True)
class Seen:
    """A namespace, the controller of its own, and the Prometheus that watches that."""

    shop: Shop
    controller: Controller
    prometheus: Prometheus
    port: int

    def value(self, metric: str, labels: str = "", *, of: str = OF_WEB) -> float | None:
        """Return what Prometheus has of a workload's metric now."""
        chosen = ",".join(filter(None, (f'namespace="{self.shop.namespace}"', of, labels)))
        return self.prometheus.value(f"{metric}{{{chosen}}}")

    def until(self, metric: str, labels: str, value: float) -> None:
        """Wait until Prometheus has this value."""
        self.shop.until(lambda: self.value(metric, labels) == value, f"{metric}{{{labels}}} to be {value}")

    def scraped(self) -> str:
        """Return what is served now."""
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())


@pytest.fixture
def seen(
    sandbox: Sandbox, controller: Controller, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Seen]:
    """Yield a namespace with a controller and a Prometheus of its own; the shared controller rests."""
    assert fleet.names("spot")
    home = tmp_path_factory.mktemp("seen")
    account = sandbox.service_account_kubeconfig("splitter-system", "splitter")
    ports = HeldPorts()
    port = ports.take()
    settings = {**SHORT, "METRICS_PORT": str(port), "LOG_FORMAT": "json", "LOG_LEVEL": "debug"}
    controller.stop()
    own = Controller(account, home, settings)
    try:
        own.start()
        with Prometheus(home, port) as prometheus:
            for shop in open_shop(sandbox, own, f"seen-{next(_NUMBERS)}"):
                yield Seen(shop, own, prometheus, port)
    finally:
        own.end()
        ports.release()
        controller.start()


@pytest.fixture
def split(seen: Seen) -> Seen:
    """Return it with `web`, split into 1 + 4, which has a secret in its environment."""
    shop = seen.shop
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.kubectl("set", "env", "deployment/web", f"PASSWORD={SECRET}")
    shop.wait_rolled_out()
    shop.label()
    shop.wait_split(on_demand=BASE, spot=REPLICAS - BASE)
    return seen


def verify_log(seen: Seen) -> None:
    """Each reconcile is one line of JSON with the same fields; no manifest and no environment is in it."""
    shop = seen.shop

    def reconciles() -> list[JsonObject]:
        whole, _, _ = seen.controller.said().rpartition("\n")  # the last line may be half written
        lines = [json.loads(line) for line in whole.splitlines()]
        of_all = [line for line in lines if line["message"] == "reconciled"]
        return [line for line in of_all if line["workload"] == f"{shop.namespace}/web"]

    def answered() -> list[JsonObject]:
        return [line for line in reconciles() if line["reason"] == "SpotInterrupted" and line["actions"]]

    shop.until(answered, "the line on the answer, which is written after the answer")
    ours, answers = reconciles(), answered()
    assert len(ours) > 5
    fields = {
        "time",
        "level",
        "logger",
        "message",
        "workload",
        "kind",
        "state",
        "reason",
        "actions",
        "took_ms",
    }
    assert {frozenset(line) for line in ours} == {frozenset({*fields, "because"})}
    assert {line["level"] for line in answers} <= {"WARNING", "INFO"}
    assert SECRET not in seen.controller.said()
    assert "containers" not in seen.controller.said()


def verify_series(seen: Seen) -> None:
    """Given back or deleted, a workload leaves no series; what is served is what the reference lists."""
    shop = seen.shop
    # Not `deploy`: by the time of a look they may be taken over, and so not rolled out any more.
    for name in ("cart", "gone"):
        shop.apply(manifest(name, 2, surge=SURGE, labels={"splitter.io/split": "enabled"}))
    for name in ("cart", "gone"):
        shop.wait_split(on_demand=0, spot=2, name=name)
    families = list(text_string_to_metric_families(seen.scraped()))
    names = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in families
        if family.name.startswith("splitter_")
    }
    assert names <= set(served())
    of_web = [
        sample for family in families for sample in family.samples if sample.labels.get("name") == "web"
    ]
    assert 15 <= len(of_web) <= 35
    shop.unlabel("cart")
    shop.wait_given_back("cart")
    shop.delete("gone")
    shop.until(lambda: not {"cart", "gone"} & named(seen.scraped()), "their series to go")
    assert "web" in named(seen.scraped())


def test_a_loss_and_a_return(split: Seen, fleet: Fleet) -> None:
    """Share, cover, reaction, pod-seconds and alerts are what happened, as seen by a real Prometheus."""
    shop, prometheus = split.shop, split.prometheus
    split.until("splitter_spot_share_ratio", "", (REPLICAS - BASE) / REPLICAS)
    assert split.value("splitter_spot_share_wanted_ratio") == (REPLICAS - BASE) / REPLICAS
    assert split.value("splitter_desired_replicas") == REPLICAS
    assert split.value("splitter_decisions_total", 'reason="SpotInterrupted"') == 0
    assert prometheus.values("splitter_leader") != {}
    whole = (REPLICAS - BASE) / REPLICAS
    shop.until(lambda: prometheus.value("splitter:spot_share:ratio") == whole, "the share of the fleet")
    shop.until(lambda: not {name for name in prometheus.alerts() if name.endswith("/web")}, "all to be quiet")
    assert (split.value("splitter_pod_seconds_total", 'pool="spot"') or 0) > 0

    # What stood on on-demand until spot had it, when it was taken over, has stood in for spot too.
    split.until("splitter_cover_replicas", "", 0)
    began_s = split.value("splitter_cover_seconds_total") or 0
    began = Instant.now()
    spot = fleet.names("spot")
    fleet.notice(spot, Notice.TAINT)
    split.until("splitter_spot_share_ratio", "", 0)
    split.until("splitter_cover_replicas", "", REPLICAS - BASE)
    split.until("splitter_ready_replicas", "", REPLICAS)
    shop.until(lambda: prometheus.alerts().get("SplitCoverLong/web") == "pending", "the alert on cover")
    split.until("splitter_replicas", 'pool="on-demand",count="spec"', REPLICAS)
    assert split.value("splitter_replicas", 'pool="on-demand",count="wanted"') == BASE

    fleet.withdraw(spot)
    shop.wait_split(on_demand=BASE, spot=REPLICAS - BASE)
    split.until("splitter_cover_replicas", "", 0)
    split.until("splitter_spot_share_ratio", "", (REPLICAS - BASE) / REPLICAS)
    outage_s = Instant.now().monotonic_s - began.monotonic_s
    shop.until(lambda: "SplitCoverLong/web" not in prometheus.alerts(), "the alert on cover to go")

    covered_s = (split.value("splitter_cover_seconds_total") or 0) - began_s
    # Pods are ready since a whole second: their soak may seem to have begun up to one before.
    assert SHORT_SOAK_S - 1 <= covered_s <= outage_s
    assert (split.value("splitter_decisions_total", 'reason="SpotInterrupted"') or 0) >= 1
    assert (
        prometheus.value('sum(increase(splitter_decisions_total{reason="SpotInterrupted"}[5m]))') or 0
    ) > 0
    reactions = prometheus.value("sum(splitter_reaction_seconds_count)") or 0
    took_s = prometheus.value("sum(splitter_reaction_seconds_sum)") or 0
    assert reactions >= 1
    assert 0 < took_s / reactions <= outage_s
    p99_s = prometheus.value("splitter:reaction_seconds:p99_1h") or 0
    assert 0 < p99_s <= outage_s
    states = prometheus.alerts()
    assert "firing" not in {states[name] for name in states if name.startswith("Splitter")}, states
    verify_log(split)


def test_alerts_fire_and_end(split: Seen) -> None:
    """A refused workload, and a controller that is gone, are told; so is that they are no more."""
    shop, prometheus = split.shop, split.prometheus
    shop.deploy("fixed", replicas=1, strategy={"type": "Recreate"}, labels={"splitter.io/split": "enabled"})
    shop.until(lambda: prometheus.alerts().get("SplitRefused/fixed") == "firing", "the alert on a refusal")
    assert split.value("splitter_refused", 'reason="StrategyRecreate"', of='name="fixed"') == 1
    shop.kubectl("label", "deployment", "fixed", "splitter.io/split-")
    shop.until(lambda: "SplitRefused/fixed" not in prometheus.alerts(), "the refusal to be over")
    verify_series(split)

    split.controller.stop()
    shop_gone = lambda: prometheus.alerts().get("SplitterDown") == "firing"  # noqa: E731
    Shop(shop.sandbox, shop.namespace, lambda: None).until(
        shop_gone, "the alert on a controller that is gone"
    )
    split.controller.start()
    shop.until(lambda: "SplitterDown" not in prometheus.alerts(), "the controller to be seen again")
    split.until("splitter_desired_replicas", "", REPLICAS)
    assert split.value("splitter_decisions_total", 'reason="SpotInterrupted"') == 0


def named(text: str) -> set[str]:
    """Return the names of all workloads in what is served."""
    return {
        sample.labels["name"]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "name" in sample.labels and "namespace" in sample.labels
    }


async def test_a_series_of_events(sandbox: Sandbox, shop: Shop, kubeconfig: Path) -> None:
    """What is said again is counted on in the same Event, with splitter's own rights; kubectl shows it so."""
    shop.deploy("told", replicas=1)
    uid = shop.deployment("told")["metadata"]["uid"]
    key, note = Key("Deployment", shop.namespace, "told"), Note(Reason.DRIFT, "put back", warning=True)

    def never(_: object, **__: object) -> NodeState:
        raise AssertionError("no node is known")

    client = await connect(kubeconfig, None, 10, 4)
    try:
        recorder = EventRecorder(Writer(client, Cache(never, lambda *_, **__: None)), WorkQueue().calm)
        now = datetime.now(UTC) - timedelta(minutes=10)
        for minute in range(4):
            recorder.tell_about(key, uid, note, now + timedelta(minutes=minute))
            await recorder.flush()
        path = f"/apis/events.k8s.io/v1/namespaces/{shop.namespace}/events"
        [event] = [raw for raw in sandbox.api.list(path) if raw["reason"] == "Drift"]
        assert event["series"]["count"] == 4
        assert event["series"]["lastObservedTime"].startswith(
            f"{now + timedelta(minutes=3):%Y-%m-%dT%H:%M:%S}"
        )
        assert "(x4 over " in shop.kubectl("events", "--for", "deployment/told")

        shop.kubectl("delete", "events", "--field-selector", "reason=Drift")
        recorder.tell_about(key, uid, note, now + timedelta(minutes=4))
        await recorder.flush()
        [event] = [raw for raw in sandbox.api.list(path) if raw["reason"] == "Drift"]
        assert event.get("series") is None
    finally:
        await client.close()
