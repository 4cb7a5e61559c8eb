"""What the workloads of the suite want, and what is promised to them."""

from dataclasses import replace

import pytest

from lab.chaos.workload import CAST, FACES, Cast, Kind, Part
from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy

SOAKED = [replace(CAST[0], base=base, spot_percent=percent) for base in range(4) for percent in (50, 100)]


@pytest.mark.parametrize(
    "cast", [*CAST, *SOAKED], ids=lambda cast: f"{cast.namespace}-{cast.base}-{cast.spot_percent}"
)
@pytest.mark.parametrize("more", range(5))
def test_division(cast: Cast, more: int) -> None:
    """The suite's own arithmetic and splitter's, written independently, agree at every count it scales to."""
    replicas = cast.least + more
    majority = cast.kind is not Kind.DEPLOYMENT
    policy = Policy(
        on_demand_base="majority" if majority else cast.base,
        spot_percent=100 if majority else cast.spot_percent,
    )
    on_demand = base_replicas(replicas, policy)
    assert cast.division(replicas) == (on_demand, replicas - on_demand)


def test_every_kind_is_played() -> None:
    """Each has a face, and a part in the cast; names are for one workload each."""
    assert {cast.kind for cast in CAST} == set(Kind) == set(FACES)
    assert len({cast.namespace for cast in CAST}) == len(CAST)


@pytest.mark.parametrize("cast", [cast for cast in CAST if cast.kind is not Kind.DEPLOYMENT])
def test_a_statefulset_is_promised(cast: Cast) -> None:
    """One member may be missing, and one may be beside the others."""
    part = Part(cast, None, cast.least)  # type: ignore[arg-type]  # nothing is done to it
    part.opens()
    assert (part.terms.floor, part.terms.bound) == (cast.least - 1, cast.least + 1)


def test_a_rollout_has_one_to_spare() -> None:
    """As in any rollout, until the next round."""
    part = Part(CAST[0], None, 5)  # type: ignore[arg-type]  # as above
    part.opens()
    part.rolled = True
    assert part.terms.bound == 8
    part.opens()
    assert part.terms.bound == 7
