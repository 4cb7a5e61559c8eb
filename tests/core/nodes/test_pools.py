"""What a template asks for, held against both pools: what is certain, and what only the nodes of now say."""

from typing import Any

import pytest

from splitter.core.nodes.capacity import on_demand_mark_terms, presets_with, spot_mark_terms
from splitter.core.nodes.facts import CapacityClass, Health, NodeState
from splitter.core.nodes.fit import MatchExpression, NodeTerm, PodRequest, SpreadConstraint
from splitter.core.nodes.pools import Asked, compare, contradiction, looks_like_spot
from splitter.kube.parse.pods import expressions

KARPENTER, EKS, GKE = (
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-spot",
)
ZONE = "topology.kubernetes.io/zone"


def terms(raw: list[Any]) -> tuple[NodeTerm, ...]:
    """Return terms as `kube.parse` reads them."""
    return tuple(NodeTerm(expressions(one["matchExpressions"])) for one in raw)


ON_DEMAND, SPOT = terms(on_demand_mark_terms()), terms(spot_mark_terms())


def selecting(**labels: str) -> Asked:
    """Return what asks for nodes with these labels."""
    return Asked(PodRequest(node_selector=labels))


def asking(*alternatives: tuple[MatchExpression, ...]) -> Asked:
    """Return what requires any of these terms."""
    return Asked(PodRequest(affinity=tuple(map(NodeTerm, alternatives))))


def one_of(key: str, *values: str) -> MatchExpression:
    """Return an expression with the operator In."""
    return MatchExpression(key, "In", values)


def node(name: str, *, spot: bool = False, zone: str = "a", cpu: int = 4000, **labels: str) -> NodeState:
    """Return a healthy node."""
    return NodeState(
        name,
        f"uid-{name}",
        CapacityClass.SPOT if spot else CapacityClass.ON_DEMAND,
        labels={ZONE: zone, **labels},
        allocatable={"cpu": cpu, "pods": 110},
    )


class TestContradiction:
    """By the labels of a pool alone: whatever nodes an autoscaler brings."""

    @pytest.mark.parametrize(
        ("key", "value", "on_demand", "spot"),
        [
            (KARPENTER, "spot", False, True),
            (KARPENTER, "on-demand", True, False),
            (KARPENTER, "reserved", True, False),
            (EKS, "SPOT", False, True),
            (EKS, "ON_DEMAND", True, False),
            (GKE, "true", False, True),
            ("kubernetes.azure.com/scalesetpriority", "spot", False, True),
            ("scheduling.cast.ai/spot", "true", False, True),
            ("kubernetes.io/arch", "arm64", True, True),
            ("karpenter.sh/nodepool", "cheap", True, True),
        ],
    )
    def test_of_a_node_selector(self, key: str, value: str, *, on_demand: bool, spot: bool) -> None:
        """Any provider's label counts; others say nothing of a pool."""
        asked = selecting(**{key: value})
        assert (contradiction(asked, ON_DEMAND) == "") is on_demand
        assert (contradiction(asked, SPOT) == "") is spot

    @pytest.mark.parametrize(
        ("expression", "on_demand", "spot"),
        [
            (one_of(KARPENTER, "spot"), False, True),
            (one_of(KARPENTER, "spot", "on-demand"), True, True),
            (MatchExpression(KARPENTER, "NotIn", ("on-demand", "reserved")), True, True),  # a node without it
            (MatchExpression(KARPENTER, "NotIn", ("spot",)), True, True),  # spot by another label
            (MatchExpression(GKE, "Exists"), True, True),  # GKE's may be "false"
            (MatchExpression("scheduling.cast.ai/spot", "Exists"), False, True),
            (MatchExpression("cpus", "Gt", ("4",)), True, True),
        ],
    )
    def test_of_an_expression(self, expression: MatchExpression, *, on_demand: bool, spot: bool) -> None:
        """Every operator, as the scheduler reads it."""
        asked = asking((expression,))
        assert (contradiction(asked, ON_DEMAND) == "") is on_demand
        assert (contradiction(asked, SPOT) == "") is spot

    def test_one_term_of_several_is_enough(self) -> None:
        """They are ORed; what is in a term is ANDed, and ANDed with the node selector."""
        either = asking((one_of(KARPENTER, "spot"),), (one_of("team", "a"),))
        assert contradiction(either, ON_DEMAND) == ""
        both = asking((one_of(KARPENTER, "spot"), one_of("team", "a")))
        assert contradiction(both, ON_DEMAND) == f"required affinity {KARPENTER} In (spot)"
        selected = PodRequest(node_selector={KARPENTER: "spot"}, affinity=either.pod.affinity)
        assert contradiction(Asked(selected), ON_DEMAND) == f"nodeSelector {KARPENTER}=spot"

    def test_what_contradicts_itself(self) -> None:
        """No node anywhere would do."""
        asked = asking((one_of("cpus", "2"), MatchExpression("cpus", "Gt", ("4",))))
        assert contradiction(asked, SPOT) == "a node selector and a required affinity that no such node has"
        bounds = (MatchExpression("cpus", "Gt", ("4",)), MatchExpression("cpus", "Lt", ("5",)))
        assert contradiction(asking(bounds), SPOT)
        wider = (bounds[0], MatchExpression("cpus", "Lt", ("6",)))
        assert contradiction(asking(wider), SPOT) == ""

    def test_empty_terms(self) -> None:
        """Match no node in Kubernetes."""
        assert "empty terms" in contradiction(asking(()), SPOT)
        beside = asking((), (one_of(KARPENTER, "spot"),))
        assert contradiction(beside, SPOT) == ""
        assert contradiction(beside, ON_DEMAND) == f"required affinity {KARPENTER} In (spot)"

    def test_a_named_node(self) -> None:
        """No other node ever takes a replica, whichever pool it is of."""
        assert contradiction(Asked(PodRequest(), node_name="node-1"), ()) == "spec.nodeName node-1"

    def test_the_users_own_selectors_come_first(self) -> None:
        """A node that the settings call spot is spot, whatever else it says."""
        own = terms(spot_mark_terms(presets_with(spot=["team=cheap"])))
        pinned = selecting(**{"team": "cheap", KARPENTER: "on-demand"})
        assert contradiction(pinned, own) == ""
        assert contradiction(pinned, SPOT)

    def test_more_than_is_compared(self) -> None:
        """Nobody knows, and nothing is refused for it."""
        asked = PodRequest(node_selector={KARPENTER: "spot"}, requirements=100_000)
        assert contradiction(Asked(asked), ON_DEMAND) == ""


