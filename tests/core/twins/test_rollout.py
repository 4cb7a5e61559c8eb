"""When a twin gets its new template, and with which numbers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from builders import NOW, ago, observation, pod, pods, rendered, replica_set, source, twin, twin_of
from core.statefulset.databases import TWINS, database, stateful
from splitter.core.clock import Waits
from splitter.core.desired.compare import withdrawn
from splitter.core.labels_annotations.policy import RolloutOrder
from splitter.core.model import Note, TwinView
from splitter.core.plan import half_rolled
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.replica import NodeStatus, Pool, Trouble
from splitter.core.twins.rollout import (
    Circumstances,
    Roll,
    is_unfinished,
    kept_numbers,
    last_available,
    next_roll,
    partition_of,
)

WHERE = Circumstances(
    source=source(),
    order=RolloutOrder.ON_DEMAND_FIRST,
    available=10,
    headroom=3,
    waits=Waits(NOW),
    grace_s=180,
    needed=10,
)


def on_demand(template: str = "v1", **fields: object) -> TwinView:
    """Return an on-demand twin of four."""
    return replace(twin(Pool.ON_DEMAND, pods(4), template=template), **fields)  # type: ignore[arg-type]


def spot(template: str = "v1", **fields: object) -> TwinView:
    """Return a spot twin of six."""
    return replace(twin(Pool.SPOT, pods(6), template=template), **fields)  # type: ignore[arg-type]


def rolling(new_ready: int = 0, **fields: object) -> TwinView:
    """Return an on-demand twin of four in the middle of a roll to v2, two of whose surge pods are there."""
    new = replica_set("new", 2, pods(new_ready, starting=2 - new_ready), template="v2")
    old = replica_set("old", 4, pods(4), template="v1")
    return twin_of(Pool.ON_DEMAND, [old, new], template="v2", updated=2, spec_replicas=4, **fields)


class TestTheOrder:
    """One twin at a time."""

    def test_nothing_is_due_when_both_are_current(self) -> None:
        """The hash of what the templates render is all that counts."""
        assert next_roll(on_demand(), spot(), rendered("v1"), WHERE) is None

    def test_a_twin_that_serves_is_no_exception_while_its_count_is_not_seen(self) -> None:
        """It lacks nothing: with its template it would take a replica while others are short (life 1279)."""
        short = replace(WHERE, available=WHERE.needed - 1)
        held = next_roll(on_demand(observed=False), spot(), rendered("v2"), short)
        assert isinstance(held, Note)
        assert held.message == "web-on-demand waits: its controller has not seen its last change"

    def test_on_demand_first_unless_asked_otherwise(self) -> None:
        """Spot first makes spot the canary."""
        first = next_roll(on_demand(), spot(), rendered("v2"), WHERE)
        assert isinstance(first, Roll)
        assert first.pool is Pool.ON_DEMAND
        canary = replace(WHERE, order=RolloutOrder.SPOT_FIRST)
        second = next_roll(on_demand(), spot(), rendered("v2"), canary)
        assert isinstance(second, Roll)
        assert second.pool is Pool.SPOT

    def test_the_second_waits_for_the_first(self) -> None:
        """A broken image stops in the first twin."""
        held = next_roll(rolling(), spot(), rendered("v2"), WHERE)
        assert held == Note(Reason.WAITING_FOR_REPLICAS, "web-spot waits: web-on-demand is not finished yet")

    def test_waits_for_all_replicas(self) -> None:
        """No roll starts while anything is missing."""
        held = next_roll(on_demand(), spot(), rendered("v2"), replace(WHERE, available=9))
        assert held == Note(
            Reason.WAITING_FOR_REPLICAS, "web-on-demand waits: 9 of 10 replicas are available"
        )

    def test_a_broken_twin_gets_a_newer_template_at_any_availability(self) -> None:
        """Or a broken image could never be mended; with the numbers of the roll it is in."""
        mended = next_roll(rolling(max_surge=2), spot(), rendered("v3"), replace(WHERE, available=4))
        assert isinstance(mended, Roll)
        assert (mended.pool, mended.max_surge, mended.max_unavailable) == (Pool.ON_DEMAND, 2, 0)

    @pytest.mark.parametrize(("new_ready", "fields"), [(1, {}), (0, {"available_replicas": 5})])
    def test_a_newer_template_waits_while_old_replicas_go(
        self, new_ready: int, fields: Mapping[str, int]
    ) -> None:
        """They are about to: more are available than are to be, in a ReplicaSet's status or in the twin's."""
        held = next_roll(rolling(new_ready, **fields), spot(), rendered("v3"), WHERE)
        waits = "web-on-demand waits: replicas that its last roll replaces are still going"
        assert held == Note(Reason.WAITING_FOR_REPLICAS, waits)

    def test_and_while_a_status_shows_those_that_went(self) -> None:
        """It is written a moment after the count."""
        old = replica_set("old", 2, pods(2), template="v1")
        new = replica_set("new", 2, pods(2), template="v2")
        late = [replace(old, status_replicas=3), new]
        settled = twin_of(Pool.ON_DEMAND, [old, new], template="v2", updated=2, spec_replicas=4)
        held = next_roll(replace(settled, replica_sets=tuple(late)), spot(), rendered("v1"), WHERE)
        assert isinstance(held, Note)
        assert held.cause is VerdictCause.HELD_ROLL
        assert isinstance(next_roll(settled, spot(), rendered("v1"), WHERE), Roll)

    def test_nobody_waits_for_what_nothing_ends(self) -> None:
        """A roll that may take all, of a twin that was lowered meanwhile, and none of it is up."""
        sets = [
            replica_set("old", 1, pods(starting=1)),
            replica_set("new", 1, pods(starting=1), template="v2"),
        ]
        few = twin_of(Pool.ON_DEMAND, sets, template="v2", updated=1, spec_replicas=2, max_unavailable=4)
        assert isinstance(next_roll(few, spot(), rendered("v3"), WHERE), Roll)

    def test_a_withdrawn_template_waits_for_the_last_good_one(self) -> None:
        """It would take the place of good replicas that are on their way up; a newer one need not wait."""
        cover = twin(Pool.ON_DEMAND, pods(1, starting=3), rendered_hash=withdrawn("v2|on-demand"))
        doomed, full = twin(Pool.SPOT, pods(doomed=3)), replace(WHERE, available=1, headroom=0)
        held = next_roll(cover, doomed, rendered("v2"), full)
        assert isinstance(held, Note)
        assert held.cause is VerdictCause.HELD_ROLL
        assert isinstance(next_roll(cover, doomed, rendered("v3"), full), Roll)

    def test_nor_does_it_come_back_while_a_quota_refuses_the_cover(self) -> None:
        """The same emergency would take it back again at once, and so for as long as it lasts (life 11)."""
        refusal = Trouble(Reason.QUOTA_EXCEEDED, "exceeded quota")
        good = replica_set("web-on-demand-1", 7, pods(3), refusal=refusal)
        cover = twin_of(Pool.ON_DEMAND, [good], updated=3, rendered_hash=withdrawn("v2|on-demand"))
        short = replace(WHERE, available=6, placeless=4, headroom=0)
        assert not is_unfinished(cover, Waits(NOW))
        held = next_roll(cover, twin(Pool.SPOT, pods(3, doomed=2)), rendered("v2"), short)
        assert isinstance(held, Note)
        assert held.message == "web-on-demand waits: its last good template comes up before the new one"
        assert isinstance(next_roll(cover, twin(Pool.SPOT, pods(5)), rendered("v2"), short), Roll)
        assert isinstance(next_roll(cover, twin(Pool.SPOT, pods(3, doomed=2)), rendered("v3"), short), Roll)

    def test_an_empty_twin_just_gets_it(self) -> None:
        """There is nothing to roll; but last, since an emergency can rely on the old one."""
        result = next_roll(twin(Pool.ON_DEMAND), spot("v2"), rendered("v2"), replace(WHERE, available=6))
        assert isinstance(result, Roll)
        assert result.pool is Pool.ON_DEMAND


class TestTheNumbers:
    """Absolute, and never below N where surge is allowed."""

    @pytest.mark.parametrize(("headroom", "surge"), [(3, 3), (1, 1), (7, 3)])
    def test_with_surge_nothing_may_be_unavailable(self, headroom: int, surge: int) -> None:
        """MaxSurge is the room there is, at most the source's own."""
        result = next_roll(on_demand(), spot(), rendered("v2"), replace(WHERE, headroom=headroom))
        assert isinstance(result, Roll)
        assert (result.max_surge, result.max_unavailable) == (surge, 0)

    def test_pods_that_are_not_seen_yet_are_missed(self) -> None:
        """The status shows four and the watch of pods none: they may not all go at once."""
        unseen = [replace(rs, pods=()) for rs in on_demand().replica_sets]
        behind = replace(on_demand(), replica_sets=tuple(unseen))
        result = next_roll(behind, spot(), rendered("v2"), replace(WHERE, headroom=1))
        assert isinstance(result, Roll)
        assert (result.max_surge, result.max_unavailable) == (1, 0)

    def test_without_room_it_waits(self) -> None:
        """All serve, and there is no place for one more."""
        held = next_roll(on_demand(), spot(), rendered("v2"), replace(WHERE, headroom=0))
        assert isinstance(held, Note)
        assert held.cause is VerdictCause.HELD_ROLL

    def test_without_room_what_serves_beyond_n_may_go(self) -> None:
        """After an outage cover and returning spot fill the room for an hour, and serve beyond N."""
        soaking = replace(WHERE, headroom=0, available=12)
        roll = next_roll(on_demand("v2"), spot(), rendered("v2"), soaking)
        assert isinstance(roll, Roll)
        assert (roll.pool, roll.max_surge, roll.max_unavailable) == (Pool.SPOT, 0, 2)

    def test_without_surge_a_share_of_u(self) -> None:
        """With the source's U a twin of four lost all its pods to a bad image."""
        flat = replace(WHERE, source=source(max_surge=0, max_unavailable=5))
        result = next_roll(on_demand(), spot(), rendered("v2"), flat)
        assert isinstance(result, Roll)
        assert (result.max_surge, result.max_unavailable) == (0, 2)

    def test_without_surge_and_at_the_floor_only_what_is_unavailable_goes(self) -> None:
        """An unfinished twin is mended without taking what serves."""
        flat = replace(WHERE, source=source(max_surge=0, max_unavailable=5), available=5)
        unfinished = twin(Pool.ON_DEMAND, pods(3, starting=1))
        result = next_roll(unfinished, spot(), rendered("v2"), flat)
        assert isinstance(result, Roll)
        assert (result.max_surge, result.max_unavailable) == (0, 1)

    def test_a_lagging_status_gives_nothing_away(self) -> None:
        """Pods that are ready serve, whatever the status still says."""
        lagging = on_demand(available_replicas=0)
        assert not is_unfinished(lagging, Waits(NOW))
        held = next_roll(lagging, spot(), rendered("v2"), replace(WHERE, headroom=0))
        assert isinstance(held, Note)

    def test_mid_roll_keeps_its_numbers_but_not_what_has_come_up_since(self) -> None:
        """A roll that began with all unavailable may take them all; later ones must not."""
        assert kept_numbers(rolling(max_surge=3, max_unavailable=0)) == (3, 0)
        assert kept_numbers(rolling(max_surge=0, max_unavailable=4)) == (0, 0)


