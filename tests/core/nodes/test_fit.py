"""Which nodes a pod fits on, and how many."""

from dataclasses import replace

import pytest

from splitter.core.nodes.facts import CapacityClass, Health, NodeState, Taint
from splitter.core.nodes.fit import (
    MatchExpression,
    NodeHeadroom,
    NodeTerm,
    Operator,
    PodRequest,
    SpreadConstraint,
    Toleration,
    count_headroom,
    may_run_on,
)

SPOT, ON_DEMAND, UNKNOWN = CapacityClass.SPOT, CapacityClass.ON_DEMAND, CapacityClass.UNKNOWN


class TestSpreadConstraint:
    OF_WEB = SpreadConstraint("zone", 1, strict=True, selector=(MatchExpression("app", "In", ("web",)),))

    @pytest.mark.parametrize(
        ("fields", "labels", "counted"),
        [
            ({}, {"app": "web"}, True),
            ({}, {"app": "api"}, False),
            ({}, {}, False),
            ({"selector": ()}, {"app": "web"}, False),
            ({"selector": (), "label_keys": ("track",)}, {"app": "web"}, False),
            ({"selector": (), "label_keys": ("hash",)}, {"hash": "1"}, True),
            ({"selector": None}, {"app": "web"}, False),
            ({"label_keys": ("hash",)}, {"app": "web", "hash": "1"}, True),
            ({"label_keys": ("hash",)}, {"app": "web", "hash": "2"}, False),
            ({"label_keys": ("hash",)}, {"app": "web"}, False),
            ({"label_keys": ("track",)}, {"app": "web", "hash": "2"}, True),
        ],
    )
    def test_whom_it_counts(
        self, fields: dict[str, object], labels: dict[str, str], *, counted: bool
    ) -> None:
        """A key that the pod itself does not bear is ignored; by an empty selector none is counted.

        Source: countPodsMatchSelector and mergeLabelSetWithSelector of kube-scheduler.
        """
        constraint = replace(self.OF_WEB, **fields)  # type: ignore[arg-type]
        assert constraint.counts(labels, {"app": "web", "hash": "1"}) is counted


def spot_node(cpu_milli: int = 4000, **changes: object) -> NodeState:
    """Build a healthy spot node."""
    state = NodeState(
        "node-a",
        "uid-a",
        SPOT,
        labels={"zone": "a", "cores": "8"},
        allocatable={"cpu": cpu_milli, "pods": 110},
    )
    return replace(state, **changes)  # type: ignore[arg-type] # fields by name


