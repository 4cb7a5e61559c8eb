"""Bounds on CPU hold on any machine, and still are bounds."""

import pytest

from cpu import cpu_below, piece_of_work


def test_is_kept_on_any_machine() -> None:
    """What takes a tenth of a second on a usual machine takes less than half a second of such a one."""
    with cpu_below(0.5):
        piece_of_work()


def test_is_a_bound_on_any_machine() -> None:
    """A fifth of a second's work is no fiftieth of a second's."""
    with pytest.raises(AssertionError, match=" times slower than usual"), cpu_below(0.02):
        piece_of_work(2)
