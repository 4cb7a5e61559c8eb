"""The input of a decision: what must stay, and what will be there once the controllers have caught up."""

from dataclasses import replace
from typing import Any

import pytest

from core.rebalance.moments import NOW, ago, settled
from splitter.core.labels_annotations.policy import Policy

QUIET = settled(10, Policy(on_demand_base=4))


class TestFloor:
    @pytest.mark.parametrize(
        ("desired", "surge", "unavailable", "floor"),
        [(10, 3, 2, 10), (10, 0, 2, 8), (1, 0, 1, 0), (1, 0, 5, 0), (0, 1, 1, 0)],
    )
    def test_is_n_where_there_may_be_one_more(
        self, desired: int, surge: int, unavailable: int, floor: int
    ) -> None:
        """Else what the source itself allows to be missing; never below nothing."""
        assert replace(QUIET, desired=desired, max_surge=surge, max_unavailable=unavailable).floor == floor


class TestCounts:
    def test_of_spot(self) -> None:
        """Placed are those with a node; hindered ones no other node would cure."""
        seen = replace(QUIET, spot_ready_since=(NOW,) * 3, spot_starting=2, spot_hindered=1, spot_doomed=4)
        assert (seen.spot_ready, seen.spot_placed, seen.spot_accounted) == (3, 5, 6)


class TestWithinSpec:
    def test_changes_nothing_where_specs_are_reached(self) -> None:
        """Or more is asked for than there is."""
        assert QUIET.within_spec() == QUIET
        more = replace(QUIET, spot_spec=9, spot_starting=2, on_demand_spec=8)
        assert more.within_spec() == more

    @pytest.mark.parametrize(
        ("spec", "fields", "left"),
        [
            (4, {"spot_ready_since": (NOW,) * 4, "spot_doomed": 2}, (4, 0, 0, 0)),
            (4, {"spot_ready_since": (NOW,) * 2, "spot_doomed": 3, "spot_starting": 1}, (2, 2, 0, 0)),
            (4, {"spot_ready_since": (NOW,), "spot_doomed": 1, "spot_starting": 5}, (1, 1, 2, 0)),
            (4, {"spot_ready_since": (NOW,), "spot_starting": 1, "spot_hindered": 9}, (1, 0, 1, 2)),
            (0, {"spot_ready_since": (NOW,) * 3, "spot_doomed": 3, "spot_starting": 3}, (0, 0, 0, 0)),
        ],
    )
    def test_spot_keeps_who_serves(self, spec: int, fields: dict[str, Any], left: tuple[int, ...]) -> None:
        """The unready go first, then the doomed."""
        seen = replace(QUIET, spot_spec=spec, **fields).within_spec()
        assert (seen.spot_ready, seen.spot_doomed, seen.spot_starting, seen.spot_hindered) == left

    def test_of_members_no_more_are_dead_or_pinned_than_there_is_room_for(self) -> None:
        """What has been lowered is not asked for again beside them."""
        seen = replace(QUIET, spot_spec=4, spot_ready_since=(NOW,), spot_doomed=2, spot_dead=9, spot_pinned=3)
        seen = seen.within_spec()
        assert (seen.spot_doomed, seen.spot_dead, seen.spot_pinned) == (2, 1, 2)

    def test_of_the_ready_the_youngest_go(self) -> None:
        """In whatever order they were seen: those that earn a return stay."""
        seen = replace(QUIET, spot_spec=2, spot_ready_since=(ago(1), ago(99), ago(50)))
        assert seen.within_spec().spot_ready_since == (ago(99), ago(50))

    def test_on_demand_keeps_who_serves(self) -> None:
        """Nobody is stuck who will not be there."""
        seen = replace(
            QUIET,
            on_demand_spec=4,
            on_demand_ready=3,
            on_demand_doomed=3,
            on_demand_stuck=2,
            on_demand_over_quota=2,
        ).within_spec()
        assert (seen.on_demand_ready, seen.on_demand_doomed) == (3, 1)
        assert (seen.on_demand_stuck, seen.on_demand_over_quota) == (0, 0)