class TestTheLastAvailable:
    """Which template an emergency puts back."""

    def test_of_a_statefulset(self) -> None:
        """None before its controller has seen the last write: until then all of its pods look old."""
        sets = (replica_set("db-2"), replica_set("db-1", of=pods(2), template="v0"))
        seen = twin_of(Pool.ON_DEMAND, sets, updated=0, first_ordinal=0)
        assert last_available(seen) == sets[1]
        assert last_available(replace(seen, observed=False)) is None


class TestUnfinished:
    """Not every placed replica is updated and available."""

    def test_waiting_for_capacity_is_no_roll(self) -> None:
        """The probe in an outage blocks nobody."""
        assert not is_unfinished(twin(Pool.SPOT, pods(stuck=1)), Waits(NOW))
        assert not is_unfinished(twin(Pool.SPOT), Waits(NOW))

    def test_starting_or_unobserved_is_unfinished(self) -> None:
        """A twin created with a bad template has one ReplicaSet and no roll."""
        assert is_unfinished(twin(Pool.SPOT, pods(2, starting=1)), Waits(NOW))
        assert is_unfinished(spot(observed=False), Waits(NOW))
        assert is_unfinished(rolling(), Waits(NOW))

    @pytest.mark.parametrize(("since_s", "unfinished"), [(300, True), (361, False)])
    def test_nobody_waits_for_a_dead_member(self, since_s: float, *, unfinished: bool) -> None:
        """Its name is not free, so nobody comes in its place; asked to end or not."""
        dead: dict[str, Any] = {"unready_since": ago(since_s), "terminating": True, "ordinal": 1000}
        members = (
            pod("db-spot-1000", NodeStatus.LOST, ready=False, **dead),
            pod("db-spot-1001", ordinal=1001),
        )
        beside_it = replace(twin(Pool.SPOT, members, spec=2), first_ordinal=1000)
        assert is_unfinished(beside_it, Waits(NOW)) is unfinished


