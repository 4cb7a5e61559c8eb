"""Whose mark a source bears, and which twins wait for pods."""

from dataclasses import replace

import pytest

from builders import NOW, pods, replica_set, source, twin
from splitter.core.handover import Ownership, holds_replicas, ownership_of, waits_for_pods
from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER
from splitter.core.labels_annotations.label import ownership_mark_value
from splitter.core.replica import Pool


@pytest.mark.parametrize(
    ("uid", "ownership"), [(None, Ownership.NONE), ("", Ownership.OURS), ("other", Ownership.FOREIGN)]
)
def test_a_mark_names_its_source(uid: str | None, ownership: Ownership) -> None:
    """The mark of another UID was restored from a backup, or the source was created again."""
    there = source()
    marks: dict[str, str] = (
        {} if uid is None else {ANNOTATION_TAKEN_OVER: ownership_mark_value(uid or there.uid, NOW)}
    )
    assert ownership_of(replace(there, annotations=marks)) is ownership


def test_what_holds_replicas() -> None:
    """A ReplicaSet at 0 holds replicas until its last pod is asked to end."""
    assert holds_replicas(replica_set(spec=0, of=pods(1)))
    assert not holds_replicas(replica_set(spec=0))


@pytest.mark.parametrize(("paused", "count", "waits"), [(True, 0, True), (True, 1, False), (False, 0, False)])
def test_a_twin_waits_for_pods(paused: bool, count: int, waits: bool) -> None:
    """It is paused, and has none."""
    assert waits_for_pods(twin(Pool.SPOT, pods(count), paused=paused)) == waits
