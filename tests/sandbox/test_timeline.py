"""What a recording says about availability, checked on recordings made by hand."""

from dataclasses import replace

import pytest

from lab.sandbox.instants import Instant
from lab.sandbox.recording import (
    NodeChange,
    NodeSeen,
    PodChange,
    PodSeen,
    Recording,
    read_node,
    read_pod,
)
from lab.sandbox.timeline import Between, Steps, Timeline

WEB = {"app": "web"}


def at(second: float) -> Instant:
    """Return a moment of the recording."""
    return Instant(second, 1_000_000 + second)


def node(name: str = "spot-0", uid: str = "n1") -> NodeSeen:
    """Return a Ready node."""
    return NodeSeen(name, uid)


def pod(name: str = "web-1", *, on: str = "spot-0", uid: str = "") -> PodSeen:
    """Return a Ready pod of the workload."""
    return PodSeen("shop", name, uid or name, labels=WEB, node=on, ready=True, phase="Running")


def recording(*changes: PodChange | NodeChange, until: float = 100) -> Recording:
    """Return a recording from second 0."""
    return Recording(at(0), at(until), changes)


def timeline(*changes: PodChange | NodeChange) -> Timeline:
    """Return the workload's timeline."""
    return Timeline.of(recording(*changes), "shop", WEB)


class TestAvailable:
    """A pod is available while it is Ready, not terminating, and on a node that exists and is Ready."""

    def test_counts_ready_pods_on_ready_nodes(self) -> None:
        """Two Ready pods on a Ready node are two."""
        seen = timeline(NodeChange(at(1), node()), PodChange(at(2), pod("a")), PodChange(at(3), pod("b")))
        assert [seen.available.at(at(second)) for second in (0, 1, 2, 3, 50)] == [0, 0, 1, 2, 2]

    @pytest.mark.parametrize(
        "broken",
        [replace(pod(), ready=False), replace(pod(), terminating=True), replace(pod(), phase="Failed")],
    )
    def test_a_pod_that_cannot_serve_is_not_available(self, broken: PodSeen) -> None:
        """Unready, terminating and ended pods are out from the moment they are seen so."""
        seen = timeline(NodeChange(at(1), node()), PodChange(at(1), pod()), PodChange(at(5), broken))
        assert seen.available.at(at(4)) == 1
        assert seen.available.at(at(5)) == 0

    def test_a_deleted_pod_is_not_available(self) -> None:
        """A deletion counts at its own moment."""
        seen = timeline(
            NodeChange(at(1), node()), PodChange(at(1), pod()), PodChange(at(5), pod(), deleted=True)
        )
        assert (seen.available.at(at(4)), seen.available.at(at(5))) == (1, 0)

    def test_a_killed_node_takes_its_pods_along(self) -> None:
        """Pods of a Node object that is gone are unavailable, although they are still called Ready."""
        seen = timeline(
            NodeChange(at(1), node()), PodChange(at(1), pod()), NodeChange(at(7), node(), deleted=True)
        )
        assert (seen.available.at(at(6)), seen.available.at(at(7))) == (1, 0)
        assert seen.total.at(at(7)) == 1

    @pytest.mark.parametrize("gone", [replace(node(), ready=False), replace(node(), running=False)])
    def test_a_lost_node_takes_its_pods_along(self, gone: NodeSeen) -> None:
        """NotReady counts, and a machine that has fallen silent counts before Kubernetes notices."""
        seen = timeline(NodeChange(at(1), node()), PodChange(at(1), pod()), NodeChange(at(7), gone))
        assert seen.available.at(at(7)) == 0

    def test_a_node_that_comes_back_brings_its_pods(self) -> None:
        """A fresh Node of the same name counts, and late news of the old one's end does not hide it."""
        seen = timeline(
            NodeChange(at(1), node()),
            PodChange(at(1), pod()),
            NodeChange(at(7), node(), deleted=True),
            NodeChange(at(9), node(uid="n2")),
            NodeChange(at(10), node(), deleted=True),
        )
        assert [seen.available.at(at(second)) for second in (7, 9, 10)] == [0, 1, 1]

    def test_a_pod_that_is_not_bound_is_not_available(self) -> None:
        """A pod without a node serves nobody."""
        assert timeline(PodChange(at(1), pod(on=""))).available.at(at(1)) == 0


