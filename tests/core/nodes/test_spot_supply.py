"""Whether spot can be had, as far as autoscalers say so."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from splitter.core.nodes.facts import CapacityClass, NodeState, Taint
from splitter.core.nodes.fit import MatchExpression, NodeTerm, PodRequest, Toleration
from splitter.core.nodes.spot_supply import AutoscalerStatus, Claim, NodeGroup, Refusal, kind_of, spot_blocked

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
POD = PodRequest(requests={"cpu": 100}, node_selector={"kubernetes.io/arch": "amd64"})
AGENT_POOL = "kubernetes.azure.com/agentpool"


def node(
    pool: str, labels: dict[str, str] | None = None, *, spot: bool = True, label: str = AGENT_POOL
) -> NodeState:
    """Return a node of a pool."""
    capacity = CapacityClass.SPOT if spot else CapacityClass.ON_DEMAND
    result = {label: pool, "kubernetes.io/arch": "amd64"} | (labels or {})
    return NodeState(f"{pool}-1", f"uid-{pool}", capacity, labels=result)


def status(*backed_off: str, fine: tuple[str, ...] = (), age_s: float = 5.0) -> AutoscalerStatus:
    """Return a status in which some groups are in backoff."""
    groups = [NodeGroup(name, backoff=True, why="QUOTA_EXCEEDED") for name in backed_off]
    groups += [NodeGroup(name, backoff=False) for name in fine]
    return AutoscalerStatus(NOW - timedelta(seconds=age_s), tuple(groups))


def why(*nodes: NodeState, reported: AutoscalerStatus | None, pod: PodRequest = POD) -> str:
    """Return why spot cannot be had, empty when it may be."""
    blocked = spot_blocked(pod, nodes, reported, (), NOW)
    return blocked.why if blocked is not None else ""


class TestBackoff:
    """cluster-autoscaler: all spot groups that could host the replica have to be in backoff."""

    @pytest.mark.parametrize(
        ("label", "pool", "group"),
        [
            ("eks.amazonaws.com/nodegroup", "workers-b", "eks-workers-b-4ac1f0e2-9d11"),
            ("cloud.google.com/gke-nodepool", "cheap", "https://www.googleapis.com/z/gke-shop-cheap-1a-grp"),
            (AGENT_POOL, "cheap", "aks-cheap-29348273-vmss"),
        ],
    )
    def test_is_about_the_pool_in_the_groups_name(self, label: str, pool: str, group: str) -> None:
        """A known spot node's pool tells that the group is spot, whatever it is called."""
        blocked = spot_blocked(POD, [node(pool, label=label)], status(group), (), NOW)
        assert blocked is not None
        assert blocked.why == f"cluster-autoscaler backs off from {group} (QUOTA_EXCEEDED)"
        assert blocked.until == NOW + timedelta(seconds=595)

    def test_of_a_group_without_nodes_is_told_by_its_name(self) -> None:
        """After an outage there may be no spot node left to read labels from."""
        assert "eks-spot-b" in why(reported=status("eks-spot-b"))
        assert not why(reported=status("eks-workers-b"))

    def test_of_an_on_demand_group_says_nothing(self) -> None:
        """Its nodes count more than its name."""
        assert not why(node("spotless", spot=False), reported=status("aks-spotless-1-vmss"))

    def test_of_some_groups_says_nothing(self) -> None:
        """Another group may still get machines."""
        nodes = (node("a"), node("b"))
        assert not why(*nodes, reported=status("aks-a-1-vmss", fine=("aks-b-1-vmss",)))
        assert why(*nodes, reported=status("aks-a-1-vmss", "aks-b-1-vmss"))

    def test_counts_only_groups_that_could_host_it(self) -> None:
        """A pool of another architecture, or with a lasting taint, is no way out; a passing one is."""
        arm = node("b", {"kubernetes.io/arch": "arm64"})
        reported = status("aks-a-1-vmss", fine=("aks-b-1-vmss",))
        assert why(node("a"), arm, reported=reported)
        assert why(node("a"), replace(node("b"), taints=(Taint("gpu", "yes"),)), reported=reported)
        leaving = replace(node("b"), taints=(Taint("karpenter.sh/disrupted"), Taint("node.kubernetes.io/x")))
        assert not why(node("a"), leaving, reported=reported)

    def test_follows_required_affinity(self) -> None:
        """A zone that the replica may not go to is no way out either."""
        zone = MatchExpression("zone", "In", ("z1",))
        pod = replace(POD, affinity=(NodeTerm((zone,)),))
        nodes = (node("a", {"zone": "z1"}), node("b", {"zone": "z2"}))
        assert why(*nodes, reported=status("aks-a-1-vmss", fine=("aks-b-1-vmss",)), pod=pod)

    def test_spares_a_pool_with_one_zone_that_suits(self) -> None:
        """A pool has nodes of several kinds; any of them may be bought again."""
        pod = replace(POD, affinity=(NodeTerm((MatchExpression("zone", "In", ("z1",)),)),))
        nodes = (node("a", {"zone": "z2"}), node("a", {"zone": "z1"}))
        assert not why(*nodes, reported=status("spot-x", fine=("aks-a-1-vmss",)), pod=pod)

    def test_is_not_believed_for_ever(self) -> None:
        """A status that has not been renewed for ten minutes is that of a dead autoscaler."""
        assert why(reported=status("spot", age_s=599))
        assert not why(reported=status("spot", age_s=600))

    def test_says_nothing_where_karpenter_buys_spot_too(self) -> None:
        """When in doubt, spot is not blocked."""
        karpenter = node("k", {"karpenter.sh/nodepool": "default"})
        assert not why(karpenter, reported=status("spot"))

    def test_names_two_groups(self) -> None:
        """The sentence is short in a cluster of many groups."""
        assert why(reported=status("spot-a", "spot-b", "spot-c", "spot-d")) == (
            "cluster-autoscaler backs off from spot-a (QUOTA_EXCEEDED), spot-b (QUOTA_EXCEEDED), 2 more"
        )

    def test_needs_a_status(self) -> None:
        """No ConfigMap, nothing known."""
        assert not why(node("spot"), reported=None)


