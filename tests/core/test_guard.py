"""The guard: how many pods evictions have to leave, and which budget says so."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    LONG_AGO_S,
    ago,
    observation,
    pod,
    pods,
    rendered,
    replica_set,
    source,
    split,
    twin,
    twin_of,
)
from cpu import cpu_below
from splitter.core import limits
from splitter.core.actions import Action, HolderKind, Scale, SetBudget, SetDeletionCost
from splitter.core.evictions import BudgetView
from splitter.core.guard import guarded
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, Observation, ReplicaSetView
from splitter.core.plan import Plan, PlanInput, Rules, unseen
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Pool, Replica, Trouble
from splitter.core.split_status import PoolStarts, RebalanceState, StartTimes

N = 10
OURS = BudgetView("web-guard", "uid-guard", is_ours=True, min_available=N - 1, selector=())
LABELLED = {"matchLabels": {"app": "web"}}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}}
MANIFEST = json.dumps({"spec": {"selector": LABELLED, "template": TEMPLATE}})
EVERY = (("app", "In", ("web",)),)


def users(name: str = "mine", selector: Any = EVERY) -> BudgetView:  # noqa: ANN401
    """Return a budget of the user's."""
    return BudgetView(name, f"uid-{name}", is_ours=False, min_available=1, selector=selector)


def at_rest(
    *going: Replica,
    ready: int = 6,
    budgets: tuple[BudgetView, ...] = (OURS,),
    **fields: Any,  # noqa: ANN401 (fields of Observation)
) -> Observation:
    """Return a workload of 4 replicas on on-demand and 6 on spot."""
    annotations = {**source().annotations, "splitter.io/on-demand-base": "4", **fields.pop("annotations", {})}
    return observation(
        source(N, manifest_json=MANIFEST, annotations=annotations),
        on_demand=twin(Pool.ON_DEMAND, pods(4)),
        spot=twin(Pool.SPOT, (*pods(ready - len(going)), *going)),
        split=split(state="Steady"),
        unguardable="",
        budgets=budgets,
        **fields,
    )


def doomed(name: str = "going", **fields: Any) -> Replica:  # noqa: ANN401 (fields of Replica)
    """Return a spot pod on a node that is about to go."""
    return pod(name, NodeStatus.DOOMED, on_spot=True, **fields)


def announced(since_s: float, *going: Replica, starts_s: tuple[int, ...] = ()) -> Observation:
    """Return it so long after the first sign, its budget raised; `starts_s`: what its starts took."""
    learned = StartTimes(until=ago(LONG_AGO_S), on_demand=PoolStarts(start_s=starts_s))
    seen = at_rest(*going, budgets=(replace(OURS, min_available=N),))
    rebalance = RebalanceState(doomed_since=ago(since_s)).to_json()
    return replace(seen, split=split(state="Steady", rebalance=rebalance, starts=learned))


def planned(seen: Observation) -> Plan:
    """Plan a reconcile."""
    made = {pool: replace(one, manifest_json=MANIFEST) for pool, one in rendered().items()}
    return plan(seen, policy_in_force(seen, Policy()), made, Rules())


def into_its_ten_minutes(seen: Observation, seconds: float) -> datetime:
    """Return an instant so many seconds into the ten minutes of which a workload's first is its own."""
    assert seen.source is not None
    begins_s = 1_800_000_000 - crc32(seen.source.uid.encode()) % 600
    return datetime.fromtimestamp(begins_s + seconds, UTC)


def intruder(spec: int = 2) -> ReplicaSetView:
    """Return a ReplicaSet of the source with two replicas that no budget of splitter's selects."""
    return replica_set("web-9", spec, pods(2), attachment=Attachment.PARKED)


def budgets(result: Plan) -> list[int | None]:
    """Return what is written of budgets."""
    return [one.min_available for one in result.actions if isinstance(one, SetBudget)]


