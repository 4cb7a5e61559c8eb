"""Running pods change their owner: what one reconcile writes, in each moment of the way there and back."""

from dataclasses import replace
from typing import Any

import pytest

from builders import observation, pod, rendered, replica_set, source, split, twin_of
from core.deployment.owners import N, home, labelled, running
from splitter.core.actions import (
    AdoptPods,
    ApplyTwin,
    DeletePod,
    DeleteReplicaSet,
    DeleteUnboundPod,
    EnsureSplit,
    HolderKind,
    KeepRevision,
    LabelPod,
    OrphanPods,
    Park,
    PauseTwin,
    RestoreTemplate,
    Scale,
    SetDeletionCost,
    SetPaused,
)
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import (
    Attachment,
    Note,
    Observation,
    RelatedObjects,
    ReplicaSetView,
    SourceView,
    TwinView,
)
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import NodeStatus, Pool, Replica, Trouble

DEFAULTS = Policy(on_demand_base=2)
OD, SPOT = Pool.ON_DEMAND, Pool.SPOT


def planned(observed: Observation, template: str = "v1", **made: Any) -> Plan:  # noqa: ANN401
    """Return the plan of one reconcile; `made` is what else is known of the rendered twins."""
    twins = {pool: replace(one, **made) for pool, one in rendered(template).items()}
    return plan(observed, policy_in_force(observed, DEFAULTS), twins, Rules(defaults=DEFAULTS))


KEPT = replica_set("web-splith1", spec=0)
"""What keeps the template of pods with the hash h1, which is the source's."""


def waiting(on_demand: int, spot: int, **fields: Any) -> dict[str, TwinView]:  # noqa: ANN401
    """Return both twins, paused and without pods."""
    made = {}
    for name, pool, replicas in (("on_demand", OD, on_demand), ("spot", SPOT, spot)):
        made[name] = replace(
            twin_of(pool, [], updated=0, spec_replicas=replicas, max_surge=1), paused=True, **fields
        )
    return made


def having(pool: Pool, *sets: ReplicaSetView, **fields: Any) -> TwinView:  # noqa: ANN401
    """Return a twin with these ReplicaSets."""
    updated = sum(rs.status_replicas for rs in sets)
    return replace(twin_of(pool, list(sets), updated=updated, max_surge=1), **fields)


def gone_home(**fields: Any) -> SourceView:  # noqa: ANN401
    """Return the same without its label."""
    return source(N, labelled=False, **fields)