class TestAStuckRoll:
    """Surge replicas that find no node."""

    def test_falls_back_to_the_sources_own_strategy(self) -> None:
        """After the grace, with a reason."""
        waiting = pods(stuck=2)
        new = replica_set("new", 2, waiting, template="v2")
        old = replica_set("old", 6, pods(6))
        stuck_twin = twin_of(Pool.SPOT, [old, new], template="v2", updated=2, spec_replicas=6)
        result = next_roll(on_demand(template="v2"), stuck_twin, rendered("v2"), WHERE)
        assert isinstance(result, Roll)
        assert (result.max_unavailable, result.note.warning) == (1, True)
        young = [replace(one, unschedulable_since=ago(60)) for one in waiting]
        new = replica_set("new", 2, young, template="v2")
        stuck_twin = twin_of(Pool.SPOT, [old, new], template="v2", updated=2, spec_replicas=6)
        assert next_roll(on_demand(template="v2"), stuck_twin, rendered("v2"), WHERE) is None

    @pytest.mark.parametrize(("available", "share"), [(10, 3), (8, 3), (7, 2), (6, 1), (5, None)])
    def test_takes_what_is_left_above_n_less_u(self, available: int, share: int | None) -> None:
        """As many as its share of U: where others are missing already, fewer."""
        sets = [replica_set("old", 6, pods(6)), replica_set("new", 2, pods(stuck=2), template="v2")]
        stuck_twin = twin_of(Pool.SPOT, sets, template="v2", updated=2, spec_replicas=6)
        where = replace(WHERE, source=source(max_unavailable=5), available=available)
        result = next_roll(on_demand(template="v2"), stuck_twin, rendered("v2"), where)
        assert (result.max_unavailable if isinstance(result, Roll) else None) == share

    @pytest.mark.parametrize(
        ("template", "since_s", "goes_on"), [("v2", 361, True), ("v2", 359, False), ("v1", 999, False)]
    )
    def test_goes_on_beside_the_dead(self, template: str, since_s: float, *, goes_on: bool) -> None:
        """Nobody removes what tolerates a silent node; of the old template they go first anyway."""
        dead = pod("dead", NodeStatus.LOST, on_spot=True, ready=False, unready_since=ago(since_s))
        made = {"v1": pods(6), "v2": pods(1)}
        made[template] = (*made[template], dead)
        sets = [replica_set(name, of=of, template=name) for name, of in made.items()]
        rolled = twin_of(Pool.SPOT, sets, template="v2", updated=2, spec_replicas=7)
        result = next_roll(on_demand(template="v2"), rolled, rendered("v2"), WHERE)
        assert (isinstance(result, Roll) and result.max_unavailable == 1) is goes_on

    @pytest.mark.parametrize("cause", ["of-the-pod", "of-all-nodes"])
    def test_room_would_not_help(self, cause: str) -> None:
        """An old replica that went would make room for nobody: it stays."""
        trouble = Trouble(Reason.VOLUME_UNAVAILABLE, "") if cause == "of-the-pod" else None
        excluded = Trouble(Reason.NODES_UNSUITABLE, "") if cause == "of-all-nodes" else None
        waiting = [replace(one, trouble=trouble) for one in pods(stuck=2)]
        sets = [replica_set("old", 6, pods(6)), replica_set("new", 2, waiting, template="v2")]
        stuck_twin = twin_of(Pool.SPOT, sets, template="v2", updated=2, spec_replicas=6, excluded=excluded)
        assert next_roll(on_demand(template="v2"), stuck_twin, rendered("v2"), WHERE) is None