class TestAtRest:
    """One eviction at a time, and no write without a reason."""

    def test_is_made(self) -> None:
        """N - 1, once it runs."""
        result = planned(at_rest(budgets=()))
        assert result.actions == (SetBudget("web-guard", N - 1),)
        assert result.guard == "web-guard keeps 9 of 10"

    def test_is_there(self) -> None:
        """Nothing is written."""
        assert planned(at_rest()).actions == ()

    def test_follows_the_count(self) -> None:
        """Of another N."""
        seen = at_rest(budgets=(replace(OURS, min_available=4),))
        assert budgets(planned(seen)) == [N - 1]

    def test_surge_first(self) -> None:
        """All of them, always."""
        assert budgets(planned(at_rest(annotations={"splitter.io/evictions": "surge-first"}))) == [N]

    @pytest.mark.parametrize(
        ("into_s", "keeps", "wakes_s"), [(0, N - 1, 60), (59, N - 1, 1), (60, N, 540), (599, N, 1)]
    )
    def test_surge_first_where_karpenter_would_give_up_a_node(
        self, into_s: int, keeps: int, wakes_s: int
    ) -> None:
        """For a minute in ten one may go: it asks budgets before it says what it wants."""
        seen = at_rest(annotations={"splitter.io/evictions": "surge-first"}, consolidates=True, budgets=())
        result = planned(replace(seen, now=into_its_ten_minutes(seen, into_s)))
        assert (budgets(result), result.requeue_after_s) == ([keeps], wakes_s)

    @pytest.mark.parametrize(("consolidates", "wakes_s"), [(False, 60.0), (None, None)])
    def test_surge_first_where_it_wants_none(self, consolidates: bool | None, wakes_s: float | None) -> None:
        """All stay; and time alone changes nothing where no node is Karpenter's."""
        seen = at_rest(annotations={"splitter.io/evictions": "surge-first"}, consolidates=consolidates)
        result = planned(replace(seen, now=into_its_ten_minutes(seen, 0)))
        assert (budgets(result), result.requeue_after_s) == ([N], wakes_s)

    def test_surge_first_closes_when_a_node_goes(self) -> None:
        """What Karpenter wants it taints first."""
        seen = at_rest(doomed(), annotations={"splitter.io/evictions": "surge-first"}, consolidates=True)
        result = planned(replace(seen, now=into_its_ten_minutes(seen, 0)))
        assert budgets(result) == [N]

    def test_on_the_namespace(self) -> None:
        """As every annotation."""
        seen = at_rest(namespace_annotations={"splitter.io/evictions": "surge-first"})
        assert budgets(planned(seen)) == [N]

    @pytest.mark.parametrize("word", ["Surge-First", "", "always"])
    def test_a_word_that_means_nothing(self, word: str) -> None:
        """It is said, and the guard stays."""
        seen = at_rest(annotations={"splitter.io/evictions": word})
        assert "splitter.io/evictions" in policy_in_force(seen, Policy()).problems[0].message
        assert budgets(planned(seen)) == []