class TestOnboarding:
    """All that prepares it in one reconcile, in this order; pods are let go when it has been done."""

    def test_idle_replica_sets_are_parked_first(self) -> None:
        """A paused Deployment scales the one that it has, also an old one, to N."""
        old = replica_set("web-h0", spec=0, attachment=Attachment.ATTACHED, template="v0")
        result = planned(observation(labelled(), [home(running(3, 2)), old]))
        assert result.step is Step.ADOPT_PODS
        assert [type(one) for one in result.actions] == [Park]
        assert result.actions[0].name == "web-h0"  # type: ignore[union-attr]

    def test_one_that_selects_more_than_its_own_pods_is_left(self) -> None:
        """Whether its pods are let go is known by their hash alone."""
        result = planned(observation(labelled(), [replace(home(running(3, 2)), hashes=())]))
        assert (result.state, result.actions) == (State.HELD, ())
        assert (result.verdict.reason, result.verdict.warning) == (Reason.SELECTOR_NOT_RELEASABLE, True)

    def test_the_template_is_kept(self) -> None:
        """For the way back, and for `rollout undo`."""
        result = planned(observation(labelled(), [home(running(3, 2))]))
        assert result.actions[0] == KeepRevision("web-splith1", "web-h1")

    def test_twins_are_created_with_the_size_of_their_group(self) -> None:
        """Paused; never at 0, or they would end what they adopt. Unknown nodes count as on-demand."""
        pods = (*running(2, 2), pod("new", NodeStatus.UNBOUND, revision="h1"))
        result = planned(observation(labelled(), [home(pods), KEPT]))
        made = [one for one in result.actions if isinstance(one, ApplyTwin)]
        assert [(one.pool, one.replicas, one.paused) for one in made] == [(OD, 3, True), (SPOT, 2, True)]

    def test_a_group_that_has_changed_since(self) -> None:
        """A pod was lost and made on another node."""
        result = planned(observation(labelled(), [home(running(3, 2)), KEPT], **waiting(2, 3)))
        assert result.actions[:2] == (
            Scale(HolderKind.DEPLOYMENT, "web-on-demand", 2, 3, "rv-web-on-demand"),
            Scale(HolderKind.DEPLOYMENT, "web-spot", 3, 2, "rv-web-spot"),
        )

    def test_pods_are_labelled_while_they_have_an_owner(self) -> None:
        """With the pool of their node; those that are labelled are not written again."""
        pods = list(running(3, 2))
        pods[0] = replace(pods[0], born=OD)
        result = planned(observation(labelled(), [home(tuple(pods)), KEPT], **waiting(3, 2)))
        assert [(one.pod, one.pool) for one in result.actions if isinstance(one, LabelPod)] == [
            ("on-demand-1", OD),
            ("on-demand-2", OD),
            ("spot-0", SPOT),
            ("spot-1", SPOT),
        ]

    def test_then_they_are_let_go(self) -> None:
        """That very ReplicaSet, as it was seen."""
        result = planned(observation(labelled(), [home(running(3, 2, born=True)), KEPT], **waiting(3, 2)))
        assert result.actions == (OrphanPods("web-h1", "uid-web-h1", "rv-web-h1"),)
        assert result.requeue_after_s is not None
        assert result.requeue_after_s < 0.5

    def test_not_before_the_twins_are_seen(self) -> None:
        """The Deployment controller has to know that they are paused."""
        unseen = waiting(3, 2, observed=False)
        result = planned(observation(labelled(), [home(running(3, 2, born=True)), KEPT], **unseen))
        assert (result.actions, result.verdict.reason) == ((), Reason.WAITING_FOR_CONTROLLER)

    @pytest.mark.parametrize("spec", [4, 6])
    def test_not_before_the_replica_set_has_what_it_wants(self, spec: int) -> None:
        """What it makes in that moment would belong to nobody."""
        own = home(running(3, 2, born=True), spec_replicas=spec)
        assert planned(observation(labelled(), [own, KEPT], **waiting(3, 2))).actions == ()

    def test_what_a_quota_refuses_is_not_waited_for(self) -> None:
        """Its twin goes on asking for it."""
        refused = Trouble(Reason.QUOTA_EXCEEDED, "small")
        own = home(running(3, 1, born=True), spec_replicas=5, refusal=refused)
        result = planned(observation(labelled(), [own, KEPT], **waiting(4, 1)))
        assert [type(one) for one in result.actions] == [OrphanPods]

    def test_a_rival_goes_first(self) -> None:
        """At 0 and with the selector of these pods it would adopt them, and end them."""
        rival = replace(replica_set("web-old", spec=0, template="v0"), hashes=("h1",))
        result = planned(
            observation(labelled(), [home(running(3, 2, born=True)), KEPT, rival], **waiting(3, 2))
        )
        assert result.actions == (DeleteReplicaSet("web-old", "uid-web-old", "rv-web-old"),)

    def test_two_that_run(self) -> None:
        """A rollout began before the pause: it goes on first, and is waited for."""
        newer = replica_set(
            "web-h2", of=[pod("x", revision="h2")], attachment=Attachment.ATTACHED, template="v2"
        )
        result = planned(observation(labelled(), [home(running(3, 2)), newer]))
        assert result.actions == (SetPaused(paused=False, resource_version="rv-web"),)
        resumed = planned(observation(labelled(paused=False), [home(running(3, 2)), newer]))
        assert (resumed.step, resumed.actions) == (Step.WAIT_ROLLOUT, ())
        assert resumed.verdict.reason is Reason.ROLLOUT_IN_PROGRESS

    def test_templates_that_do_not_render(self) -> None:
        """Nothing is written, in the template's own words."""
        broken = Note(Reason.TEMPLATE_INVALID, "line 3", warning=True)
        observed = observation(labelled(), [home(running(3, 2))])
        result = plan(observed, policy_in_force(observed, DEFAULTS), broken, Rules(defaults=DEFAULTS))
        assert (result.state, result.verdict, result.actions) == (State.HELD, broken, ())


