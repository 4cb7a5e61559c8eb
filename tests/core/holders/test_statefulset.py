"""A StatefulSet gives its highest ordinals, and its members keep their names."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, ago, pod, replica_set, twin_of
from holding import kept_by, most_lost, share
from splitter.core.clock import Waits
from splitter.core.holders.shares import Share, break_
from splitter.core.holders.statefulset import is_cut_off, staying_pods
from splitter.core.model import Attachment, ReplicaSetView
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Pool, Replica, Trouble

ATTACHED, DOOMED = Attachment.ATTACHED, NodeStatus.DOOMED
NO_VOLUME = Trouble(Reason.VOLUME_UNAVAILABLE, 'persistentvolumeclaim "data" not found')


def waiting(name: str = "w", trouble: Trouble | None = None, **fields: Any) -> Replica:  # noqa: ANN401 (fields of the view)
    """Return a pod that the scheduler cannot place."""
    return pod(name, NodeStatus.UNBOUND, unschedulable_since=ago(10), trouble=trouble, **fields)


def database_of(order: Sequence[bool], *, rolls: bool = False) -> ReplicaSetView:
    """Return a StatefulSet of so many members, from the top: whether each serves."""
    top = len(order) - 1
    members = [pod(f"db-{top - nth}", ready=serves, ordinal=top - nth) for nth, serves in enumerate(order)]
    return replace(replica_set("db", of=members), first_ordinal=0, rolls=rolls)


def as_holder(order: Sequence[bool], target: int = 0, *, rolls: bool = False) -> Share:
    """Return it as a holder."""
    return share(database_of(order, rolls=rolls), target, 0)


class TestShrinking:
    """A StatefulSet gives its highest ordinals, whoever they are."""

    def test_the_order(self) -> None:
        """Highest first; a missing one and a lost one serve nobody, a doomed one does."""
        pods = [
            pod("db-0", ordinal=0),
            pod("db-1", NodeStatus.LOST, ordinal=1),
            pod("db-3", NodeStatus.DOOMED, ordinal=3),
        ]
        database = replace(replica_set("db", 4, pods), first_ordinal=0)
        assert [most_lost(database, 4 - given_) for given_ in range(5)] == [0, 1, 1, 1, 2]

    def test_any_number_of_replicas(self) -> None:
        """How many there are is a tenant's number: nobody walks over them, nor makes a list of them."""
        most = 2**31 - 1
        pods = [pod(f"db-{ordinal}", ordinal=ordinal) for ordinal in (0, 1, most - 1)]
        holder = share(replace(replica_set("db", most, pods), first_ordinal=0), 3, 0)
        assert holder.shrink(least=3) == 0
        assert holder.shrink(least=2) == most - 3

    def test_what_stays(self) -> None:
        """A pod beyond the count is on its way out, however ready it is."""
        pods = [pod(f"db-{ordinal}", ordinal=ordinal) for ordinal in range(5)]
        assert [one.ordinal for one in staying_pods(pods, 3, 0)] == [0, 1, 2]

    @pytest.mark.parametrize(
        ("order", "rolls", "floor", "left"),
        [
            ((False, True, True, True), False, 3, 3),  # the top one is free
            ((True, False, True, True), False, 3, 4),  # it is not
            ((True, False, True, True), False, 2, 2),  # nor alone: the one below goes with it for nothing
            ((False, True, True, True), True, 3, 4),  # its roll would take the next one from the top
        ],
    )
    def test_break(self, order: tuple[bool, ...], rolls: bool, floor: int, left: int) -> None:
        """It gives what serves only above the floor."""
        assert break_([as_holder(order, rolls=rolls)], floor).get("db", 4) == left

    @given(st.lists(st.booleans(), max_size=8), st.booleans(), st.integers(0, 8), st.integers(0, 8))
    def test_never_below_the_floor(self, order: list[bool], rolls: bool, floor: int, target: int) -> None:
        """Whoever is left after a shrink, and after what its roll may take, is enough."""
        sure = max(0, min(sum(order), len(order) - rolls))
        left = break_([as_holder(order, target, rolls=rolls)], floor).get("db", len(order))
        kept = order[len(order) - left :]
        assert max(0, min(sum(kept), left - rolls)) >= min(sure, floor)


class TestMembers:
    def test_of_members_takes_the_doomed_for_no_other(self) -> None:
        """The status admits two of four that are ready: the others are younger than `minReadySeconds`."""
        older = [pod(f"db-{k}", DOOMED, ordinal=k, ready_since=ago(900)) for k in (0, 1)]
        young = [pod(f"db-{k}", ordinal=k, ready_since=ago(1)) for k in (2, 3)]
        of = replica_set("db-on-demand", 4, [*older, *young], attachment=ATTACHED)
        members = twin_of(Pool.ON_DEMAND, [of], updated=4, available_replicas=2, first_ordinal=0)
        assert kept_by(members, 4) == 0
        assert kept_by(replace(members, available_replicas=3), 4) == 1
        assert kept_by(replace(members, available_replicas=4), 3) == 1

    @pytest.mark.parametrize(
        ("one", "cut_off"),
        [
            (waiting(trouble=Trouble(Reason.VOLUME_ZONE_CONFLICT, ""), ordinal=0), True),
            (waiting(trouble=Trouble(Reason.VOLUME_ZONE_CONFLICT, "")), False),
            (waiting(trouble=NO_VOLUME, ordinal=0), False),
            (waiting(ordinal=0), False),
        ],
        ids=["a member", "no member", "no volume at all", "no node"],
    )
    def test_cut_off(self, one: Replica, *, cut_off: bool) -> None:
        """Under another name a member gets another volume; not before the grace is over."""
        assert is_cut_off(one, Waits(NOW), 10.0) is cut_off
        assert not is_cut_off(one, Waits(NOW), 11.0)