class TestAChangedTemplateSet:
    """The user has not asked for anything: running pods are left alone until there is a rollout."""

    NOW_RENDERED: ClassVar = {
        pool: replace(made, made_of="source-1") for pool, made in rendered("v2").items()
    }

    def test_waits_for_the_next_rollout(self) -> None:
        """It says so, and how to have it now."""
        held = next_roll(on_demand(made_of="source-1"), spot(made_of="source-1"), self.NOW_RENDERED, WHERE)
        assert isinstance(held, Note)
        assert held.reason is Reason.TEMPLATE_SET_CHANGED
        assert "splitter rollout" in held.message
        assert not held.warning

    def test_comes_with_it(self) -> None:
        """A source that has changed too is a rollout, of both twins."""
        result = next_roll(on_demand(made_of="source-0"), spot(made_of="source-0"), self.NOW_RENDERED, WHERE)
        assert isinstance(result, Roll)
        second = next_roll(
            on_demand("v2", made_of="source-1"), spot(made_of="source-0"), self.NOW_RENDERED, WHERE
        )
        assert isinstance(second, Roll)
        assert second.pool is Pool.SPOT

    @pytest.mark.parametrize("borne", ["", withdrawn("v1|on-demand")])
    def test_mends_at_once(self, borne: str) -> None:
        """A twin whose template was edited or taken back is put right, with what the set renders now."""
        hurt = on_demand(made_of="source-1", rendered_hash=borne)
        result = next_roll(hurt, spot(made_of="source-1"), self.NOW_RENDERED, WHERE)
        assert isinstance(result, Roll)
        assert result.pool is Pool.ON_DEMAND

    def test_is_written_whole_after_it_was_robbed(self) -> None:
        """Of its label or its owner, and of nothing else: it is written as it was."""
        robbed = on_demand(robbed=True)
        result = next_roll(robbed, spot(), rendered("v1"), WHERE)
        assert isinstance(result, Roll)
        assert result.pool is Pool.ON_DEMAND
        assert next_roll(replace(robbed, robbed=False), spot(), rendered("v1"), WHERE) is None

    def test_mends_what_a_set_has_broken(self) -> None:
        """A twin that does not come up waits for nobody."""
        broken = replace(rolling(), made_of="source-1", rendered_hash="v1|on-demand")
        assert isinstance(next_roll(broken, spot(made_of="source-1"), self.NOW_RENDERED, WHERE), Roll)