class TestCalm:
    """No pod changes its owner while a node under the workload is going."""

    @pytest.mark.parametrize("node_status", [NodeStatus.DOOMED, NodeStatus.LOST])
    @pytest.mark.parametrize("split_already", [False, True])
    def test_is_waited_for(self, node_status: NodeStatus, split_already: bool) -> None:
        """Before the first write, and before the pods are let go; the node is named."""
        pods = list(running(3, 2, born=True))
        pods[3] = replace(pods[3], node_status=node_status, node="spot-7", signal="a notice")
        own = home(tuple(pods))
        observed = observation(labelled(), [own, KEPT], **waiting(3, 2))
        if not split_already:
            free = source(N, marked=False, paused=False, paused_by_us=False)
            observed = observation(free, [own], split=split(takes_over=False))
        result = planned(observed)
        assert (result.state, result.verdict.reason) == (State.HELD, Reason.WAITING_FOR_CALM)
        assert "spot-7: a notice" in result.verdict.message
        assert result.actions == ()

    @pytest.mark.parametrize("cordoned", [True, False])
    def test_a_choice_is_no_reason_to_wait(self, cordoned: bool) -> None:
        """A node that somebody cordoned, or that Karpenter wants back: it may stay so for ever."""
        pods = list(running(3, 2, born=True))
        pods[3] = replace(pods[3], node_status=NodeStatus.DOOMED, cordoned=cordoned, voluntary=not cordoned)
        result = planned(observation(labelled(), [home(tuple(pods)), KEPT], **waiting(3, 2)))
        assert [type(one) for one in result.actions] == [OrphanPods]

    def test_a_loss_is_covered_before_it_goes_home(self) -> None:
        """The label is gone, and spot goes: on-demand is raised as if it were there."""
        doomed = [replace(one, node_status=NodeStatus.DOOMED) for one in running(0, 3, born=True)]
        spot = having(SPOT, replica_set("web-spot-h1", of=doomed))
        on_demand = having(OD, replica_set("web-on-demand-h1", of=running(2, 0, born=True)))
        result = planned(observation(gone_home(), [KEPT], on_demand=on_demand, spot=spot))
        assert result.state is State.GIVING_BACK
        assert [(one.name, one.replicas) for one in result.raises] == [("web-on-demand", 5)]


