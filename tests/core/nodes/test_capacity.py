"""Which capacity a node is, and what selects it."""

from dataclasses import replace

import pytest

from splitter.core.nodes.capacity import (
    PRESETS,
    LabelMatch,
    classify,
    on_demand_node_selector_terms,
    parse_selector,
    presets_with,
    spot_node_selector_terms,
    spot_tolerations,
)
from splitter.core.nodes.facts import CapacityClass, NodeFacts, NodeState, Taint
from splitter.core.nodes.fit import MatchExpression, NodeTerm
from splitter.core.nodes.signals import assess

SPOT, ON_DEMAND, UNKNOWN = CapacityClass.SPOT, CapacityClass.ON_DEMAND, CapacityClass.UNKNOWN
NODE = NodeFacts("node-a", "uid-a", labels={"karpenter.sh/capacity-type": "spot"})


class TestCapacity:
    """Section 1 of the page, row by row."""

    @pytest.mark.parametrize(
        ("label", "capacity"),
        [
            ("karpenter.sh/capacity-type=on-demand", ON_DEMAND),
            ("karpenter.sh/capacity-type=reserved", ON_DEMAND),
            ("karpenter.sh/capacity-type=spot", SPOT),
            ("eks.amazonaws.com/capacityType=ON_DEMAND", ON_DEMAND),
            ("eks.amazonaws.com/capacityType=SPOT", SPOT),
            ("cloud.google.com/gke-provisioning=standard", ON_DEMAND),
            ("cloud.google.com/gke-provisioning=spot", SPOT),
            ("cloud.google.com/gke-spot=true", SPOT),
            ("cloud.google.com/gke-preemptible=true", SPOT),
            ("kubernetes.azure.com/scalesetpriority=spot", SPOT),
            ("kubernetes.azure.com/priority=spot", SPOT),
            ("kubernetes.azure.com/scalesetpriority=regular", ON_DEMAND),
            ("kubernetes.azure.com/priority=regular", ON_DEMAND),
            ("node.alibabacloud.com/spot-strategy=NoSpot", ON_DEMAND),
            ("node.alibabacloud.com/spot-strategy=SpotAsPriceGo", SPOT),
            ("node.alibabacloud.com/spot-strategy=SpotWithPriceLimit", SPOT),
            ("oci.oraclecloud.com/oke-is-preemptible=true", SPOT),
            ("machine.openshift.io/interruptible-instance=", SPOT),
            ("spotinst.io/node-lifecycle=od", ON_DEMAND),
            ("spotinst.io/node-lifecycle=spot", SPOT),
            ("scheduling.cast.ai/spot=true", SPOT),
            ("node.kubernetes.io/capacity=on-demand", ON_DEMAND),
            ("node.kubernetes.io/capacity=spot", SPOT),
            ("node.kubernetes.io/lifecycle=normal", ON_DEMAND),
            ("node.kubernetes.io/lifecycle=spot", SPOT),
            ("lifecycle=ondemand", ON_DEMAND),
            ("lifecycle=Ec2Spot", SPOT),
            ("node-role.kubernetes.io/spot-worker=true", SPOT),
            ("karpenter.sh/capacity-type=something-new", UNKNOWN),
            ("kubernetes.io/os=linux", UNKNOWN),
        ],
    )
    def test_is_read_from_the_providers_label(self, label: str, capacity: CapacityClass) -> None:
        """Every label of the table means what its column says; the rest is unknown."""
        key, _, value = label.partition("=")
        assert classify({key: value}) is capacity

    def test_of_oke_is_told_by_its_taint_alone_too(self) -> None:
        """The taint marks preemptible nodes, with whatever value."""
        assert classify({}, [Taint("oci.oraclecloud.com/oke-is-preemptible", "present")]) is SPOT

    def test_of_a_cast_ai_fallback_node_is_on_demand(self) -> None:
        """It carries the spot labels of CAST AI and of the provider, and is paid in full."""
        labels = {
            "scheduling.cast.ai/spot": "true",
            "scheduling.cast.ai/spot-fallback": "true",
            "kubernetes.azure.com/scalesetpriority": "spot",
        }
        assert classify(labels) is ON_DEMAND

    @pytest.mark.parametrize(
        "labels",
        [
            {"karpenter.sh/capacity-type": "on-demand", "node-role.kubernetes.io/spot-worker": "true"},
            {"karpenter.sh/capacity-type": "spot", "eks.amazonaws.com/capacityType": "ON_DEMAND"},
            {"cloud.google.com/gke-provisioning": "standard", "cloud.google.com/gke-spot": "true"},
        ],
        ids=str,
    )
    def test_is_unknown_when_labels_contradict_each_other(self, labels: dict[str, str]) -> None:
        """Nobody's word counts more than another's, so nothing is known: it counts as on-demand."""
        state = assess(replace(NODE, labels=labels))
        assert state.capacity is UNKNOWN
        assert not state.is_spot
        assert all(f"{key}={value}" in state.contradiction for key, value in labels.items())

    def test_that_all_labels_agree_on_is_no_contradiction(self) -> None:
        """Several tools may say the same."""
        labels = {"karpenter.sh/capacity-type": "spot", "node.kubernetes.io/lifecycle": "spot"}
        state = assess(replace(NODE, labels=labels))
        assert (state.capacity, state.contradiction) == (SPOT, "")

    def test_the_users_own_selectors_come_first(self) -> None:
        """Row 0 overrules every preset, on-demand before spot."""
        presets = presets_with(spot=["pool=cheap"], on_demand=["steady"])
        assert classify({"pool": "cheap", "karpenter.sh/capacity-type": "on-demand"}, (), presets) is SPOT
        assert classify({"steady": "", "karpenter.sh/capacity-type": "spot"}, (), presets) is ON_DEMAND
        assert classify({"pool": "cheap", "steady": "yes"}, (), presets) is ON_DEMAND
        assert presets_with() is PRESETS


