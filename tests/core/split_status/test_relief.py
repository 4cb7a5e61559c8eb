"""What a Split remembers of moves for relief: which goes on, and what a forged one is worth."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from splitter.core.hot_nodes import Aim
from splitter.core.split_status import ReliefMove, ReliefStatus
from splitter.core.split_status.relief import HOT_NODES_MAX, MOVES_MAX
from splitter.core.split_status.values import NEVER

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MOVE = ReliefMove(NOON, "spot", "web-1", "uid-1", "node-1", "uid-node-1", 8, NOON, aim=Aim.POOL, stand="so")


class TestMoves:
    @pytest.mark.parametrize("aim", list(Aim))
    def test_come_back_as_they_were(self, aim: Aim) -> None:
        """Whatever they are for; exact to the microsecond, since pods are compared with it."""
        move = replace(MOVE, aim=aim, raised=True, ended=NOON.replace(microsecond=5), taken_back=True)
        assert ReliefMove.from_json(move.to_json()) == move

    def test_the_last_one_goes_on_until_it_has_ended(self) -> None:
        """One goes on at a time: an earlier one without an end is none that does."""
        ended = replace(MOVE, pod_uid="uid-2", ended=NOON)
        assert ReliefStatus().current is None
        assert ReliefStatus(moves=(ended, MOVE)).current is MOVE
        assert ReliefStatus(moves=(MOVE, ended)).current is None

    @pytest.mark.parametrize(
        ("changed", "read"),
        [
            ({"aim": "later"}, {"aim": Aim.COOL}),  # of another version
            ({"aim": ["pool"]}, {"aim": Aim.COOL}),
            ({"raised": "yes"}, {"raised": False}),
            ({"replicas": -3}, {"replicas": 0}),
            ({"ended": "soon"}, {"ended": None}),
            ({"time": 5}, {"at": NEVER}),
        ],
    )
    def test_that_were_edited_are_read_field_by_field(
        self, changed: dict[str, Any], read: dict[str, Any]
    ) -> None:
        """What makes no sense is as if it were not there."""
        assert ReliefMove.from_json({**MOVE.to_json(), **changed}) == replace(MOVE, **read)

    def test_without_a_pod_are_none(self) -> None:
        """And no more are read than are ever written, the newest."""
        raw = [{**MOVE.to_json(), "podUid": f"uid-{number}"} for number in range(MOVES_MAX + 2)]
        read = ReliefStatus.from_json({"moves": [*raw, {"pod": "web-1"}]}).moves
        assert [one.pod_uid for one in read] == [f"uid-{number}" for number in range(3, MOVES_MAX + 2)]


def test_hot_nodes_have_names() -> None:
    """Ten of them."""
    read = ReliefStatus.from_json({"hotNodes": ["", 5, *(f"n{number}" for number in range(12))]}).hot_nodes
    assert read == tuple(f"n{number}" for number in range(2, 2 + HOT_NODES_MAX))