class TestRaised:
    """From the first sign, as the first write of all."""

    def test_before_the_raise(self) -> None:
        """Whoever drains in the same second finds it there."""
        result = planned(at_rest(doomed()))
        assert isinstance(result.actions[0], SetBudget)
        assert result.actions[0].min_available == N
        assert any(isinstance(one, Scale) and one.replicas > one.was for one in result.actions[1:])

    def test_stays_until_all_are_ready(self) -> None:
        """The node is gone and its replacement is not there yet."""
        raised = (replace(OURS, min_available=N),)
        assert budgets(planned(at_rest(ready=5, budgets=raised))) == []
        assert budgets(planned(at_rest(budgets=raised))) == [N - 1]

    def test_does_not_stay_for_one_in_trouble(self) -> None:
        """Nobody knows when it will be ready, and no node goes any more."""
        raised = (replace(OURS, min_available=N),)
        ill = pod("ill", ready=False, trouble=Trouble(Reason.CRASH_LOOPING, "exit code 1"))
        seen = at_rest(ready=5, budgets=raised)
        assert budgets(planned(replace(seen, spot=twin(Pool.SPOT, (*pods(5), ill))))) == [N - 1]

    def test_lets_go_of_who_has_to_end_now(self) -> None:
        """By the deadline of its node, less what it needs to end."""
        late = doomed("late", deadline=ago(-20), termination_s=30)
        later = doomed("later", deadline=ago(-90), termination_s=30)
        result = planned(announced(40, late, later))
        assert budgets(result) == [N - 1]
        assert result.requeue_after_s is not None
        assert result.requeue_after_s <= 60

    def test_lets_no_more_go_than_have_to_end(self) -> None:
        """Of whom a replacement is ready already: the others have none, and wait."""
        late = doomed("late", deadline=ago(-20), termination_s=30)
        ready = replace(announced(40, late), on_demand=twin(Pool.ON_DEMAND, pods(5)))
        assert budgets(planned(ready)) == []

    @pytest.mark.parametrize(
        ("starts_s", "termination_s", "waits_s"),
        [
            ((3,), 60, 10),  # it never ends in time, so replacements come first: ten seconds at least
            ((0, 8), 60, 16),  # or two starts
            ((18,), 60, 20),  # but ten seconds are its own
            ((30,), 60, 20),  # also where the replacement is ready when the machine goes, and not before
            ((31,), 60, 0),  # too late for any of them: it has what is left of its grace
            ((), 60, 15),  # nobody knows
            ((8,), 20, 16),  # it would end in time, and all would be gone before there is another
            ((8,), 12, 18),  # there is time for both
            ((8,), 2, 28),
        ],
    )
    def test_lets_go_when_replacements_had_time_to_start(
        self, starts_s: tuple[int, ...], termination_s: int, waits_s: int
    ) -> None:
        """Of a notice of 30 s: no grace is longer than what is left then, and a gap costs all of them."""
        going = doomed(notice_s=30.0, termination_s=termination_s)
        if waits_s:
            result = planned(announced(waits_s - 1, going, starts_s=starts_s))
            assert budgets(result) == []
            assert result.requeue_after_s is not None
            assert result.requeue_after_s <= 1
        assert budgets(planned(announced(waits_s, going, starts_s=starts_s))) == [N - 1]

    @pytest.mark.parametrize(
        ("machine", "since_s", "starts_s", "goes"),
        [
            ((120, 100, 110), 220, (300,), True),  # no replacement comes in time: its grace is all there is
            ((30, 25, 25), 60, (40,), True),
            ((30, 25, 60), 20, (8,), False),  # announced 5 s ago, so its replacement has 11 s more
            ((30, 14, 60), 30, (8,), True),
            ((120, 3540, 3600), 60, (8,), True),  # a deadline in an hour says nothing of when it was told
            ((3600, 3530, 3600), 70, (), True),  # where no start is known a minute is enough
        ],
    )
    def test_of_a_machine_announced_after_others(
        self, machine: tuple[int, int, int], since_s: int, starts_s: tuple[int, ...], goes: bool
    ) -> None:
        """It has a notice of its own, and so have the replacements of its pods.

        `machine`: how long its notice is, how much is left of it, and the grace of the pod.
        """
        notice_s, left_s, termination_s = machine
        going = doomed(notice_s=float(notice_s), deadline=ago(-left_s), termination_s=termination_s)
        assert (budgets(planned(announced(since_s, going, starts_s=starts_s))) == [N - 1]) is goes

    @given(
        notice_s=st.integers(1, 300),
        termination_s=st.integers(0, 600),
        starts_s=st.lists(st.integers(0, 400), max_size=3).map(tuple),
        share=st.floats(0, 1),
    )
    def test_at_any_notice(
        self, notice_s: int, termination_s: int, starts_s: tuple[int, ...], share: float
    ) -> None:
        """Nobody is let go before its replacement may be there, but where ten seconds or less are left.

        Nobody waits longer than two starts, or half of the notice, if that leaves less than its grace.
        """
        since_s = share * notice_s
        going = doomed(notice_s=float(notice_s), termination_s=termination_s)
        lets_go = budgets(planned(announced(since_s, going, starts_s=starts_s))) == [N - 1]
        left_s = notice_s - since_s
        if left_s > termination_s:
            assert not lets_go
        if starts_s and since_s < min(max(starts_s), notice_s - 10) and max(starts_s) <= notice_s:
            assert not lets_go
        most_s = max(10, 2 * max(starts_s)) if starts_s else notice_s / 2
        if left_s <= termination_s and (left_s <= 10 or since_s >= most_s):
            assert lets_go

    def test_while_the_source_s_controller_is_slow(self) -> None:
        """A raise does not wait for it, so nor does what comes before."""
        seen = at_rest(doomed())
        assert seen.source is not None
        result = planned(replace(seen, source=replace(seen.source, observed=False)))
        assert [type(one) for one in result.actions] == [SetBudget, Scale]

    def test_on_an_old_view(self) -> None:
        """What raises is written all the same; the budget too, and first."""
        result = unseen(planned(at_rest(doomed())), at_rest(doomed()), "pods cannot be followed")
        assert [type(one) for one in result.actions] == [SetBudget, Scale]
        assert unseen(planned(at_rest(budgets=())), at_rest(budgets=()), "pods").actions == ()

    @pytest.mark.parametrize("held", ["freeze", "dry-run"])
    def test_held(self, held: str) -> None:
        """Nothing replaces what waits: a budget that was raised is let down."""
        asked = {f"splitter.io/{held}": "true"}
        assert budgets(planned(at_rest(doomed(), annotations=asked))) == []
        raised = (replace(OURS, min_available=N),)
        assert budgets(planned(at_rest(doomed(), annotations=asked, budgets=raised))) == [N - 1]

    @pytest.mark.parametrize("held", ["freeze", "dry-run"])
    def test_held_and_scaled_up(self, held: str) -> None:
        """More than there are would let no eviction through at all."""
        seen = at_rest(annotations={f"splitter.io/{held}": "true"})
        assert seen.source is not None
        more = replace(seen, source=replace(seen.source, replicas=3 * N))
        assert budgets(planned(more)) == []

    @pytest.mark.parametrize("evictions", ["one-at-a-time", "surge-first"])
    def test_a_quota_that_is_full(self, evictions: str) -> None:
        """No replacement can come before the eviction: one goes, and its place is free."""
        seen = at_rest(doomed(), annotations={"splitter.io/evictions": evictions})
        full = replica_set(
            "web-on-demand-1",
            of=pods(4),
            spec=5,
            attachment=Attachment.ATTACHED,
            refusal=Trouble(Reason.QUOTA_EXCEEDED, ""),
        )
        refused = replace(seen, on_demand=twin_of(Pool.ON_DEMAND, [full], updated=4))
        assert (budgets(planned(refused)) or [N - 1]) == [N - 1]

    def test_who_is_late_and_serves_nobody_lets_no_other_go(self) -> None:
        """A budget lets it go in any case (AlwaysAllow)."""
        late = doomed("late", deadline=ago(-20), termination_s=30, ready=False)
        assert budgets(planned(at_rest(late))) == [N]

    def test_at_a_first_sign_that_somebody_made_up(self) -> None:
        """A status is anybody's who may edit it: what cannot be is as if nothing stood there."""
        long = doomed(notice_s=120.0, termination_s=3600)
        made_up = split(state="Steady", rebalance={"doomedSince": "0001-01-01T00:00:00Z"})
        result = planned(replace(at_rest(long), split=made_up))
        assert result == planned(at_rest(long))
        assert result.raises

    def test_on_demand_has_no_notice(self) -> None:
        """How long spot is doomed says nothing about it."""
        long_ago = RebalanceState(doomed_since=ago(3600)).to_json()
        spot = doomed(notice_s=120.0)
        drained = pod("drained", NodeStatus.DOOMED, notice_s=120.0)
        seen = replace(at_rest(spot), on_demand=twin(Pool.ON_DEMAND, (*pods(3), drained)))
        assert budgets(planned(seen)) == [N]
        late = replace(seen, split=split(state="Steady", rebalance=long_ago))
        assert budgets(planned(late)) == []  # the spot pod alone: as many as at rest


