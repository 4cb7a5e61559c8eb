"""A StatefulSet in placement mode: from the label to the ordinals, and back."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from builders import NOW, ago, pod, split
from core.placement.placed_sets import MANIFEST, RESERVATIONS, SPOT, db, members, one, planned, seen
from splitter.core.actions import (
    CreatePlaceholder,
    DeletePlaceholder,
    DeleteSplit,
    DeleteUnboundPod,
    DeleteVanishedPod,
    EnsureSplit,
    EvictPod,
    PlaceOrdinals,
    SetBudget,
)
from splitter.core.handover import Step
from splitter.core.model import RelatedObjects
from splitter.core.placeable import Reach
from splitter.core.placement.reservations import reservation_hash
from splitter.core.plan import Rules, unseen
from splitter.core.reasons import Reason, State
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status import RebalanceState
from splitter.core.split_status.backoff import Backoff
from splitter.core.split_status.view import SplitView
from splitter.core.stateful import StatefulView
from splitter.plugin.core.action_messages import describe


class TestTaking:
    """From the label to the ordinals."""

    def test_the_split_is_all_there_is_of_ours(self) -> None:
        """One write, nothing on the StatefulSet itself; a majority by default."""
        result = planned(seen(members(), split=None))
        assert result.actions == (PlaceOrdinals((0, 1, 2)),)
        assert (result.step, result.state) == (Step.CONSIDER, State.MOVING)
        assert result.verdict.message == (
            "split by placement: of 5 pods, ordinals 0, 1, 2 start on on-demand from now on; nothing"
            " restarts but what has to move, one pod at a time"
        )

    def test_without_the_policy_it_is_refused(self) -> None:
        """Said with what to do; a Split that only reports, and a look again as the settings say."""
        around = RelatedObjects(unplaceable="the policy is not there")
        result = planned(seen(members(), split=None, related=around))
        assert result.actions == (EnsureSplit(takes_over=False),)
        assert (result.state, result.verdict.reason) == (State.REFUSED, Reason.PLACEMENT_UNSUPPORTED)
        assert result.requeue_after_s == 60
        sooner = planned(
            seen(members(), split=None, related=around),
            rules=Rules(reservations=RESERVATIONS, look_again_s=7),
        )
        assert sooner.requeue_after_s == 7

    def test_a_refusal_is_written_once(self) -> None:
        """The Split that reports it is there already."""
        reported = split(owner_uids=("uid-db",), takes_over=False)
        around = RelatedObjects(unplaceable="the policy is not there")
        assert planned(seen(members(), split=reported, related=around)).actions == ()

    def test_volumes_that_none_can_take_along(self) -> None:
        """Refused; where some can, those are chosen and the others named."""
        stuck = Reach(on_demand=False, why="volume v can be attached in zone b only")
        result = planned(
            seen(members(), split=None, related=RelatedObjects(reach=dict.fromkeys(range(5), stuck)))
        )
        assert (result.state, result.verdict.reason) == (State.REFUSED, Reason.VOLUME_ZONE_CONFLICT)
        some = planned(seen(members(), split=None, related=RelatedObjects(reach={0: stuck})))
        assert some.actions == (PlaceOrdinals((1, 2, 3)),)
        assert [note.message for note in some.notes[1:]] == [
            "db-0 is not moved: volume v can be attached in zone b only"
        ]

    @pytest.mark.parametrize(("replicas", "published"), [(0, False), (1, True), (2, True), (3, False)])
    def test_few_are_told_that_they_are_never_moved(self, replicas: int, published: bool) -> None:
        """Once, as an Event beside the take-over, with what to do."""
        result = planned(seen(members(replicas=replicas), source=db(replicas), split=None))
        assert (Reason.QUORUM_HELD in {note.reason for note in result.notes}) is published
        if published:
            assert result.notes[1].message == (
                f"of {replicas} no majority is left while one restarts: none is moved, not even on notice; it"
                " starts in the right pool when it is made again. To have it moved, scale it to 3 members or"
                " more, or split it into twins (splitter.io/mode: twins)"
            )

    def test_owned_by_an_operator_or_on_delete(self) -> None:
        """Nothing is written to the object, so nobody undoes anything."""
        source = db(controller="Postgres/db")
        source = replace(source, stateful=replace(source.stateful, on_delete=True))  # type: ignore[type-var]
        assert planned(seen(members(), source=source, split=None)).actions == (PlaceOrdinals((0, 1, 2)),)

    def test_twins_may_be_asked_for(self) -> None:
        """Then placement has no part in it."""
        source = db(annotations={"splitter.io/mode": "twins"})
        assert PlaceOrdinals not in map(type, planned(seen((), source=source, split=None)).actions)

    def test_what_is_split_stays_as_it_was_taken(self) -> None:
        """Another mode counts when the label is set anew."""
        source = db(annotations={"splitter.io/mode": "twins"})
        assert planned(seen(members(), source=source)).step is Step.PLACE

    def test_ordinals_that_somebody_removed_are_written_anew(self) -> None:
        """By hand, or by an older definition of the kind: no twins with empty volumes are made of it."""
        edited = split(owner_uids=("uid-db",), takes_over=True, ordinals=None)
        result = planned(seen(members(), split=edited))
        assert (result.step, result.actions) == (Step.PLACE, (PlaceOrdinals((0, 1, 2)),))

    def test_a_split_that_was_written_for_twins_stays_theirs(self) -> None:
        """Mark and twins are gone, and it alone knows how many replicas there are to be again."""
        theirs = replace(split(owner_uids=("uid-db",), takes_over=True, ordinals=None), replicas=5)
        result = planned(seen((), source=db(0), split=theirs))
        assert PlaceOrdinals not in map(type, result.actions)
        scaled = planned(seen(members(), split=theirs))
        assert scaled.actions == (PlaceOrdinals((0, 1, 2)),), "anybody may scale a Split"

    def test_a_namesake_is_considered_anew(self) -> None:
        """The Split belongs to a StatefulSet of this name that is no more."""
        result = planned(seen(members(), split=split(owner_uids=("another",), ordinals=(0,))))
        assert result.step is Step.CONSIDER
        assert result.actions == (PlaceOrdinals((0, 1, 2)),)


class TestKeeping:
    """What a decision becomes."""

    def test_writes_no_budget(self) -> None:
        """Neither at rest nor for a doomed member, which is moved by eviction."""
        doomed = members({4: one(4, on_spot=True, node_status=NodeStatus.DOOMED)})
        for pods in (members(), doomed):
            result = planned(seen(pods, published=(0, 1, 2), budgets=()))
            assert result.guard == ""
            assert SetBudget not in map(type, result.actions)

    def test_at_rest_nothing_is_written(self) -> None:
        """And the counts are those of the policy."""
        result = planned(seen(members()))
        assert (result.step, result.state, result.actions) == (Step.PLACE, State.STEADY, ())
        assert (result.wanted_on_demand, result.wanted_spot) == (3, 2)
        assert len(result.outlook) == 5

    @pytest.mark.parametrize(
        "change",
        [{"observed": False}, {"stateful": StatefulView(5, 5, 5, ago(9), updating="2 of 5 are updated")}],
    )
    def test_not_steady_while_it_rolls(self, change: dict[str, object]) -> None:
        """Everybody stands where wanted, some with the old template."""
        result = planned(seen(members(), source=db(**change)))  # type: ignore[arg-type]
        assert (result.state, result.verdict.reason) == (State.ROLLING, Reason.ROLLOUT_IN_PROGRESS)

    def test_who_cannot_move_is_named_at_rest(self) -> None:
        """Not at the take-over alone, whose Event a crash may swallow, and after which members are added."""
        stuck = Reach(on_demand=False, why="volume v can be attached in zone b only")
        result = planned(seen(members(), related=RelatedObjects(reach={4: stuck})))
        assert (result.state, result.actions, result.notes) == (State.STEADY, (), ())
        assert [(note.reason, note.message) for note in result.advice] == [
            (
                Reason.VOLUME_ZONE_CONFLICT,
                "db-4 is not moved: volume v can be attached in zone b only",
            )
        ]

    @pytest.mark.parametrize("published", [None, (), ((0, 1),)])
    def test_the_policy_is_told_before_anybody_moves(self, published: object) -> None:
        """What the API server goes by is not what the Split says: somebody edited it, or we crashed."""
        result = planned(seen(members({1: one(1, on_spot=True)}), published=published))
        assert result.actions == (PlaceOrdinals((0, 1, 2)),)

    def test_ordinals_alone_in_one_pass(self) -> None:
        """A pod that ended in the same breath could be born by the old ones."""
        lost = one(4, on_spot=True, node_status=NodeStatus.LOST, vanished=True)
        assert planned(seen(members({4: lost}))).actions == (PlaceOrdinals((0, 1, 2, 4)),)

    def test_then_what_has_vanished_goes_by_force(self) -> None:
        """Nothing of it runs: its Node object is gone, which is looked up once more before."""
        lost = one(4, on_spot=True, node_status=NodeStatus.LOST, vanished=True)
        result = planned(seen(members({4: lost}), in_force=(0, 1, 2, 4)))
        assert result.actions == (DeleteVanishedPod("db-4", "uid-db-4", "spot-4", at_once=True),)
        assert result.verdict.message == (
            "remove db-4: no Node object is left of spot-4, and a StatefulSet makes no pod anew while one of"
            " its name is there; 4 of 5 are ready"
        )

    def test_the_doomed_are_evicted(self) -> None:
        """By the eviction API."""
        doomed = one(4, on_spot=True, node_status=NodeStatus.DOOMED)
        result = planned(seen(members({4: doomed}), in_force=(0, 1, 2, 4)))
        assert result.actions == (EvictPod("db-4", "uid-db-4", Pool.ON_DEMAND),)
        assert describe(result.actions[0]) == "evict pod db-4, to start anew on on-demand"

    def test_nobody_ends_on_an_old_view_and_none_is_counted(self) -> None:
        """A watch fails: what would be ended stays, and is no restart of it."""
        doomed = one(4, on_spot=True, node_status=NodeStatus.DOOMED)
        lost = one(3, on_spot=True, node_status=NodeStatus.LOST, vanished=True)
        for changed in ({4: doomed}, {3: lost}):
            observed = seen(members(changed), in_force=(0, 1, 2, *changed))
            result = planned(observed)
            assert result.actions
            assert result.rebalance is not None
            assert result.rebalance.restarts
            held = unseen(result, observed, "pods of shop cannot be followed")
            assert (held.actions, held.verdict.reason) == ((), Reason.CONTROL_PLANE_VIEW)
            assert held.rebalance is not None
            assert not held.rebalance.restarts
            assert held.rebalance.moved is None

    def test_a_change_that_its_controller_has_not_seen_may_be_an_update(self) -> None:
        """It may take a member in this very moment: of three that is one too many, of five it is not."""
        for replicas, moved in ((3, False), (5, True)):
            last = replicas - 1
            doomed = one(last, on_spot=True, node_status=NodeStatus.DOOMED)
            rest = {k: one(k, on_spot=False) for k in range(last)}
            observed = seen(
                members({**rest, last: doomed}, replicas),
                source=db(replicas, observed=False),
                in_force=tuple(range(replicas)),
            )
            result = planned(observed)
            assert (EvictPod in map(type, result.actions)) is moved
            assert (result.verdict.reason is Reason.QUORUM_HELD) is not moved

    @pytest.mark.parametrize(
        ("revision", "observed", "moved"), [("v2", True, True), ("v1", True, False), ("v2", False, False)]
    )
    def test_an_update_that_stands_still_takes_nobody(
        self, revision: str, observed: bool, moved: bool
    ) -> None:
        """It waits for ever for a pod of a broken image; on notice those that have it move all the same."""
        source = db(observed=observed)
        updating = replace(source.stateful, revision="v2", updating="1 of 5 have it", parallel=True)  # type: ignore[type-var]
        broken = one(2, on_spot=False, ready=False, revision=revision, created=ago(3600))
        doomed = one(4, on_spot=True, node_status=NodeStatus.DOOMED, revision="v2")
        result = planned(
            seen(
                members({2: broken, 4: doomed}),
                source=replace(source, stateful=updating),
                in_force=(0, 1, 2, 4),
            )
        )
        assert (EvictPod in map(type, result.actions)) is moved
        assert (result.verdict.reason is Reason.QUORUM_HELD) is not moved

    @pytest.mark.parametrize(
        ("partition", "ready", "moved"),
        [(0, False, False), (0, True, True), (4, False, False), (5, False, True)],
    )
    def test_no_end_hands_out_a_template_that_nobody_tried(
        self, partition: int, ready: bool, moved: bool
    ) -> None:
        """Unless a partition keeps its ordinal, or a member shows that it starts."""
        source = db()
        updating = replace(source.stateful, revision="v2", partition=partition, parallel=True)  # type: ignore[type-var]
        tried = one(3, on_spot=True, ready=ready, revision="v2", created=ago(3600))
        doomed = one(4, on_spot=True, node_status=NodeStatus.DOOMED, revision="v1")
        source = replace(source, stateful=updating)
        result = planned(seen(members({3: tried, 4: doomed}), source=source, in_force=(0, 1, 2, 4)))
        assert (EvictPod in map(type, result.actions)) is moved
        if not moved:
            assert (
                "its new pod would be of template v2, and no member of that is ready"
                in result.verdict.message
            )

    def test_the_order_of_making_pods_is_heeded(self) -> None:
        """OrderedReady: none ends above one that is not ready."""
        source = db()
        ill = one(1, on_spot=False, ready=False, created=ago(3600))
        doomed = one(4, on_spot=True, node_status=NodeStatus.DOOMED)
        for parallel in (False, True):
            stateful = replace(source.stateful, parallel=parallel)  # type: ignore[type-var]
            this = replace(source, stateful=stateful)
            result = planned(seen(members({1: ill, 4: doomed}), source=this, in_force=(0, 1, 2, 4)))
            assert (EvictPod in map(type, result.actions)) is parallel

    def test_room_is_held_before_a_move(self) -> None:
        """A placeholder with what the member asks for."""
        result = planned(seen(members({4: one(4, on_spot=False)})))
        (action,) = result.actions
        assert isinstance(action, CreatePlaceholder)
        made_of = reservation_hash(MANIFEST, RESERVATIONS)
        assert (action.pool, action.held_for) == (Pool.SPOT, f"spot/4/{made_of}")
        assert result.state is State.HELD

    def test_it_stays_until_its_member_is_made_again(self) -> None:
        """A database takes its time to end: meanwhile others would find the room, another placeholder too."""
        held = placeholder(f"spot/4/{reservation_hash(MANIFEST, RESERVATIONS)}")
        result = planned(seen(members({4: one(4, on_spot=False)}), placeholders=(held,)))
        assert result.actions == (EvictPod("db-4", "uid-db-4", Pool.SPOT),)
        moved = RebalanceState(moved=4, moved_uid="uid-db-4", last_step=ago(100))
        ours = split(owner_uids=("uid-db",), ordinals=(0, 1, 2), rebalance=moved.to_json())
        ending = one(4, on_spot=False, terminating=True)
        for pods in (members({4: ending}), members({4: None})):
            assert planned(seen(pods, placeholders=(held,), split=ours)).actions == ()
            misplaced = {k: pod for pod in pods if (k := pod.ordinal) is not None} | {
                3: one(3, on_spot=False)
            }
            assert planned(seen(tuple(misplaced.values()), split=ours)).actions == ()
        new = one(4, on_spot=True, node_status=NodeStatus.UNBOUND, ready=False, uid="uid-new")
        result = planned(seen(members({4: new}), placeholders=(held,), split=ours))
        assert result.actions == (DeletePlaceholder("held", "uid-held"),)

    def test_it_does_not_stay_for_a_member_that_never_ends(self) -> None:
        """After five minutes a node is kept for it no longer."""
        held = placeholder(f"spot/4/{reservation_hash(MANIFEST, RESERVATIONS)}")
        moved = RebalanceState(moved=4, moved_uid="uid-db-4", last_step=ago(301))
        ours = split(owner_uids=("uid-db",), ordinals=(0, 1, 2), rebalance=moved.to_json())
        pods = members({4: one(4, on_spot=False, terminating=True, terminating_since=ago(301))})
        result = planned(seen(pods, placeholders=(held,), split=ours))
        assert result.actions == (DeletePlaceholder("held", "uid-held"),)

    @pytest.mark.parametrize(
        ("held_for", "node_status"),
        [("spot/4/other", NodeStatus.SOUND), ("on-demand/4/x", NodeStatus.SOUND), ("", NodeStatus.DOOMED)],
    )
    def test_one_that_is_of_no_use_goes(self, held_for: str, node_status: NodeStatus) -> None:
        """Made of another template, in another pool, or on a node that goes."""
        held = placeholder(held_for or f"spot/4/{reservation_hash(MANIFEST, RESERVATIONS)}", node_status)
        result = planned(seen(members({4: one(4, on_spot=False)}), placeholders=(held,)))
        assert result.actions == (DeletePlaceholder("held", "uid-held"),)

    @pytest.mark.parametrize("number", ["9" * 5000, "01", "-1", "\u0663", ""])
    def test_one_for_nobody_holds_no_room(self, number: str) -> None:
        """What no member is called is nobody's room, however many digits it has."""
        held = placeholder(f"spot/{number}/{reservation_hash(MANIFEST, RESERVATIONS)}")
        result = planned(seen(members({4: one(4, on_spot=False)}), placeholders=(held,)))
        assert [type(one) for one in result.actions] == [CreatePlaceholder]

    def test_none_can_be_made_of_too_much(self) -> None:
        """Nobody moves, and it is said what is too much, how much it is and how much it may be."""
        selector = {"nodeSelectorTerms": [SPOT] * 5_001}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
        pod_spec = {**MANIFEST["spec"]["template"]["spec"], "affinity": affinity}
        source = db(manifest_json=json.dumps({"spec": {"template": {"spec": pod_spec}}}))
        result = planned(seen(members({4: one(4, on_spot=False)}), source=source))
        assert result.actions == ()
        assert (result.state, result.verdict.reason) == (State.HELD, Reason.WAITING_FOR_ROOM)
        assert result.verdict.message.startswith(
            "no placeholder can be made: each of the 5001 nodeSelectorTerms of the workload is combined with"
            " each of 1 that tell its pools apart, which makes 20004 requirements and values; at most 10000"
        )

    def test_one_that_has_failed_is_deleted(self) -> None:
        """Evicted by its kubelet, or out of CPU: nobody else deletes it, and its name is taken."""
        failed = placeholder(f"spot/4/{reservation_hash(MANIFEST, RESERVATIONS)}")
        failed = replace(failed, finished=True, ready_since=None)
        result = planned(seen(members({4: one(4, on_spot=False)}), placeholders=(failed,)))
        assert result.actions == (DeletePlaceholder("held", "uid-held"),)
        at_rest = planned(seen(members(), placeholders=(failed,)))
        assert at_rest.actions == (DeletePlaceholder("held", "uid-held"),)
        gone = planned(seen(members(), source=db(labelled=False), placeholders=(failed,)))
        assert gone.actions == (DeletePlaceholder("held", "uid-held"), DeleteSplit())

    @pytest.mark.parametrize(
        ("pool", "fields", "why"),
        [
            (Pool.SPOT, {"finished": True}, "has failed: node node-1"),
            (Pool.SPOT, {"node_status": NodeStatus.DOOMED}, "is about to go (a cordon): node node-1"),
            (Pool.ON_DEMAND, {"node_status": NodeStatus.LOST}, "is about to go (a cordon): node node-1"),
        ],
    )
    def test_one_that_holds_no_room_makes_the_next_one_wait(
        self, pool: Pool, fields: dict[str, Any], why: str
    ) -> None:
        """What tolerates everything is bound to a node that goes, each time anew: that is no loss of spot."""
        ordinal = 4 if pool is Pool.SPOT else 1
        pods = members({ordinal: one(ordinal, on_spot=pool is Pool.ON_DEMAND)})
        came: dict[str, Any] = {
            "node": "node-1",
            "bound_since": ago(2),
            "ready_since": ago(1),
            "signal": "a cordon",
        }
        held = replace(placeholder(f"{pool}/{ordinal}/x"), **came, **fields, on_spot=pool is Pool.SPOT)
        result = planned(seen(pods, placeholders=(held,)))
        assert result.actions == (DeletePlaceholder("held", "uid-held"),)
        assert result.rebalance is not None
        assert (result.rebalance.failed_placeholders.count, result.rebalance.last_loss) == (1, None)
        assert [why in note.message for note in result.notes] == [True]
        after = planned(seen(pods, split=remembers(result.rebalance)))
        assert (after.actions, after.verdict.reason, after.requeue_after_s) == (
            (),
            Reason.WAITING_FOR_ROOM,
            120,
        )
        to_the_other = replace(result.rebalance, failed_placeholders_up=pool is Pool.SPOT)
        assert planned(seen(pods, split=remembers(to_the_other))).actions, "of another pool that says nothing"
        later = replace(result.rebalance, failed_placeholders=Backoff(1, ago(121)))
        assert [type(one) for one in planned(seen(pods, split=remembers(later))).actions] == [
            CreatePlaceholder
        ]

    def test_one_that_has_stood_is_lost_with_its_node(self) -> None:
        """Its notice is one of spot, and another asks for room at once."""
        held = placeholder(f"spot/4/{reservation_hash(MANIFEST, RESERVATIONS)}", NodeStatus.DOOMED)
        held = replace(held, node_uid="uid-node", bound_since=ago(61), created=ago(61))
        result = planned(seen(members({4: one(4, on_spot=False)}), placeholders=(held,)))
        assert result.actions == (DeletePlaceholder("held", "uid-held"),)
        assert result.rebalance is not None
        assert (result.rebalance.failed_placeholders.count, result.rebalance.last_loss) == (0, NOW)

    def test_none_is_made_while_the_last_one_ends(self) -> None:
        """They have the same name."""
        held = replace(placeholder("spot/4/old"), terminating=True)
        assert planned(seen(members({4: one(4, on_spot=False)}), placeholders=(held,))).actions == ()

    def test_what_waits_for_the_wrong_pool_is_deleted(self) -> None:
        """It has never run."""
        waits = one(4, on_spot=False, node_status=NodeStatus.UNBOUND, ready=False, born=Pool.ON_DEMAND)
        waits = replace(waits, unschedulable_since=ago(10))
        assert DeleteUnboundPod("db-4", "uid-db-4") in planned(seen(members({4: waits}))).actions

    def test_a_dry_run_only_reports(self) -> None:
        """With what would be done."""
        source = db(annotations={"splitter.io/dry-run": "true"})
        result = planned(
            seen(members({4: one(4, on_spot=True, node_status=NodeStatus.DOOMED)}), source=source)
        )
        assert result.actions == ()
        assert result.verdict.message.startswith("would now do: db-4 will start on on-demand")

    def test_a_planned_move_waits_for_min_ready_seconds(self) -> None:
        """As the StatefulSet itself does; it is looked at again when they are over."""
        source = db()
        source = replace(source, stateful=replace(source.stateful, min_ready_s=600.0))  # type: ignore[type-var]
        held = placeholder(f"spot/4/{reservation_hash(MANIFEST, RESERVATIONS)}")
        pods = members({0: one(0, on_spot=False, ready_since=ago(1)), 4: one(4, on_spot=False)})
        result = planned(seen(pods, source=source, placeholders=(held,)))
        assert (result.actions, result.verdict.reason) == ((), Reason.WAITING_FOR_REPLICAS)
        assert result.requeue_after_s is not None
        assert result.requeue_after_s <= 599
        assert EvictPod in map(type, planned(seen(pods, placeholders=(held,))).actions)

    def test_a_planned_move_hands_out_no_template_that_is_kept_back(self) -> None:
        """OnDelete: the user ends pods when he wants them to have it; one that has it moves."""
        held = placeholder(f"spot/4/{reservation_hash(MANIFEST, RESERVATIONS)}")
        source = db()
        stateful = replace(source.stateful, on_delete=True, revision="v2")  # type: ignore[type-var]
        source = replace(source, stateful=stateful)
        for revision, moved in (("v1", False), ("v2", True)):
            pods = members({4: one(4, on_spot=False, revision=revision)})
            result = planned(seen(pods, source=source, placeholders=(held,)))
            assert (EvictPod in map(type, result.actions)) is moved
            assert (result.verdict.reason is Reason.ROLLOUT_IN_PROGRESS) is not moved
        pods = members({3: one(3, on_spot=False, revision="v2"), 4: one(4, on_spot=False, revision="v1")})
        assert [str(one_) for one_ in planned(seen(pods, source=source)).outlook[3:4]] == [
            "db-3: on on-demand node od-3; wanted on spot: moves next (WaitingForRoom)"
        ]
        doomed = members({4: one(4, on_spot=True, node_status=NodeStatus.DOOMED, revision="v1")})
        urgent = planned(seen(doomed, source=source, in_force=(0, 1, 2, 4)))
        assert (urgent.actions, urgent.verdict.reason) == ((), Reason.ROLLOUT_IN_PROGRESS)
        near = replace(doomed[4], deadline=NOW + timedelta(seconds=40))
        urgent = planned(seen((*doomed[:4], near), source=source, in_force=(0, 1, 2, 4)))
        assert EvictPod in map(type, urgent.actions)

    @pytest.mark.parametrize(
        ("template", "said"),
        [
            ({"metadata": {"labels": {"splitter.io/pool": "spot"}}}, "has the label splitter.io/pool"),
            ({"spec": {"nodeSelector": {"karpenter.sh/capacity-type": "spot"}}}, "asks for spot nodes"),
        ],
        ids=["placed already", "spot only"],
    )
    def test_a_template_that_the_policy_cannot_place(self, template: object, said: str) -> None:
        """Refused; who is split already is moved no more, and told why."""
        source = db(manifest_json=json.dumps({"spec": {"template": template}}))
        refused = planned(seen(members(), source=source, split=None))
        assert (refused.state, refused.verdict.reason) == (State.REFUSED, Reason.PLACEMENT_UNSUPPORTED)
        assert said in refused.verdict.message
        doomed = members({4: one(4, on_spot=True, node_status=NodeStatus.DOOMED)})
        result = planned(seen(doomed, source=source, in_force=(0, 1, 2, 4)))
        assert (result.actions, result.verdict.reason) == ((), Reason.PLACEMENT_UNSUPPORTED)
        assert result.objection is not None
        assert said in result.objection.message

    def test_without_the_policy_nobody_is_moved(self) -> None:
        """What splitter knows stops it: a pod that is born now would land anywhere."""
        around = RelatedObjects(unplaceable="the policy is not there")
        held = placeholder(f"spot/4/{reservation_hash(MANIFEST, RESERVATIONS)}")
        result = planned(seen(members({4: one(4, on_spot=False)}), placeholders=(held,), related=around))
        assert result.actions == (DeletePlaceholder("held", "uid-held"),)
        assert result.verdict.reason is Reason.PLACEMENT_UNSUPPORTED

    def test_a_policy_that_went_is_reported_and_nothing_else(self) -> None:
        """It stays split: pods that are born meanwhile are born unsplit."""
        result = planned(seen(members(), related=RelatedObjects(unplaceable="the policy is not there")))
        assert result.state is State.STEADY
        assert result.objection is not None
        assert result.objection.reason is Reason.PLACEMENT_UNSUPPORTED


