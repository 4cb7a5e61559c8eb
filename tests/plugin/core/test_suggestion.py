"""What is proposed for a workload without the label, and why."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from builders import free_source, observation, pod, replica_set
from splitter.core.evictions import BudgetView
from splitter.core.labels_annotations import LABEL_SPLIT
from splitter.core.model import Attachment, Mode, Observation, RelatedObjects, SourceView
from splitter.core.names import Key
from splitter.core.plan import Rules
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus
from splitter.core.stateful import StatefulView
from splitter.plugin.core.suggestion import Candidate, Proposal, Sight, kept_by, notice_of, propose

BASE = "splitter.io/on-demand-base"
PERCENT = "splitter.io/spot-percent"
DB = Key("StatefulSet", "shop", "db")


def free(replicas: int = 6, **fields: Any) -> SourceView:  # noqa: ANN401 (fields of the view)
    """Return a workload without the label."""
    return free_source(replicas, labels={"app": "web"}, **fields)


def members(replicas: int = 3, **fields: Any) -> SourceView:  # noqa: ANN401 (fields of the view)
    """Return a StatefulSet without the label."""
    stateful = StatefulView(replicas, replicas, replicas, observation().now)
    return free(replicas, key=DB, stateful=stateful, manifest_json='{"spec": {}}', **fields)


def seen(source: SourceView, on_demand: int = 0, spot: int = 0, **fields: Any) -> Observation:  # noqa: ANN401
    """Return an observation of so many running pods; ordinals are told from the first on on-demand."""
    pods = [
        pod(f"web-{number}", ordinal=number, on_spot=number >= on_demand)
        for number in range(on_demand + spot)
    ]
    sets = [replica_set(of=pods, attachment=Attachment.ATTACHED)] if pods else []
    return observation(source, sets, key=source.key, split=None, **fields)


def proposed(
    source: SourceView,
    sight: Sight | None = None,
    *,
    starts_s: tuple[int, ...] = (10,),
    observed: Observation | None = None,
    **fields: Any,  # noqa: ANN401
) -> Proposal:
    """Return what is proposed; pods start in 10 s unless said otherwise."""
    there = observed or seen(source)
    bound = there.now - timedelta(hours=1)
    started = tuple(
        pod(
            f"old-{start_s}", bound_since=bound, ready_since=bound + timedelta(seconds=start_s), created=bound
        )
        for start_s in starts_s
    )
    there = replace(there, orphans=started)
    return propose(Candidate(there, **fields), source, Rules(), sight or Sight())


def budget(least: int | None, says: str = "") -> BudgetView:
    """Return a user's budget."""
    return BudgetView("calm", "1", is_ours=False, min_available=least, selector=(), says=says)