class TestSettling:
    """Pods without an owner, with the label."""

    def test_each_twin_adopts_its_own(self) -> None:
        """By the hash that they have, and as many as were planned: the ReplicaSet makes a lost one itself."""
        observed = observation(labelled(), [KEPT], **waiting(3, 2))
        result = planned(replace(observed, orphans=running(3, 1, born=True)))
        assert result.step is Step.SETTLE
        assert result.actions == (
            AdoptPods("web-on-demand-h1", OD, ("h1",), None),
            AdoptPods("web-spot-h1", SPOT, ("h1",), None),
        )

    def test_a_twin_that_was_scaled_below_its_pods(self) -> None:
        """By another client, while it waits: at that count its ReplicaSet would end running pods."""
        observed = observation(labelled(), [KEPT], **waiting(1, 2))
        result = planned(replace(observed, orphans=running(3, 1, born=True)))
        assert result.actions[0] == Scale(HolderKind.DEPLOYMENT, "web-on-demand", 1, 3, "rv-web-on-demand")

    def test_not_before_the_twin_is_seen(self) -> None:
        """Its controller would scale what it adopts to the count that it knows, 0 for instance."""
        twins = waiting(3, 1)
        twins["on_demand"] = replace(twins["on_demand"], observed=False)
        observed = observation(labelled(), [KEPT], **twins)
        result = planned(replace(observed, orphans=running(3, 1, born=True)))
        assert result.actions == (AdoptPods("web-spot-h1", SPOT, ("h1",), None),)
        result = planned(replace(observed, orphans=running(3, 0, born=True)))
        assert result.actions == ()
        assert result.verdict.message == "waiting for the Deployment controller to see the twins"

    def test_several_hashes(self) -> None:
        """The label was set again while they were on their way back."""
        pods = (*running(2, 0, born=True), *running(1, 0, born=True, template_hash="h2"))
        result = planned(replace(observation(labelled(), [], **waiting(3, 0)), orphans=pods))
        [adopts] = [one for one in result.actions if isinstance(one, AdoptPods)]
        assert adopts.hashes == ("h1", "h2")

    def test_waits_for_the_adoption(self) -> None:
        """The ReplicaSet is there, and its controller has not got to it."""
        made = replace(replica_set("web-on-demand-h1", spec=3), hashes=("h1",))
        twins = waiting(3, 0) | {"on_demand": having(OD, made, paused=True, spec_replicas=3)}
        result = planned(replace(observation(labelled(), [KEPT], **twins), orphans=running(3, 0, born=True)))
        assert result.actions == ()
        assert result.verdict.reason is Reason.WAITING_FOR_CONTROLLER

    def test_then_the_twins_are_resumed(self) -> None:
        """Not before the last pod has its owner."""
        made = replica_set("web-on-demand-h1", of=running(3, 0, born=True))
        twins = waiting(3, 0) | {"on_demand": having(OD, made, paused=True)}
        result = planned(observation(labelled(), [KEPT], **twins))
        assert result.actions == (
            PauseTwin("web-on-demand", paused=False, resource_version="rv-web-on-demand"),
            PauseTwin("web-spot", paused=False, resource_version="rv-web-spot"),
        )

    def test_pods_that_the_source_took_back(self) -> None:
        """Somebody had unpaused it: a twin whose pods it has makes none beside them."""
        made = replica_set("web-on-demand-h1", of=running(3, 0, born=True))
        taken = replica_set("web-h1", of=running(0, 3), attachment=Attachment.PARKED)
        twins = waiting(3, 2) | {"on_demand": having(OD, made, paused=True)}
        result = planned(observation(labelled(), [KEPT, taken], **twins))
        [scaled] = [one for one in result.actions if isinstance(one, Scale)]
        assert (result.step, scaled.name, scaled.replicas) == (Step.SETTLE, "web-spot", 0)
        all_taken = replica_set("web-h1", of=running(2, 3), attachment=Attachment.PARKED)
        result = planned(observation(labelled(), [KEPT, all_taken], **waiting(3, 2)))
        assert [(one.name, one.replicas) for one in result.actions if isinstance(one, Scale)] == [
            ("web-on-demand", 0),
            ("web-spot", 0),
        ]

    def test_pods_that_were_made_in_the_last_moment(self) -> None:
        """They bear no label yet."""
        late = running(1, 1)
        result = planned(replace(observation(labelled(), [KEPT], **waiting(3, 2)), orphans=late))
        assert [(one.pod, one.pool) for one in result.actions if isinstance(one, LabelPod)] == [
            ("on-demand-0", OD),
            ("spot-0", SPOT),
        ]

    def test_pods_without_a_node(self) -> None:
        """They are ended: the twin makes them, for where they may stand."""
        waits = pod("new", NodeStatus.UNBOUND, born=OD, revision="h1")
        result = planned(replace(observation(labelled(), [KEPT], **waiting(1, 0)), orphans=(waits,)))
        assert result.actions == (DeleteUnboundPod("new", "uid-new"),)

    def test_a_twin_that_was_deleted_meanwhile(self) -> None:
        """It is made again with the number of pods that wait for it."""
        twins = waiting(3, 2)
        observed = replace(
            observation(labelled(), [KEPT], spot=twins["spot"]), orphans=running(3, 2, born=True)
        )
        [made] = [one for one in planned(observed).actions if isinstance(one, ApplyTwin)]
        assert (made.pool, made.replicas, made.paused) == (OD, 3, True)

    def test_a_template_that_changes_more(self) -> None:
        """The twin gets the pods' template: it is rolled later, in its turn."""
        observed = replace(observation(labelled(), [KEPT], **waiting(3, 0)), orphans=running(3, 0, born=True))
        result = planned(observed, same_pods=False)
        restored = RestoreTemplate("web-on-demand", "web-splith1", "rv-web-on-demand", tried=False)
        assert result.actions == (restored,)

    def test_an_image_that_was_set_meanwhile(self) -> None:
        """The pods have the older one."""
        twins = waiting(3, 0, rendered_hash="hash-of-v1")
        observed = observation(labelled(template_hash="v2"), [KEPT], **twins)
        result = planned(replace(observed, orphans=running(3, 0, born=True)), "v2")
        assert [type(one) for one in result.actions] == [RestoreTemplate]

    def test_the_template_is_put_back_once(self) -> None:
        """Then the pods are adopted with it."""
        twins = waiting(3, 0, rendered_hash="withdrawn-")
        observed = replace(observation(labelled(), [KEPT], **twins), orphans=running(3, 0, born=True))
        assert [type(one) for one in planned(observed, same_pods=False).actions] == [AdoptPods]

    def test_a_twin_that_was_robbed(self) -> None:
        """Of its owner or its label: it is written whole, with as many replicas, and stays paused."""
        twins = waiting(3, 0, robbed=True)
        observed = replace(observation(labelled(), [KEPT], **twins), orphans=running(3, 0, born=True))
        [made] = [one for one in planned(observed).actions if isinstance(one, ApplyTwin)]
        assert (made.replicas, made.paused, made.resource_version) == (3, True, "rv-web-on-demand")

    def test_scaled_down_meanwhile(self) -> None:
        """It makes no more pods than there are to be, and ends none that it adopts."""
        observed = replace(observation(source(2), [KEPT], **waiting(7, 0)), orphans=running(3, 0, born=True))
        result = planned(observed)
        assert result.actions == (Scale(HolderKind.DEPLOYMENT, "web-on-demand", 7, 3, "rv-web-on-demand"),)

    def test_nothing_is_left_to_adopt(self) -> None:
        """Scaled to 0 meanwhile: a twin that is resumed would make what it was to adopt."""
        result = planned(observation(source(0), [KEPT], **waiting(3, 2)))
        assert result.actions == (
            Scale(HolderKind.DEPLOYMENT, "web-on-demand", 3, 0, "rv-web-on-demand"),
            Scale(HolderKind.DEPLOYMENT, "web-spot", 2, 0, "rv-web-spot"),
        )

    def test_dry_run_leaves_no_pod_without_an_owner(self) -> None:
        """Set in that moment, it holds what comes after."""
        asked = labelled(annotations={"splitter.io/dry-run": "true"})
        observed = replace(observation(asked, [KEPT], **waiting(3, 0)), orphans=running(3, 0, born=True))
        assert [type(one) for one in planned(observed).actions] == [AdoptPods]