class TestCompare:
    """By the nodes that there are."""

    def test_a_node_would_do(self) -> None:
        """However full it is, and without any in the pool nobody knows."""
        assert compare(Asked(PodRequest({"cpu": 4000})), ON_DEMAND, [node("a")], spot=False) is None
        assert compare(Asked(PodRequest({"cpu": 4000})), SPOT, [node("a")], spot=True) is None

    def test_none_is_large_enough(self) -> None:
        """An amount, or a device that no node of the pool has."""
        nodes = [node("a"), node("b", spot=True, cpu=16_000)]
        large = Asked(PodRequest({"cpu": 8000, "nvidia.com/gpu": 1}))
        barrier = compare(large, ON_DEMAND, nodes, spot=False)
        assert barrier is not None
        assert not barrier.certain
        assert barrier.why == (
            "no on-demand node is large enough for a replica, however empty (cpu 8, nvidia.com/gpu 1)"
        )
        assert compare(Asked(PodRequest({"cpu": 8000})), SPOT, nodes, spot=True) is None

    def test_more_nodes_than_are_compared(self) -> None:
        """Nobody knows what the others have."""
        large = PodRequest({"cpu": 8000}, requirements=999_999)
        assert large.most_nodes == 1
        assert compare(Asked(large), (), [node("a")], spot=False) is not None
        assert compare(Asked(large), (), [node("a"), node("b")], spot=False) is None

    def test_what_is_certain_needs_no_node(self) -> None:
        """It is said in an empty cluster too."""
        barrier = compare(selecting(**{KARPENTER: "spot"}), ON_DEMAND, [], spot=False)
        assert barrier is not None
        assert barrier.certain

    @pytest.mark.parametrize(("replicas", "barred"), [(2, False), (3, True)])
    def test_fewer_domains_than_a_spread_asks_for(self, replicas: int, *, barred: bool) -> None:
        """Each holds maxSkew of them then; the message says how many find a node."""
        spread = SpreadConstraint(ZONE, 1, strict=True, selector=(one_of("app", "web"),), min_domains=3)
        asked = Asked(PodRequest(), (spread,), {"app": "web"}, replicas=replicas)
        nodes = [node("a"), node("b", zone="b"), node("c", zone="c", spot=True)]
        barrier = compare(asked, ON_DEMAND, nodes, spot=False)
        assert (barrier is not None) is barred
        if barrier is not None:
            assert "have 2 of the 3 values" in barrier.why
            assert "at most 2 of 3 replicas" in barrier.why

    def test_a_spread_over_a_label_that_no_node_has(self) -> None:
        """Such a node takes no pod; a constraint that only prefers says nothing."""
        for strict in (True, False):
            asked = Asked(
                PodRequest(), (SpreadConstraint("rack", 1, strict=strict, selector=()),), replicas=1
            )
            barrier = compare(asked, ON_DEMAND, [node("a")], spot=False)
            assert (barrier is not None and "no on-demand node has the label rack" in barrier.why) is strict

    def test_a_node_that_is_going_counts_for_nothing(self) -> None:
        """Nor for the pool."""
        going = NodeState("a", "1", CapacityClass.ON_DEMAND, Health.DOOMED)
        assert compare(Asked(PodRequest({"cpu": 1})), ON_DEMAND, [going], spot=False) is None


class TestWhatLooksLikeSpot:
    @pytest.mark.parametrize(
        ("labels", "said"),
        [
            ({"node-type": "spot"}, "node a has the label node-type=spot"),
            ({"lifecycle": "Spot"}, "node a has the label lifecycle=Spot"),
            ({"example.com/spot": "true"}, "node a has the label example.com/spot=true"),
            ({"node-role.kubernetes.io/preemptible": ""}, "label node-role.kubernetes.io/preemptible"),
            ({"team": "hotspot", "spot-price": "0.3", "spot": "false"}, ""),
        ],
    )
    def test_by_a_label(self, labels: dict[str, str], said: str) -> None:
        """As a whole word of the key with a yes, or as the value."""
        result = looks_like_spot([NodeState("a", "1", CapacityClass.UNKNOWN, labels=labels)])
        assert said in result
        assert bool(result) is bool(said)

    def test_two_marks_that_contradict_each_other(self) -> None:
        """Why a node of spot is none."""
        both = NodeState("a", "1", CapacityClass.UNKNOWN, contradiction="x says on-demand, y says spot")
        assert looks_like_spot([both]) == "on node a x says on-demand, y says spot"
