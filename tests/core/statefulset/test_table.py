"""The table of a source that is scaled to 0, row by row and as a whole."""

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import product

import pytest

from splitter.core.handover import Ownership, Step
from splitter.core.statefulset.table import Columns, next_step

REST = Columns(
    label=True,
    conflict=False,
    split=True,
    report=False,
    mark=Ownership.OURS,
    saved=True,
    written=False,
    zero=True,
    left=False,
    shown=True,
    asked=False,
    twins=True,
    twins_at_zero=False,
    home=False,
)
"""A StatefulSet that is split and at rest."""
FRESH = Columns(
    label=True,
    conflict=False,
    split=False,
    report=False,
    mark=Ownership.NONE,
    saved=False,
    written=False,
    zero=False,
    left=False,
    shown=False,
    asked=False,
    twins=False,
    twins_at_zero=True,
    home=True,
)
"""One that has just got its label."""
GIVEN = replace(REST, label=False)
"""The label was removed from one at rest."""

ONBOARDING = {Step.CONSIDER, Step.ADOPT, Step.CREATE_SPLIT, Step.CLAIM, Step.SHOW, Step.RUN}
OFFBOARDING = {Step.HAND_BACK, Step.RELEASE}


def every() -> Iterator[Columns]:
    """Yield every combination of the columns that an observation can give."""
    flags = [field.name for field in fields(Columns) if field.name != "mark"]
    for mark, values in product(Ownership, list(product([False, True], repeat=len(flags)))):
        columns = replace(REST, mark=mark, **dict(zip(flags, values, strict=True)))
        is_reported = columns.split or columns.report
        if columns.split and columns.report:
            continue  # one Split, of one kind
        if (columns.conflict or columns.adrift or columns.shown) and not is_reported:
            continue  # what a Split says needs one
        if columns.asked and not columns.shown:
            continue
        if columns.written and (not columns.saved or columns.zero):
            continue  # 0 is nobody's N
        if columns.left and (columns.saved or not columns.shown or not columns.split):
            continue  # what the Split says of N
        if columns.home and not columns.twins_at_zero:
            continue
        if not columns.twins and not columns.twins_at_zero:
            continue
        yield columns


class TestEveryRow:
    """The table, by example."""

    @pytest.mark.parametrize(
        ("row", "columns", "step"),
        [
            ("given back in Conflict", replace(FRESH, split=True, conflict=True), Step.NOTHING),
            ("Conflict, still ours", replace(REST, conflict=True), Step.HAND_BACK),
            ("new label", FRESH, Step.CONSIDER),
            ("refused before", replace(FRESH, report=True), Step.CONSIDER),
            ("labelled at 0", replace(FRESH, zero=True), Step.CONSIDER),
            ("crashed after the Split", replace(FRESH, split=True), Step.CONSIDER),
            ("a mark left over", replace(FRESH, mark=Ownership.OURS), Step.CONSIDER),
            (
                "kubectl replace dropped the marks",
                replace(REST, mark=Ownership.NONE, saved=False),
                Step.ADOPT,
            ),
            ("restored from a backup", replace(REST, mark=Ownership.FOREIGN, split=False), Step.ADOPT),
            ("a Split beside a source at 0", replace(FRESH, split=True, zero=True), Step.ADOPT),
            ("Split deleted", replace(REST, split=False, shown=False), Step.CREATE_SPLIT),
            ("deleted without what is ours", replace(REST, adrift=True), Step.CLAIM),
            ("marked", replace(FRESH, split=True, mark=Ownership.OURS), Step.SAVE),
            ("N lost", replace(REST, saved=False), Step.SAVE),
            ("somebody scaled the source", replace(REST, written=True, zero=False), Step.FOLLOW),
            ("the Split has no count yet", replace(REST, shown=False), Step.SHOW),
            ("somebody scaled the Split", replace(REST, asked=True), Step.FOLLOW_SPLIT),
            ("both", replace(REST, written=True, zero=False, asked=True), Step.FOLLOW),
            ("ours", REST, Step.RUN),
            ("on the way", replace(REST, zero=False), Step.RUN),
            ("label gone", GIVEN, Step.HAND_BACK),
            ("label gone before N was saved", replace(FRESH, label=False, mark=Ownership.OURS), Step.RELEASE),
            ("N lost on the way back", replace(GIVEN, saved=False), Step.SAVE),
            (
                "replaced, it runs its own",
                replace(GIVEN, saved=False, mark=Ownership.NONE, zero=False),
                Step.HAND_BACK,
            ),
            (
                "N lost in the middle of the way back",
                replace(GIVEN, saved=False, zero=False, left=True),
                Step.SAVE,
            ),
            (
                "and the mark with it",
                replace(GIVEN, saved=False, zero=False, left=True, mark=Ownership.NONE),
                Step.WAIT_COUNT,
            ),
            ("replaced, and stands at 0", replace(GIVEN, saved=False, mark=Ownership.NONE), Step.WAIT_COUNT),
            ("scaled on the way back", replace(GIVEN, written=True, zero=False), Step.FOLLOW),
            ("Split scaled on the way back", replace(GIVEN, asked=True), Step.FOLLOW_SPLIT),
            ("home again", replace(GIVEN, zero=False, twins_at_zero=True, home=True), Step.RELEASE),
            (
                "only the Split is left",
                replace(FRESH, label=False, split=True, shown=True),
                Step.RELEASE,
            ),
            ("a refusal whose label went", replace(FRESH, label=False, report=True), Step.RELEASE),
            ("a stranger", replace(FRESH, label=False), Step.NOTHING),
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
        combinations = list(every())
        assert len(combinations) > 1_500
        for columns in combinations:
            assert isinstance(next_step(columns), Step)

    def test_without_a_label_nothing_is_taken(self) -> None:
        """What takes a workload needs the label, and no Conflict."""
        for columns in every():
            if next_step(columns) in ONBOARDING:
                assert columns.label, columns
                assert not columns.conflict, columns

    def test_with_a_label_nothing_is_given_back(self) -> None:
        """What gives it back needs the label gone, or a Conflict."""
        for columns in every():
            if next_step(columns) in OFFBOARDING:
                assert not columns.label or columns.conflict, columns

    def test_nothing_is_scaled_before_n_is_saved(self) -> None:
        """MAKE and BREAK run only with N written down, and no other count on the source.

        Or where the source runs N pods of its own already, and only the twins are lowered.
        """
        for columns in every():
            if next_step(columns) in {Step.RUN, Step.HAND_BACK}:
                assert columns.saved or not (columns.label or columns.zero) or columns.conflict, columns
                assert not columns.written, columns

    def test_the_traces_go_only_when_it_is_home(self) -> None:
        """Neither twins nor N are taken away while the twins hold replicas."""
        for columns in every():
            if next_step(columns) is Step.RELEASE:
                assert columns.twins_at_zero, columns
                assert columns.home or not columns.saved, columns

    def test_a_stranger_is_left_alone(self) -> None:
        """Without label, Split and anything of ours there is nothing to do."""
        for columns in every():
            if not (columns.label or columns.holds or columns.split or columns.report):
                assert next_step(columns) is Step.NOTHING, columns