class TestThePolicy:
    """Which annotations are proposed."""

    @pytest.mark.parametrize(
        ("replicas", "starts_s", "annotations", "why"),
        [
            (
                6,
                (10,),
                {BASE: "0"},
                "its pods start in 10 s and a notice lasts 30 s, so all can be on spot",
            ),
            (6, (60,), {BASE: "3"}, "so 3 of 6 on on-demand serve through the gap"),
            (6, (600,), {BASE: "4"}, "so 4 of 6 on on-demand serve through the gap"),
            (6, (), {BASE: "2"}, "how long its pods take to start is not seen, so 2 of 6 stay on on-demand"),
            (1, (10,), {BASE: "1"}, "its single replica stays on on-demand"),
            (0, (), {BASE: "0"}, "it is scaled to 0"),
        ],
    )
    def test_of_a_deployment(
        self, replicas: int, starts_s: tuple[int, ...], annotations: dict[str, str], why: str
    ) -> None:
        """What a notice does not cover stays on on-demand, and never more than a majority."""
        proposal = proposed(free(replicas), starts_s=starts_s)
        assert proposal.annotations == annotations
        assert why in proposal.why
        assert proposal.refusal is None

    def test_goes_by_the_notice_of_the_provider(self) -> None:
        """60 s to start are nothing where a notice lasts two minutes."""
        assert proposed(free(), Sight(notice_s=notice_of(["aws"])), starts_s=(60,)).on_demand == 0
        assert proposed(free(), Sight(notice_s=notice_of(["aws", "azure"])), starts_s=(60,)).on_demand == 3

    @pytest.mark.parametrize(
        ("one", "base"),
        [
            (budget(4), "4"),
            (budget(50), "6"),
            (budget(None, "minAvailable 50%"), "3"),
            (budget(None, "maxUnavailable 1"), "0"),
            (budget(None), "0"),
        ],
    )
    def test_keeps_what_a_budget_says_must_stand(self, one: BudgetView, base: str) -> None:
        """Its minAvailable, as a count or a percentage; a maxUnavailable says nothing of that."""
        proposal = proposed(free(), budgets=(one,))
        assert proposal.annotations == {BASE: base}
        assert ("PodDisruptionBudget calm" in proposal.why) is (base != "0")

    def test_takes_the_greater_of_budget_and_gap(self) -> None:
        """The greater one is the reason that is told."""
        small = proposed(free(), budgets=(budget(2),), starts_s=(60,))
        assert small.annotations == {BASE: "3"}
        assert "minAvailable" not in small.why
        large = proposed(free(), budgets=(budget(5),), starts_s=(60,))
        assert large.annotations == {BASE: "5"}
        assert "minAvailable 5" in large.why

    @pytest.mark.parametrize("replicas", range(2, 40))
    def test_is_a_share_where_the_count_changes(self, replicas: int) -> None:
        """Who scales is named; the share is no fewer replicas now than the count would be."""
        who = "HorizontalPodAutoscaler/web"
        fixed = proposed(free(replicas), starts_s=(50,))
        share = proposed(free(replicas), starts_s=(50,), scaler=who)
        assert share.why.endswith(f"; {who} changes the count")
        assert set(share.annotations) == {PERCENT}
        assert fixed.on_demand <= share.on_demand <= fixed.on_demand + 1

    @pytest.mark.parametrize(
        ("annotations", "namespace", "on_demand"),
        [({PERCENT: "50"}, {}, 3), ({}, {BASE: "5"}, 5)],
    )
    def test_leaves_what_is_written(
        self, annotations: dict[str, str], namespace: dict[str, str], on_demand: int
    ) -> None:
        """On the workload or on its Namespace: nothing is to be annotated, and the label is enough."""
        source = free(annotations=annotations)
        proposal = proposed(source, observed=seen(source, namespace_annotations=namespace))
        assert (proposal.annotations, proposal.on_demand) == ({}, on_demand)
        assert proposal.why.startswith("its policy is written already: ")
        assert proposal.commands == ("kubectl -n shop label deployment web splitter.io/split=enabled",)

    def test_of_a_stateful_set_is_a_majority(self) -> None:
        """Placed by default; twins where it asks for them."""
        proposal = proposed(members())
        assert (proposal.annotations, proposal.mode, proposal.on_demand) == (
            {BASE: "majority"},
            Mode.PLACEMENT,
            2,
        )
        assert proposal.why.endswith("placed, so names and volumes stay")
        twins = proposed(members(annotations={"splitter.io/mode": "twins"}))
        assert twins.mode is Mode.TWINS
        assert twins.why.endswith("in twins, as its annotation asks")
        assert proposed(members(1)).on_demand == 1


