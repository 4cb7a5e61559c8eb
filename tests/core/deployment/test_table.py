"""The table of a Deployment, row by row and as a whole."""

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from splitter.core.deployment.table import WITH_LABEL, WITHOUT_LABEL, Columns, Table, next_step
from splitter.core.handover import Ownership, Step

PAGE = Path(__file__).parents[3] / "docs/design/handover.md"

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


@pytest.mark.parametrize(
    ("rows", "first", "last"), [(WITH_LABEL, "H21", "H28"), (WITHOUT_LABEL, "H30", "H38")]
)
def test_the_rows_are_those_of_the_page_in_its_order(rows: Table, first: str, last: str) -> None:
    """Each rule of the page has its rows, and none has a row elsewhere."""
    page = re.findall(r"^\| (H\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    undone = "H29"  # says which of the two tables it is
    named = [rule for rule in page if first <= rule <= last and rule != undone]
    assert named == list(dict.fromkeys(row.rule for row in rows))


@pytest.mark.parametrize("rows", [WITH_LABEL, WITHOUT_LABEL])
def test_each_row_is_the_first_that_matches_something(rows: Table) -> None:
    """No row is hidden by those above it."""
    reached = {next(number for number, row in enumerate(rows) if row.when(c)) for c in every()}
    assert reached == set(range(len(rows)))
