"""Which nodes are going, by which signal, and until when."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from splitter.core.nodes.facts import CapacityClass, Condition, Health, NodeEvent, NodeFacts, Taint, Tier
from splitter.core.nodes.signals import assess, deadline_in, gone

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
SPOT, ON_DEMAND, UNKNOWN = CapacityClass.SPOT, CapacityClass.ON_DEMAND, CapacityClass.UNKNOWN
READY = Condition("Ready", "True", "KubeletReady")
NODE = NodeFacts("node-a", "uid-a", labels={"karpenter.sh/capacity-type": "spot"}, conditions=(READY,))


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

    @pytest.mark.parametrize(
        ("taint", "provider", "reclaim_s"),
        [
            ("aws-node-termination-handler/spot-itn", "aws", 120),
            ("aws-node-termination-handler/spot-itn", "", None),
            ("cloud.google.com/impending-node-termination", "gce", 30),
            ("ToBeDeletedByClusterAutoscaler", "aws", None),
            ("karpenter.sh/disrupted", "aws", None),
        ],
    )
    def test_a_drain_sets_no_time(self, taint: str, provider: str, reclaim_s: float | None) -> None:
        """A known provider that takes its machine back does."""
        assessed = assess(replace(NODE, provider=provider, taints=(Taint(taint),)))
        assert assessed.health is Health.DOOMED
        assert (assessed.reclaim_s, assessed.undated) == (reclaim_s, reclaim_s is None)

    @pytest.mark.parametrize("provider", ["aws", "gce", ""])
    def test_a_cordon_sets_no_time(self, provider: str) -> None:
        """Not even on AWS: it may stay for ever."""
        assessed = assess(replace(NODE, provider=provider, unschedulable=True))
        assert (assessed.reclaim_s, assessed.undated) == (None, True)
        timed = Condition("PreemptionScheduled", "True", message=f"NotBefore: {NOW:%Y-%m-%dT%H:%M:%SZ}")
        both = replace(NODE, provider=provider, unschedulable=True, conditions=(*NODE.conditions, timed))
        assert not assess(both).undated
        assert not assess(replace(NODE, provider=provider)).undated

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
        beside = replace(tainted, taints=(Taint("node.kubernetes.io/memory-pressure"), *tainted.taints))
        assert assess(beside).voluntary
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
            ("0001-01-01T00:00:00Z", None),
            ("Mon, 01 Jan 0001 00:00:00 GMT", None),
            ("Preempt Started.", None),
            ("", None),
        ],
    )
    def test_are_read_or_left_out(self, message: str, deadline: datetime | None) -> None:
        """RFC 1123 in GMT and RFC 3339; anything else is no deadline, never a guess."""
        assert deadline_in(message) == deadline
