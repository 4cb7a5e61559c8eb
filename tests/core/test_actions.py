"""Which writes ask for more, and which do not wait for an earlier one that was refused."""

import pytest

from splitter.core.actions import (
    Action,
    AdoptPods,
    DeleteSplit,
    HolderKind,
    Scale,
    SetBudget,
    is_raise,
    must_not_wait,
)
from splitter.core.replica import Pool


def scale(was: int, replicas: int) -> Scale:
    """Return a write of a count."""
    return Scale(HolderKind.DEPLOYMENT, "web-spot", was, replicas, None)


@pytest.mark.parametrize(
    ("action", "raises", "hurries"),
    [
        (scale(3, 5), True, True),
        (scale(5, 5), False, False),
        (scale(5, 3), False, False),
        (AdoptPods("web-spot-1", Pool.SPOT, ("1",), None), False, True),
        (SetBudget("web-guard", 5, raised=True), False, False),
        (DeleteSplit(), False, False),
    ],
)
def test_what_is_in_a_hurry(action: Action, *, raises: bool, hurries: bool) -> None:
    """A raise covers a loss, and pods without an owner are replaced by nobody."""
    assert (is_raise(action), must_not_wait(action)) == (raises, hurries)