def miscounting(refuses_s: float = 5, healthy: int = N - 1) -> BudgetView:
    """Return a budget of the user's for which Kubernetes has missed that one of the pods is ready."""
    return replace(users(), healthy=healthy, refuses_since=ago(refuses_s))


class TestMiscounted:
    """Of two budgets that select a pod Kubernetes counts what becomes of it for one alone: maybe for ours."""

    def written(self, *budgets: BudgetView, **fields: Any) -> list[SetDeletionCost]:  # noqa: ANN401
        """Return what is written on pods."""
        actions = planned(at_rest(budgets=budgets, **fields)).actions
        return [one for one in actions if isinstance(one, SetDeletionCost)]

    def test_when_ours_yields(self) -> None:
        """After it has gone, one pod is written; its cost stays what it is."""
        result = planned(at_rest(budgets=(OURS, miscounting(0))))
        assert result.actions == (
            SetBudget("web-guard", None, "uid-guard"),
            SetDeletionCost("ready-0", "uid-ready-0", None, remember=""),
        )

    @pytest.mark.parametrize(
        ("theirs", "due"),
        [
            (miscounting(), True),
            (miscounting(healthy=0), True),
            (miscounting(healthy=N), False),
            (miscounting(healthy=2 * N), False),
            (replace(miscounting(), refuses_since=None), False),
            (replace(miscounting(), selector=(("app", "In", ("api",)),)), False),
            # That one selects ten of ours, of which six are on spot.
            (replace(miscounting(healthy=5), selector=(("splitter.io/pool", "In", ("spot",)),)), True),
            (replace(miscounting(healthy=6), selector=(("splitter.io/pool", "In", ("spot",)),)), False),
        ],
    )
    def test_what_is_missed(self, theirs: BudgetView, due: bool) -> None:
        """Who counts more has pods of others; one that lets some through is counted at the first."""
        assert bool(self.written(theirs)) is due

    @pytest.mark.parametrize(
        ("refuses_s", "due", "again_s"),
        [
            (-60, False, 5),
            (0, False, 5),
            (4, False, 1),
            (5, True, 5),
            (5.9, True, 4.1),
            (6, False, 4),
            (10.5, True, 9.5),
            (11, False, 9),
            (39, False, 1),
            (40, True, 40),
        ],
    )
    def test_when(self, refuses_s: float, due: bool, again_s: float) -> None:
        """After five seconds and after twice the time each, for a second: a count may lag, or be nobody's."""
        seen = at_rest(budgets=(miscounting(refuses_s),))
        result = planned(seen)
        assert bool(result.actions) is due
        assert result.requeue_after_s == pytest.approx(again_s)

    def test_whom(self) -> None:
        """One that serves and about which no write is; what a user has set stays."""
        back = replace(pod("back"), deletion_cost="-1000", cost_before="7")  # its node has recovered
        costly = pod("costly", deletion_cost="7")
        starts = pod("starts", ready=False)
        seen = replace(
            at_rest(budgets=(miscounting(healthy=8),)),
            on_demand=twin(Pool.ON_DEMAND, (starts, back, costly, pod("other"))),
        )
        written = [one for one in planned(seen).actions if isinstance(one, SetDeletionCost)]
        assert written == [
            SetDeletionCost("back", "uid-back", "7"),
            SetDeletionCost("costly", "uid-costly", "7", remember="7"),
        ]

    def test_of_a_statefulset(self) -> None:
        """Of its revisions no labels are known: those of its template count."""
        bare = replica_set("web-spot-1", of=pods(6), attachment=Attachment.ATTACHED)
        bare = replace(bare, template_labels={})
        spot = twin_of(Pool.SPOT, [bare], updated=6)
        theirs = replace(miscounting(healthy=9), selector=EVERY)
        written = planned(replace(at_rest(budgets=(theirs,)), spot=spot)).actions
        assert written == (SetDeletionCost("ready-0", "uid-ready-0", None, remember=""),)

    @pytest.mark.parametrize(("pool", "due"), [(Pool.SPOT, True), (Pool.ON_DEMAND, False)])
    def test_of_a_statefulset_with_a_template_set(self, pool: Pool, due: bool) -> None:
        """What its template set alone adds to the pods of a twin may be what a budget selects them by."""
        bare = replica_set("web-spot-1", of=pods(6), attachment=Attachment.ATTACHED)
        spot = twin_of(Pool.SPOT, [replace(bare, template_labels={})], updated=6)
        theirs = replace(miscounting(healthy=5), selector=(("tier", "In", ("cheap",)),))
        seen = replace(at_rest(budgets=(theirs,)), spot=spot)
        adds = {"spec": {"template": {"metadata": {"labels": {"tier": "cheap"}}}}}
        made = rendered()
        made[pool] = replace(made[pool], manifest_json=json.dumps(adds))
        assert seen.source is not None
        this = PlanInput(seen, seen.source, policy_in_force(seen, Policy()), made, Rules())
        assert bool(guarded(this, Step.RUN, replace(planned(seen), actions=())).actions) is due

    def test_two_of_theirs(self) -> None:
        """With which nothing can be evicted in any case."""
        assert not self.written(miscounting(), users("other"))

    def test_the_mark_of_a_move_stays(self) -> None:
        """Relief has just marked the pod that is to go: another one is written."""
        seen = at_rest(budgets=(miscounting(),))
        assert seen.source is not None
        this = PlanInput(seen, seen.source, policy_in_force(seen, Policy()), rendered(), Rules())
        mark = SetDeletionCost("ready-0", "uid-ready-0", "-1000", remember="")
        result = guarded(this, Step.RUN, replace(planned(seen), actions=(mark,)))
        assert [one.pod for one in result.actions if isinstance(one, SetDeletionCost)] == [
            "ready-0",
            "ready-1",
        ]


