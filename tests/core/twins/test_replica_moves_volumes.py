"""Which counts of a StatefulSet would touch volumes that are not of the twins: those stay as they are."""

from dataclasses import replace

import pytest

from builders import NOW, observation, pods, source, twin
from splitter.core.actions import HolderKind, Scale
from splitter.core.model import RelatedObjects
from splitter.core.replica import Pool
from splitter.core.stateful import StatefulView
from splitter.core.twins.replica_moves import spared, with_own_volumes

DELETES = StatefulView(5, 5, 5, NOW, deletes_claims=True)


def scale(name: str, was: int, replicas: int) -> Scale:
    """Return a write of a count."""
    return Scale(HolderKind.STATEFUL_SET, name, was, replicas, None)


class TestSpared:
    def test_what_would_take_volumes_along_is_left_out(self) -> None:
        """Of the source, where its volumes go with its pods: raises and the twins' counts are written."""
        scales = [scale("web", 5, 3), scale("web", 5, 5), scale("web", 3, 5), scale("web-spot", 5, 3)]
        assert spared(source(stateful=DELETES), scales) == (scales[2], scales[3])

    @pytest.mark.parametrize("stateful", [None, replace(DELETES, deletes_claims=False)])
    def test_elsewhere_nothing_is(self, stateful: StatefulView | None) -> None:
        """Its volumes stay, or it has none."""
        scales = (scale("web", 5, 3),)
        assert spared(source(stateful=stateful), scales) == scales


class TestForeignClaims:
    @pytest.mark.parametrize(
        ("taken", "wanted", "result"),
        [
            ({}, 9, 9),
            ({Pool.ON_DEMAND: (4, "data-web-spot-4")}, 9, 9),  # the other twin's
            ({Pool.SPOT: (4, "data-web-spot-4")}, 9, 4),
            ({Pool.SPOT: (4, "data-web-spot-4")}, 2, 2),
            ({Pool.SPOT: (1, "data-web-spot-1")}, 9, 3),  # it is there: nobody is ended for it
            ({Pool.SPOT: (1, "data-web-spot-1")}, 2, 2),
        ],
    )
    def test_a_twin_grows_up_to_them(
        self, taken: dict[Pool, tuple[int, str]], wanted: int, result: int
    ) -> None:
        """A member would mount one, and delete it when it goes."""
        around = observation(related=RelatedObjects(taken_claims=taken))
        assert with_own_volumes(around, twin(Pool.SPOT, pods(3)), wanted) == result
