"""What is larger than splitter looks after: refused with its size and the limit, and left as it is."""

from dataclasses import replace
from typing import Any

import pytest

from builders import NOW, free_source, observation, replica_set, split
from splitter.core import limits
from splitter.core.actions import DeleteSplit, EnsureSplit
from splitter.core.eligibility import objection_while_split, refusal
from splitter.core.model import Note, Policy, ReplicaSetView, SourceView, SplitView, StatefulView, Tie
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.plan import Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State

DB = Key(STATEFUL_SET, "shop", "db")


def stateful(replicas: int, claims: int = 0, **fields: Any) -> SourceView:  # noqa: ANN401 (SourceView's)
    """Return a StatefulSet with so many claims a member."""
    only = StatefulView(
        spec_replicas=replicas,
        status_replicas=replicas,
        available_replicas=replicas,
        created=NOW,
        claim_templates=tuple(f"data-{number}" for number in range(claims)),
    )
    return free_source(replicas, key=DB, stateful=only, **fields)


TOO_LARGE = [
    (free_source(manifest_json="x" * (limits.MAX_MANIFEST_BYTES + 1024)), "513 KiB", "512 KiB"),
    (free_source(claims=tuple(map(str, range(51)))), "51 volume claims", "most 50"),
    (stateful(1001), "1001 replicas", "most 1000"),
    (stateful(126, 2), "252 volume claims", "most 250"),
]


@pytest.mark.parametrize(("source", "size", "limit"), TOO_LARGE)
def test_over_a_limit(source: SourceView, size: str, limit: str) -> None:
    """It is refused before anything else is said of it; what is split already stays so."""
    found = refusal(observation(source=source), source, Policy(), ())
    assert found is not None
    assert found.reason is Reason.TOO_LARGE
    assert size in found.message
    assert limit in found.message
    assert found.warning
    kept = objection_while_split(observation(source=source, split=split()), source, Policy())
    assert kept is not None
    assert kept.reason is Reason.TOO_LARGE
    assert "stays split" in kept.message


@pytest.mark.parametrize(
    "source",
    [
        free_source(manifest_json="x" * limits.MAX_MANIFEST_BYTES),
        free_source(100_000),
        free_source(claims=tuple(map(str, range(50)))),
        stateful(1000),
        stateful(125, 2),
        stateful(0, 100),
    ],
)
def test_within_all(source: SourceView) -> None:
    """As large as it may be; how many replicas a Deployment has costs nothing."""
    assert limits.too_large(source) == ""


def set_of(name: str, replicas: int, **fields: Any) -> ReplicaSetView:  # noqa: ANN401 (ReplicaSetView's)
    """Return what asks for so many replicas."""
    return replace(replica_set(name), name=name, spec_replicas=replicas, **fields)


@pytest.mark.parametrize("replicas", [1001, 2**31 - 1])
@pytest.mark.parametrize("split_already", [None, split(), split(ordinals=(0, 1))])
def test_members_are_not_looked_at(replicas: int, split_already: SplitView | None) -> None:
    """A set that was split and then scaled is held as it is, with the limit and its size, and at once."""
    source = stateful(replicas)
    observed = observation(source=source, split=split_already)
    in_force = policy_in_force(observed, Policy())
    found = plan(observed, in_force, Note(Reason.TEMPLATE_INVALID, "not rendered"), Rules())
    assert found.verdict.reason is Reason.TOO_LARGE
    assert str(replicas) in found.verdict.message
    assert "at most 1000" in found.verdict.message
    wanted = (EnsureSplit(takes_over=False),) if split_already is None else ()
    assert found.actions == wanted
    assert found.state is (State.REFUSED if split_already is None else State.HELD)


def test_who_takes_the_label_away_has_it_back() -> None:
    """However large a placed set is."""
    source = stateful(2**31 - 1, labels={})
    observed = observation(source=source, split=split(ordinals=(0, 1)))
    found = plan(observed, policy_in_force(observed, Policy()), Note(Reason.SCALED, ""), Rules())
    assert found.actions == (DeleteSplit(),)


def test_many_replica_sets() -> None:
    """Each would be parked, so their number is bounded; and told with what sets it."""
    source = free_source()
    kept = tuple(set_of(f"web-{number}", 0, tie=Tie.ATTACHED) for number in range(51))
    found = refusal(observation(source=source, replica_sets=kept), source, Policy(), ())
    assert found is not None
    assert found.reason is Reason.TOO_LARGE
    assert "51 ReplicaSets" in found.message
    assert "revisionHistoryLimit" in found.message
    assert limits.too_many_replica_sets(observation(source=source, replica_sets=kept[1:])) == ""
