"""The series of the workloads: theirs alone, in step with the passes, gone with the workload."""

import pytest
from prometheus_client import Metric

from report.shown import counts, figures, series, value
from splitter.core.names import Key
from splitter.core.usage import Amount, Use
from splitter.report.workloads import Workloads

WEB = Key("Deployment", "shop", "web")
OF_WEB = {"namespace": "shop", "kind": "Deployment", "name": "web"}


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        """Return the time of now."""
        return self.now_s


class Shelf:
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
def shelf() -> Shelf:
    """Return one that nobody has told anything."""
    return Shelf()


class TestCounts:
    def test_both_pools(self, shelf: Shelf) -> None:
        """Each pool shows each of its counts."""
        pools = {"on-demand": counts(3, spec=8), "spot": counts(7, ready=2, doomed=4, pending=1)}
        shelf.workloads.show(WEB, figures(pools=pools))
        found = series(shelf.read(), "splitter_replicas")
        assert len(found) == 10
        assert found[frozenset({**OF_WEB, "pool": "on-demand", "count": "spec"}.items())] == 8
        assert found[frozenset({**OF_WEB, "pool": "spot", "count": "doomed"}.items())] == 4

    def test_the_whole(self, shelf: Shelf) -> None:
        """What is asked for, what serves, what stands in."""
        shelf.workloads.show(WEB, figures(ready=9, cover=2))
        assert shelf.value("splitter_desired_replicas", **OF_WEB) == 10
        assert shelf.value("splitter_ready_replicas", **OF_WEB) == 9
        assert shelf.value("splitter_cover_replicas", **OF_WEB) == 2

    def test_shares(self, shelf: Shelf) -> None:
        """Both shares are of the replicas asked for, so that they can be compared."""
        shelf.workloads.show(WEB, figures(ready_on_spot=4))
        assert shelf.value("splitter_spot_share_ratio", **OF_WEB) == 0.4
        assert shelf.value("splitter_spot_share_wanted_ratio", **OF_WEB) == 0.7

    def test_no_share_of_nothing(self, shelf: Shelf) -> None:
        """A workload scaled to 0 has no share."""
        shelf.workloads.show(WEB, figures(desired=0, ready=0, ready_on_spot=0))
        assert shelf.value("splitter_spot_share_ratio") is None
        assert shelf.value("splitter_desired_replicas") == 0

    def test_state(self, shelf: Shelf) -> None:
        """Only the state and the reason of now are shown."""
        shelf.workloads.show(WEB, figures())
        shelf.workloads.show(WEB, figures(state="Moving", reason="SpotLost"))
        found = series(shelf.read(), "splitter_state")
        assert found == {frozenset({**OF_WEB, "state": "Moving", "reason": "SpotLost"}.items()): 1}

    def test_kinds_are_told_apart(self, shelf: Shelf) -> None:
        """A StatefulSet of the same name is another workload."""
        shelf.workloads.show(WEB, figures(desired=10))
        shelf.workloads.show(Key("StatefulSet", "shop", "web"), figures(desired=3))
        assert shelf.value("splitter_desired_replicas", kind="Deployment") == 10
        assert shelf.value("splitter_desired_replicas", kind="StatefulSet") == 3


class TestSeconds:
    def test_in_cover(self, shelf: Shelf) -> None:
        """Seconds count while anything stands in, however many, and not before or after."""
        for cover, passes_s in ((0, 100), (3, 60), (1, 20), (0, 500)):
            shelf.workloads.show(WEB, figures(cover=cover))
            shelf.clock.now_s += passes_s
        assert shelf.value("splitter_cover_seconds_total", **OF_WEB) == 80

    def test_between_passes(self, shelf: Shelf) -> None:
        """A scrape counts up to itself; it changes nothing."""
        shelf.workloads.show(WEB, figures(cover=1))
        shelf.clock.now_s += 7
        assert shelf.value("splitter_cover_seconds_total") == 7
        shelf.clock.now_s += 7
        assert shelf.value("splitter_cover_seconds_total") == 14

    def test_of_pods(self, shelf: Shelf) -> None:
        """Each pool goes on from what the Split has counted, as long as a pass holds."""
        before = {Use.ON_DEMAND: Amount(40, 4000, 2048), Use.SPOT: Amount(70)}
        shelf.workloads.show(WEB, figures(used=before))
        shelf.clock.now_s += 10
        assert shelf.value("splitter_pod_seconds_total", pool="on-demand") == 70
        assert shelf.value("splitter_pod_seconds_total", pool="spot") == 140
        assert shelf.value("splitter_requested_cpu_seconds_total", pool="on-demand") == 7
        assert (
            shelf.value("splitter_requested_memory_gib_seconds_total", pool="on-demand")
            == (2048 + 960) / 1024
        )
        assert shelf.value("splitter_desired_pod_seconds_total") == 100

    def test_of_overhead(self, shelf: Shelf) -> None:
        """What stands in for spot and what is beyond the replicas asked for are shown apart."""
        shelf.workloads.show(WEB, figures(held={Use.COVER: Amount(2), Use.SURGE: Amount(1)}))
        shelf.clock.now_s += 30
        assert shelf.value("splitter_overhead_pod_seconds_total", overhead="cover") == 60
        assert shelf.value("splitter_overhead_pod_seconds_total", overhead="surge") == 30

    def test_never_go_back(self, shelf: Shelf) -> None:
        """A wall clock behind the one that scrapes are counted by takes nothing back."""
        shelf.workloads.show(WEB, figures())
        shelf.clock.now_s += 10
        shelf.workloads.show(WEB, figures(used={Use.SPOT: Amount(69)}))
        assert shelf.value("splitter_pod_seconds_total", pool="spot") == 70

    def test_begin_at_nothing(self, shelf: Shelf) -> None:
        """Both are there from the first pass on."""
        shelf.workloads.show(WEB, figures())
        assert shelf.value("splitter_cover_seconds_total") == 0
        assert shelf.value("splitter_pod_seconds_total", pool="spot") == 0


