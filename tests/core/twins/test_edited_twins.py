"""What others write into twins: what is an edit, when it is put back, and what is said."""

from dataclasses import replace

import pytest

from builders import NOW, ago, rendered
from core.one_reconcile import at_rest
from splitter.core.keyed import Edit, Removed
from splitter.core.model import Observation, Rendered
from splitter.core.replica import Pool
from splitter.core.twins.edited_twins import drifted

RENDERED = {
    pool: replace(one, manifest_json='{"spec": {"image": "web:2"}}') for pool, one in rendered("v1").items()
}
IMAGE = ("spec", "image")


def edited(*edits: Edit, removed: Removed | None = None) -> Observation:
    """Return a workload at rest whose spot twin somebody has edited."""
    observed = at_rest()
    assert observed.spot is not None
    return replace(observed, spot=replace(observed.spot, edits=edits, removed=removed))


def outdated(observed: Observation, made: dict[Pool, Rendered] = RENDERED) -> bool:
    """Whether the spot twin is put back now."""
    seen, _ = drifted(observed, made)
    assert seen.spot is not None
    return not seen.spot.rendered_hash


def test_what_the_twin_is_to_become_is_no_edit() -> None:
    """The source says the same by now."""
    assert not drifted(edited(Edit(IMAGE, "web:2", ago(60))), RENDERED)[1]
    assert drifted(edited(Edit(IMAGE, "web:1", ago(60))), RENDERED)[1]


@pytest.mark.parametrize(("age_s", "due"), [(0, False), (4, False), (5, True), (-4, False), (-60, True)])
def test_it_waits_for_the_source(age_s: float, due: bool) -> None:
    """For some seconds; a clock that is far ahead keeps nothing waiting."""
    assert outdated(edited(Edit(IMAGE, "web:9", ago(age_s)))) is due
    assert outdated(edited(removed=Removed((IMAGE,), ago(age_s)))) is due


def test_without_a_time_it_is_put_back_at_once() -> None:
    """An entry of managedFields need not have one."""
    assert outdated(edited(Edit(IMAGE, "web:9")))


def test_a_removed_field_is_named() -> None:
    """Where it is one that is rendered; a changed one was not removed."""
    drifts = drifted(edited(removed=Removed((IMAGE, ("spec", "gone")), NOW)), RENDERED)[1]
    assert drifts[Pool.SPOT].what == "fields of its pod template were removed: spec.image"
    changed = drifted(edited(Edit(IMAGE, "web:9")), RENDERED)[1]
    assert changed[Pool.SPOT].what == "spec.image"