class TestKinds:
    """Nodes that an autoscaler buys alike."""

    def test_are_told_apart_by_what_matters(self) -> None:
        """Pool, zone and capacity; a name or another label makes no other kind."""
        one = node("a", {"topology.kubernetes.io/zone": "z1"})
        assert kind_of(one) == kind_of(replace(one, name="a-2", labels={**one.labels, "rack": "7"}))
        for other in (
            node("b", {"topology.kubernetes.io/zone": "z1"}),
            node("a", {"topology.kubernetes.io/zone": "z2"}),
            node("a", {"topology.kubernetes.io/zone": "z1"}, spot=False),
        ):
            assert kind_of(one) != kind_of(other)


SPOT_ONLY = Claim((MatchExpression("karpenter.sh/capacity-type", "In", ("spot",)),))


def refused(claim: Claim = SPOT_ONLY, age_s: float = 10.0) -> Refusal:
    """Return a NodeClaim that got no machine."""
    return Refusal(NOW - timedelta(seconds=age_s), claim)


class TestRefusals:
    """Karpenter: a NodeClaim for spot got no machine."""

    def test_of_spot_block_for_three_minutes_and_a_little(self) -> None:
        """So long Karpenter leaves the offering alone, and then asks again for the pending replica."""
        blocked = spot_blocked(POD, (), None, [refused(age_s=100), refused(age_s=10)], NOW)
        assert blocked is not None
        assert blocked.why == "Karpenter finds no spot machine (InsufficientCapacityError)"
        assert blocked.until == NOW + timedelta(seconds=185)
        assert spot_blocked(POD, (), None, [refused(age_s=195)], NOW) is None

    def test_of_the_future_say_nothing(self) -> None:
        """Nobody saw that happen; clocks differ by less than a minute."""
        assert spot_blocked(POD, (), None, [refused(age_s=-61)], NOW) is None
        assert spot_blocked(POD, (), None, [refused(age_s=-59)], NOW) is not None

    @pytest.mark.parametrize("types", [("on-demand",), ("spot", "on-demand"), ("reserved",)])
    def test_of_other_capacity_say_nothing(self, types: tuple[str, ...]) -> None:
        """A claim that on-demand would have satisfied too says nothing about spot."""
        claim = Claim((MatchExpression("karpenter.sh/capacity-type", "In", types),))
        assert spot_blocked(POD, (), None, [refused(claim)], NOW) is None

    def test_of_machines_that_would_not_suit_say_nothing(self) -> None:
        """Another architecture, or a taint that the replica does not tolerate, was for somebody else."""
        arm = MatchExpression("kubernetes.io/arch", "In", ("arm64",))
        tainted = replace(SPOT_ONLY, taints=(Taint("team", "a"),))
        assert spot_blocked(POD, (), None, [refused(Claim((*SPOT_ONLY.requirements, arm)))], NOW) is None
        assert spot_blocked(POD, (), None, [refused(tainted)], NOW) is None
        tolerant = replace(POD, tolerations=(Toleration("team", "Exists"),))
        assert spot_blocked(tolerant, (), None, [refused(tainted)], NOW) is not None

    def test_say_nothing_while_cluster_autoscaler_may_get_spot(self) -> None:
        """Both have to say no."""
        reported = status("spot-a", fine=("spot-b",))
        assert spot_blocked(POD, (), reported, [refused()], NOW) is None
        assert spot_blocked(POD, (), status("spot-a", "spot-b"), [refused()], NOW) is not None