class TestLettingGo:
    """The label is gone."""

    def test_the_split_and_nothing_else(self) -> None:
        """No pod restarts."""
        result = planned(seen(members(), source=db(labelled=False)))
        assert result.actions == (DeleteSplit(),)
        assert result.verdict.message == (
            "its 5 pods stay where they are; new ones are placed as its manifest says"
        )

    def test_room_goes_first(self) -> None:
        """Without a Split nobody would find it."""
        result = planned(seen(members(), source=db(labelled=False), placeholders=(placeholder("spot/4/x"),)))
        assert result.actions == (DeletePlaceholder("held", "uid-held"), DeleteSplit())

    def test_then_nothing_is_left(self) -> None:
        """As of a workload that was never split."""
        assert planned(seen(members(), source=db(labelled=False), split=None, published=None)).actions == ()

    def test_a_split_deleted_by_hand(self) -> None:
        """The policy is told that it ended, though nothing else is left of it."""
        result = planned(seen(members(), source=db(labelled=False), split=None))
        assert (result.step, result.actions) == (Step.UNPLACE, (DeleteSplit(),))


def remembers(state: RebalanceState) -> SplitView:
    """Return the Split that remembers this."""
    return split(owner_uids=("uid-db",), ordinals=(0, 1, 2), rebalance=state.to_json())


def placeholder(held_for: str, node_status: NodeStatus = NodeStatus.SOUND) -> Replica:
    """Return a placeholder that stands on a spot node."""
    return pod("held", node_status, on_spot=True, held_for=held_for, created=NOW)
