"""Which kind of holder answers for what is observed, and what depends on the kind of the source."""

from dataclasses import replace
from typing import Any

import pytest

from builders import ago, observation, pod, pods, replica_set, source, twin
from splitter.core.holders import (
    floor_in_roll,
    holder_of,
    holders_of,
    is_held,
    loses_volumes,
    partition,
    updated_members,
)
from splitter.core.model import Attachment
from splitter.core.replica import Pool
from splitter.core.stateful import StatefulView

STATEFUL = StatefulView(0, 0, 0, ago(500), saved=5, partition=2, revision="new", deletes_claims=True)
DATABASE = source(5, stateful=STATEFUL, max_surge=1, max_unavailable=1, paused=False)


def test_of_each_kind() -> None:
    """A StatefulSet has ordinals, as a twin or as the source's own."""
    parked, spot = replica_set(of=pods(2)), twin(Pool.SPOT, pods(2))
    views = (parked, replace(parked, first_ordinal=0), spot, replace(spot, first_ordinal=1000))
    kinds = ["ReplicaSet", "StatefulSet", "Deployment", "StatefulSet"]
    assert [holder_of(view).kind for view in views] == kinds
    assert [holder_of(view).keeps_names for view in views] == [kind == "StatefulSet" for kind in kinds]


def test_of_all_that_is_scaled() -> None:
    """What is parked and the twins; not what the source runs by itself."""
    sets = [replica_set("web-1"), replica_set("web-2", attachment=Attachment.ATTACHED)]
    seen = observation(sets=sets, on_demand=twin(Pool.ON_DEMAND), spot=None)
    assert [holder.view.name for holder in holders_of(seen)] == ["web-1", "web-on-demand"]


def test_a_deployment() -> None:
    """Its own strategy says what a roll keeps."""
    web = source(10, max_surge=3, max_unavailable=2)
    assert (floor_in_roll(web), partition(web)) == (10, 0)
    assert not loses_volumes(web)
    assert updated_members(web, [pod()]) is None


def test_a_statefulset() -> None:
    """Its roll takes one of its members."""
    assert (floor_in_roll(DATABASE), partition(DATABASE)) == (4, 2)
    assert loses_volumes(DATABASE)


@pytest.mark.parametrize(
    ("fields", "held"), [({}, True), ({"saved": None}, False), ({"spec_replicas": 3}, False)]
)
def test_a_statefulset_is_held_by_its_saved_count(fields: dict[str, Any], held: bool) -> None:
    """Until it is scaled by others."""
    assert is_held(replace(DATABASE, stateful=replace(STATEFUL, **fields))) == held


@pytest.mark.parametrize("paused", [True, False])
def test_a_deployment_is_held_by_its_pause(paused: bool) -> None:
    """It makes no pods while it is paused."""
    assert is_held(source(paused=paused)) == paused


def test_updated_members() -> None:
    """Those of the newest revision, and those that the partition holds back."""
    members = [pod("db-1", ordinal=1), pod("db-2", ordinal=2), pod("db-3", ordinal=3, revision="new")]
    assert updated_members(DATABASE, members) == [members[0], members[2]]
    assert updated_members(replace(DATABASE, observed=False), members) == []
