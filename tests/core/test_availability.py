"""The condition of a source: what is counted, and when it is there."""

import re
from dataclasses import replace

import pytest

from builders import NOW, ago, observation, pod, pods, rendered, replica_set, source, split, twin, twin_of
from core.one_reconcile import DEFAULTS, at_rest, planned
from core.placement.placed_sets import db, members, one, seen
from core.placement.placed_sets import planned as placed
from splitter.core.actions import HideAvailable
from splitter.core.desired.compare import withdrawn
from splitter.core.model import Note, Observation, Rendered
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status import Condition

THERE = Condition("splitter.io/Available", "True", "AsExpected", "as it was", ago(500))
OURS = source(by_karmada=True)


def of(on_demand: tuple[Replica, ...], spot: tuple[Replica, ...], /, **fields: object) -> Observation:
    """Return a source of 10 that Karmada manages, with these pods in its twins."""
    made = {"on_demand": twin(Pool.ON_DEMAND, on_demand), "spot": twin(Pool.SPOT, spot)}
    return replace(observation(OURS, **made), **fields)  # type: ignore[arg-type]


def counts(result: Plan) -> dict[str, int]:
    """Return what the condition of a plan says."""
    assert result.shown is not None
    return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", result.shown.message)}


def with_rendered(observed: Observation, twins: dict[Pool, Rendered] | Note) -> Plan:
    """Return the plan with twins as these templates render them, if they do."""
    return plan(observed, policy_in_force(observed, DEFAULTS), twins, Rules(defaults=DEFAULTS))


class TestCounts:
    def test_of_each_kind_of_pod(self) -> None:
        """Those that are announced to go serve, and are not ready; those on a lost node do not serve."""
        unseen = pod("unseen", NodeStatus.UNSEEN)
        ending = pod("ending", terminating=True)
        result = planned(of((*pods(3), unseen, ending), pods(1, starting=1, stuck=1, doomed=2, lost=1)))
        assert counts(result) == {
            "replicas": 10,
            "updated": 4 + 6,
            "ready": 4,
            "available": 3 + 1 + 1 + 2,
            "generation": 7,
        }
        assert result.shown is not None
        assert (result.shown.type, result.shown.status) == ("splitter.io/Available", "False")
        assert result.shown.reason == result.verdict.reason
        assert result.shown.message.startswith("7 of 10 replicas are available (")

    def test_at_most_n(self) -> None:
        """While twins overlap: Karmada would take the sum for what is wanted."""
        result = planned(of(pods(7), pods(6)))
        assert set(counts(result).values()) == {10, 7}
        assert result.shown == Condition(
            "splitter.io/Available",
            "True",
            "AsExpected",
            "10 of 10 replicas are available (replicas=10 updated=10 ready=10 available=10 generation=7)",
            NOW,
        )

    def test_in_all_holders(self) -> None:
        """While pods change their owner: in its own ReplicaSets, in none, and in one that is going."""
        going = replace(replica_set("web-2", of=pods(2), template="v0"), held_by=Pool.SPOT)
        old = replica_set("web-0", of=pods(1), template="v0")
        own = (replica_set(of=pods(1)), old)
        observed = of(pods(2), pods(1), replica_sets=own, orphans=pods(2), going=(going,))
        assert counts(planned(observed)) == {
            "replicas": 10,
            "updated": 2 + 1 + 1 + 2 + 2,
            "ready": 9,
            "available": 9,
            "generation": 7,
        }

    def test_a_new_template(self) -> None:
        """A twin that has not got it has no updated replica, and of one in mid-roll the new ones are."""
        sets = [replica_set("s-2", of=pods(2), template="v2"), replica_set("s-1", of=pods(4))]
        rolling = twin_of(Pool.SPOT, sets, template="v2", updated=2)
        result = planned(of(pods(4), (), spot=rolling), "v2")
        assert (counts(result)["updated"], counts(result)["available"]) == (2, 10)

    @pytest.mark.parametrize(("old", "updated"), [(0, 10), (1, 9), (3, 7)])
    def test_a_roll_that_is_not_over(self, old: int, updated: int) -> None:
        """All new ones are there, not all of them ready: while old ones serve, not all are updated."""
        sets = [
            replica_set("s-2", of=pods(3, starting=3), template="v2"),
            replica_set("s-1", of=pods(old), spec=old),
        ]
        rolling = twin_of(Pool.SPOT, sets, template="v2", updated=6)
        result = planned(
            of((), (), on_demand=twin(Pool.ON_DEMAND, pods(4), template="v2"), spot=rolling), "v2"
        )
        assert (counts(result)["updated"], counts(result)["available"]) == (updated, 7 + old)

    @pytest.mark.parametrize(
        ("made_of", "hashed", "updated"),
        [("a", "v0", 10), ("a", withdrawn("v0"), 6), ("b", "v0", 6), ("", "v0", 6)],
    )
    def test_another_template_set_alone(self, made_of: str, hashed: str, updated: int) -> None:
        """That waits for the next rollout; a template that was taken back is none of the source's."""
        twins = {pool: replace(twin_, made_of="a") for pool, twin_ in rendered().items()}
        on_demand = replace(twin(Pool.ON_DEMAND, pods(4)), rendered_hash=hashed, made_of=made_of)
        assert counts(with_rendered(of((), pods(6), on_demand=on_demand), twins))["updated"] == updated

    def test_twins_that_do_not_render(self) -> None:
        """They serve; but nothing says that they are what the source of this generation asks for."""
        result = with_rendered(of(pods(4), pods(6)), Note(Reason.TEMPLATE_INVALID, "no"))
        assert (counts(result)["updated"], counts(result)["generation"]) == (10, 0)

    @pytest.mark.parametrize(("there", "kept"), [(THERE, True), (None, False)])
    def test_a_statefulset_that_is_behind(self, there: Condition | None, *, kept: bool) -> None:
        """All of its pods look old until its controller has seen the last write: what was said stays."""
        behind = replace(twin(Pool.ON_DEMAND, pods(4)), first_ordinal=0, observed=False)
        result = planned(of((), pods(6), on_demand=behind, source=replace(OURS, available=there)))
        assert (result.shown is None) is kept
        assert not result.retries

    @pytest.mark.parametrize(("status", "since"), [("True", THERE.since), ("False", NOW)])
    def test_since(self, status: str, since: object) -> None:
        """The time is that of the last transition."""
        there = replace(THERE, status=status)
        result = planned(of(pods(4), pods(6), source=replace(OURS, available=there)))
        assert result.shown is not None
        assert result.shown.since == since


