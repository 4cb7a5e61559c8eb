"""Amounts of CPU and memory: one is within another only where both are."""

import pytest

from splitter.core.relief.model import Amounts, Resource


@pytest.mark.parametrize(
    ("amounts", "within"),
    [((1, 1), True), ((2, 3), True), ((2.1, 0), False), ((0, 3.1), False), ((0, 0), True)],
)
def test_within(amounts: tuple[float, float], *, within: bool) -> None:
    """A node that is short of one of the two has no room."""
    assert Amounts(*amounts).within(Amounts(2, 3)) is within


def test_are_added_one_by_one() -> None:
    """And each is found by its name."""
    both = Amounts(1, 2) + Amounts(3, 5)
    assert (both, both - Amounts(1, 2)) == (Amounts(4, 7), Amounts(3, 5))
    assert [both.of(one) for one in Resource] == [4, 7]