def owning(**fields: Any) -> dict[str, TwinView]:  # noqa: ANN401
    """Return both twins with 3 and 2 pods of the source's template."""
    made = {}
    for name, pool, of in (
        ("on_demand", OD, running(3, 0, born=True)),
        ("spot", SPOT, running(0, 2, born=True)),
    ):
        made[name] = having(pool, replica_set(f"web-{pool}-h1", of=of), **fields)
    return made


class TestOffboarding:
    """Without the label, the mirror image."""

    def test_the_twins_are_paused(self) -> None:
        """Both, and before anything else."""
        result = planned(observation(gone_home(), [KEPT], **owning()))
        assert [(one.name, one.paused) for one in result.actions if isinstance(one, PauseTwin)] == [
            ("web-on-demand", True),
            ("web-spot", True),
        ]

    def test_their_idle_replica_sets_go(self) -> None:
        """A paused Deployment would scale the last one that it has."""
        twins = owning(paused=True)
        old = replica_set("web-spot-h0", spec=0, template="v0")
        twins["spot"] = replace(twins["spot"], replica_sets=(*twins["spot"].replica_sets, old))
        result = planned(observation(gone_home(), [KEPT], **twins))
        assert result.actions == (DeleteReplicaSet("web-spot-h0", "uid-web-spot-h0", "rv-web-spot-h0"),)

    def test_an_older_template_is_kept(self) -> None:
        """The pods are of the image before: they go home as that, and Kubernetes rolls them."""
        result = planned(
            observation(gone_home(template_hash="v2"), [], **owning(paused=True)), "v2", made_of="2"
        )
        assert result.actions == (KeepRevision("web-splith1", "web-on-demand-h1"),)

    def test_under_each_hash_that_pods_bear(self) -> None:
        """A ReplicaSet that took over pods selects those of its own hash and theirs; some have gone since."""
        twins = owning(paused=True)
        [spot] = twins["spot"].replica_sets
        first, *others = spot.pods
        spot = replace(spot, hashes=("h1", "h2", "h3"), pods=(replace(first, revision="h3"), *others))
        twins["spot"] = replace(twins["spot"], replica_sets=(spot,))
        result = planned(observation(gone_home(), [], **twins))
        kept = [one.name for one in result.actions if isinstance(one, KeepRevision)]
        assert kept == ["web-splith1", "web-splith3"]

    def test_of_a_twin_that_was_robbed(self) -> None:
        """Its label may have gone with the source's: its pods are the source's nevertheless."""
        result = planned(observation(gone_home(), [], **owning(paused=True, robbed=True)))
        assert result.actions == (KeepRevision("web-splith1", None),)

    @pytest.mark.parametrize(("pods", "template_of"), [("same", None), ("more", "web-on-demand-h1")])
    @pytest.mark.parametrize("same_pods", [True, False])
    @pytest.mark.parametrize("changed", [{}, {"rendered_hash": "of the set before"}])
    def test_of_pods_that_have_more(
        self, changed: dict[str, str], same_pods: bool, pods: str, template_of: str | None
    ) -> None:
        """What a set or a person has added to a twin goes with it; what the set adds now is in no pod yet."""
        twins = {
            name: replace(twin, replica_sets=(replace(twin.replica_sets[0], pod_hash=pods),))
            for name, twin in owning(paused=True, **changed).items()
        }
        observed = observation(gone_home(pod_hash="same"), [], **twins)
        assert planned(observed, same_pods=same_pods).actions == (KeepRevision("web-splith1", template_of),)

    @pytest.mark.parametrize("robbed", [False, True])
    @pytest.mark.parametrize("borne", ["", "withdrawn-", "withdrawn-v1|on-demand"])
    def test_of_a_twin_that_was_edited_or_taken_back(self, borne: str, robbed: bool) -> None:
        """Nobody knows where its pods may stand: robbed of its label or not, they are older ones."""
        twins = owning(paused=True, rendered_hash=borne, robbed=robbed)
        result = planned(observation(gone_home(), [], **twins))
        assert result.actions == (KeepRevision("web-splith1", "web-on-demand-h1"),)

    def test_then_the_pods_are_let_go(self) -> None:
        """Of both twins in one reconcile."""
        result = planned(observation(gone_home(), [KEPT], **owning(paused=True)))
        assert [one.name for one in result.actions if isinstance(one, OrphanPods)] == [
            "web-on-demand-h1",
            "web-spot-h1",
        ]

    def test_a_rollout_that_goes_well_ends_first(self) -> None:
        """Cut off, its new pods would be rolled again."""
        twins = owning()
        new = replica_set("web-spot-h2", of=running(0, 1, born=True, template_hash="h2"), template="v2")
        twins["spot"] = replace(twins["spot"], replica_sets=(*twins["spot"].replica_sets, new))
        assert not [
            one
            for one in planned(observation(gone_home(), [], **twins)).actions
            if isinstance(one, PauseTwin)
        ]

    def test_one_that_does_not_is_not_waited_for(self) -> None:
        """The source takes the pods as they are, and its own strategy goes on with them."""
        twins = owning()
        stuck = replace(pod("x", ready=False), trouble=Trouble(Reason.IMAGE_PULL_FAILED, "no"), born=SPOT)
        new = replica_set("web-spot-h2", of=[stuck], template="v2")
        twins["spot"] = replace(twins["spot"], replica_sets=(*twins["spot"].replica_sets, new))
        result = planned(observation(gone_home(), [], **twins))
        assert [type(one) for one in result.actions] == [PauseTwin, PauseTwin]

    def test_without_pods_the_source_is_resumed(self) -> None:
        """It makes its own, if it is to have any."""
        result = planned(observation(gone_home(), [KEPT], **waiting(0, 0)))
        assert result.actions == (SetPaused(paused=False, resource_version="rv-web"),)