class TestSelectors:
    """What the settings may hold."""

    def test_are_a_key_with_or_without_a_value(self) -> None:
        """`key=value` or `key`."""
        assert parse_selector(" example.com/pool=cheap ") == LabelMatch("example.com/pool", ("cheap",))
        assert parse_selector("example.com/cheap") == LabelMatch("example.com/cheap")

    @pytest.mark.parametrize("selector", ["", "=", "=x", "a=", "a=b,c=d", "a in (b)", "a!=b", "a==b", "!a"])
    def test_are_refused_when_they_say_more(self, selector: str) -> None:
        """Anything else is refused with how to write it."""
        with pytest.raises(ValueError, match='write "key=value"'):
            parse_selector(selector)


def as_term(expressions: object) -> NodeTerm:
    """Read matchExpressions back, as the scheduler would."""
    assert isinstance(expressions, list)
    return NodeTerm(
        tuple(
            MatchExpression(expression["key"], expression["operator"], tuple(expression.get("values", ())))
            for expression in expressions
        )
    )


def any_matches(terms: list[dict[str, object]], node: NodeState) -> bool:
    """Say whether a pod with these nodeSelectorTerms may run there."""
    return any(as_term(term["matchExpressions"]).matches(node) for term in terms)


class TestAffinity:
    """What the twins ask for is what we recognise."""

    LABELS = tuple(
        {match.key: value}
        for preset in PRESETS
        for match in (*preset.spot, *preset.on_demand)
        for value in (match.values or ("",))
    )

    @pytest.mark.parametrize("labels", [{}, *LABELS], ids=str)
    def test_agrees_with_the_classification(self, labels: dict[str, str]) -> None:
        """A spot node is matched by the spot terms only, any other by the on-demand terms only."""
        node = NodeState("a", "1", classify(labels), labels=labels)
        assert any_matches(spot_node_selector_terms(), node) == node.is_spot
        assert any_matches(on_demand_node_selector_terms(), node) == (not node.is_spot)

    def test_leaves_fallback_nodes_to_nobody(self) -> None:
        """A CAST AI fallback node is neither asked for as spot nor used up as on-demand."""
        labels = {"scheduling.cast.ai/spot": "true", "scheduling.cast.ai/spot-fallback": "true"}
        node = NodeState("a", "1", classify(labels), labels=labels)
        assert not any_matches(spot_node_selector_terms(), node)
        assert not any_matches(on_demand_node_selector_terms(), node)

    @pytest.mark.parametrize("terms", [spot_node_selector_terms(), on_demand_node_selector_terms()])
    def test_gives_karpenter_nothing_to_make_up(self, terms: list[dict[str, object]]) -> None:
        """Karpenter reads the first term, and writes a value of its own of each label that NotIn excludes."""
        [asked, *excluded] = as_term(terms[0]["matchExpressions"]).expressions
        assert (asked.key, asked.operator) == ("karpenter.sh/capacity-type", "In")
        assert {expression.operator for expression in excluded} <= {"DoesNotExist"}

    @pytest.mark.parametrize("capacity", ["spot", "on-demand", "reserved"])
    def test_falls_back_on_no_node_of_karpenters(self, capacity: str) -> None:
        """When Karpenter cannot fulfil the first term, it can fulfil none of the others either."""
        node = NodeState("a", "1", SPOT, labels={"karpenter.sh/capacity-type": capacity})
        assert not any_matches(spot_node_selector_terms()[1:], node)
        assert not any_matches(on_demand_node_selector_terms()[1:], node)

    def test_keeps_the_on_demand_twin_off_what_the_user_calls_spot(self) -> None:
        """The user's own row has the last word on Karpenter's nodes too."""
        labels = {"pool": "cheap", "karpenter.sh/capacity-type": "on-demand"}
        presets = presets_with(spot=["pool=cheap"])
        node = NodeState("a", "1", classify(labels, (), presets), labels=labels)
        assert not any_matches(on_demand_node_selector_terms(presets), node)

    def test_writes_the_users_row_too(self) -> None:
        """The user's on-demand selector is left out of every spot term, the presets' included."""
        terms = spot_node_selector_terms(presets_with(spot=["pool=cheap"], on_demand=["steady"], presets=()))
        assert terms == [
            {
                "matchExpressions": [
                    {"key": "pool", "operator": "In", "values": ["cheap"]},
                    {"key": "steady", "operator": "DoesNotExist"},
                ]
            }
        ]
        with_presets = spot_node_selector_terms(presets_with(on_demand=["steady"]))
        assert all("steady" in str(term) for term in with_presets)

    def test_forbids_each_key_once(self) -> None:
        """One NotIn with all values, or DoesNotExist where any value means spot."""
        expressions = on_demand_node_selector_terms()[-1]["matchExpressions"]
        assert isinstance(expressions, list)
        keys = [expression["key"] for expression in expressions]
        assert len(keys) == len(set(keys))
        assert {
            "key": "node.alibabacloud.com/spot-strategy",
            "operator": "NotIn",
            "values": ["SpotAsPriceGo", "SpotWithPriceLimit"],
        } in expressions
        assert {"key": "scheduling.cast.ai/spot", "operator": "DoesNotExist"} in expressions

    def test_tolerates_what_providers_taint_spot_with(self) -> None:
        """GKE, AKS, OKE and CAST AI."""
        assert spot_tolerations() == [
            {
                "key": "cloud.google.com/gke-spot",
                "operator": "Equal",
                "value": "true",
                "effect": "NoSchedule",
            },
            {
                "key": "kubernetes.azure.com/scalesetpriority",
                "operator": "Equal",
                "value": "spot",
                "effect": "NoSchedule",
            },
            {"key": "oci.oraclecloud.com/oke-is-preemptible", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "scheduling.cast.ai/spot", "operator": "Exists", "effect": "NoSchedule"},
        ]