class TestOthers:
    """A budget of the user's wins; and where none can be kept, that is said."""

    def test_a_user_s_budget(self) -> None:
        """Two would have every eviction refused with an error; its name is told."""
        result = planned(at_rest(budgets=(OURS, users())))
        assert budgets(result) == [None]
        assert result.guard == "your PodDisruptionBudget mine"

    @pytest.mark.parametrize("ordinal", [None, 1])
    def test_what_was_written_is_taken_off(self, ordinal: int | None) -> None:
        """By the next reconcile, of a StatefulSet's pod too, and none is written again."""
        written = replace(pod("written", deletion_cost="7"), cost_before="7", ordinal=ordinal)
        seen = replace(at_rest(budgets=(users(),)), spot=twin(Pool.SPOT, (*pods(5), written)))
        assert planned(seen).actions == (SetDeletionCost("written", "uid-written", "7"),)

    @pytest.mark.parametrize(
        ("selector", "theirs"),
        [
            ((), True),
            (None, False),
            ((("app", "In", ("api",)),), False),
            ((("splitter.io/pool", "In", ("spot",)),), True),
            ((("splitter.io/pool", "Exists", ()),), True),
            ((("tier", "NotIn", ("db",)),), True),
            ((("app", "DoesNotExist", ()),), False),
            ((("app", "Gt", ("1",)),), True),
        ],
    )
    def test_what_it_selects(self, selector: Any, theirs: bool) -> None:  # noqa: ANN401
        """Pods of either twin, by the labels that they have; an unknown operator might."""
        result = planned(at_rest(budgets=(users(selector=selector),)))
        assert budgets(result) == ([] if theirs else [N - 1])

    @pytest.mark.parametrize(
        "terms", [(("tier", "In", ("old",)),), (("pod-template-hash", "In", ("1",)),)], ids=["label", "hash"]
    )
    def test_of_an_earlier_revision(self, terms: Any) -> None:  # noqa: ANN401
        """Its pods have the labels that they were made with."""
        older = replace(
            replica_set("web-on-demand-1", of=pods(2), attachment=Attachment.ATTACHED),
            template_labels={"app": "web", "tier": "old", "pod-template-hash": "1"},
        )
        newer = replica_set("web-on-demand-2", of=pods(2), attachment=Attachment.ATTACHED)
        seen = replace(
            at_rest(budgets=(OURS, users(selector=terms))),
            on_demand=twin_of(Pool.ON_DEMAND, [newer, older], updated=2),
        )
        assert budgets(planned(seen)) == [None]

    def test_of_a_template_set(self) -> None:
        """It may add labels."""
        seen = at_rest(budgets=(OURS, users(selector=(("team", "Exists", ()),))))
        spec = {"template": {"metadata": {"labels": {"app": "web", "team": "shop"}}}}
        made = {
            pool: replace(one, manifest_json=json.dumps({"spec": spec})) for pool, one in rendered().items()
        }
        result = plan(seen, policy_in_force(seen, Policy()), made, Rules())
        assert budgets(result) == [None]

    def test_what_it_says(self) -> None:
        """Its owner sees what it would do."""
        result = planned(at_rest(budgets=(replace(users(), says="minAvailable 50%"),)))
        assert result.guard == "your PodDisruptionBudget mine (minAvailable 50%)"

    def test_two_of_them(self) -> None:
        """With which no pod can be evicted at all."""
        result = planned(at_rest(budgets=(users("one"), users("two"))))
        assert result.guard.startswith(
            "your PodDisruptionBudgets one, two: Kubernetes refuses every eviction"
        )

    def test_too_many_to_compare(self) -> None:
        """None is compared, ours yields, and the Split and an Event say why."""
        many = [users(f"b-{number}", (("app", "In", ("x",)),)) for number in range(limits.MAX_BUDGETS + 1)]
        result = planned(at_rest(budgets=(OURS, *many)))
        assert SetBudget("web-guard", None, "uid-guard") in result.actions
        assert result.guard.startswith("none: namespace shop has more than 2000 PodDisruptionBudgets")
        assert [note.reason for note in result.advice] == [Reason.UNGUARDED]
        within = planned(at_rest(budgets=(OURS, *many[:-1])))
        assert (within.actions, within.advice) == ((), ())

    def test_many_long_ones_beside_many_revisions(self) -> None:
        """What they cost is their sum: 2,000 budgets of 32 terms, 500 revisions of 2,000 labels."""
        terms = (*((f"absent-{n}", "NotIn", ("v",)) for n in range(31)), ("absent", "Exists", ()))
        many = tuple(users(f"b-{number}", terms) for number in range(limits.MAX_BUDGETS))
        labels = {f"l-{number}": "" for number in range(2_000)}
        sets = [
            replace(
                replica_set(f"web-spot-{number}", of=pods(1), attachment=Attachment.ATTACHED),
                template_labels={**labels, "pod-template-hash": str(number)},
            )
            for number in range(500)
        ]
        seen = replace(at_rest(budgets=(OURS, *many)), spot=twin_of(Pool.SPOT, sets, updated=1))
        with cpu_below(1.0):
            result = planned(seen)
        assert result.guard.startswith("web-guard keeps")

    def test_a_stranger_has_the_name(self) -> None:
        """It stays as it is."""
        result = planned(at_rest(budgets=(users("web-guard", (("app", "In", ("x",)),)),)))
        assert (budgets(result), result.guard) == (
            [],
            "none: PodDisruptionBudget web-guard is not splitter's",
        )

    def test_without_its_owner(self) -> None:
        """It is ours, and written again, though it keeps what it should."""
        [written] = planned(at_rest(budgets=(replace(OURS, min_available=None),))).actions
        assert written == SetBudget("web-guard", N - 1, "uid-guard")

    def test_unguarded(self) -> None:
        """Ours goes."""
        assert budgets(planned(at_rest(annotations={"splitter.io/evictions": "unguarded"}))) == [None]

    def test_no_rights(self) -> None:
        """Everything else goes on."""
        result = planned(replace(at_rest(doomed(), budgets=()), unguardable="splitter may not read them"))
        assert result.guard == "none: splitter may not read them"
        assert any(isinstance(one, Scale) for one in result.actions)

    def test_refused(self) -> None:
        """What is there stays, and is not written again and again; people are told."""
        result = planned(replace(at_rest(doomed()), unguardable="splitter may not write them"))
        assert budgets(result) == []
        assert result.guard == "web-guard keeps 9 of 10, and cannot be changed: splitter may not write them"
        assert [one.reason for one in result.advice] == ["Unguarded"]

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"budgets": (OURS, users())}, "your PodDisruptionBudget mine"),
            (
                {"annotations": {"splitter.io/evictions": "unguarded"}},
                "none: splitter.io/evictions is unguarded",
            ),
        ],
    )
    def test_cannot_be_deleted(self, fields: Any, why: str) -> None:  # noqa: ANN401
        """Two that select a pod have every eviction refused: that is said, and not tried each time."""
        result = planned(replace(at_rest(**fields), unguardable="splitter may not write them"))
        assert budgets(result) == []
        assert result.guard == (
            f"{why}. web-guard is there as well, and cannot be deleted: splitter may not write them"
        )
        assert [one.reason for one in result.advice] == ["Unguarded"]

    def test_who_wants_none_is_not_told(self) -> None:
        """By the annotation, or by a budget of its own."""
        for seen in (
            at_rest(annotations={"splitter.io/evictions": "unguarded"}),
            at_rest(budgets=(users(),)),
        ):
            assert planned(seen).advice == ()