class TestBringingHome:
    """Pods without an owner, without the label."""

    def homeward(self, orphans: tuple[Replica, ...], *sets: ReplicaSetView, template: str = "v1") -> Plan:
        """Return what is planned of them."""
        observed = observation(gone_home(template_hash=template), sets, **waiting(3, 2))
        return planned(replace(observed, orphans=orphans), template)

    def test_one_replica_set_takes_all(self) -> None:
        """Named as it was before, with the template and the revision that were kept."""
        result = self.homeward(running(3, 2, born=True), KEPT)
        assert result.step is Step.BRING_HOME
        assert result.actions == (AdoptPods("web-h1", None, ("h1",), "web-splith1"),)

    def test_whatever_hashes_they_have(self) -> None:
        """Those that were made by the twins, too; the source's own is the first of them."""
        pods = (*running(3, 0, born=True, template_hash="b"), *running(0, 2, born=True, template_hash="a"))
        result = self.homeward(pods, KEPT)
        assert result.actions == (AdoptPods("web-h1", None, ("h1", "a", "b"), "web-splith1"),)

    def test_of_a_new_template(self) -> None:
        """Nothing keeps it: the source has it."""
        result = self.homeward(running(3, 2, born=True, template_hash="h2"), template="v2")
        assert result.actions == (AdoptPods("web-h2", None, ("h2",), None),)

    def test_of_an_older_template(self) -> None:
        """One pod of it, and all are rolled: better than one that bears a template that it is not made of."""
        result = self.homeward(running(3, 2, born=True), KEPT, template="v2")
        assert result.actions == (AdoptPods("web-h1", None, ("h1",), "web-splith1"),)

    def test_a_name_that_is_taken(self) -> None:
        """By a ReplicaSet of another template that is parked."""
        parked = replica_set("web-h1", spec=0, template="v0")
        [made] = self.homeward(running(3, 2, born=True), KEPT, replace(parked, hashes=("other",))).actions
        assert isinstance(made, AdoptPods)
        assert made.name == "web-h1a"

    def test_waits_for_the_adoption(self) -> None:
        """The ReplicaSet is there."""
        result = self.homeward(running(1, 0, born=True), KEPT, home(running(2, 2), spec_replicas=5))
        assert result.actions == ()

    def test_a_source_that_was_resumed(self) -> None:
        """It is paused, and what it made is parked: its controller would share out the count."""
        pods = running(3, 2, born=True)
        made = replica_set("web-9", 4, template="v2", attachment=Attachment.ATTACHED)

        def next_of(**fields: Any) -> tuple[object, ...]:  # noqa: ANN401
            seen = observation(gone_home(**fields), [KEPT, made], **waiting(3, 2))
            result = planned(replace(seen, orphans=pods))
            assert result.state is State.GIVING_BACK
            return result.actions

        assert next_of(paused=False) == (SetPaused(paused=True, resource_version="rv-web"),)
        assert next_of(observed=False) == ()
        assert next_of() == (Park("web-9", "rv-web-9", ("app",)),)

    def test_more_than_are_to_be(self) -> None:
        """Those above N end as soon as they are home: the doomed bear their cost before that."""
        doomed = pod("doomed", NodeStatus.DOOMED, born=SPOT, revision="h1")
        [cost] = self.homeward((*running(3, 2, born=True), doomed), KEPT).actions
        assert isinstance(cost, SetDeletionCost)
        assert cost.pod == "doomed"

    def test_pods_without_a_node(self) -> None:
        """One that only spot nodes may run would wait for ever."""
        waits = pod("new", NodeStatus.UNBOUND, born=SPOT, revision="h1")
        result = self.homeward((*running(2, 0, born=True), waits), KEPT)
        assert result.actions == (DeleteUnboundPod("new", "uid-new"),)

    def test_at_last_the_labels_go(self) -> None:
        """With the twins and the mark, when the source runs again."""
        resumed = gone_home(paused=False)
        back = home(running(3, 2, born=True))
        result = planned(observation(resumed, [back], **waiting(3, 2)))
        assert len([one for one in result.actions if isinstance(one, LabelPod) and one.pool is None]) == N


