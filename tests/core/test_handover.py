"""The hand-over's table, row by row and as a whole; and the arithmetic of MAKE and BREAK."""

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import observation, pod, pods, replica_set, source, twin, twin_of
from splitter.core.floor import floor_of, is_rolling
from splitter.core.handover import (
    Columns,
    Holder,
    Ownership,
    Step,
    break_,
    holder_of_replica_set,
    holder_of_twin,
    make,
    next_step,
    surge_headroom,
)
from splitter.core.model import NodeStatus, Pool

REST = Columns(
    label=True,
    conflict=False,
    split=True,
    report=False,
    mark=Ownership.OURS,
    paused=True,
    paused_by_us=True,
    observed=True,
    attached=False,
    returning=False,
    parked=True,
    twins=True,
    ours_at_zero=False,
    twins_hold=True,
)
"""A workload that is split and at rest."""
FRESH = Columns(
    label=True,
    conflict=False,
    split=False,
    report=False,
    mark=Ownership.NONE,
    paused=False,
    paused_by_us=False,
    observed=True,
    attached=True,
    returning=False,
    parked=False,
    twins=False,
    ours_at_zero=True,
    twins_wait=True,
)
"""A source that has just got its label."""
WAITING = replace(REST, parked=False, twins_hold=False, twins_wait=True, unsettled=True)
"""Its twins are paused, and wait for pods."""
GIVEN = replace(REST, label=False)
"""The label was removed from a workload at rest."""


ADOPTION = ("twins_wait", "twins_hold", "unsettled", "rolling", "leaving", "orphans", "parked_active")
# What may be true of pods that change their owner, as far as the table tells it apart.
PODS = (
    *(("twins_wait",), ("twins_hold",), ("twins_wait", "unsettled"), ("twins_hold", "unsettled")),
    *(("orphans", "twins_wait", "unsettled"), ("orphans", "twins_hold", "unsettled"), ("orphans",)),
    *(("leaving", "twins_wait", "unsettled"), ("leaving", "twins_hold"), ("leaving", "orphans")),
    *(("parked_active",), ("parked_active", "twins_hold"), ("rolling", "twins_wait")),
)


@cache
def every() -> tuple[Columns, ...]:
    """Return every combination of the columns that an observation can give."""
    return tuple(_combinations())


def _combinations() -> Iterator[Columns]:
    flags = [field.name for field in fields(Columns) if field.name not in {"mark", *ADOPTION}]
    none = dict.fromkeys(ADOPTION, False)
    for mark, values in product(Ownership, list(product([False, True], repeat=len(flags)))):
        plain = Columns(mark=mark, **dict(zip(flags, values, strict=True)), **none)
        if plain.split and plain.report:
            continue  # one Split, of one kind
        if plain.conflict and not (plain.split or plain.report):
            continue  # a Conflict is recorded in a Split
        if plain.adrift and not (plain.split or plain.report or plain.parked):
            continue
        yield plain
        if plain.report or plain.copied or plain.adrift:
            continue  # they have nothing to do with pods that change their owner
        for true in PODS:
            columns = replace(plain, **dict.fromkeys(true, True))  # type: ignore[arg-type]
            if columns.twins_hold and not columns.twins:
                continue
            if columns.parked_active and not columns.parked:
                continue
            yield columns