class TestRefusals:
    """The planner's own, in its words."""

    def test_are_told(self) -> None:
        """With what to change; there is nothing to type."""
        proposal = proposed(free(recreate=True))
        assert proposal.refused
        assert proposal.refusal is not None
        assert proposal.refusal.reason is Reason.STRATEGY_RECREATE
        assert "set spec.strategy.type to RollingUpdate" in proposal.refusal.message
        assert proposal.commands == ()

    def test_pass_by_themselves(self) -> None:
        """A rollout ends: the label may be set now."""
        proposal = proposed(free(rollout_complete=False))
        assert proposal.refusal is not None
        assert not proposal.refused
        assert len(proposal.commands) == 2

    def test_of_an_annotation_that_cannot_be_read(self) -> None:
        """What to write instead."""
        proposal = proposed(free(annotations={PERCENT: "most"}))
        assert proposal.refusal is not None
        assert proposal.refusal.reason is Reason.INVALID_ANNOTATION

    def test_of_a_name_that_is_too_long(self) -> None:
        """Its twins could not be called so."""
        proposal = proposed(free(key=Key("Deployment", "shop", "w" * 240)))
        assert proposal.refusal is not None
        assert proposal.refusal.reason is Reason.NAME_TOO_LONG

    def test_of_a_stateful_set_that_nothing_places(self) -> None:
        """The policy inside the API server is missing."""
        source = members()
        around = RelatedObjects(unplaceable="no policy; apply manifests/admission/placement.yaml")
        proposal = proposed(source, observed=seen(source, related=around))
        assert proposal.refusal is not None
        assert proposal.refusal.reason is Reason.PLACEMENT_UNSUPPORTED


class TestMoves:
    """How many pods would change pool."""

    @pytest.mark.parametrize(
        ("on_demand", "spot", "to_spot", "to_on_demand"),
        [(6, 0, 3, 0), (0, 6, 0, 3), (3, 3, 0, 0), (2, 1, 2, 0)],
    )
    def test_of_a_deployment(self, on_demand: int, spot: int, to_spot: int, to_on_demand: int) -> None:
        """Wanted are 3 on spot; which of the pods these are does not matter."""
        source = free()
        proposal = proposed(source, observed=seen(source, on_demand, spot), starts_s=(60,))
        assert (proposal.to_spot, proposal.to_on_demand) == (to_spot, to_on_demand)

    def test_of_members_go_by_ordinal(self) -> None:
        """The lowest two belong on on-demand: here the second is on spot, and the third already is."""
        source = members()
        proposal = proposed(source, observed=seen(source, 1, 2))
        assert (proposal.to_spot, proposal.to_on_demand) == (0, 1)

    def test_leave_out_pods_of_which_no_node_is_seen(self) -> None:
        """Nobody knows where they stand."""
        source = free()
        pods = [pod("a", NodeStatus.UNSEEN), pod("b", NodeStatus.UNBOUND), pod("c")]
        there = replace(seen(source), replica_sets=(replica_set(of=pods, attachment=Attachment.ATTACHED),))
        assert proposed(source, observed=there).to_spot == 1

    @pytest.mark.parametrize("sight", [Sight(pods=False), Sight(nodes=False)])
    def test_are_not_known_where_nothing_is_seen(self, sight: Sight) -> None:
        """And not 0."""
        source = free()
        proposal = proposed(source, sight, observed=seen(source, 6))
        assert (proposal.to_spot, proposal.to_on_demand) == (None, None)


class TestTheCommands:
    """What is to be typed."""

    def test_are_two(self) -> None:
        """The policy first: the label alone would begin with another."""
        assert proposed(free(), starts_s=(60,)).commands == (
            "kubectl -n shop annotate deployment web splitter.io/on-demand-base=3",
            f"kubectl -n shop label deployment web {LABEL_SPLIT}=enabled",
        )

    def test_name_the_kind(self) -> None:
        """As kubectl does."""
        assert proposed(members()).commands[0].startswith("kubectl -n shop annotate statefulset db ")


def test_requests_are_of_all_replicas() -> None:
    """In thousandths of a vCPU and in bytes."""
    proposal = proposed(free(), cpu_m=250, memory_bytes=1024)
    assert (proposal.cpu_m, proposal.memory_bytes) == (1500, 6144)


def test_a_percentage_is_rounded_up_as_kubernetes_does() -> None:
    """Of 5, 50 % are 3; no percentage is more than all."""
    assert kept_by(budget(None, "minAvailable 50%"), 5) == 3
    assert kept_by(budget(None, "minAvailable 300%"), 5) == 5