class TestTheNewestTemplate:
    """How many of N have it and are available, as `kubectl rollout status` counts them."""

    def test_all_have_it(self) -> None:
        """In whichever pool, in a move, and while cover stands in for spot: N are enough."""
        assert planned(at_rest()).updated == 10
        assert planned(of(pods(7), pods(6))).updated == 10
        assert planned(of(pods(10), pods(lost=6))).updated == 10

    def test_one_that_is_announced_to_go(self) -> None:
        """Serves, and is missing: so is one that starts."""
        assert planned(of(pods(4), pods(4, doomed=1, starting=1))).updated == 8

    @pytest.mark.parametrize(("old", "expected"), [(0, 7), (1, 7), (3, 7), (4, 6)])
    def test_old_ones(self, old: int, expected: int) -> None:
        """While they are there they take the place of a new one, as many of those as may be ready."""
        sets = [
            replica_set("s-2", of=pods(3, starting=3), template="v2"),
            replica_set("s-1", of=pods(old), spec=old),
        ]
        rolling = twin_of(Pool.SPOT, sets, template="v2", updated=6)
        on_demand = twin(Pool.ON_DEMAND, pods(4), template="v2")
        assert planned(of((), (), on_demand=on_demand, spot=rolling), "v2").updated == expected

    def test_all_new_ones_are_ready_and_one_old_is_left(self) -> None:
        """The roll is over when the last old one goes."""
        sets = [replica_set("s-2", of=pods(6), template="v2"), replica_set("s-1", of=pods(1))]
        rolling = twin_of(Pool.SPOT, sets, template="v2", updated=6)
        on_demand = twin(Pool.ON_DEMAND, pods(4), template="v2")
        assert planned(of((), (), on_demand=on_demand, spot=rolling), "v2").updated == 9

    def test_none_has_it_before_the_first_write(self) -> None:
        """In the look that sees the new template first, no twin has it: that one writes the first."""
        result = planned(at_rest(), "v2")
        assert (result.updated, result.state) == (0, State.ROLLING)

    def test_old_ones_of_a_workload_of_none(self) -> None:
        """Scaled to 0, and two are there still."""
        sets = [replica_set("s-1", of=pods(2))]
        left = twin_of(Pool.SPOT, sets, template="v2", updated=0)
        none = of((), (), source=source(0), on_demand=twin(Pool.ON_DEMAND, template="v2"), spot=left)
        assert planned(none, "v2").updated == -2

    def test_pods_of_a_statefulset_that_rolls_itself(self) -> None:
        """While it is taken over: nothing says which of its own are new."""
        own = replica_set(of=pods(4))
        assert planned(of(pods(6), (), replica_sets=(own,))).updated == 10
        assert planned(of(pods(6), (), replica_sets=(replace(own, rolls=True),))).updated == 6

    def test_a_statefulset_that_is_behind(self) -> None:
        """Nobody knows which revision is the newest until its controller has seen the last write."""
        behind = replace(twin(Pool.ON_DEMAND, pods(4)), first_ordinal=0, observed=False)
        assert planned(of((), pods(6), on_demand=behind)).updated == 0

    def test_is_not_known(self) -> None:
        """Of what is not split, is given back, or does not render."""
        assert with_rendered(at_rest(), Note(Reason.TEMPLATE_INVALID, "no")).updated is None
        assert planned(at_rest(source=source(labelled=False))).updated is None
        assert planned(observation(replace(OURS, annotations={}), split=None)).updated is None

    @pytest.mark.parametrize(
        ("observed", "partition", "updated"), [(True, 0, 3), (True, 2, 5), (False, 0, 0), (False, 2, 0)]
    )
    def test_of_a_statefulset_split_by_placement(
        self, *, observed: bool, partition: int, updated: int
    ) -> None:
        """By the revision of its own pods; what its partition holds back is as it should be."""
        revisions = dict(enumerate(("db-1", "db-1", "db-2", "db-2", "db-2")))
        own = {k: one(k, on_spot=k > 2, revision=revision) for k, revision in revisions.items()}
        rolling = db(observed=observed)
        assert rolling.stateful is not None
        stateful = replace(rolling.stateful, revision="db-2", partition=partition)
        result = placed(seen(members(own), source=replace(rolling, stateful=stateful)))
        assert result.updated == updated