class TestHeadroom:
    """How many more replicas fit, node by node."""

    POD = PodRequest(requests={"cpu": 1500})

    def test_is_whole_replicas_on_each_node(self) -> None:
        """Room for half a replica on each of two nodes is room for none."""
        assert count_headroom(self.POD, [NodeHeadroom(spot_node(1000)), NodeHeadroom(spot_node(1000))]) == 0
        assert count_headroom(self.POD, [NodeHeadroom(spot_node(3000)), NodeHeadroom(spot_node(1600))]) == 3

    def test_takes_off_what_is_used_and_promised(self) -> None:
        """Other pods' requests, and what other workloads were given a moment ago."""
        headroom = [NodeHeadroom(spot_node(6000), {"cpu": 1500, "pods": 1})]
        assert count_headroom(self.POD, headroom) == 3
        assert count_headroom(self.POD, headroom, reserved=2) == 1
        assert count_headroom(self.POD, headroom, reserved=9) == 0

    def test_looks_no_further_than_it_must(self) -> None:
        """More room than there are replicas is nobody's concern, and the nodes behind it are not asked."""
        headroom = iter(
            [NodeHeadroom(spot_node(3000)), NodeHeadroom(spot_node(3000)), NodeHeadroom(spot_node(3000))]
        )
        assert count_headroom(self.POD, headroom, reserved=1, enough=3) == 3
        assert len(list(headroom)) == 1

    def test_looks_at_fewer_nodes_the_more_a_pod_asks(self) -> None:
        """Whoever may write a pod chooses how much it asks of a node, and takes nobody's time."""
        headroom = iter([NodeHeadroom(spot_node(3000)) for _ in range(300)])
        assert count_headroom(PodRequest(requests={"cpu": 1500}, requirements=9_999), headroom) == 200
        assert len(list(headroom)) == 200
        many = PodRequest(requests={f"example.com/r{number}": 1 for number in range(9_999)})
        assert many.most_nodes == 100
        assert (
            count_headroom(
                PodRequest(requests={"cpu": 1500}, requirements=0), [NodeHeadroom(spot_node(3000))]
            )
            == 2
        )

    def test_is_bounded_by_pod_slots(self) -> None:
        """A pod that requests nothing still takes a slot; an overfull node has no negative room."""
        slots = spot_node(allocatable={"cpu": 99_000, "pods": 10})
        assert count_headroom(PodRequest(), [NodeHeadroom(slots, {"pods": 7})]) == 3
        assert count_headroom(PodRequest(), [NodeHeadroom(slots, {"pods": 12})]) == 0

    def test_needs_extended_resources_to_be_there(self) -> None:
        """A GPU is not made of CPU."""
        assert count_headroom(PodRequest(requests={"nvidia.com/gpu": 1}), [NodeHeadroom(spot_node())]) == 0
        assert count_headroom(PodRequest(requests={"nvidia.com/gpu": 0}), [NodeHeadroom(spot_node())]) == 110

    @pytest.mark.parametrize("health", [Health.HINTED, Health.DOOMED, Health.GONE])
    def test_is_on_healthy_nodes_only(self, health: Health) -> None:
        """Nothing is moved onto a node that may be going."""
        assert count_headroom(self.POD, [NodeHeadroom(spot_node(health=health))]) == 0

    @pytest.mark.parametrize("capacity", [ON_DEMAND, UNKNOWN])
    def test_is_on_spot_nodes_only(self, capacity: CapacityClass) -> None:
        """Free on-demand room is not spot's."""
        assert count_headroom(self.POD, [NodeHeadroom(spot_node(capacity=capacity))]) == 0

    @pytest.mark.parametrize(
        ("key", "operator", "values", "matches"),
        [
            ("zone", "In", ("a", "b"), True),
            ("zone", "In", ("b",), False),
            ("rack", "In", ("1",), False),
            ("zone", "NotIn", ("b",), True),
            ("rack", "NotIn", ("1",), True),
            ("zone", "NotIn", ("a",), False),
            ("zone", "Exists", (), True),
            ("rack", "Exists", (), False),
            ("rack", "DoesNotExist", (), True),
            ("zone", "DoesNotExist", (), False),
            ("cores", "Gt", ("7",), True),
            ("cores", "Gt", ("8",), False),
            ("cores", "Lt", ("9",), True),
            ("cores", "Lt", ("8",), False),
            ("zone", "Gt", ("1",), False),
            ("cores", "Gt", (), False),
            ("rack", "Lt", ("1",), False),
        ],
    )
    def test_follows_required_node_affinity(
        self, key: str, operator: Operator, values: tuple[str, ...], matches: bool
    ) -> None:
        """Each operator as the scheduler reads it."""
        pod = PodRequest(affinity=(NodeTerm((MatchExpression(key, operator, values),)),))
        assert may_run_on(pod, spot_node()) is matches

    def test_ors_terms_and_ands_expressions(self) -> None:
        """One matching term is enough; an empty term matches nothing."""
        here, elsewhere = MatchExpression("zone", "In", ("a",)), MatchExpression("zone", "In", ("b",))
        assert may_run_on(PodRequest(affinity=(NodeTerm((elsewhere,)), NodeTerm((here,)))), spot_node())
        assert not may_run_on(PodRequest(affinity=(NodeTerm((elsewhere, here)),)), spot_node())
        assert not may_run_on(PodRequest(affinity=(NodeTerm(),)), spot_node())
        by_name = NodeTerm(fields=(MatchExpression("metadata.name", "In", ("node-a",)),))
        assert may_run_on(PodRequest(affinity=(by_name,)), spot_node())

    def test_follows_the_node_selector(self) -> None:
        """All pairs must be there."""
        assert may_run_on(PodRequest(node_selector={"zone": "a"}), spot_node())
        assert not may_run_on(PodRequest(node_selector={"zone": "a", "rack": "1"}), spot_node())

    @pytest.mark.parametrize(
        ("taint", "toleration", "runs"),
        [
            (Taint("k", "v"), None, False),
            (Taint("k", "v", "NoExecute"), None, False),
            (Taint("k", "v", "PreferNoSchedule"), None, True),
            (Taint("k", "v"), Toleration("k", "Equal", "v", "NoSchedule"), True),
            (Taint("k", "v"), Toleration("k", "Equal", "v"), True),
            (Taint("k", "v"), Toleration("k", "Equal", "w"), False),
            (Taint("k", "v"), Toleration("k", "Exists", effect="NoExecute"), False),
            (Taint("k", "v"), Toleration("k", "Exists"), True),
            (Taint("k", "v"), Toleration(operator="Exists"), True),
            (Taint("k", ""), Toleration(), False),
            (Taint("k", "v"), Toleration("other", "Exists"), False),
        ],
        ids=str,
    )
    def test_follows_taints_and_tolerations(
        self, taint: Taint, toleration: Toleration | None, runs: bool
    ) -> None:
        """An untolerated NoSchedule or NoExecute taint keeps the replica away."""
        pod = PodRequest(tolerations=(toleration,) if toleration else ())
        assert may_run_on(pod, spot_node(taints=(taint,))) is runs
