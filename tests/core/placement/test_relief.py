"""A member on a hot node is restarted only where that is asked for, and nothing else is to be done."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, ago, split
from core.placement.placed_sets import RESERVATIONS, db, members, one, planned, seen
from splitter.core.actions import DeletePlaceholder, EvictPod
from splitter.core.hot_nodes import HotNodes, LeavingReplica
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Observation, RelatedObjects
from splitter.core.placeable import EvictionRefusal, Reach
from splitter.core.plan import Plan, Rules, unseen
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status import RebalanceState, ReliefMove, ReliefStatus, Restart
from splitter.core.split_status.backoff import Backoff
from splitter.core.stateful import StatefulView

ASKED = {"splitter.io/relief": "cpu=85,restarts"}
WHY = "spot-3 is hot: cpu at 96 %, 85 % are the most"


def leaves(pod: str = "uid-db-3") -> HotNodes:
    """Return what is known: a member is to leave its hot node."""
    return HotNodes(
        known=True, hot=("spot-3",), avoid=frozenset({"spot-3"}), leaves=LeavingReplica(pod, WHY, stand="so")
    )


def hot(
    pods: Mapping[int, Replica | None] | None = None,
    *,
    annotations: Mapping[str, str] = ASKED,
    replicas: int = 5,
    rebalance: RebalanceState | None = None,
    relief: ReliefStatus | None = None,
    source: Mapping[str, object] | None = None,
    in_force: tuple[int, ...] = (0, 1, 2),
    **fields: object,
) -> Observation:
    """Return five members at rest, of which `db-3` is to leave its hot node."""
    itself = db(replicas, annotations=annotations, **(source or {}))  # type: ignore[arg-type]
    state = (rebalance or RebalanceState()).to_json()
    ours = split(owner_uids=("uid-db",), ordinals=in_force, rebalance=state, relief=relief or ReliefStatus())
    fields = {"split": ours, "hot_nodes": leaves()} | fields
    return seen(members(pods, replicas), source=itself, **fields)


def evicted(plan: Plan) -> list[EvictPod]:
    """Return the evictions of a plan."""
    return [action for action in plan.actions if isinstance(action, EvictPod)]


MOVE = ReliefMove(
    at=NOW,
    pool="spot",
    pod="db-3",
    pod_uid="uid-db-3",
    node="spot-3",
    node_uid="uid-spot-3",
    replicas=5,
    newer_than=ago(7200),
    ended=NOW,
    stand="so",
)


class TestRestart:
    def test_one_member_is_evicted(self) -> None:
        """By the eviction API, to be made again in its own pool; its ordinal stays where it is."""
        plan = planned(hot())
        assert plan.actions == (EvictPod("db-3", "uid-db-3", Pool.SPOT),)
        assert (plan.state, plan.verdict.reason, plan.verdict.cause) == (
            State.MOVING,
            Reason.RELIEVING,
            VerdictCause.RELIEF,
        )
        assert plan.verdict.message == (
            f"evict db-3: it is to leave, {WHY}; it starts again on spot, where the scheduler chooses"
        )

    def test_it_is_counted_as_each_end(self) -> None:
        """Among the restarts of the hour, as a planned one, and as the move whose outcome is judged."""
        state = planned(hot()).rebalance
        assert state is not None
        assert state.restarts == (Restart(3, NOW, planned=True),)
        assert (state.moved, state.moved_uid, state.moved_up, state.last_step) == (3, "uid-db-3", False, NOW)

    def test_it_is_remembered_as_a_move_that_is_over(self) -> None:
        """So that the cycles and rests of relief count it; nobody waits for it as for a raise."""
        relief = planned(hot()).relief
        assert relief is not None
        assert relief.moves == (replace(MOVE, newer_than=relief.moves[0].newer_than),)
        assert (relief.current, relief.reason) == (None, Reason.RELIEVING.value)

    def test_of_on_demand_too(self) -> None:
        """There it starts on on-demand again, by its ordinal."""
        plan = planned(hot(hot_nodes=leaves("uid-db-1")))
        assert plan.actions == (EvictPod("db-1", "uid-db-1", Pool.ON_DEMAND),)
        assert plan.rebalance is not None
        assert plan.rebalance.moved_up

    def test_not_by_an_old_view(self) -> None:
        """While a watch is behind nobody is ended, and none is counted."""
        observed = hot()
        plan = unseen(planned(observed), observed, "pods cannot be followed")
        assert (evicted(plan), plan.relief, plan.rebalance) == ([], None, None)


class TestAsked:
    @pytest.mark.parametrize(
        ("own", "of_namespace", "of_settings"),
        [
            ("cpu=85", None, None),
            ("cpu=85", "cpu=85,restarts", "cpu=85,restarts"),
            (None, "cpu=85,restarts", None),
            (None, None, "cpu=85,restarts"),
            ("off", "cpu=85,restarts", None),
        ],
    )
    def test_nobody_else_may_ask_for_a_restart(
        self, own: str | None, of_namespace: str | None, of_settings: str | None
    ) -> None:
        """Only the StatefulSet itself: what holds for many was not written for its members."""
        key = "splitter.io/relief"
        observed = hot(
            annotations={key: own} if own else {},
            namespace_annotations={key: of_namespace} if of_namespace else {},
        )
        assert not planned(observed, Policy(relief=of_settings)).actions

    def test_it_says_how_to_ask(self) -> None:
        """Paused, as for all StatefulSets, with what to write."""
        relief = planned(hot(annotations={"splitter.io/relief": "cpu=85"})).relief
        assert relief is not None
        assert relief.reason == Reason.RELIEF_PAUSED.value
        assert relief.message == (
            "relief pauses: a StatefulSet removes pods by their ordinals, so it cannot be relieved of a"
            " certain one; that would be a restart, so it has to be asked for on the StatefulSet itself:"
            " splitter.io/relief: cpu=85,restarts"
        )

    def test_two_members_are_too_few(self) -> None:
        """Without one no majority is left; that is said."""
        observed = hot(
            replicas=2,
            in_force=(0, 1),
            pods={1: one(1, on_spot=False)},
            hot_nodes=leaves("uid-db-1"),
            published=((0, 1),),
        )
        plan = planned(observed)
        assert not plan.actions
        assert plan.relief is not None
        assert "of fewer than 3 members" in plan.relief.message


NO_LABEL = RelatedObjects(unplaceable="the policy is not there")
STATEFUL = StatefulView(5, 5, 5, ago(3600))


class TestNobodyElseIsDown:
    """Whatever else goes on comes first, and no second member is down by relief."""

    @pytest.mark.parametrize(
        "pods",
        [
            {4: one(4, on_spot=True, ready_since=None)},
            {4: one(4, on_spot=True, terminating=True)},
            {4: None},
            {0: one(0, on_spot=False, node_status=NodeStatus.LOST)},
            {4: one(4, on_spot=True, node_status=NodeStatus.DOOMED)},
            {4: one(4, on_spot=False)},
            {4: one(4, on_spot=True, hinted=True), 3: one(3, on_spot=True, hinted=True)},
            {3: one(3, on_spot=True, ready_since=None)},
            {3: one(3, on_spot=True, cordoned=True)},
            {5: one(5, on_spot=True)},
        ],
        ids=[
            "one is not ready",
            "one ends",
            "one is not there",
            "one is lost",
            "one is doomed",
            "one is to move",
            "a notice may come",
            "it is not ready itself",
            "its node is cordoned",
            "one is being scaled away",
        ],
    )
    def test_nothing_is_evicted_off_the_hot_node(self, pods: Mapping[int, Replica | None]) -> None:
        """The doomed go first, the others are waited for."""
        assert "db-3" not in [one.pod for one in evicted(planned(hot(pods)))]

    @pytest.mark.parametrize(
        "fields",
        [
            {"rebalance": RebalanceState(restarts=(Restart(0, ago(3500), planned=False),))},
            {"rebalance": RebalanceState(last_loss=ago(3500))},
            {"rebalance": RebalanceState(last_step=ago(3500))},
            {"rebalance": RebalanceState(last_step=ago(80_000), failed_moves=Backoff(1))},
            {"restarts": (Restart(4, ago(30), planned=True),)},
            {"refused": EvictionRefusal("uid-db-3", "the budget", ago(500))},
            {"related": NO_LABEL},
            {"view_broken": True},
            {"published": ((0, 1),)},
            {"published_nodes": False},
            {"source": {"stateful": replace(STATEFUL, updating="1 to go")}},
            {"source": {"observed": False}},
            {"source": {"stateful": replace(STATEFUL, on_delete=True, revision="new")}},
            {"annotations": ASKED | {"splitter.io/freeze": "true"}},
            {"annotations": ASKED | {"splitter.io/dry-run": "true"}},
            {"hot_nodes": replace(leaves(), leaves=None)},
            {"hot_nodes": replace(leaves(), paused="no metrics")},
            {"hot_nodes": None},
            {"blocked": "spot cannot be had"},
        ],
        ids=str,
    )
    def test_nothing_is_evicted(self, fields: dict[str, object]) -> None:
        """Within an hour of a loss, move or end, in a roll, a freeze or a dry run, or without its policy."""
        assert not evicted(planned(hot(**fields)))  # type: ignore[arg-type]

    def test_a_placeholder_of_another_move_goes_first(self) -> None:
        """Somebody else was about to move: it is let go, and nobody is evicted beside that."""
        held = replace(one(7, on_spot=True), held_for="spot/4/x")
        plan = planned(hot(placeholders=(held,)))
        assert [type(action) for action in plan.actions] == [DeletePlaceholder]
        assert plan.relief is not None
        assert plan.relief.moves == ()

    def test_a_crash_after_the_eviction_evicts_nobody_again(self) -> None:
        """The end was counted before it was asked for: whoever comes then leaves all members alone."""
        first = planned(hot())
        assert first.rebalance is not None
        counted = RebalanceState(restarts=first.rebalance.restarts)
        for uid in ("uid-db-3", "uid-db-4"):  # of which the first may still be there
            assert not evicted(planned(hot(rebalance=counted, hot_nodes=leaves(uid))))

    def test_after_the_hour_another_may(self) -> None:
        """The same cluster, an hour later."""
        quiet = RebalanceState(
            restarts=(Restart(3, ago(3601), planned=True),), last_step=ago(3601), last_loss=ago(3601)
        )
        assert evicted(planned(hot(rebalance=quiet)))


class TestVolumes:
    @pytest.mark.parametrize(
        ("reach", "leaves_it"),
        [
            ({}, False),
            ({3: Reach()}, False),
            ({3: Reach(terms_json="[]")}, True),
        ],
    )
    def test_it_has_to_be_known_where_they_can_go(self, reach: Mapping[int, Reach], leaves_it: bool) -> None:
        """A volume that does not say it may be bound to this very node: the member would only come back."""
        source = {"stateful": replace(STATEFUL, claim_templates=("data",))}
        observed = hot(source=source, related=RelatedObjects(reach=reach))
        assert bool(evicted(planned(observed))) is leaves_it

    def test_a_claim_of_the_template_says_nothing(self) -> None:
        """Nobody looks where that one can be attached."""
        assert not evicted(planned(hot(source={"claims": ("shared",)})))


def back(node: str) -> dict[int, Replica | None]:
    """Return the new pod of the member, ready on a node."""
    return {3: one(3, on_spot=True, uid="uid-new", node=node, node_uid=f"uid-{node}", born=Pool.SPOT)}


REMEMBERED = ReliefStatus(moves=(MOVE,))
LATER = RebalanceState(restarts=(Restart(3, ago(60), planned=True),), last_step=ago(60))


class TestAfterwards:
    def test_where_it_came_to_is_remembered(self) -> None:
        """That node gets none for a while, as every one that has received a replica."""
        plan = planned(hot(back("spot-9"), relief=REMEMBERED, rebalance=LATER))
        assert plan.relief is not None
        assert plan.relief.moves == (replace(MOVE, to_node_uid="uid-spot-9", stand=""),)
        assert [note.message for note in plan.notes] == ["db-3 has left spot-3, and is ready on spot-9"]
        assert not plan.actions

    @pytest.mark.parametrize("node", ["spot-3", "hot-2"])
    def test_on_a_hot_node_again_it_is_said_and_rests(self, node: str) -> None:
        """The move counts as taken back, and the new pod is not evicted."""
        now_hot = replace(leaves("uid-new"), avoid=frozenset({"spot-3", "hot-2"}))
        plan = planned(hot(back(node), relief=REMEMBERED, rebalance=LATER, hot_nodes=now_hot))
        assert plan.relief is not None
        assert plan.relief.moves == (replace(MOVE, taken_back=True),)
        assert [(note.reason, note.warning) for note in plan.notes] == [(Reason.RELIEF_UNDONE, True)]
        assert not plan.actions

    @pytest.mark.parametrize(
        ("pods", "known"),
        [({3: None}, True), (back("spot-9"), False), ({}, True)],
        ids=["not there", "not known yet which nodes are hot", "the old pod is still there"],
    )
    def test_until_then_nothing_is_said(self, pods: Mapping[int, Replica | None], known: bool) -> None:
        """Neither before it is ready nor before it is known which nodes are hot."""
        view = replace(leaves(), known=known)
        plan = planned(hot(pods, relief=REMEMBERED, rebalance=LATER, hot_nodes=view))
        assert plan.relief is not None
        assert plan.relief.moves == (MOVE,)
        assert not plan.actions

    def test_it_is_said_once(self) -> None:
        """Afterwards the move stays as it is."""
        done = ReliefStatus(moves=(replace(MOVE, to_node_uid="uid-spot-9"),))
        plan = planned(hot(back("spot-9"), relief=done, rebalance=LATER))
        assert plan.relief is not None
        assert plan.relief.moves == done.moves
        assert plan.notes == ()

    def test_what_comes_to_the_other_pool_is_judged_as_each_move(self) -> None:
        """The scheduler chose on-demand for a member of spot: the next move waits longer."""
        elsewhere = {3: one(3, on_spot=False, uid="uid-new", born=Pool.SPOT)}
        moved = replace(LATER, moved=3, moved_uid="uid-db-3")
        plan = planned(hot(elsewhere, relief=REMEMBERED, rebalance=moved))
        assert plan.rebalance is not None
        assert plan.rebalance.failed_moves.count == 1
        assert Reason.MOVE_UNDONE in [note.reason for note in plan.notes]


def test_one_an_hour() -> None:
    """Whatever is hot: of one StatefulSet one member an hour, however often it is asked."""
    state, ends = RebalanceState(), 0
    for minute in range(180):
        now = NOW + timedelta(minutes=minute)
        plan = planned(replace(hot(rebalance=state), now=now), rules=Rules(reservations=RESERVATIONS))
        ends += len(evicted(plan))
        assert plan.rebalance is not None
        state = replace(plan.rebalance, moved=None)
    assert ends == 3