class TestElsewhere:
    """Replicas that the budget does not select do not count against it."""

    def test_in_a_parked_replica_set(self) -> None:
        """As after a foreign unpause, while the twins lack some."""
        seen = replace(at_rest(ready=4), replica_sets=(intruder(),))
        assert [one.name for one in planned(seen).raises] == ["web-spot"]
        assert budgets(planned(seen)) == [N - 3]

    def test_labelled_already(self) -> None:
        """In a disturbed take-over: the budget selects those, so they do not lower it."""
        labelled = tuple(replace(one, born=Pool.SPOT) for one in pods(2))
        seen = replace(at_rest(ready=4), replica_sets=(replace(intruder(), pods=labelled),))
        assert budgets(planned(seen)) == []

    def test_who_is_about_to_go(self) -> None:
        """They stand for nobody any more: the budget is raised before they are scaled down."""
        let_down = replace(OURS, min_available=N - 3)
        result = planned(replace(at_rest(budgets=(let_down,)), replica_sets=(intruder(),)))
        raised = SetBudget("web-guard", N - 1, "uid-guard", raised=True)
        assert result.actions == (raised, Scale(HolderKind.REPLICA_SET, "web-9", 2, 0, "rv-web-9"))

    def test_who_has_to_go(self) -> None:
        """Scaled down, and still there: nothing is let down again for their last moments."""
        assert budgets(planned(replace(at_rest(), replica_sets=(intruder(spec=0),)))) == []

    def test_a_lower_count(self) -> None:
        """N is less than before, and a node goes: the budget follows last, as whatever lets it down."""
        seen = at_rest(doomed(), budgets=(replace(OURS, min_available=N + 1),))
        *_, last = planned(seen).actions
        assert last == SetBudget("web-guard", N, "uid-guard", raised=False)