class TestTotal:
    """The total counts pods that exist and have not ended."""

    def test_with_and_without_terminating(self) -> None:
        """Terminating pods are in one total and not in the other."""
        seen = timeline(PodChange(at(1), pod("a")), PodChange(at(2), replace(pod("b"), terminating=True)))
        assert seen.highest_total() == 2
        assert seen.highest_total(with_terminating=False) == 1

    def test_ended_pods_do_not_count(self) -> None:
        """Succeeded and Failed pods have ended."""
        seen = timeline(PodChange(at(1), pod()), PodChange(at(2), replace(pod(), phase="Succeeded")))
        assert seen.total.at(at(2)) == 0

    def test_a_pod_reborn_under_its_name_is_another(self) -> None:
        """StatefulSets re-use names: pods are told apart by uid."""
        seen = timeline(
            PodChange(at(1), pod(uid="1")),
            PodChange(at(2), pod(uid="2")),
            PodChange(at(3), pod(uid="1"), deleted=True),
        )
        assert [seen.total.at(at(second)) for second in (1, 2, 3)] == [1, 2, 1]


class TestSelection:
    """A timeline is of one selection of pods."""

    def test_by_namespace_labels_and_predicate(self) -> None:
        """All of them must match."""
        changes = (
            PodChange(at(1), pod("a")),
            PodChange(at(1), pod("b", on="on-demand-0")),
            PodChange(at(1), replace(pod("c"), namespace="other")),
            PodChange(at(1), replace(pod("d"), labels={"app": "db"})),
        )
        seen = recording(*changes)
        assert Timeline.of(seen).total.at(at(1)) == 4
        assert Timeline.of(seen, "shop").total.at(at(1)) == 3
        assert Timeline.of(seen, "shop", WEB).total.at(at(1)) == 2
        assert (
            Timeline.of(seen, "shop", WEB, where=lambda result: result.node == "spot-0").total.at(at(1)) == 1
        )

    def test_a_pod_whose_labels_stop_matching_leaves(self) -> None:
        """Labels count as they are at each moment."""
        seen = timeline(PodChange(at(1), pod()), PodChange(at(2), replace(pod(), labels={})))
        assert (seen.total.at(at(1)), seen.total.at(at(2))) == (1, 0)


class TestSteps:
    """Questions about a number that holds until the next one."""

    STEPS = Steps((1.0, 10.0, 12.0), (4, 3, 4))

    def test_lowest_and_highest_within_a_stretch(self) -> None:
        """The value that holds when the stretch begins counts too, and both ends are included."""
        assert self.STEPS.lowest(Between(at(5), at(11))) == 3
        assert self.STEPS.highest(Between(at(5), at(11))) == 4
        assert self.STEPS.lowest(Between(at(5), at(10))) == 3
        assert self.STEPS.lowest(Between(at(12), at(20))) == 4
        assert self.STEPS.lowest(Between(at(0), at(20))) == 0

    def test_seconds_below(self) -> None:
        """Only the part within the stretch counts."""
        assert self.STEPS.seconds_below(4, Between(at(1), at(20))) == 2.0
        assert self.STEPS.seconds_below(4, Between(at(1), at(11))) == 1.0
        assert self.STEPS.seconds_below(3, Between(at(1), at(20))) == 0.0
        assert self.STEPS.seconds_below(5, Between(at(1), at(20))) == 19.0

    def test_seconds_until_at_least(self) -> None:
        """0 when it holds already, None when it never comes."""
        assert self.STEPS.seconds_until_at_least(4, at(5)) == 0.0
        assert self.STEPS.seconds_until_at_least(4, at(10.5)) == 1.5
        assert self.STEPS.seconds_until_at_least(5, at(5)) is None

    def test_an_empty_recording_is_zero(self) -> None:
        """Nothing seen is nothing available, not an error."""
        assert timeline().lowest_available() == 0
        assert timeline().seconds_below(1) == 100.0


class TestReading:
    """What is taken from raw objects."""

    def test_a_pod(self) -> None:
        """The controlling owner counts, readiness is the condition, a deletionTimestamp is termination."""
        seen = read_pod(
            {
                "metadata": {
                    "namespace": "shop",
                    "name": "web-1",
                    "uid": "u",
                    "labels": WEB,
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                    "deletionTimestamp": "2026-01-01T00:01:00Z",
                },
                "spec": {"nodeName": "spot-0"},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            }
        )
        assert (seen.ready, seen.terminating, seen.node, seen.phase) == (True, True, "spot-0", "Running")

    def test_a_node(self) -> None:
        """A silent machine is told from its label, a notice from taints and cordon."""
        seen = read_node(
            {
                "metadata": {
                    "name": "spot-0",
                    "uid": "n",
                    "labels": {"sandbox.splitter.io/kubelet": "stopped"},
                },
                "spec": {
                    "unschedulable": True,
                    "taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}],
                },
                "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
            }
        )
        assert (seen.ready, seen.running, seen.unschedulable) == (False, False, True)
        assert seen.taints == ("karpenter.sh/disrupted:NoSchedule",)
