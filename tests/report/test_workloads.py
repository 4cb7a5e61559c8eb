"""The series of the workloads: theirs alone, in step with the reconciles, gone with the workload."""

import pytest
from prometheus_client import Metric

from clock import Clock
from report.shown import counts, figures, series, value
from splitter.core.names import Key
from splitter.core.split_status.usage import Amount, Use
from splitter.report.workloads import Workloads

WEB = Key("Deployment", "shop", "web")
OF_WEB = {"namespace": "shop", "kind": "Deployment", "name": "web"}


class Indexer:
    """The workloads, a clock, and what a scrape reads."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.workloads = Workloads(self.clock)

    def read(self) -> list[Metric]:
        """Return what a scrape reads now."""
        return list(self.workloads.collect())

    def value(self, name: str, /, **labels: str) -> float | None:
        """Return one value."""
        return value(self.read(), name, **labels)


@pytest.fixture
def indexer() -> Indexer:
    """Return one that nobody has told anything."""
    return Indexer()


class TestCounts:
    def test_both_pools(self, indexer: Indexer) -> None:
        """Each pool shows each of its counts."""
        spot = counts(7, ready=2, doomed=4, pending=1)
        indexer.workloads.show(WEB, figures(on_demand=counts(3, spec=8), spot=spot))
        result = series(indexer.read(), "splitter_replicas")
        assert len(result) == 10
        assert result[frozenset({**OF_WEB, "pool": "on-demand", "count": "spec"}.items())] == 8
        assert result[frozenset({**OF_WEB, "pool": "spot", "count": "doomed"}.items())] == 4

    def test_the_whole(self, indexer: Indexer) -> None:
        """What is asked for, what serves, what stands in."""
        indexer.workloads.show(WEB, figures(ready=9, cover=2))
        assert indexer.value("splitter_desired_replicas", **OF_WEB) == 10
        assert indexer.value("splitter_ready_replicas", **OF_WEB) == 9
        assert indexer.value("splitter_cover_replicas", **OF_WEB) == 2

    def test_shares(self, indexer: Indexer) -> None:
        """Both shares are of the replicas asked for, so that they can be compared."""
        indexer.workloads.show(WEB, figures(ready_on_spot=4))
        assert indexer.value("splitter_spot_share_ratio", **OF_WEB) == 0.4
        assert indexer.value("splitter_spot_share_wanted_ratio", **OF_WEB) == 0.7

    def test_no_share_of_nothing(self, indexer: Indexer) -> None:
        """A workload scaled to 0 has no share."""
        indexer.workloads.show(WEB, figures(desired=0, ready=0, ready_on_spot=0))
        assert indexer.value("splitter_spot_share_ratio") is None
        assert indexer.value("splitter_desired_replicas") == 0

    def test_state(self, indexer: Indexer) -> None:
        """Only the state and the reason of now are shown."""
        indexer.workloads.show(WEB, figures())
        indexer.workloads.show(WEB, figures(state="Moving", reason="SpotLost"))
        result = series(indexer.read(), "splitter_state")
        assert result == {frozenset({**OF_WEB, "state": "Moving", "reason": "SpotLost"}.items()): 1}

    def test_kinds_are_told_apart(self, indexer: Indexer) -> None:
        """A StatefulSet of the same name is another workload."""
        indexer.workloads.show(WEB, figures(desired=10))
        indexer.workloads.show(Key("StatefulSet", "shop", "web"), figures(desired=3))
        assert indexer.value("splitter_desired_replicas", kind="Deployment") == 10
        assert indexer.value("splitter_desired_replicas", kind="StatefulSet") == 3


class TestSeconds:
    def test_in_cover(self, indexer: Indexer) -> None:
        """Seconds count while anything stands in, however many, and not before or after."""
        for cover, passes_s in ((0, 100), (3, 60), (1, 20), (0, 500)):
            indexer.workloads.show(WEB, figures(cover=cover))
            indexer.clock.now_s += passes_s
        assert indexer.value("splitter_cover_seconds_total", **OF_WEB) == 80

    def test_between_passes(self, indexer: Indexer) -> None:
        """A scrape counts up to itself; it changes nothing."""
        indexer.workloads.show(WEB, figures(cover=1))
        indexer.clock.now_s += 7
        assert indexer.value("splitter_cover_seconds_total") == 7
        indexer.clock.now_s += 7
        assert indexer.value("splitter_cover_seconds_total") == 14

    def test_of_pods(self, indexer: Indexer) -> None:
        """Each pool goes on from what the Split has counted, as long as a reconcile holds."""
        before = {Use.ON_DEMAND: Amount(40, 4000, 2048), Use.SPOT: Amount(70)}
        indexer.workloads.show(WEB, figures(used=before))
        indexer.clock.now_s += 10
        assert indexer.value("splitter_pod_seconds_total", pool="on-demand") == 70
        assert indexer.value("splitter_pod_seconds_total", pool="spot") == 140
        assert indexer.value("splitter_requested_cpu_seconds_total", pool="on-demand") == 7
        assert (
            indexer.value("splitter_requested_memory_gib_seconds_total", pool="on-demand")
            == (2048 + 960) / 1024
        )
        assert indexer.value("splitter_desired_pod_seconds_total") == 100

    def test_of_overhead(self, indexer: Indexer) -> None:
        """What stands in for spot and what is beyond the replicas asked for are shown apart."""
        indexer.workloads.show(WEB, figures(held={Use.COVER: Amount(2), Use.SURGE: Amount(1)}))
        indexer.clock.now_s += 30
        assert indexer.value("splitter_overhead_pod_seconds_total", overhead="cover") == 60
        assert indexer.value("splitter_overhead_pod_seconds_total", overhead="surge") == 30

    def test_never_go_back(self, indexer: Indexer) -> None:
        """A wall clock behind the one that scrapes are counted by takes nothing back."""
        indexer.workloads.show(WEB, figures())
        indexer.clock.now_s += 10
        indexer.workloads.show(WEB, figures(used={Use.SPOT: Amount(69)}))
        assert indexer.value("splitter_pod_seconds_total", pool="spot") == 70

    def test_begin_at_nothing(self, indexer: Indexer) -> None:
        """Both are there from the first reconcile on."""
        indexer.workloads.show(WEB, figures())
        assert indexer.value("splitter_cover_seconds_total") == 0
        assert indexer.value("splitter_pod_seconds_total", pool="spot") == 0


class TestDecisions:
    def test_counted_by_reason(self, indexer: Indexer) -> None:
        """Each decision counts under its word."""
        indexer.workloads.show(WEB, figures())
        for reason in ("Scaled", "Returning", "Scaled"):
            indexer.workloads.decided(WEB, reason)
        assert indexer.value("splitter_decisions_total", reason="Scaled") == 2
        assert indexer.value("splitter_decisions_total", reason="Returning") == 1

    def test_losses_begin_at_0(self, indexer: Indexer) -> None:
        """The first loss is a step up from 0, which `increase` sees."""
        indexer.workloads.show(WEB, figures())
        assert indexer.value("splitter_decisions_total", reason="SpotLost") == 0
        indexer.workloads.decided(WEB, "SpotLost")
        assert indexer.value("splitter_decisions_total", reason="SpotLost") == 1

    def test_before_the_first_figures(self, indexer: Indexer) -> None:
        """What was decided before there was a Split is not lost."""
        indexer.workloads.decided(WEB, "TakenOver")
        indexer.workloads.show(WEB, figures())
        assert indexer.value("splitter_decisions_total", reason="TakenOver") == 1


class TestWords:
    def test_refused(self, indexer: Indexer) -> None:
        """One reason at a time, and none when it is gone."""
        indexer.workloads.refuse(WEB, "StrategyRecreate")
        indexer.workloads.refuse(WEB, "AlreadyPaused")
        assert list(series(indexer.read(), "splitter_refused")) == [
            frozenset({**OF_WEB, "reason": "AlreadyPaused"}.items())
        ]
        indexer.workloads.refuse(WEB, "")
        assert not series(indexer.read(), "splitter_refused")

    def test_troubles(self, indexer: Indexer) -> None:
        """Several at a time, each once."""
        indexer.workloads.trouble(WEB, ["NotReady", "CrashLooping", "NotReady"])
        assert {dict(key)["reason"] for key in series(indexer.read(), "splitter_troubles")} == {
            "NotReady",
            "CrashLooping",
        }

    def test_nothing_to_say(self, indexer: Indexer) -> None:
        """A workload of which nothing is to be said has no series."""
        indexer.workloads.refuse(WEB, "")
        indexer.workloads.trouble(WEB, [])
        assert not [sample for family in indexer.read() for sample in family.samples]


class TestGoing:
    @pytest.fixture
    def known(self, indexer: Indexer) -> Indexer:
        """Return one that knows a split workload that would be refused today."""
        indexer.workloads.show(WEB, figures())
        indexer.workloads.decided(WEB, "Scaled")
        indexer.workloads.refuse(WEB, "StrategyRecreate")
        return indexer

    def test_gone(self, known: Indexer) -> None:
        """No series of a workload that is gone is left; one that nobody knows is no error."""
        known.workloads.forget(WEB)
        known.workloads.forget(WEB)
        assert not [sample for family in known.read() for sample in family.samples]

    def test_no_longer_split(self, known: Indexer) -> None:
        """What is no longer split only keeps why it is refused; its counters begin anew."""
        known.workloads.unsplit(WEB)
        assert {sample.name for family in known.read() for sample in family.samples} == {"splitter_refused"}
        known.workloads.show(WEB, figures())
        assert known.value("splitter_decisions_total", reason="Scaled") is None

    def test_all_at_once(self, known: Indexer) -> None:
        """A process that leads no more shows no workloads: another one does."""
        known.workloads.clear()
        assert not [sample for family in known.read() for sample in family.samples]


class TestSize:
    def test_bounded(self, indexer: Indexer) -> None:
        """A thousand workloads, each with a life behind it, stay within 35 series each."""
        reasons = ("SpotLost", "Returning", "Covered", "Scaled", "Rolling", "HandingOver", "TakenOver")
        for number in range(1000):
            key = Key("Deployment", "shop", f"web-{number}")
            indexer.workloads.show(key, figures())
            for reason in reasons:
                indexer.workloads.decided(key, reason)
        assert sum(len(family.samples) for family in indexer.read()) <= 35 * 1000
