"""Which nodes are spot, which are going, and how much room the others have."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

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
from splitter.core.nodes.facts import (
    CapacityClass,
    Condition,
    Health,
    NodeEvent,
    NodeFacts,
    NodeState,
    Taint,
    Tier,
)
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
from splitter.core.nodes.signals import assess, deadline_in, gone

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
SPOT, ON_DEMAND, UNKNOWN = CapacityClass.SPOT, CapacityClass.ON_DEMAND, CapacityClass.UNKNOWN
READY = Condition("Ready", "True", "KubeletReady")
NODE = NodeFacts("node-a", "uid-a", labels={"karpenter.sh/capacity-type": "spot"}, conditions=(READY,))


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


class TestSignals:
    """Section 2 of the page, tier by tier."""

    def test_a_ready_node_is_healthy(self) -> None:
        """No signal, no tier, no deadline."""
        state = assess(NODE)
        assert (state.health, state.tier, state.signal, state.deadline) == (Health.HEALTHY, None, "", None)
        assert state.is_spot

    @pytest.mark.parametrize(
        "taint",
        [
            "aws-node-termination-handler/spot-itn",
            "aws-node-termination-handler/asg-lifecycle-termination",
            "karpenter.sh/disrupted",
            "karpenter.sh/disruption=disrupting",
            "ToBeDeletedByClusterAutoscaler=1700000000",
            "cloud.google.com/impending-node-termination",
            "cloudprovider.azure.microsoft.com/draining=spot-eviction",
            "remediator.kubernetes.azure.com/unschedulable",
            "remediator.aks.microsoft.com/unschedulable",
            "node.kubernetes.io/out-of-service=nodeshutdown",
            "node.cloudprovider.kubernetes.io/shutdown",
        ],
    )
    def test_a_taint_of_the_table_dooms(self, taint: str) -> None:
        """T0: its pods still serve, and are replaced now; the signal names the taint."""
        key, _, value = taint.partition("=")
        state = assess(replace(NODE, taints=(Taint(key, value),)))
        assert (state.health, state.tier, state.signal) == (Health.DOOMED, Tier.NOTICE, f"taint {key}")

    @pytest.mark.parametrize(
        "taint",
        [
            Taint("cloudprovider.azure.microsoft.com/draining", "upgrade"),
            Taint("karpenter.sh/disruption", "candidate"),
            Taint("kubernetes.azure.com/scalesetpriority", "spot"),
            Taint("node.kubernetes.io/memory-pressure"),
        ],
    )
    def test_other_taints_mean_nothing(self, taint: Taint) -> None:
        """Pressure, pools and other values are nobody's end."""
        assert assess(replace(NODE, taints=(taint,))).health is Health.HEALTHY

    @pytest.mark.parametrize(
        ("condition", "health"),
        [
            (Condition("Terminating", "True"), Health.DOOMED),
            (Condition("InstanceExpired", "True"), Health.DOOMED),
            (Condition("GracefulNodeShutdownInProgress", "True"), Health.DOOMED),
            (Condition("DrainInProgress", "True"), Health.DOOMED),
            (Condition("Drained", "True"), Health.DOOMED),
            (Condition("MaintenanceInProgress", "True"), Health.DOOMED),
            (Condition("MaintenancePlanned", "True"), Health.HINTED),
            (Condition("MaintenancePlanned", "False"), Health.HEALTHY),
            (Condition("PreemptionScheduled", "True"), Health.DOOMED),
            (Condition("PreemptionScheduled", "True", message="Preempt Started."), Health.DOOMED),
            (Condition("PreemptionScheduled", "False"), Health.HEALTHY),
            (
                Condition("PreemptionScheduled", "True", message="SpotRebalanceRecommendation Advisory."),
                Health.HINTED,
            ),
            (Condition("VMEventScheduled", "True", message="Preempt Scheduled: ..."), Health.DOOMED),
            (Condition("VMEventScheduled", "True", "Terminate"), Health.DOOMED),
            (Condition("VMEventScheduled", "True", "Redeploy"), Health.DOOMED),
            (Condition("VMEventScheduled", "True", "Freeze"), Health.HEALTHY),
            (Condition("VMEventScheduled", "True", "Reboot"), Health.HEALTHY),
            (Condition("VMEventScheduled", "False", "Preempt"), Health.HEALTHY),
            (Condition("MemoryPressure", "True"), Health.HEALTHY),
        ],
        ids=str,
    )
    def test_a_condition_of_the_table_dooms(self, condition: Condition, health: Health) -> None:
        """T0 for what ends the machine; a freeze or a reboot is no reason to move; advice is a hint."""
        assert assess(replace(NODE, conditions=(READY, condition))).health is health

    @pytest.mark.parametrize("reason", ["SpotInterrupted", "SpotInterruption", "TerminatingOnInterruption"])
    def test_an_event_gives_two_minutes(self, reason: str) -> None:
        """The Event arrives first, and says when: 120 s after it."""
        event = NodeEvent(reason, NOW)
        state = assess(replace(NODE, events=(event,)), now=NOW + timedelta(seconds=20))
        assert state.health is Health.DOOMED
        assert state.deadline == NOW + timedelta(seconds=120)

    @pytest.mark.parametrize("reason", ["SpotInterrupted", "SpotInterruption", "RebalanceRecommendation"])
    def test_an_event_says_nothing_of_on_demand_nodes(self, reason: str) -> None:
        """Else whoever may write one could take away what covers spot. A taint is believed as ever."""
        on_demand = replace(NODE, labels={"karpenter.sh/capacity-type": "on-demand"})
        reported = replace(on_demand, events=(NodeEvent(reason, NOW),))
        assert assess(reported, now=NOW) == assess(on_demand, now=NOW)
        tainted = replace(reported, taints=(Taint("karpenter.sh/disrupted"),))
        assert assess(tainted, now=NOW).health is Health.DOOMED

    def test_an_event_of_the_future_says_nothing(self) -> None:
        """It would never grow stale. Clocks that differ by seconds are borne with."""
        ahead = [NodeEvent("SpotInterrupted", NOW + timedelta(seconds=seconds)) for seconds in (30, 61, 1e9)]
        collected = [assess(replace(NODE, events=(event,)), now=NOW).health for event in ahead]
        assert collected == [Health.DOOMED, Health.HEALTHY, Health.HEALTHY]

    @pytest.mark.parametrize(("provider", "seconds"), [("aws", 120), ("gce", 30), ("azure", 30), ("", 30)])
    def test_how_long_a_notice_lasts(self, provider: str, seconds: float) -> None:
        """By spec.providerID; the shortest where nobody says whose machine it is, or whose is not known."""
        taken = (Taint("cloud.google.com/impending-node-termination", "", "NoSchedule"),)
        assert assess(replace(NODE, provider=provider, taints=taken)).notice_s == seconds

    @pytest.mark.parametrize("provider", ["aws", "gce", "azure", ""])
    def test_a_cordon_is_a_notice_of_aws_alone(self, provider: str) -> None:
        """It is all that AWS's termination handler leaves; elsewhere somebody drains, and sets no time."""
        assessed = assess(replace(NODE, provider=provider, unschedulable=True))
        assert assessed.health is Health.DOOMED
        assert (assessed.notice_s is not None) is (provider == "aws")
        assert assess(replace(NODE, provider=provider)).notice_s is None

    def test_nobody_takes_what_is_given_up_by_choice(self) -> None:
        """Consolidation by Karpenter: its machines stay until they are drained."""
        chosen = replace(NODE, taints=(Taint("karpenter.sh/disrupted"),), voluntary=True)
        assert assess(chosen).voluntary
        assert assess(chosen).notice_s is None

    def test_an_event_of_another_provider(self) -> None:
        """The handlers that tell by an Event are AWS's, unless the node says otherwise."""
        facts = replace(NODE, provider="azure", events=(NodeEvent("SpotInterrupted", NOW),))
        assert assess(facts, now=NOW).deadline == NOW + timedelta(seconds=30)

    def test_an_event_grows_stale(self) -> None:
        """A node that outlives the announced end by five minutes was not interrupted."""
        facts = replace(NODE, events=(NodeEvent("SpotInterrupted", NOW),))
        assert assess(facts, now=NOW + timedelta(seconds=421)).health is Health.HEALTHY

    def test_the_annotation_of_karpenter_is_a_deadline(self) -> None:
        """karpenter.sh/nodeclaim-termination-timestamp, in RFC 3339."""
        annotations = {"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-05T10:02:00Z"}
        state = assess(replace(NODE, annotations=annotations))
        assert (state.health, state.deadline) == (Health.DOOMED, NOW + timedelta(seconds=120))

    def test_the_earliest_deadline_counts(self) -> None:
        """Two notices: the sooner one is planned for."""
        facts = replace(
            NODE,
            annotations={"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-05T10:30:00Z"},
            events=(NodeEvent("SpotInterrupted", NOW),),
        )
        assert assess(facts, now=NOW).deadline == NOW + timedelta(seconds=120)

    @pytest.mark.parametrize("reason", ["spot-interruption", "spot-prediction"])
    def test_cast_ai_tells_by_a_label(self, reason: str) -> None:
        """autoscaling.cast.ai/draining; other values are its own moves and come with a cordon."""
        labels = {"autoscaling.cast.ai/draining": reason}
        assert assess(replace(NODE, labels=labels)).health is Health.DOOMED
        assert assess(replace(NODE, labels={"autoscaling.cast.ai/draining": "x"})).health is Health.HEALTHY

    def test_a_node_being_deleted_is_doomed(self) -> None:
        """DeletionTimestamp: Karpenter's finalizer is draining it."""
        assert assess(replace(NODE, deletion_timestamp=NOW)).signal == "the Node is being deleted"

    def test_a_cordon_is_a_doom(self) -> None:
        """T2: often the only trace that AWS's termination handler leaves."""
        state = assess(replace(NODE, unschedulable=True))
        assert (state.health, state.tier) == (Health.DOOMED, Tier.CORDON)

    @pytest.mark.parametrize(
        "condition",
        [
            Condition("Ready", "False", "KubeletNotReady", "container runtime is down"),
            Condition("Ready", "Unknown", "NodeStatusUnknown"),
            Condition("DiskPressure", "False"),
        ],
        ids=str,
    )
    def test_a_node_that_is_not_ready_is_gone(self, condition: Condition) -> None:
        """T1: its pods count 0 at once, without waiting for anybody's toleration."""
        state = assess(replace(NODE, conditions=(condition,)))
        assert (state.health, state.tier) == (Health.GONE, Tier.GONE)

    def test_a_node_that_shuts_down_is_doomed_not_gone(self) -> None:
        """GKE: the kubelet stops its pods one by one; some still serve."""
        ready = Condition("Ready", "False", "KubeletNotReady", "node is shutting down")
        assert assess(replace(NODE, conditions=(ready,))).tier is Tier.NOTICE

    def test_gone_outweighs_a_notice(self) -> None:
        """The gravest signal is told, the deadline of the notice stays."""
        facts = replace(
            NODE, conditions=(Condition("Ready", "Unknown"),), events=(NodeEvent("SpotInterrupted", NOW),)
        )
        state = assess(facts, now=NOW)
        assert state.signal == "condition Ready=Unknown"
        assert state.deadline is not None

    @pytest.mark.parametrize(
        "taint",
        ["aws-node-termination-handler/rebalance-recommendation", "DeletionCandidateOfClusterAutoscaler"],
    )
    def test_a_hint_dooms_nobody(self, taint: str) -> None:
        """T3: replicas stay, returns wait."""
        state = assess(replace(NODE, taints=(Taint(taint),)))
        assert (state.health, state.tier) == (Health.HINTED, Tier.HINT)

    def test_a_hint_by_event_lasts_ten_minutes(self) -> None:
        """A rebalance recommendation that leads to nothing is forgotten."""
        facts = replace(NODE, events=(NodeEvent("SpotRebalanceRecommendation", NOW),))
        assert assess(facts, now=NOW + timedelta(seconds=600)).health is Health.HINTED
        assert assess(facts, now=NOW + timedelta(seconds=601)).health is Health.HEALTHY

    def test_a_choice_of_karpenters_is_voluntary(self) -> None:
        """Consolidation: surge all the same, no back-off; an interruption beside it is no choice."""
        disrupted = replace(NODE, taints=(Taint("karpenter.sh/disrupted"),), voluntary=True)
        assert assess(disrupted).voluntary
        assert not assess(replace(disrupted, voluntary=False)).voluntary
        assert not assess(replace(disrupted, events=(NodeEvent("SpotInterrupted", NOW),)), now=NOW).voluntary
        assert assess(replace(NODE, voluntary=True)).health is Health.HEALTHY

    def test_karpenter_taints_first_what_it_gives_up_by_choice(self) -> None:
        """A machine that is taken from Karpenter is deleted before it is tainted; a NodeClaim speaks last."""
        labels = {**NODE.labels, "karpenter.sh/nodepool": "spot"}
        tainted = replace(NODE, labels=labels, taints=(Taint("karpenter.sh/disrupted"),))
        assert assess(tainted).health is Health.DOOMED
        assert assess(tainted).voluntary
        assert not assess(replace(tainted, deletion_timestamp=NOW)).voluntary
        assert assess(replace(tainted, deletion_timestamp=NOW, voluntary=True)).voluntary
        assert not assess(replace(tainted, labels=NODE.labels)).voluntary, "no node of Karpenter's"
        assert not assess(replace(tainted, events=(NodeEvent("SpotInterrupted", NOW),)), now=NOW).voluntary

    def test_an_on_demand_node_has_the_same_tiers(self) -> None:
        """Its replicas are replaced within on-demand."""
        state = assess(replace(NODE, labels={}, unschedulable=True))
        assert (state.capacity, state.health) == (UNKNOWN, Health.DOOMED)

    def test_a_deleted_node_keeps_what_it_was(self) -> None:
        """`gone` keeps class and UID, so that its loss can be charged to spot."""
        state = gone(assess(NODE))
        assert (state.health, state.uid, state.is_spot) == (Health.GONE, "uid-a", True)


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