class TestEveryRow:
    """The table of docs/design/handover.md (H20 to H38), by example."""

    @pytest.mark.parametrize(
        ("row", "columns", "step"),
        [
            ("H30 given back in Conflict", replace(FRESH, split=True, conflict=True), Step.NOTHING),
            ("H37 Conflict, still ours", replace(REST, conflict=True), Step.OFFBOARD),
            ("H21 new label", FRESH, Step.CONSIDER),
            ("H21 refused before", replace(FRESH, report=True), Step.CONSIDER),
            ("H21 paused by its user", replace(FRESH, paused=True), Step.CONSIDER),
            ("H21 crashed after the Split", replace(FRESH, split=True), Step.CONSIDER),
            ("H22 kubectl replace dropped the mark", replace(REST, mark=Ownership.NONE), Step.ADOPT),
            (
                "H22 paused by us, nothing else left",
                replace(FRESH, paused=True, paused_by_us=True),
                Step.ADOPT,
            ),
            ("H22 Split beside a paused source", replace(FRESH, split=True, paused=True), Step.ADOPT),
            (
                "H22 restored from a backup",
                replace(FRESH, mark=Ownership.FOREIGN, paused=True),
                Step.ADOPT,
            ),
            ("H23 Split deleted", replace(REST, split=False), Step.CREATE_SPLIT),
            ("H23 deleted without what is ours", replace(REST, adrift=True), Step.CLAIM),
            ("H24 not paused yet", replace(FRESH, split=True, mark=Ownership.OURS), Step.PAUSE),
            ("H24 foreign unpause", replace(REST, paused=False, attached=True), Step.PAUSE),
            ("H25 pause not observed", replace(REST, observed=False, attached=True), Step.WAIT_CONTROLLER),
            ("H25 one on its way back", replace(REST, returning=True), Step.WAIT_CONTROLLER),
            (
                "H24 the source rolls by itself",
                replace(FRESH, split=True, mark=Ownership.OURS, rolling=True),
                Step.WAIT_ROLLOUT,
            ),
            ("H25 a ReplicaSet is going", replace(REST, leaving=True), Step.WAIT_CONTROLLER),
            ("H26 something attached", replace(REST, attached=True), Step.PARK),
            (
                "H26 the source's own pods",
                replace(FRESH, split=True, mark=Ownership.OURS, paused=True),
                Step.ADOPT_PODS,
            ),
            ("H26 paused twins wait for them", replace(WAITING, attached=True), Step.ADOPT_PODS),
            ("H27 pods without an owner", replace(WAITING, orphans=True), Step.SETTLE),
            ("H27 a twin is paused", replace(REST, unsettled=True), Step.SETTLE),
            ("H28 ours", REST, Step.RUN),
            ("H29 undone", replace(WAITING, split=False, report=True, attached=True), Step.UNPAUSE),
            ("H29 only the mark is left", replace(FRESH, report=True, mark=Ownership.OURS), Step.CLEAN_UP),
            ("H31 one on its way back", replace(GIVEN, returning=True), Step.WAIT_CONTROLLER),
            ("H33 attached and paused", replace(GIVEN, attached=True), Step.UNPAUSE),
            ("H36 unpaused, nothing there yet", replace(GIVEN, paused=False), Step.WAIT_CONTROLLER),
            ("H34 ours still hold", replace(GIVEN, attached=True, paused=False), Step.SHRINK_OURS),
            (
                "H35 ours at zero",
                replace(GIVEN, attached=True, paused=False, ours_at_zero=True),
                Step.CLEAN_UP,
            ),
            ("H31 a ReplicaSet is going", replace(GIVEN, leaving=True), Step.WAIT_CONTROLLER),
            ("H32 pods without an owner", replace(GIVEN, orphans=True, twins_hold=False), Step.BRING_HOME),
            ("H32 and a twin has some yet", replace(GIVEN, orphans=True), Step.OFFBOARD),
            ("H37 the twins have the pods", GIVEN, Step.OFFBOARD),
            (
                "H38 no twin is there",
                replace(GIVEN, twins=False, twins_hold=False, parked_active=True),
                Step.REATTACH,
            ),
            ("H38 nor anything else", replace(GIVEN, twins=False, twins_hold=False), Step.UNPAUSE),
            ("H30 a refusal whose label went", replace(FRESH, label=False, report=True), Step.CLEAN_UP),
            ("H30 a stranger", replace(FRESH, label=False), Step.NOTHING),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_row(self, row: str, columns: Columns, step: Step) -> None:
        """The first row that matches acts."""
        assert next_step(columns) is step, row


class TestEveryCombination:
    """All combinations of the columns, and what holds for each of them."""

    def test_exactly_one_step(self) -> None:
        """The table is total and deterministic."""
        combinations = every()
        assert len(combinations) > 15_000
        for columns in combinations:
            assert isinstance(next_step(columns), Step)

    def test_without_a_label_nothing_is_taken(self) -> None:
        """PAUSE, PARK, RUN, CONSIDER, ADOPT and CREATE_SPLIT need the label, and no Conflict."""
        onboarding = {Step.PAUSE, Step.PARK, Step.RUN, Step.CONSIDER, Step.ADOPT, Step.CREATE_SPLIT}
        onboarding |= {Step.WAIT_ROLLOUT, Step.ADOPT_PODS, Step.SETTLE}
        for columns in every():
            if next_step(columns) in onboarding:
                assert columns.label, columns
                assert not columns.conflict, columns

    def test_with_a_label_nothing_is_given_back(self) -> None:
        """UNPAUSE, CLEAN_UP, REATTACH and the like need the label gone, a Conflict, or a take-over undone."""
        offboarding = {
            Step.UNPAUSE,
            Step.CLEAN_UP,
            Step.SHRINK_OURS,
            Step.OFFBOARD,
            Step.BRING_HOME,
            Step.REATTACH,
        }
        for columns in every():
            if next_step(columns) in offboarding:
                assert not columns.label or columns.conflict or columns.is_undone, columns

    def test_a_report_never_unpauses(self) -> None:
        """Beside a Split that only reports, and nothing held, the pause is the user's."""
        for columns in every():
            if columns.report and not columns.holds and not columns.label:
                assert next_step(columns) is Step.CLEAN_UP, columns

    def test_conflict_without_anything_held_never_touches_the_source(self) -> None:
        """Given back in Conflict: nothing, or the Split's removal once the label is gone."""
        for columns in every():
            if columns.conflict and not columns.holds:
                # A copy of our mark on a ReplicaSet still goes.
                quiet = columns.label and not columns.copied
                expected = Step.NOTHING if quiet else Step.CLEAN_UP
                assert next_step(columns) is expected, columns

    def test_a_naked_pod_with_our_labels_is_none_of_ours(self) -> None:
        """Anybody may make one: the workload is considered as any other, and may be refused."""
        assert next_step(replace(FRESH, orphans=True)) is Step.CONSIDER
        assert next_step(replace(REST, orphans=True, unsettled=True)) is Step.SETTLE

    def test_a_stranger_is_left_alone(self) -> None:
        """Without label, Split, copied mark and anything of ours there is nothing to do."""
        for columns in every():
            known = columns.split or columns.report or columns.copied
            if not (columns.label or columns.holds or known):
                assert next_step(columns) is Step.NOTHING, columns

    def test_parks_only_behind_an_observed_pause(self) -> None:
        """An unobserved pause and a released ReplicaSet make N new pods."""
        for columns in every():
            if next_step(columns) in {Step.PARK, Step.ADOPT_PODS, Step.SETTLE, Step.RUN}:
                assert columns.paused, columns
                assert columns.observed, columns
                assert columns.mark is Ownership.OURS, columns
                assert columns.split, columns

    def test_never_unpauses_while_pods_are_elsewhere(self) -> None:
        """Unpaused with nothing attached, the Deployment controller makes N new pods beside the twins'."""
        for columns in every():
            if next_step(columns) is Step.UNPAUSE:
                elsewhere = columns.twins or columns.parked_active
                assert columns.attached or not elsewhere, columns
                on_the_way = columns.orphans or columns.leaving or columns.returning
                assert not on_the_way, columns

    def test_nothing_runs_beside_pods_that_change_their_owner(self) -> None:
        """Counts are wrong while pods have no owner: nothing is scaled, and nothing is cleaned up."""
        for columns in every():
            if columns.orphans and columns.unsettled:
                assert next_step(columns) not in {Step.RUN, Step.CLEAN_UP, Step.SHRINK_OURS}, columns

    def test_cleans_up_only_at_zero(self) -> None:
        """No twin or parked ReplicaSet with replicas is ever deleted."""
        for columns in every():
            if next_step(columns) is Step.CLEAN_UP and columns.holds:
                assert columns.ours_at_zero, columns
                assert columns.attached, columns
                assert not columns.paused, columns


class TestCounting:
    """What a holder has, and what of it serves."""

    def test_available_is_counted_from_pods_and_capped(self) -> None:
        """A status that is full for a minute after its nodes are gone is not believed."""
        holder = holder_of_replica_set(replica_set(of=pods(2, lost=3)), target=0, rank=0)
        assert (holder.spec, holder.available) == (5, 2)

    def test_a_spec_caps_what_serves(self) -> None:
        """Scaled down a moment ago: the surplus is spent already."""
        assert holder_of_replica_set(replica_set(spec=2, of=pods(5)), target=0, rank=0).available == 2

    def test_unschedulable_replicas_take_no_room(self) -> None:
        """A Pending probe must not take the room that on-demand needs."""
        assert holder_of_replica_set(replica_set(of=pods(2, stuck=3)), target=0, rank=0).held == 2

    def test_pods_that_no_status_shows_take_room(self) -> None:
        """A ReplicaSet that was just scaled to 0 has its pods still."""
        lagging = replace(replica_set(spec=0, of=pods(starting=2)), status_replicas=0)
        assert holder_of_replica_set(lagging, target=0, rank=0).held == 2

    def test_a_doomed_pod_that_serves_is_not_free(self) -> None:
        """It goes only one for one with a newly available one."""
        holder = holder_of_replica_set(replica_set(of=pods(1, doomed=2, starting=1)), target=0, rank=0)
        assert [holder.cost(given) for given in range(5)] == [0, 0, 1, 2, 3]
        assert holder.shrink(least=4) == 1

    def test_a_rolling_twin_counts_the_least(self) -> None:
        """It may surge above its spec, and go down to spec - maxUnavailable; what it gives may be serving."""
        old = replica_set("a", 3, pods(3), template="v0")
        new = replica_set("b", 1, pods(starting=1))
        rolling = twin_of(Pool.SPOT, [old, new], updated=1, spec_replicas=4, max_surge=2, max_unavailable=2)
        holder = holder_of_twin(rolling, target=0, rank=0, on_demand=False)
        assert is_rolling(rolling)
        assert (holder.held, holder.available) == (6, 2)
        assert (holder.shrink(least=1), holder.shrink(least=0)) == (0, 4)

    def test_a_roll_begins_with_its_write(self) -> None:
        """From the write of a template on its controller may take replicas, long before pods show it."""
        calm = twin(Pool.SPOT, pods(4), max_unavailable=2)
        assert holder_of_twin(calm, 0, 0, on_demand=False).available == 4
        written = replace(calm, observed=False)
        assert holder_of_twin(written, 0, 0, on_demand=False).available == 2
        begun = replace(calm, template_hash="v2")
        assert is_rolling(begun)
        assert holder_of_twin(begun, 0, 0, on_demand=False).available == 2

    def test_what_its_controller_has_taken_from_a_replica_set_is_not_available(self) -> None:
        """The old ReplicaSet was cut to 3 and its pods are still 4; the sum with the new one says 4."""
        old = replica_set("a", 3, pods(4), template="v1")
        new = replica_set("b", 1, (), template="v2")
        rolling = twin_of(
            Pool.ON_DEMAND, [old, new], template="v3", updated=0, spec_replicas=4, max_surge=2, observed=False
        )
        assert holder_of_twin(rolling, 4, 0, on_demand=True).available == 3

    def test_ready_pods_that_no_status_shows_may_go_in_a_roll(self) -> None:
        """The Deployment controller cleans up what the status of an old ReplicaSet calls unavailable."""
        old = replace(replica_set("a", 3, pods(3), template="v1"), available_replicas=1)
        new = replica_set("b", 2, pods(2), template="v2")
        rolling = twin_of(Pool.ON_DEMAND, [old, new], template="v2", updated=2, available_replicas=5)
        assert holder_of_twin(rolling, 4, 0, on_demand=True).available == 3

    def test_a_roll_in_which_nothing_serves_is_free(self) -> None:
        """Whichever replicas the controller takes, nobody misses them."""
        old = replica_set("a", 2, pods(starting=2), template="v0")
        new = replica_set("b", 1, pods(starting=1))
        broken = twin_of(Pool.SPOT, [old, new], updated=1, spec_replicas=2)
        assert holder_of_twin(broken, target=0, rank=0, on_demand=False).shrink(least=2) == 2

    def test_a_terminating_pod_is_nobodys(self) -> None:
        """Neither available nor free nor doomed."""
        ending = pod(terminating=True)
        assert not ending.available
        assert not replace(ending, node_status=NodeStatus.DOOMED).serves_but_doomed


COUNTS = st.integers(0, 12)


@st.composite
def holders(draw: st.DrawFn) -> list[Holder]:
    """Draw up to four holders whose numbers fit together."""
    made = []
    for number in range(draw(st.integers(1, 4))):
        spec = draw(COUNTS)
        available = draw(st.integers(0, spec))
        target = draw(COUNTS)
        made.append(Holder(f"h{number}", spec, spec, available, target, number == 0, number))
    return made


class TestMake:
    """Growing, within the room."""

    @given(holders(), COUNTS)
    def test_never_exceeds_room_or_target(self, given_holders: list[Holder], space: int) -> None:
        """What is made fits into the room, and nobody grows past the target."""
        grown = make(given_holders, space)
        by_name = {holder.name: holder for holder in given_holders}
        assert sum(spec - by_name[name].spec for name, spec in grown.items()) <= space
        for name, spec in grown.items():
            assert by_name[name].spec < spec <= by_name[name].target

    @pytest.mark.parametrize(("given", "kept"), [(0, 4), (1, 4), (2, 3), (9, 0)])
    def test_who_gives_keeps_what_its_spec_leaves(self, given: int, kept: int) -> None:
        """No more than is available, and never less than nothing."""
        assert Holder("x", 5, 5, 4, 0).kept(given) == kept

    def test_on_demand_comes_first(self) -> None:
        """The safe half is made before the cheap one."""
        spot = Holder("spot", 0, 0, 0, 6)
        on_demand = Holder("on-demand", 0, 0, 0, 2, on_demand=True)
        assert make([spot, on_demand], 3) == {"on-demand": 2, "spot": 1}

    def test_room_makes_place_for_what_goes(self) -> None:
        """In an emergency the doomed do not take the place of their replacements."""
        held = [Holder("x", 13, 13, 10, 10)]
        assert surge_headroom(held, 10, 3, going=0) == 0
        assert surge_headroom(held, 10, 3, going=4) == 4


class TestBreak:
    """Shrinking, down to the floor."""

    @given(holders(), COUNTS)
    def test_never_goes_below_the_floor(self, given_holders: list[Holder], floor: int) -> None:
        """Of what serves, no more goes than is above the floor."""
        shrunk = break_(given_holders, floor)
        before = sum(holder.available for holder in given_holders)
        after = 0
        for holder in given_holders:
            left = shrunk.get(holder.name, holder.spec)
            assert min(holder.spec, holder.target) <= left <= holder.spec
            after += min(holder.available, left)
        assert after >= min(before, floor)

    def test_takes_the_lowest_rank_first(self) -> None:
        """Parked ones oldest first, then spot, then on-demand."""
        old = Holder("old", 2, 2, 2, 0, rank=0)
        spot = Holder("spot", 4, 4, 4, 2, rank=1)
        assert break_([spot, old], floor=3) == {"old": 0, "spot": 3}

    @pytest.mark.parametrize(
        ("replicas", "surge", "unavailable", "floor"),
        [(10, 3, 2, 10), (10, 0, 2, 8), (1, 1, 0, 1), (0, 0, 1, 0), (1, 0, 1, 0)],
    )
    def test_the_floor(self, replicas: int, surge: int, unavailable: int, floor: int) -> None:
        """F is N where surge is allowed, N - U where it is not, and never negative."""
        assert floor_of(replicas, surge, unavailable) == floor


def test_the_source_of_the_builders_is_at_rest() -> None:
    """The builders say what they mean."""
    assert source().paused
    assert observation().split is not None
