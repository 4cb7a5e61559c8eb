"""Writes that somebody else undoes are counted."""

import pytest

from builders import ago, observation, replica_set, source, split
from core.one_reconcile import ATTACHED, planned
from splitter.core.twins.write_conflicts import TEMPLATES, remedy, with_one_more


def test_the_write_conflicts_of_today_are_counted() -> None:
    """Three within ten minutes; older ones are forgotten."""
    old_and_new = split(write_conflicts=(ago(700), ago(60)))
    result = planned(
        observation(source(paused=False), [ATTACHED, replica_set("web-0", spec=0)], split=old_and_new)
    )
    assert "2 of 3" in result.verdict.message


@pytest.mark.parametrize(
    ("before", "writer", "count"),
    [("argocd", "argocd", 2), ("argocd", "flux", 1), ("", TEMPLATES, 2), (TEMPLATES, "", 2)],
)
def test_who_they_are_with(before: str, writer: str, count: int) -> None:
    """Two who take turns are two; of pod templates nobody knows who it was, so those count with any other."""
    known = split(write_conflicts=(ago(60),), conflicting_writer=before)
    assert len(with_one_more(observation(source(), split=known), writer)) == count


@pytest.mark.parametrize(
    ("by_karmada", "says"), [(False, "Stop it"), (True, "manifests/karmada/interpreters.yaml")]
)
def test_what_ends_it(*, by_karmada: bool, says: str) -> None:
    """Where Karmada writes the source, its own interpreter; else what the step knows."""
    assert says in remedy(source(by_karmada=by_karmada), "Stop it")
