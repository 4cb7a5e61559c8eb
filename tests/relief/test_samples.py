"""What was measured is believed only where it can be true."""

from dataclasses import replace
from datetime import timedelta

import pytest

from relief.scene import BEGIN, MINUTE, piled
from splitter.core.relief.model import Amounts, Resource, Sample, Thresholds, Tuning
from splitter.relief.decide import Relief, relieve
from splitter.relief.loads import Cluster
from splitter.relief.samples import History, faults_of, hot_by, paused_by, remembered

CPU = Thresholds({Resource.CPU: 85.0})
TUNING = Tuning()


def measured(cluster: Cluster, **used: Sample) -> Cluster:
    """Return the cluster with other samples of some nodes; `node_00` is node-00."""
    others = {name.replace("_", "-"): sample for name, sample in used.items()}
    return replace(cluster, node_samples={**cluster.node_samples, **others})


class TestASample:
    """One that cannot be true counts as none."""

    @pytest.mark.parametrize(
        ("sample", "fault"),
        [
            (Sample(BEGIN, Amounts(-1, 0)), "its use of cpu is no amount"),
            (Sample(BEGIN, Amounts(8000, -1)), "its use of memory is no amount"),
            (Sample(BEGIN, Amounts(float("nan"), 0)), "its use of cpu is no amount"),
            (Sample(BEGIN, Amounts(float("inf"), 0)), "its use of cpu is no amount"),
            (Sample(BEGIN, Amounts(20_001, 0)), "its use of cpu is above 250 %"),
            (Sample(BEGIN - timedelta(seconds=181), Amounts(8000, 0)), "its sample is stale"),
            (Sample(BEGIN + timedelta(seconds=31), Amounts(8000, 0)), "its sample is of the future"),
            (Sample(BEGIN, Amounts(7.7, 7_700 * 1024.0**2)), "its pods use more than it does"),
        ],
    )
    def test_that_cannot_be_true_says_why(self, sample: Sample, fault: str) -> None:
        """Negative, no number, above 250 %, stale, of the future, in cores instead of thousandths."""
        cluster = measured(piled(CPU).cluster(), node_00=sample)
        assert faults_of(cluster, TUNING)["node-00"] == fault

    def test_that_is_missing_says_so(self) -> None:
        """A node without a sample is not known to be cool."""
        cluster = replace(piled(CPU).cluster(), node_samples={})
        assert faults_of(cluster, TUNING)["node-00"] == "not measured"

    def test_that_is_good_has_no_fault(self) -> None:
        """Of a node at 96 %, and of one at 103 %, as a kubelet may say."""
        cluster = measured(piled(CPU).cluster(), node_01=Sample(BEGIN, Amounts(8240, 9_000 * 1024.0**2)))
        assert set(faults_of(cluster, TUNING).values()) == {""}

    def test_of_a_node_that_cannot_allocate_is_none(self) -> None:
        """Nothing is divided by zero."""
        cluster = piled(CPU).cluster()
        nothing = replace(cluster.nodes[0], allocatable=Amounts())
        cluster = replace(cluster, nodes=(nothing, *cluster.nodes[1:]))
        assert faults_of(cluster, TUNING)["node-00"] == "its use of cpu is above 250 %"


class TestTheSource:
    """Metrics that are mostly wrong are not believed at all."""

    def test_that_is_absent_pauses_relief(self) -> None:
        """And says what to install."""
        cluster = replace(piled(CPU).cluster(), node_samples={})
        assert relieve(cluster, Relief(), ()).paused.startswith("there are no metrics of nodes; install")

    def test_that_knows_only_unknown_nodes_pauses_relief(self) -> None:
        """As a Prometheus of another cluster would."""
        cluster = replace(piled(CPU).cluster(), node_samples={"other": Sample(BEGIN, Amounts(1, 1))})
        assert relieve(cluster, Relief(), ()).paused == "the metrics are of no node that is here"

    def test_of_which_more_than_half_is_wrong_pauses_relief(self) -> None:
        """Six of twelve are left out; seven are a source that lies."""
        cluster = piled(CPU).cluster()
        faults = {node.name: "stale" if place < 6 else "" for place, node in enumerate(cluster.nodes)}
        assert not paused_by(cluster, faults)
        faults["node-06"] = "stale"
        assert paused_by(cluster, faults).startswith("the metrics of more than half of the nodes are missing")


class TestARow:
    """A node is hot after some samples in a row."""

    def looks(self, *used: float, every: timedelta = MINUTE) -> tuple[Cluster, History]:
        """Look at node-00 at these uses, one after the other."""
        cluster, history = piled(CPU).cluster(), dict[str, tuple[Sample, ...]]()
        for cpu in used:
            now = cluster.now + every
            cluster = measured(
                replace(cluster, now=now), node_00=Sample(now, Amounts(cpu, 8_000 * 1024.0**2))
            )
            others = dict.fromkeys((node.name for node in cluster.nodes[1:]), "left out")
            history = dict(remembered(history, cluster, (), others, TUNING))
        return cluster, history

    def is_hot(self, cluster: Cluster, history: History) -> bool:
        """Whether node-00 is."""
        return bool(hot_by(cluster.nodes[0], history.get("uid-node-00", ()), CPU, 3, 0.0))

    def test_of_three_is_hot(self) -> None:
        """Two are not, and no one below the threshold among the last three."""
        assert self.is_hot(*self.looks(7000, 7000, 7000))
        assert not self.is_hot(*self.looks(7000, 7000))
        assert not self.is_hot(*self.looks(7000, 7000, 7000, 6800))
        assert self.is_hot(*self.looks(6800, 7000, 7000, 7000))

    def test_the_same_sample_counts_once(self) -> None:
        """A source that stands still makes no row, however often it is asked."""
        cluster, history = self.looks(7000)
        for _ in range(5):
            others = dict.fromkeys((node.name for node in cluster.nodes[1:]), "left out")
            history = dict(remembered(history, cluster, (), others, TUNING))
        assert len(history["uid-node-00"]) == 1

    def test_ends_with_a_gap(self) -> None:
        """Samples that are further apart than a stale one is old say nothing together."""
        assert not self.is_hot(*self.looks(7000, 7000, 7000, every=timedelta(seconds=200)))

    def test_ends_with_a_bad_sample(self) -> None:
        """It begins anew afterwards."""
        cluster, history = self.looks(7000, 7000, 7000)
        assert "uid-node-00" not in remembered(
            history, cluster, (), dict.fromkeys(cluster.node_samples, "bad"), TUNING
        )