class TestIsThere:
    @pytest.mark.parametrize(
        ("by_karmada", "always", "there"),
        [(True, False, True), (False, True, True), (False, False, False)],
    )
    def test_if_it_is_asked_for(self, *, by_karmada: bool, always: bool, there: bool) -> None:
        """By Karmada's label, or by the settings; else nothing is written, or what is there goes."""
        observed = at_rest(source=source(by_karmada=by_karmada))
        result = planned(observed, available_condition=always)
        assert (result.shown is not None) is there
        assert not result.retries
        left = planned(
            replace(observed, source=source(by_karmada=by_karmada, available=THERE)),
            available_condition=always,
        )
        assert left.retries == (() if there else (HideAvailable(),))

    def test_in_a_dry_run(self) -> None:
        """It is a report, too."""
        observed = at_rest(source=source(by_karmada=True, annotations={"splitter.io/dry-run": "true"}))
        assert counts(planned(observed))["available"] == 10

    def test_goes_when_it_is_given_back(self) -> None:
        """Before the Split, which nothing would lead back to; and while twins are left it stays."""
        own = replica_set(of=pods(10), spec=10)
        given = replace(source(by_karmada=True, labelled=False, available=THERE), paused=False)
        result = planned(observation(given, [own]))
        assert result.retries == (HideAvailable(),)
        assert result.shown is None
        back = at_rest(source=source(by_karmada=True, labelled=False, available=THERE))
        assert planned(back).shown is not None

    def test_not_on_what_is_not_split(self) -> None:
        """A source that is only considered, and one that is gone."""
        assert planned(observation(replace(OURS, annotations={}), split=None)).shown is None
        assert planned(replace(at_rest(), source=None, split=split())).shown is None