class TestRivals:
    """Another controller has begun to select the pods."""

    BARRED = RelatedObjects(rival="DaemonSet agent (selector app=web)")

    def test_that_comes_in_the_last_moment(self) -> None:
        """No pod is let go: the Split no longer takes over, and the way back begins."""
        own = home(running(3, 2, born=True))
        observed = observation(labelled(), [own, KEPT], **waiting(3, 2), related=self.BARRED)
        result = planned(observed)
        assert result.actions == (EnsureSplit(takes_over=False),)
        assert (result.state, result.verdict.reason) == (State.HELD, Reason.SELECTOR_OVERLAPS)
        back = planned(replace(observed, split=split(takes_over=False)))
        assert (back.step, back.actions) == (
            Step.UNPAUSE,
            (SetPaused(paused=False, resource_version="rv-web"),),
        )

    def test_that_is_not_known(self) -> None:
        """A list that is refused says nothing about who is there."""
        own = home(running(3, 2, born=True))
        unread = RelatedObjects(rivals_unread="splitter may not list jobs")
        result = planned(observation(labelled(), [own, KEPT], **waiting(3, 2), related=unread))
        assert result.actions == (EnsureSplit(takes_over=False),)
        assert "splitter may not list jobs" in result.verdict.message

    def test_on_the_way_back(self) -> None:
        """The twins keep their pods, and the source makes its own."""
        result = planned(observation(gone_home(), [KEPT], **owning(paused=True), related=self.BARRED))
        assert result.actions == (SetPaused(paused=False, resource_version="rv-web"),)
        assert "DaemonSet agent" in result.verdict.message


