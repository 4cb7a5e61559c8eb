"""What depends on the kind of the source."""

from dataclasses import replace
from typing import Any

import pytest

from builders import ago, pod, source
from splitter.core.holders import source as questions
from splitter.core.stateful import StatefulView

STATEFUL = StatefulView(0, 0, 0, ago(500), saved=5, partition=2, revision="new", deletes_claims=True)
DATABASE = source(5, stateful=STATEFUL, max_surge=1, max_unavailable=1, paused=False)


def test_a_deployment() -> None:
    """Its own strategy says what a roll keeps."""
    web = source(10, max_surge=3, max_unavailable=2)
    assert (questions.floor_in_roll(web), questions.partition(web)) == (10, 0)
    assert not questions.loses_volumes(web)
    assert questions.updated(web, [pod()]) is None


def test_a_statefulset() -> None:
    """Its roll takes one of its members."""
    assert (questions.floor_in_roll(DATABASE), questions.partition(DATABASE)) == (4, 2)
    assert questions.loses_volumes(DATABASE)


@pytest.mark.parametrize(
    ("fields", "held"), [({}, True), ({"saved": None}, False), ({"spec_replicas": 3}, False)]
)
def test_a_statefulset_is_held_by_its_saved_count(fields: dict[str, Any], held: bool) -> None:
    """Until it is scaled by others."""
    assert questions.is_held(replace(DATABASE, stateful=replace(STATEFUL, **fields))) == held


@pytest.mark.parametrize("paused", [True, False])
def test_a_deployment_is_held_by_its_pause(paused: bool) -> None:
    """It makes no pods while it is paused."""
    assert questions.is_held(source(paused=paused)) == paused


def test_updated_members() -> None:
    """Those of the newest revision, and those that the partition holds back."""
    members = [pod("db-1", ordinal=1), pod("db-2", ordinal=2), pod("db-3", ordinal=3, revision="new")]
    assert questions.updated(DATABASE, members) == [members[0], members[2]]
    assert questions.updated(replace(DATABASE, observed=False), members) == []