class TestDecisions:
    def test_counted_by_reason(self, shelf: Shelf) -> None:
        """Each decision counts under its word."""
        shelf.workloads.show(WEB, figures())
        for reason in ("Scaled", "Returning", "Scaled"):
            shelf.workloads.decided(WEB, reason)
        assert shelf.value("splitter_decisions_total", reason="Scaled") == 2
        assert shelf.value("splitter_decisions_total", reason="Returning") == 1

    def test_losses_begin_at_0(self, shelf: Shelf) -> None:
        """The first loss is a step up from 0, which `increase` sees."""
        shelf.workloads.show(WEB, figures())
        assert shelf.value("splitter_decisions_total", reason="SpotLost") == 0
        shelf.workloads.decided(WEB, "SpotLost")
        assert shelf.value("splitter_decisions_total", reason="SpotLost") == 1

    def test_before_the_first_figures(self, shelf: Shelf) -> None:
        """What was decided before there was a Split is not lost."""
        shelf.workloads.decided(WEB, "TakenOver")
        shelf.workloads.show(WEB, figures())
        assert shelf.value("splitter_decisions_total", reason="TakenOver") == 1


class TestWords:
    def test_refused(self, shelf: Shelf) -> None:
        """One reason at a time, and none when it is gone."""
        shelf.workloads.refuse(WEB, "StrategyRecreate")
        shelf.workloads.refuse(WEB, "AlreadyPaused")
        assert list(series(shelf.read(), "splitter_refused")) == [
            frozenset({**OF_WEB, "reason": "AlreadyPaused"}.items())
        ]
        shelf.workloads.refuse(WEB, "")
        assert not series(shelf.read(), "splitter_refused")

    def test_troubles(self, shelf: Shelf) -> None:
        """Several at a time, each once."""
        shelf.workloads.trouble(WEB, ["NotReady", "CrashLooping", "NotReady"])
        assert {dict(key)["reason"] for key in series(shelf.read(), "splitter_troubles")} == {
            "NotReady",
            "CrashLooping",
        }

    def test_nothing_to_say(self, shelf: Shelf) -> None:
        """A workload of which nothing is to be said has no series."""
        shelf.workloads.refuse(WEB, "")
        shelf.workloads.trouble(WEB, [])
        assert not [sample for family in shelf.read() for sample in family.samples]


class TestGoing:
    @pytest.fixture
    def known(self, shelf: Shelf) -> Shelf:
        """Return one that knows a split workload that would be refused today."""
        shelf.workloads.show(WEB, figures())
        shelf.workloads.decided(WEB, "Scaled")
        shelf.workloads.refuse(WEB, "StrategyRecreate")
        return shelf

    def test_gone(self, known: Shelf) -> None:
        """No series of a workload that is gone is left; one that nobody knows is no error."""
        known.workloads.forget(WEB)
        known.workloads.forget(WEB)
        assert not [sample for family in known.read() for sample in family.samples]

    def test_no_longer_split(self, known: Shelf) -> None:
        """What is no longer split only keeps why it is refused; its counters begin anew."""
        known.workloads.unsplit(WEB)
        assert {sample.name for family in known.read() for sample in family.samples} == {"splitter_refused"}
        known.workloads.show(WEB, figures())
        assert known.value("splitter_decisions_total", reason="Scaled") is None

    def test_all_at_once(self, known: Shelf) -> None:
        """A process that leads no more shows no workloads: another one does."""
        known.workloads.clear()
        assert not [sample for family in known.read() for sample in family.samples]


class TestSize:
    def test_bounded(self, shelf: Shelf) -> None:
        """A thousand workloads, each with a life behind it, stay within 35 series each."""
        reasons = ("SpotLost", "Returning", "Covered", "Scaled", "Rolling", "HandingOver", "TakenOver")
        for number in range(1000):
            key = Key("Deployment", "shop", f"web-{number}")
            shelf.workloads.show(key, figures())
            for reason in reasons:
                shelf.workloads.decided(key, reason)
        assert sum(len(family.samples) for family in shelf.read()) <= 35 * 1000