class TestDeadlines:
    """Instants written by machines for people."""

    @pytest.mark.parametrize(
        ("message", "deadline"),
        [
            (
                "Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 GMT. EventId: 40B7BD88",
                datetime(2026, 8, 1, 5, 41, 2, tzinfo=UTC),
            ),
            ("Preempt Scheduled: Sat, 1 Aug 2026 05:41:02 UTC.", datetime(2026, 8, 1, 5, 41, 2, tzinfo=UTC)),
            ("2026-08-01T07:41:02.5+02:00", datetime(2026, 8, 1, 5, 41, 2, 500_000, tzinfo=UTC)),
            ("Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 PST.", None),
            ("Sat, 31 Feb 2026 05:41:02 GMT", None),
            ("2026-13-01T00:00:00Z", None),
            ("0001-01-01T00:00:00+23:00", None),
            ("Preempt Started.", None),
            ("", None),
        ],
    )
    def test_are_read_or_left_out(self, message: str, deadline: datetime | None) -> None:
        """RFC 1123 in GMT and RFC 3339; anything else is no deadline, never a guess."""
        assert deadline_in(message) == deadline


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
        assert count_headroom(PodRequest(requests={"cpu": 1500}, requirements=10_000), headroom) == 200
        assert len(list(headroom)) == 200
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