class TestFinished:
    """Pods that have Failed or Succeeded: no ReplicaSet adopts them."""

    FAILED = pod("failed", ready=False, finished=True, revision="h1")

    def test_is_labelled_with_the_others(self) -> None:
        """By that it is known for ours once it has no owner."""
        own = home((*running(3, 2, born=True), self.FAILED))
        result = planned(observation(labelled(), [own, KEPT], **waiting(3, 2)))
        assert result.actions == (LabelPod("failed", "uid-failed", OD),)

    def test_is_removed_when_nothing_owns_it(self) -> None:
        """In whatever step; it holds nothing up."""
        orphan = (replace(self.FAILED, born=OD),)
        for observed in (
            observation(labelled(), [KEPT], **owning()),
            observation(labelled(), [KEPT], **waiting(3, 2)),
            observation(gone_home(), [KEPT, home(running(3, 2))], **waiting(3, 2)),
        ):
            result = planned(replace(observed, orphans=orphan))
            assert result.actions[-1] == DeletePod("failed", "uid-failed")

    def test_made_in_the_last_moment(self) -> None:
        """It is labelled first: an unlabelled pod without an owner is not ours to delete."""
        result = planned(replace(observation(labelled(), [KEPT], **owning()), orphans=(self.FAILED,)))
        assert not [one for one in result.actions if isinstance(one, DeletePod)]