class TestNoProgress:
    """The Deployment controller gives a roll up after progressDeadlineSeconds."""

    def test_stops_the_transaction(self) -> None:
        """The other twin keeps the old template, and somebody is told."""
        held = next_roll(rolling(stalled=True), spot(), rendered("v2"), WHERE)
        assert isinstance(held, Note)
        assert held.reason is Reason.ROLLOUT_STALLED
        assert held.warning
        assert held.message.startswith("web-on-demand made no progress for progressDeadlineSeconds")

    def test_is_said_of_the_last_twin_too(self) -> None:
        """Nothing is left to hold back, but the roll is not done."""
        held = next_roll(rolling(stalled=True), spot("v2"), rendered("v2"), WHERE)
        assert isinstance(held, Note)
        assert held.reason is Reason.ROLLOUT_STALLED

    def test_is_over_when_all_serve(self) -> None:
        """The condition may stay for a moment longer than the trouble."""
        assert next_roll(on_demand(stalled=True), spot(), rendered("v1"), WHERE) is None


class TestHalfRolled:
    """Both twins are tried in a dry run before the first of them is rolled, and the second one not again."""

    RENDERED: ClassVar = rendered("v2")

    def test_neither_is(self) -> None:
        """Before a roll, and where one twin is all there is."""
        assert not half_rolled(observation(source(), on_demand=on_demand(), spot=spot()), self.RENDERED)
        assert not half_rolled(observation(source(), on_demand=on_demand()), self.RENDERED)

    def test_one_is(self) -> None:
        """Whichever was first."""
        for one, other in ((on_demand("v2"), spot()), (on_demand(), spot("v2"))):
            assert half_rolled(observation(source(), on_demand=one, spot=other), self.RENDERED)

    def test_one_was_taken_back(self) -> None:
        """A template that was withdrawn from a twin is no template that it bears."""
        back = replace(on_demand("v2"), rendered_hash=withdrawn(on_demand("v2").rendered_hash))
        assert not half_rolled(observation(source(), on_demand=back, spot=spot()), self.RENDERED)
        robbed = replace(on_demand("v2"), robbed=True)
        assert not half_rolled(observation(source(), on_demand=robbed, spot=spot()), self.RENDERED)


class TestPartition:
    @pytest.mark.parametrize(
        ("partition", "on_demand", "spot"), [(0, 0, 0), (2, 2, 0), (3, 3, 0), (4, 4, 1), (5, 5, 2), (9, 9, 6)]
    )
    def test_counts_over_both_twins(self, partition: int, on_demand: int, spot: int) -> None:
        """Of 5 members, 3 on on-demand: the last ones are on spot, and are the first to be rolled."""
        source = database(stateful(0, saved=5, partition=partition))
        assert partition_of(source, TWINS, Pool.ON_DEMAND) == on_demand
        assert partition_of(source, TWINS, Pool.SPOT) == spot