class TestGivenBack:
    """The label is gone; evictions go on to wait, and nothing is left behind."""

    def leaving(self, *going: Replica, **fields: Any) -> Observation:  # noqa: ANN401 (fields of SourceView)
        """Return the same workload without its label."""
        seen = at_rest(*going)
        assert seen.source is not None
        return replace(seen, source=replace(seen.source, labels={"app": "web"}, **fields))

    def test_follows_what_goes_on(self) -> None:
        """Of another N, or a node that goes; but none is made any more."""
        assert budgets(planned(self.leaving(doomed()))) == [N]
        assert budgets(planned(self.leaving(replicas=5))) == [4]
        assert budgets(planned(replace(self.leaving(), budgets=()))) == []

    def test_left_in_a_conflict(self) -> None:
        """Its deletion was refused when it was given back: the Split stays, and it does not."""
        over = replace(
            self.leaving(paused=False, paused_by_us=False),
            split=split(conflict=True),
            replica_sets=(replica_set("web-1", of=pods(N), attachment=Attachment.ATTACHED),),
            on_demand=None,
            spot=None,
        )
        assert over.source is not None
        labelled = {"app": "web", "splitter.io/split": "enabled"}
        result = planned(replace(over, source=replace(over.source, labels=labelled, annotations={})))
        assert (result.step, result.verdict.reason) == (Step.NOTHING, Reason.CONFLICT)
        assert budgets(result) == [None]

    def test_without_a_split(self) -> None:
        """Somebody has deleted it: what has lost its owner is deleted once there is one again."""
        lost = replace(self.leaving(doomed()), split=None, budgets=(replace(OURS, min_available=None),))
        assert budgets(planned(lost)) == []

    def test_labelled_again_on_the_way(self) -> None:
        """Its pods are home, and bear our labels: the drain that is waited for does not wait for them."""
        seen = self.leaving()
        assert seen.source is not None
        home = replica_set("web-1", of=(*pods(N - 1), doomed()), attachment=Attachment.ATTACHED)
        again = replace(
            seen,
            source=replace(seen.source, labels={"app": "web", "splitter.io/split": "enabled"}),
            replica_sets=(home,),
            on_demand=None,
            spot=None,
            budgets=(replace(OURS, min_available=N),),
        )
        result = planned(again)
        assert (result.step, result.verdict.reason) == (Step.ADOPT_PODS, Reason.WAITING_FOR_CALM)
        assert budgets(result) == [None]
        assert budgets(planned(replace(again, unguardable="it may not be written"))) == []

    def test_goes_with_the_twins(self) -> None:
        """When the pods are home."""
        home = replica_set("web-1", of=pods(N), attachment=Attachment.ATTACHED)
        seen = self.leaving(paused=False, paused_by_us=False)
        empty = replace(seen, on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT))
        result = planned(replace(empty, replica_sets=(home,)))
        assert result.step is Step.CLEAN_UP
        gone: list[Action] = [one for one in result.actions if isinstance(one, SetBudget)]
        assert gone == [SetBudget("web-guard", None, "uid-guard")]
