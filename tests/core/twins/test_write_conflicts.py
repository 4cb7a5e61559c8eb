"""Writes that somebody else undoes are counted."""

from builders import ago, observation, replica_set, source, split
from core.one_reconcile import ATTACHED, planned


def test_the_write_conflicts_of_today_are_counted() -> None:
    """Three within ten minutes; older ones are forgotten."""
    old_and_new = split(write_conflicts=(ago(700), ago(60)))
    result = planned(
        observation(source(paused=False), [ATTACHED, replica_set("web-0", spec=0)], split=old_and_new)
    )
    assert "2 of 3" in result.verdict.message
